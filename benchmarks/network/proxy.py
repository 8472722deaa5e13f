"""A network that misbehaves, on loopback: a proxy of TCP that delays, stalls, splits, cuts and refuses.

What it forwards stays in order and whole, as TCP has it; a connection that it cuts may lose what was on its way.
"""

from __future__ import annotations

import asyncio
import contextlib
import random

_PIECE = 1 << 14


class Proxy:
    """Forwards connections to a port of this machine."""

    def __init__(self, upstream: int, seed: int) -> None:
        self._upstream, self._random = upstream, random.Random(seed)
        self._server: asyncio.Server | None = None
        self._writers: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.delay = 0.0
        """Seconds that a piece waits, at most."""
        self.split = False
        """Whether pieces are a few bytes."""
        self.refusing = False
        """Whether nobody is let in."""

    async def start(self) -> int:
        """Listen; the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """End everything."""
        assert self._server is not None
        self._server.close()
        self.heal()
        self.cut()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*self._writers, return_exceptions=True), 5)

    def stall(self) -> None:
        """Forward nothing; connections stay."""
        self._flowing.clear()

    def cut(self, share: float = 1.0) -> int:
        """End connections at once, or a share of them; how many."""
        chosen = [writers for writers in self._writers.values() if self._random.random() <= share]
        for writers in chosen:
            for writer in writers:
                writer.transport.abort()
        return len(chosen)

    def heal(self) -> None:
        """Forward as a network should."""
        self.delay, self.split, self.refusing = 0.0, False, False
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self.refusing:
            writer.transport.abort()
            return
        writers = self._writers[task] = [writer]
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
            writers.append(far_writer)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, far_writer))
                both.create_task(self._pump(far_reader, writer))
        except (OSError, ExceptionGroup):
            pass
        finally:
            del self._writers[task]
            for one in writers:
                one.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_PIECE):
            while data:
                await self._flowing.wait()
                size = self._random.randint(1, 9) if self.split else len(data)
                piece, data = data[:size], data[size:]
                if self.delay:
                    await asyncio.sleep(self._random.uniform(0.0, self.delay))
                elif self.split:
                    await asyncio.sleep(0)
                writer.write(piece)
                await writer.drain()
        await self._flowing.wait()
        raise ConnectionResetError  # an end of one side is the end of both
