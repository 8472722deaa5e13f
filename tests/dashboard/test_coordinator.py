"""A board that follows a coordinator shows its answer, over hundreds of changes and over restarts: on real sockets."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skytide.dashboard import coordinator as module
from skytide.dashboard.board import Board
from skytide.dashboard.coordinator import CoordinatorFollower
from skytide.dashboard.following import Follower, follower_of, looks_followed
from skytide.errors import InputError
from skytide.reference.batch import skyline
from skytide.runtime.network.secrets import issue
from skytide.runtime.network.site import Site
from tests.runtime.network.coordinating import SECRET, coordinated
from tests.spark.sources.coordinators import Running

Values = dict[str, tuple[float, float]]


def rows_of(board: Board) -> dict[str, Any]:
    """The answer that a page shows: values by id."""
    return {row[1]: tuple(row[4]) for row in board.state()["rows"]}


def best(now: Values) -> Values:
    ids = list(now)
    return {ids[place]: now[ids[place]] for place in skyline([(a, -b) for a, b in now.values()])}


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.3)


def caught_up(follower: Follower) -> dict[str, Any]:
    """The answer that a follower comes to by itself."""
    follower.catch_up()
    follower.release()
    return rows_of(follower.board)


@contextmanager
def following(url: str, **options: Any) -> Iterator[Board]:
    follower = follower_of(url, **options)
    follower.interval = 0.02
    with follower:
        yield follower.board


def move(site: Site, now: Values, chance: random.Random, steps: int) -> None:
    """Let objects come, move and go; each step is acknowledged."""
    for _ in range(steps):
        one = f"o{chance.randrange(12)}"
        if one in now and chance.random() < 0.2:
            del now[one]
            site.put(one, None)
        else:
            now[one] = (float(chance.randrange(30)), float(chance.randrange(30)))
            site.put(one, now[one])
        site.flush()


@pytest.mark.parametrize("method", ["naive", "filter"])
def test_the_board_is_the_answer_after_hundreds_of_changes_and_a_restart(tmp_path: Path, method: str) -> None:
    chance, now = random.Random(method), Values()
    running = Running(tmp_path, max=("b",), method=method)
    running.start()
    try:
        with Site(running.url, "one") as site, following(running.url) as board:
            for turn in range(2):
                if turn:
                    running.stop()
                    until(lambda: board.state()["status"] == "lost")
                    assert "did not answer" in board.state()["reason"]
                    running.start()
                    site.flush()
                    until(lambda: board.state()["status"] == "running" and board.state()["exact"])
                move(site, now, chance, 100)
                until(lambda: rows_of(board).keys() == best(now).keys())
                if method == "naive":
                    until(lambda: rows_of(board) == best(now))
                assert board.state()["status"] == "running" and board.state()["exact"]
            found = [event for event in running.events() if event["kind"] == "change"]
            assert len(found) > 100
            until(lambda: board.state()["meters"]["changes"] == len(found))
            shown = [(change[1], change[3]) for change in board.state()["changes"]]
            assert shown == [(event["change"], event["id"]) for event in found][-len(shown) :]
            assert board.state()["clock"] == "time" and board.kind == "monitor"
            until(lambda: board.state()["ledger"]["messages"] == running.coordinator.ledger()["messages"] > 0)
            ledger = board.state()["ledger"]
            assert sum(kind["bytes"] for kind in ledger["kinds"]) == ledger["bytes"]
            assert ledger["naive_messages"] <= 100 and ledger["naive_bytes"] >= 20 * ledger["naive_messages"]
            assert (ledger["naive_messages"] > 90) or method == "filter"
    finally:
        running.stop()


def test_who_is_out_of_touch_is_said(tmp_path: Path) -> None:
    with Running(tmp_path) as running, following(running.url) as board:
        running.move([3], name="north")
        until(lambda: not board.state()["exact"])
        [line] = board.state()["notices"]
        assert line.startswith("site north is out of touch since 20") and line.endswith(" UTC: 1 objects")
        with Site(running.url, "north") as site:
            site.put("é3", [5.0])
            site.finish()
        until(lambda: board.state()["exact"] and board.state()["notices"] == [])
        until(lambda: rows_of(board) == {"é3": (5.0,)})


def test_events_that_are_gone_and_a_coordinator_made_anew_are_made_good(tmp_path: Path) -> None:
    first = Running(tmp_path / "first", keep=5)
    first.start()
    follower = CoordinatorFollower.of(first.url)
    first.move([1])
    assert caught_up(follower) == {"7": (-1.0,)}
    first.move(range(1, 30))  # far more than are kept
    assert caught_up(follower) == {"é29": (-29.0,)}
    assert len(follower.board.state()["changes"]) < 10
    first.stop()
    again = Running(tmp_path / "again")
    again.port = first.port
    with again:
        again.move(range(40, 80))  # its events have the same numbers, and others happened
        assert caught_up(follower) == {"é79": (-79.0,)}


def test_fragments_are_shown_with_their_functions(tmp_path: Path) -> None:
    query: dict[str, Any] = {"min": ("a",), "max": ("norm(a, b)",), "protocol": "fragmented", "honest": False}
    with coordinated(tmp_path, **query) as world:
        for name, row in (("n", (3, 0)), ("s", (3, 8))):
            with Site(world.url, name) as site:
                site.put("x", row)
                site.finish()
        follower = CoordinatorFollower.of(f"http://{world.host}:{world.port}/")
        assert caught_up(follower) == {"x": (3.0, 5.0)} and follower.board.kind == "fragments"
        assert [column["name"] for column in follower.board.state()["columns"]] == ["a", "norm(a, b)"]


def test_a_token_is_needed_where_there_is_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(issue(SECRET, "reader", "anna"))
    with coordinated(tmp_path, secret=True) as world:
        url = f"http://{world.host}:{world.port}"
        with pytest.raises(InputError, match="asks for a token; give a reader's token with --token-file"):
            follower_of(url)
        world.serves()
        follower = follower_of(url, token_file=str(file))
        assert len(caught_up(follower)) == 1


def test_where_nobody_answers_it_is_said_and_infinities_are_shown(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"did not answer for .* seconds"):
        follower_of("http://127.0.0.1:9")
    assert looks_followed("https://example.org") and not looks_followed(str(tmp_path))
    with pytest.raises(InputError, match="is nothing to follow"):
        follower_of(str(tmp_path / "cars.csv"))
    with Running(tmp_path, max=("b",), nulls="worst") as running:
        with Site(running.url, "one") as site:
            site.put("x", (-math.inf, math.nan))
            site.finish()
        follower = CoordinatorFollower.of(running.url)
        assert caught_up(follower) == {"x": ("-Infinity", None)}
