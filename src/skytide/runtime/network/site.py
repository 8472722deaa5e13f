"""A site in somebody's program: rows in, and it keeps its part of the protocol with a coordinator.

    with Site("ws://127.0.0.1:8750", "shop-7") as site:                  # or: async with AsyncSite(...) as site
        site.put("tea", {"price": 3.5})                                  #     await site.put(...)
        site.flush()                                                     #     await site.flush()

It connects, and connects again when the connection is lost, after a pause that grows. What is put meanwhile is kept,
of each object the latest values. Needs numpy and websockets, and nothing else. Where numba is there it is used, unless
`SKYTIDE_PLAIN=1` is in the environment: a site then starts at once, and absorbs some ten thousand rows a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import ssl
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from skytide.errors import InputError, MissingDependencyError, OptionError, SkytideError
from skytide.protocols.network.frames import KEY_BYTES, MOST_BYTES, Id, usable_name
from skytide.protocols.network.member import Member
from skytide.protocols.network.query import Query

try:
    from websockets.asyncio.client import ClientConnection, connect
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
except ModuleNotFoundError as missing:
    raise MissingDependencyError("a site needs websockets", remedy="pip install 'skytide[network]'") from missing

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two attempts to connect, at first and at most."""
MANY = 1000
"""Rows that are put without a break: after so many the connection has its turn."""

logger = logging.getLogger(__name__)
Found = TypeVar("Found")


def site_url(url: str) -> str:
    """The address of a coordinator's door for sites, from any of its addresses.

    >>> site_url("ws://127.0.0.1:8750"), site_url("https://example.org/")
    ('ws://127.0.0.1:8750/site', 'wss://example.org/site')
    """
    parts = urlsplit(url)
    schemes = {"ws": "ws", "http": "ws", "wss": "wss", "https": "wss"}
    if parts.scheme not in schemes or not parts.netloc or parts.path not in ("", "/", "/site") or parts.query:
        raise OptionError("is not the address of a coordinator", value=url, remedy="write ws://host:port")
    return f"{schemes[parts.scheme]}://{parts.netloc}/site"


class AsyncSite:
    """A site on the running event loop.

    `token` is the site's own, where the coordinator asks for one; `certificate` is a file with the certificate that the
    coordinator's must be signed by, unless the machine knows it. With `hold` the site tells nothing before the first
    `flush` or `finish`: for rows from before a crash, of which the answer should not show a part. Where there are no
    tokens, a `key` that was kept shows that this is the site that came before under its name.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        token: str | None = None,
        certificate: str | Path | None = None,
        hold: bool = False,
        key: bytes | None = None,
    ) -> None:
        if not usable_name(name):
            raise OptionError("is not a name for a site", value=name, remedy="use letters, digits, - and _")
        self._url, self._token = site_url(url), token
        self._context = _trust(certificate) if self._url.startswith("wss:") else None
        self._member = Member(name, os.urandom(KEY_BYTES) if key is None else key, hold=hold)
        self._news = asyncio.Event()
        self._waiting = 0
        self._out: list[bytes] = []
        self._sending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._problem: SkytideError | None = None
        self._closing = self._missed = False
        self._count = 0
        self.connected = False
        """Whether the coordinator has welcomed this site, and the connection is there."""
        self.sent = 0
        """Bytes of frames that were sent."""
        self.received = 0
        """Bytes of frames that were received."""

    # -- for programs --------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def name(self) -> str:
        """The site's name."""
        return self._member.name

    @property
    def rows(self) -> int:
        """Rows that were put."""
        return self._member.rows

    @property
    def refused(self) -> int:
        """Rows of these that cannot compete: a value is missing, or the object is at another site."""
        return self._member.refused

    @property
    def acknowledged(self) -> int:
        """So many rows, the first ones, are acknowledged: whatever is published as exact is true of them."""
        return self._member.acknowledged

    async def query(self) -> Query:
        """What the coordinator asks; waits for the first welcome."""
        await self._until(lambda: self._member.query is not None)
        assert self._member.query is not None
        return self._member.query

    async def put(self, one: Id, values: Mapping[str, Any] | Sequence[Any] | None) -> bool:
        """New values of an object, by column or in the order of the query's columns; None: it leaves.

        False where the row cannot compete. Waits for the first welcome, and for nothing else: rows are acknowledged
        later, see `flush`.
        """
        if self._member.query is None:
            await self.query()
        self._check()
        found = self._member.put(one, values)
        self._count += 1
        pause = not self._count % MANY
        if pause or not self._member.holding:  # a site that holds asks for the numbers of many objects at once
            self._advance()
        if pause:
            await asyncio.sleep(0)
        return found

    def release(self) -> None:
        """Tell from now on, if the site was told to hold."""
        self._member.release()
        self._advance()

    async def flush(self) -> None:
        """Wait until all rows that were put are acknowledged."""
        rows = self._member.rows
        self.release()
        await self._until(lambda: self._member.acknowledged >= rows)

    async def finish(self) -> None:
        """Say that there are no more rows, and wait until it is settled: the values are final, the answer exact."""
        await self.query()
        self._member.release()
        self._member.end()
        self._advance()
        await self._until(lambda: self._member.finished)

    async def over(self) -> None:
        """Wait until the last words are settled; raises what ends the site before."""
        await self._until(lambda: self._member.finished)

    def snapshot(self) -> dict[Id, tuple[float, ...]]:
        """What the site has: the values of each object, in the order of the query's columns. O(objects)."""
        return self._member.snapshot()

    async def close(self) -> None:
        """End the connection; what is not acknowledged is lost, and what was is stale, unless it was final."""
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _check(self) -> None:
        if self._problem is not None:
            raise self._problem
        if self._task is None or self._closing:
            raise InputError("the site is not open", remedy="use it in a with block")

    async def _until(self, holds: Any) -> None:
        self._waiting += 1
        try:
            while not holds():
                self._check()
                await self._news.wait()
                self._news.clear()
        finally:
            self._waiting -= 1
            self._news.set()  # for the others, who may wait for something else

    def _advance(self) -> None:
        """Absorb what was put, or have it said; whoever waits for it looks again."""
        frames = self._member.advance(time.monotonic())
        if frames:
            self._out += frames
            self._sending.set()
        if self._waiting:
            self._news.set()

    # -- the connection ------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Connect again and again; a problem that will not pass ends it."""
        pause = FIRST_PAUSE
        try:
            while not self._member.finished:
                began = time.monotonic()
                try:
                    await self._session()
                except (OSError, TimeoutError, InvalidHandshake, ConnectionClosed) as problem:
                    self._note(problem)
                self._member.lost()
                if time.monotonic() - began > LONGEST_PAUSE:
                    pause = FIRST_PAUSE
                if not self._member.finished:
                    await asyncio.sleep(pause * random.uniform(0.5, 1.5))
                    pause = min(2 * pause, LONGEST_PAUSE)
        except SkytideError as problem:
            self._problem = problem
        except InvalidURI as problem:
            self._problem = OptionError(str(problem), remedy="write ws://host:port")
        except asyncio.CancelledError:
            self._problem = InputError("the site is closed", remedy="open another")
            raise
        except Exception as problem:
            self._problem = InputError(f"the site has failed: {problem!r}", remedy="report it")
            logger.exception("the site has failed")
        finally:
            self.connected = False
            self._news.set()

    def _note(self, problem: Exception) -> None:
        """Whether it is worth trying again."""
        if isinstance(problem, InvalidStatus) and problem.response.status_code in (401, 403):
            raise InputError("the coordinator refuses the token", remedy="give this site's token") from None
        if isinstance(problem, ConnectionClosed) and problem.rcvd is not None and problem.rcvd.code == 1008:
            raise InputError(f"the coordinator refuses the site: {problem.rcvd.reason}", remedy="see its log") from None
        if isinstance(problem, ConnectionClosed) and problem.rcvd is not None and problem.rcvd.code == 1009:
            reason = "what the site has to tell at once is more than the coordinator takes"
            raise InputError(reason, remedy="give the coordinator a larger limit for frames") from None
        if isinstance(problem, ConnectionClosed) and problem.rcvd is not None and problem.rcvd.code == 4002:
            raise InputError("another process has come as this site", remedy="give each its own name") from None
        if isinstance(problem, ssl.SSLCertVerificationError):
            raise InputError(
                f"the coordinator's certificate is not trusted: {problem.verify_message}", remedy="give its certificate"
            ) from None
        level, self._missed = logging.INFO if self._missed else logging.WARNING, True
        logger.log(level, "%s is not connected, and tries again: %s", self._member.name, problem)

    async def _session(self) -> None:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        async with connect(
            self._url,
            additional_headers=headers,
            compression=None,
            max_size=MOST_BYTES,
            ping_interval=5,
            ping_timeout=10,
            ssl=self._context,
            proxy=None,
        ) as socket:
            self._out = self._member.connected()
            self._sending.set()
            listening = asyncio.create_task(self._listen(socket))
            try:
                while not self._member.finished:
                    await self._sending.wait()
                    self._sending.clear()
                    if listening.done():
                        listening.result()
                    frames, self._out = self._out, []
                    for frame in frames:
                        self.sent += len(frame)
                        await socket.send(frame)
            finally:
                self.connected = False
                self._out = []
                listening.cancel()
                with contextlib.suppress(asyncio.CancelledError, ConnectionClosed, SkytideError):
                    await listening

    async def _listen(self, socket: ClientConnection) -> None:
        try:
            while True:
                data = await socket.recv(decode=False)
                self.received += len(data)
                self._member.receive(data, time.monotonic())
                self.connected, self._missed = True, False
                self._advance()
        finally:
            self._sending.set()  # the other side of the connection looks what has happened


class Site:
    """A site on a thread of its own, for programs without an event loop; see `AsyncSite` for what each means."""

    def __init__(
        self,
        url: str,
        name: str,
        *,
        token: str | None = None,
        certificate: str | Path | None = None,
        hold: bool = False,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"skytide-{name}", daemon=True)
        self._closed = False
        self._made = partial(AsyncSite, url, name, token=token, certificate=certificate, hold=hold)
        site_url(url)
        self._thread.start()
        self._site = self._call(self._open())

    async def _open(self) -> AsyncSite:
        return await self._made().__aenter__()

    def _call(self, work: Coroutine[Any, Any, Found]) -> Found:
        if self._closed:
            work.close()
            raise InputError("the site is closed", remedy="open another")
        future: Future[Found] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def site(self) -> AsyncSite:
        """The site itself, with its counts."""
        return self._site

    def query(self) -> Query:
        """What the coordinator asks."""
        return self._call(self._site.query())

    def put(self, one: Id, values: Mapping[str, Any] | Sequence[Any] | None) -> bool:
        """New values of an object."""
        return self._call(self._site.put(one, values))

    def put_many(self, rows: Sequence[tuple[Id, Mapping[str, Any] | Sequence[Any] | None]]) -> int:
        """New values of objects, one after the other; how many can compete. Much quicker than one by one."""
        return self._call(self._put_many(rows))

    async def _put_many(self, rows: Sequence[tuple[Id, Mapping[str, Any] | Sequence[Any] | None]]) -> int:
        return sum([await self._site.put(one, values) for one, values in rows])

    def flush(self) -> None:
        """Wait until all rows that were put are acknowledged."""
        self._call(self._site.flush())

    def finish(self) -> None:
        """Say that there are no more rows."""
        self._call(self._site.finish())

    def close(self) -> None:
        """End the connection."""
        if not self._closed:
            self._call(self._site.close())
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def _trust(certificate: str | Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if certificate is None else str(certificate))
    except (OSError, ssl.SSLError) as problem:
        raise InputError(f"the certificate cannot be used: {problem}", remedy="give a PEM file") from None
