"""What a site is told of its data, by a site that only takes notes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from skytide.errors import InputError
from skytide.protocols.network.query import Query
from skytide.runtime.network.feeder import Feed, Feeder
from skytide.runtime.network.memory import Memory
from skytide.runtime.network.site import AsyncSite


class Notes:
    """In place of a site."""

    name = "notes"
    rows = 0

    def __init__(self) -> None:
        self.noted: list[Any] = []
        self.stop = asyncio.Event()
        self.stop_after: Any = None
        self.done = asyncio.Event()

    async def __aenter__(self) -> Notes:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def query(self) -> Query:
        return Query("filtering", ("a", "b"))

    async def put(self, one: Any, values: Any) -> bool:
        self.note((one, values))
        await asyncio.sleep(0)
        return True

    def note(self, what: Any) -> None:
        self.noted.append(what)
        if what == self.stop_after:
            self.stop.set()

    def release(self) -> None:
        self.note("release")

    async def flush(self) -> None:
        self.note("flush")

    async def finish(self) -> None:
        self.note("finish")
        self.done.set()

    async def over(self) -> None:
        await self.done.wait()

    def snapshot(self) -> dict[Any, Any]:
        return {}


def fed(feed: Feed, memory: Memory | None = None, stop_after: Any = None) -> tuple[list[Any], list[str], bool, Feeder]:
    """What the site has noted and what was said, whether the data ended, and who fed it."""

    async def run() -> tuple[list[Any], list[str], bool, Feeder]:
        notes, said = Notes(), list[str]()
        notes.stop_after = stop_after
        feeder = Feeder(feed, cast(AsyncSite, notes), memory, said.append)
        ended = await asyncio.wait_for(feeder.run_until(notes.stop), 30)
        return notes.noted, said, ended, feeder

    return asyncio.run(run())


def test_a_plain_file_is_put_whole_and_then_final(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("b,n,a\n2,x,1\n,x,")
    noted, said, ended, _ = fed(Feed(data=str(path), id_column="n"))
    assert (noted, said, ended) == ([("x", (1.0, 2.0)), ("x", None), "finish"], [], True)


@pytest.mark.parametrize("content", ["", "n,a,b\nx,1,2\ny,1,oops\n", "n,a\n", "n,a,b\nx,1,2\n\xff,1\n"])
def test_nothing_of_a_plain_file_that_cannot_be_used_is_put(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content, encoding="latin-1")

    async def run() -> None:
        notes = Notes()
        feeder = Feeder(Feed(data=str(path), id_column="n"), cast(AsyncSite, notes), None, print)
        with pytest.raises(InputError, match=r"rows\.csv"):
            await feeder.run_until(notes.stop)
        assert notes.noted == []

    asyncio.run(run())


def test_a_site_that_is_stopped_while_it_reads_what_is_there_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("n,a,b\n" + "".join(f"{row},1,2\n" for row in range(100)))
    for follow in (False, True):
        noted, _, ended, _ = fed(Feed(data=str(path), id_column="n", follow=follow), stop_after=(50, (1.0, 2.0)))
        assert not ended
        assert [one for one in noted if isinstance(one, str)] == []


def test_a_site_that_is_stopped_later_has_a_moment_for_its_last_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("n,a,b\nx,1,2\n")
    noted, said, ended, _ = fed(Feed(data=str(path), id_column="n", follow=True), stop_after="release")
    assert (noted, ended) == ([("x", (1.0, 2.0)), "release", "flush"], False)
    assert said == ["notes is connected; columns: a, b"]


def test_a_memory_keeps_what_competes_and_gives_it_back_before_new_rows(tmp_path: Path) -> None:
    path, folder = tmp_path / "rows.csv", str(tmp_path / "kept")
    path.write_text("n,a,b\nx,1,2\ny,3,4\nx,9,\ny,,\n")
    feed = Feed(data=str(path), id_column="n", follow=True)
    memory = Memory(folder, "notes")
    fed(feed, memory, stop_after="release")
    memory.close()
    with path.open("a") as file:
        file.write("z,5,6\n")
    memory = Memory(folder, "notes")
    noted, *_ = fed(feed, memory, stop_after="release")
    memory.close()
    assert noted == [("x", (1.0, 2.0)), ("z", (5.0, 6.0)), "release", "flush"]


def test_a_line_that_a_new_file_cuts_off_is_reported_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("n,a,b\nx,1,2\ny,3,4")

    async def run() -> tuple[list[Any], list[str], int]:
        notes, said = Notes(), list[str]()
        notes.stop_after = ("z", (5.0, 6.0))
        feeder = Feeder(Feed(data=str(path), id_column="n", follow=True), cast(AsyncSite, notes), None, said.append)
        running = asyncio.create_task(feeder.run_until(notes.stop))
        while "release" not in notes.noted:
            await asyncio.sleep(0.01)
        path.unlink()
        path.write_text("n,a,b\nz,5,6\n")
        await asyncio.wait_for(running, 30)
        return notes.noted, said, feeder.bad

    noted, said, bad = asyncio.run(run())
    assert [one for one in noted if isinstance(one, tuple)] == [("x", (1.0, 2.0)), ("z", (5.0, 6.0))]
    assert bad == 1
    assert "begun anew before its last line had an end" in said[-1]
