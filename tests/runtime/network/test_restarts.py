"""A coordinator that starts again: it has what was made durable, and says of sites what is so."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from skytide.errors import StateError
from skytide.runtime.network import coordinator as module
from skytide.runtime.network.config import Config
from skytide.runtime.network.coordinator import NOTICE, Coordinator
from skytide.runtime.network.log import Log
from skytide.runtime.network.site import Site
from tests.runtime.network.coordinating import Coordinated, coordinated


def events(world: Coordinated) -> list[dict[str, Any]]:
    lines = world.read("/changes?wait=0&format=ndjson").splitlines()
    return [json.loads(line) for line in lines]


def stale(found: list[dict[str, Any]]) -> set[str]:
    """Who is out of touch by what the events say."""
    sites: set[str] = set()
    for event in found:
        if event["kind"] != "change":
            (sites.add if event["kind"] == "stale" else sites.discard)(event["site"])
    return sites


def test_the_answer_its_events_and_their_numbers_outlive_a_restart(tmp_path: Path) -> None:
    with coordinated(tmp_path) as world:
        for _ in range(4):
            world.serves()
        before, skyline = events(world), world.state()["skyline"]
    with coordinated(tmp_path, honest=False) as world:
        world.until(lambda: stale(events(world)) == {"honest"})
        found = events(world)
        assert found[: len(before)] == before
        assert [event["number"] for event in found] == list(range(1, len(found) + 1))
        assert world.state()["skyline"] == skyline and not world.state()["exact"]


def test_a_record_that_is_too_long_for_an_entry_is_kept_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST", 30)
    with coordinated(tmp_path) as world:
        for _ in range(5):
            world.serves()
        before = world.state()
    with Log.open(tmp_path / "state") as log:
        kinds = [entry.kind for entry in log.entries]
    assert kinds.count(module.WHOLE) == before["dialogue"] and kinds.count(module.PIECE) > before["dialogue"]
    with coordinated(tmp_path, honest=False) as world:
        after = world.state()
        assert (after["skyline"], after["dialogue"]) == (before["skyline"], before["dialogue"])


def test_pieces_of_a_record_without_its_end_are_of_no_consequence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with coordinated(tmp_path) as world:
        before = world.state()
    with Log.open(tmp_path / "state") as log:
        log.append(module.PIECE, b"\0\0\0\0half of a record")
        log.sync()
    monkeypatch.setattr(module, "LARGEST", 30)
    with coordinated(tmp_path) as world:  # the honest site comes again, and says something
        world.serves()
        assert world.state()["dialogue"] > before["dialogue"]
        skyline = world.state()["skyline"]
    with coordinated(tmp_path, honest=False) as world:
        assert world.state()["skyline"] == skyline


def test_since_when_a_site_is_away_is_not_forgotten_and_not_said_again(tmp_path: Path) -> None:
    with coordinated(tmp_path) as world:
        assert world.honest is not None
        world.honest.close()
        world.until(lambda: not world.state()["exact"])
        (away,) = world.state()["stale"]
        world.until(lambda: stale(events(world)) == {"honest"})
        before = events(world)
    for _ in range(2):
        with coordinated(tmp_path, honest=False) as world:
            assert world.state()["stale"] == [away]
            world.serves_nobody()
            assert events(world) == before


def test_a_site_that_was_back_before_a_crash_is_not_away_for_ever(tmp_path: Path) -> None:
    """The crash comes after the dialogue in which it told that it has nothing, and before the event that it is back."""
    with coordinated(tmp_path) as world:
        assert world.honest is not None
        world.honest.close()
        world.until(lambda: not world.state()["exact"])
        with world.synced("honest"):
            world.until(lambda: events(world)[-1]["kind"] == "fresh")
    crashed = tmp_path / "crashed" / "state"
    with Log.open(tmp_path / "state") as log, Log.open(crashed) as shorter:
        entries = list(log.entries)
        assert entries[-1].kind == NOTICE
        for kind, data in entries[:-1]:
            shorter.append(kind, data)
        shorter.sync()
    with coordinated(tmp_path / "crashed", honest=False) as world:
        assert world.state()["exact"]
        world.until(lambda: stale(events(world)) == set())


def test_a_snapshot_of_something_else_is_refused(tmp_path: Path) -> None:
    config = Config.of({"data": tmp_path / "state", "min": ("p",)})
    with Log.open(config.data) as log:
        log.checkpoint(b"nothing that a coordinator wrote")
    with pytest.raises(StateError):
        Coordinator(config)


def test_an_object_that_two_sites_bring_at_a_time_is_at_one_of_them(tmp_path: Path) -> None:
    with coordinated(tmp_path, honest=False) as world:
        sites = [Site(world.url, name, hold=True) for name in ("a", "b")]
        for place, site in enumerate(sites):
            site.put("x", {"p": place})
            site.put(f"own-{place}", {"p": 5})
        threads = [threading.Thread(target=site.flush) for site in sites]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert sorted(site.site.refused for site in sites) == [0, 1]
        assert world.state()["exact"] and world.state()["skyline"] == ["x"]
        for site in sites:
            site.close()


def test_a_coordinator_ends_also_when_it_is_woken_at_that_moment(tmp_path: Path) -> None:
    async def ended(ticks: int) -> bool:
        config = Config.of({"data": tmp_path / str(ticks), "min": ("p",), "patience": "60s"})
        coordinator = Coordinator(config)
        pump = asyncio.create_task(coordinator._pump())
        await asyncio.sleep(0.01)
        coordinator._wake.set()
        for _ in range(ticks):
            await asyncio.sleep(0)
        pump.cancel()
        done, _ = await asyncio.wait({pump}, timeout=2)
        return bool(done)

    assert all(asyncio.run(ended(ticks)) for ticks in range(5))
