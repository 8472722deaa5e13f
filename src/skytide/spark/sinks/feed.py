"""The live feed: a folder that one query writes and any number of readers follow, without Spark and without a server.

Every micro-batch is a small Arrow file with its changes, and every so often a file holds the whole answer. A reader
begins with the answer as of the last micro-batch, then gets changes as they come; it can stop and go on from the number
of a micro-batch. Old files go. A reader that was away for longer is told so, and begins with a new answer.

Each file of changes names the micro-batch before it. That is how a reader knows that it has missed nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from skytide.errors import InputError, OptionError, StateError
from skytide.spark.sinks.keys import group_columns
from skytide.spark.sinks.storage import Folder, batch_name, batches, open_folder

CHANGES, SNAPSHOT, EXTENSION = "changes", "snapshot", ".arrow"
_PREVIOUS, _ABOUT = b"skytide-previous", b"skytide-about"
_KEPT_SNAPSHOTS = 2
_TRIES = 10


@dataclass(frozen=True)
class FeedSink:
    """Writes the feed: changes in, with `time`, `change` and `id`.

    The changes of the last `keep` micro-batches stay, and the whole answer is written every `snapshot_every`. `by` are
    the columns that together with the id name a row; without it those that the rows mark as such. `about` says in JSON
    what the changes are of, for readers who know nothing but the folder.
    """

    path: str
    keep: int = 256
    snapshot_every: int = 16
    by: tuple[str, ...] | None = None
    about: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.snapshot_every <= self.keep:
            raise OptionError(
                f"micro-batches are kept and the answer is written every {self.snapshot_every}",
                value=self.keep,
                remedy="keep at least as many, and both 1 or more",
            )

    def write(self, batch: int, rows: pa.Table) -> None:
        """Add a micro-batch, also one without changes, or replace it and take back what came after it.

        O(changes), and every so often O(answer + changes since the last one).
        """
        folder = open_folder(self.path)
        names = folder.names()
        there, snapshots = _those(names, CHANGES), _those(names, SNAPSHOT)
        self._take_back(folder, batch, there, snapshots)
        again = batch in snapshots
        # The one before may be gone by now; an earlier attempt at this one knew it.
        known = _previous(folder.get(_name(CHANGES, batch))) if batch in there else None
        there, snapshots = [one for one in there if one < batch], [one for one in snapshots if one < batch]
        if "kind" in rows.column_names:
            rows = rows.drop_columns(["kind"])
        folder.put(_name(CHANGES, batch), _encoded(rows, there[-1] if there else known, self.about))
        since = [one for one in there if not snapshots or one > snapshots[-1]]
        if again or not snapshots or len(since) + 1 >= self.snapshot_every:
            answer = _answer(folder, snapshots[-1] if snapshots else None, [*since, batch], self.by)
            folder.put(_name(SNAPSHOT, batch), _encoded(answer, None, self.about))
            snapshots.append(batch)
        for one in there[: max(0, len(there) + 1 - self.keep)]:
            folder.delete(_name(CHANGES, one))
        for one in snapshots[:-_KEPT_SNAPSHOTS]:
            folder.delete(_name(SNAPSHOT, one))

    def _take_back(self, folder: Folder, batch: int, there: list[int], snapshots: list[int]) -> None:
        if not there or batch > there[-1]:
            return
        known = bool(snapshots) and snapshots[0] < batch
        if not known and (there[0] < batch or _previous(folder.get(_name(CHANGES, there[0]))) is not None):
            raise StateError(
                f"the feed no longer knows the answer before micro-batch {batch}",
                file=self.path,
                remedy="give the feed another folder",
            )
        for kind, some in ((CHANGES, there), (SNAPSHOT, snapshots)):
            for one in reversed(some):
                if one > batch:
                    folder.delete(_name(kind, one))

    def last(self) -> int | None:
        """The last micro-batch of the feed."""
        return Feed(self.path).last()


@dataclass(frozen=True)
class Event:
    """What a reader gets: the whole answer as of a micro-batch, or the changes of one.

    `behind` says that the answer comes because changes in between are gone.
    """

    kind: Literal["answer", "changes"]
    batch: int
    rows: pa.Table
    behind: bool = False


@dataclass(frozen=True)
class Feed:
    """Reads a feed; any number of readers may, at any time, while it is written.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> sink = FeedSink(folder.name)
    >>> sink.write(0, pa.table({"time": [1, 1], "change": ["+", "+"], "id": ["a", "b"]}))
    >>> [event] = Feed(folder.name).read()
    >>> event.kind, event.batch, event.rows["id"].to_pylist()
    ('answer', 0, ['a', 'b'])
    >>> sink.write(1, pa.table({"time": [2], "change": ["-"], "id": ["a"]}))
    >>> [event] = Feed(folder.name).read(after=0)
    >>> event.kind, event.batch, event.rows.to_pylist()
    ('changes', 1, [{'time': 2, 'change': '-', 'id': 'a'}])
    >>> folder.cleanup()
    """

    path: str
    by: tuple[str, ...] | None = None

    def last(self) -> int | None:
        """The last micro-batch, or None before the first one."""
        there = _those(open_folder(self.path).names(), CHANGES)
        return there[-1] if there else None

    def about(self) -> str | None:
        """What the writer says that the changes are of; None where it says nothing, or nothing is there yet."""
        folder = open_folder(self.path)
        for _ in range(_TRIES):
            there = _those(folder.names(), CHANGES)
            try:
                found = _metadata(folder.get(_name(CHANGES, there[-1]))).get(_ABOUT) if there else None
                return None if found is None else found.decode()
            except FileNotFoundError:
                continue
        return None

    def read(self, after: int | None = None) -> list[Event]:
        """What there is after a micro-batch: its changes one by one, nothing, or the answer where they are gone.

        Without `after` it is the answer as of the last micro-batch. O(what is new), or O(answer).
        """
        folder = open_folder(self.path)
        for _ in range(_TRIES):
            try:
                return self._read(folder, after)
            except FileNotFoundError:
                continue  # a file went between being listed and being read
        raise InputError("the feed's files go faster than they are read", file=self.path, remedy="keep more of them")

    def _read(self, folder: Folder, after: int | None) -> list[Event]:
        names = folder.names()
        there, snapshots = _those(names, CHANGES), _those(names, SNAPSHOT)
        if not there or not snapshots:
            return []
        new = [one for one in there if after is None or one > after]
        if after is not None and after <= there[-1]:
            if not new:
                return []
            first = folder.get(_name(CHANGES, new[0]))
            previous = _previous(first)
            if after >= 0 if previous is None else previous > after:
                return [self._as_of_now(folder, there, snapshots, behind=True)]
            data = [first, *(folder.get(_name(CHANGES, one)) for one in new[1:])]
            return [Event("changes", one, _decoded(part)) for one, part in zip(new, data, strict=True)]
        return [self._as_of_now(folder, there, snapshots, behind=after is not None)]

    def _as_of_now(self, folder: Folder, there: list[int], snapshots: list[int], *, behind: bool) -> Event:
        since = [one for one in there if one > snapshots[-1]]
        return Event("answer", there[-1], _answer(folder, snapshots[-1], since, self.by), behind)

    def follow(
        self, after: int | None = None, *, interval: float = 0.5, stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Event]:
        """Events as they come, looked for every `interval` seconds, until `stop` says so."""
        while not stop():
            events = self.read(after)
            for event in events:
                after = event.batch
                yield event
            if not events:
                time.sleep(interval)


# -- files -------------------------------------------------------------------------------------------------------------


def _name(kind: str, batch: int) -> str:
    return batch_name(kind, batch, EXTENSION)


def _those(names: list[str], kind: str) -> list[int]:
    return batches(names, kind, EXTENSION)


def _encoded(rows: pa.Table, previous: int | None, about: str | None) -> bytes:
    kept = {} if previous is None else {_PREVIOUS: str(previous).encode()}
    kept |= {} if about is None else {_ABOUT: about.encode()}
    rows = rows.replace_schema_metadata(kept or None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _decoded(data: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.BufferReader(data)).read_all().replace_schema_metadata(None)


def _previous(data: bytes) -> int | None:
    found = _metadata(data).get(_PREVIOUS)
    return None if found is None else int(found)


def _metadata(data: bytes) -> dict[bytes, bytes]:
    return dict(pa.ipc.open_file(pa.BufferReader(data)).schema.metadata or {})


def _answer(folder: Folder, snapshot: int | None, since: list[int], by: tuple[str, ...] | None) -> pa.Table:
    """The answer after the changes of some micro-batches; `time` is when a row entered."""
    from skytide.spark.streaming.write import after

    answer = None if snapshot is None else _decoded(folder.get(_name(SNAPSHOT, snapshot)))
    for batch in since:
        changes = _decoded(folder.get(_name(CHANGES, batch)))
        answer = after(answer, changes, group_columns(changes) if by is None else by)
    assert answer is not None, "a feed begins with an answer"
    return answer
