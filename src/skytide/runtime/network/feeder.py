"""Feeds a site from a file, a growing file or standard input: what `skytide site` does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from skytide.errors import InputError
from skytide.runtime.network.memory import Memory
from skytide.runtime.network.rows import Row, RowReader, form_of
from skytide.runtime.network.site import AsyncSite
from skytide.runtime.network.sources import MOMENT, Growing, Pipe, Place, Plain, Source, is_plain

STANDARD_INPUT = "-"
LAST_WORDS = 1.0
"""Seconds that rows which were read have to be acknowledged when the site is stopped."""
_MOST_KINDS = 100


@dataclass(frozen=True, kw_only=True)
class Feed:
    """What a site is fed with, and what it does at the end."""

    data: str
    id_column: str
    form: str | None = None
    follow: bool = False
    stay: bool = False

    @property
    def name(self) -> str:
        """The data as complaints name it."""
        return "standard input" if self.data == STANDARD_INPUT else self.data

    @cached_property
    def streams(self) -> bool:
        """Whether rows come as they happen: what cannot be used is then passed over, as it cannot be mended."""
        return self.follow or self.data == STANDARD_INPUT or not is_plain(self.data)

    def reader(self, columns: tuple[str, ...]) -> RowReader:
        """A reader of the rows, for the columns that are asked for."""
        form = self.form or ("csv" if self.data == STANDARD_INPUT else form_of(self.data))
        return RowReader(form, self.id_column, columns)

    def source(self) -> Source:
        """Where the bytes come from, from the beginning."""
        if self.follow:
            return Growing(self.data)
        if self.data == STANDARD_INPUT:
            return Pipe(0)
        return Plain(self.data) if is_plain(self.data) else Pipe(self.data)


class Feeder:
    """Reads rows, makes them durable where a memory is given, and puts them into a site.

    The site holds until all that is there at the start is put: the answer does not show a part of a file, nor old rows
    of one that is read again.
    """

    def __init__(self, feed: Feed, site: AsyncSite, memory: Memory | None, say: Callable[[str], None]) -> None:
        self._feed, self.site, self._memory, self._say = feed, site, memory, say
        self.bad = 0
        """Rows that could not be read."""
        self._released = False
        self._kinds: set[tuple[str, object]] = set()

    async def run(self) -> None:
        """Feed until the data ends; then the values are final, unless the site is to stay."""
        query = await self.site.query()
        reader = self._feed.reader(query.columns)
        if not self._feed.streams:
            await self._prove(self._feed.reader(query.columns))
        else:
            self._say(f"{self.site.name} is connected; columns: {', '.join(query.columns)}")
        source = self._feed.source()
        await self._restore(reader, source, query.columns)
        if isinstance(source, Pipe):
            self._release()
        await self._read(reader, source)
        source.close()  # only now: where this ends otherwise, a thread may still be reading
        if self._feed.stay:
            await self.site.flush()
            self._say(f"{self.site.name} has told all {self.site.rows} rows, and stays")
            await self.site.over()
        else:
            await self.site.finish()

    async def _prove(self, reader: RowReader) -> None:
        """Read a plain file once, so that nothing of it is told if it cannot be used."""
        source = Plain(self._feed.data)
        while (piece := await asyncio.to_thread(source.read)) is not None:
            self._checked(reader, piece.data)
        self._checked(reader, b"", last=True)
        source.close()
        if not reader.begun:
            raise InputError("the file is empty", file=self._feed.name, remedy="begin with the names of the columns")

    def _checked(self, reader: RowReader, data: bytes, *, last: bool = False) -> list[Row]:
        """The rows that can be read; of a stream others are reported and passed over."""
        rows: list[Row] = []
        try:
            for found in reader.feed(data, last=last):
                if not isinstance(found, InputError):
                    rows.append(found)
                elif self._feed.streams:
                    self._pass_over(found)
                else:
                    raise found
        except InputError as problem:
            raise problem.at(file=self._feed.name) from None
        return rows

    def _pass_over(self, problem: InputError) -> None:
        self.bad += 1
        kind = problem.reason, problem.column
        if kind not in self._kinds and len(self._kinds) < _MOST_KINDS:
            self._kinds.add(kind)
            self._say(f"{problem.at(file=self._feed.name)}; more of the kind are only counted")

    async def _restore(self, reader: RowReader, source: Source, columns: tuple[str, ...]) -> None:
        memory = self._memory
        if memory is None:
            return
        memory.check(columns)
        for one, values in memory.values.items():
            await self.site.put(one, values)
        memory.values = {}
        if isinstance(source, Growing) and memory.place is not None and source.resume(memory.place):
            if not reader.begun:
                self._checked_header(reader, source.beginning())
            reader.resume(memory.place.row, memory.place.offset)

    def _checked_header(self, reader: RowReader, data: bytes) -> None:
        try:
            next(reader.feed(data), None)
        except InputError as problem:
            raise problem.at(file=self._feed.name) from None

    async def _read(self, reader: RowReader, source: Source) -> None:
        while True:
            piece = await asyncio.to_thread(source.read)
            if piece is not None and piece.first:
                if reader.torn:
                    reason = "the file was begun anew before its last line had an end"
                    self._pass_over(InputError(reason, row=reader.row + 1, remedy="end each line"))
                reader.restart()
            rows = self._checked(reader, piece.data if piece else b"", last=piece is None)
            if rows:
                await self._put(rows, source.place(reader.taken, reader.row) if isinstance(source, Growing) else None)
            if piece is None:
                return
            if not piece.data and isinstance(source, Growing):
                self._release()  # all that was there is read
                await asyncio.sleep(MOMENT)

    def _release(self) -> None:
        if not self._released:
            self._released = True
            self.site.release()

    async def _put(self, rows: list[Row], place: Place | None) -> None:
        if self._memory is not None:
            query = await self.site.query()
            kept = [row for row in rows if row[1] is None or not query.refused(row[1])]
            await asyncio.to_thread(self._memory.keep, kept, place)
        for one, values in rows:
            await self.site.put(one, values)
        if self._memory is not None and self._memory.long:
            await asyncio.to_thread(self._memory.shorten, self.site.snapshot())

    async def run_until(self, stop: asyncio.Event) -> bool:
        """Open the site and feed it until the data ends (True) or `stop` is set; raises whatever ends it before."""
        async with self.site as site:
            stopped: asyncio.Task[Any] = asyncio.create_task(stop.wait())
            working = [asyncio.create_task(self.run()), asyncio.create_task(site.over())]
            try:
                await asyncio.wait((stopped, *working), return_when=asyncio.FIRST_COMPLETED)
                ended = [task for task in working if task.done()]
                for task in ended:
                    task.result()
                if not ended and self._released:
                    working[0].cancel()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(site.flush(), LAST_WORDS)
                return bool(ended)
            finally:
                for task in (stopped, *working):
                    task.cancel()
                await asyncio.gather(stopped, *working, return_exceptions=True)
