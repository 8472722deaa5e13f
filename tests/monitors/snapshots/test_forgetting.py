"""Objects and groups that come and go for ever: what is gone is forgotten, what is there is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import skytide as sk
from skytide.monitors.snapshots import snapshots
from skytide.monitors.snapshots.names import Names
from skytide.reference.snapshots import snapshot_changes
from tests.monitors.snapshots.streams import listed

NAN = float("nan")
SWEEP = 64


@pytest.fixture(autouse=True)
def sweeping_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_SWEEP", SWEEP)


@pytest.mark.parametrize("method", ["auto", "mbr", "recompute"])
@pytest.mark.parametrize("by", [[], ["g"]], ids=["alone", "groups"])
@pytest.mark.parametrize("text", [False, True], ids=["integer", "text"])
def test_objects_that_come_and_go_for_ever_are_forgotten(method: str, by: list[str], text: bool) -> None:
    """Each object stays for two snapshots; one stays from the first to the last, and is dominated all the while."""
    monitor = sk.Snapshots(sk.Preference(minimize=["a", "b"], by=by), method=method, lateness=1)
    rng = np.random.default_rng(0)
    size = 12
    times, ids, rows, groups, told, held = [], [], [], [], [], []
    for time in range(60):
        fresh = [time * size + one for one in range(1, size + 1)]
        gone = [one - 2 * size for one in fresh] if time > 1 else []
        numbers = [*([0] if time == 0 else []), *gone, *fresh]
        values = rng.integers(0, 9, (len(numbers), 2)).astype(np.float64)
        if time == 0:
            values[0] = 50.0, 50.0
        values[len(numbers) - size - len(gone) : len(numbers) - size] = NAN
        names: Any = [f"o{one}" for one in numbers] if text else numbers
        where = ["stays" if one == 0 else f"g{one // size}" for one in numbers]
        columns = {"a": values[:, 0], "b": values[:, 1], "g": where}
        told += listed(monitor.extend(columns, [time] * len(numbers), ids=names))
        held.append((len(monitor._names), len(monitor._groups.keys), monitor.stats()["memory_bytes"]))
        times += [time] * len(numbers)
        ids += names
        rows += [tuple(None if value != value else value for value in row) for row in values.tolist()]
        groups += where
    expected = snapshot_changes(times, ids, rows, by=groups if by else None, close_last=False, lateness=1)
    assert told == [tuple(one) for one in expected]
    # Of 721 objects about 40 are there and about 40 updates wait at any time.
    assert max(known for known, _, _ in held) <= 3 * SWEEP and max(known for _, known, _ in held) <= SWEEP
    assert max(memory for _, _, memory in held) < 120_000
    assert monitor.values("o0" if text else 0) == (50.0, 50.0)
    assert len(monitor.to_bytes()) < 20_000


def test_what_is_awaited_is_not_forgotten() -> None:
    monitor = sk.Snapshots(sk.Preference.columns(1), op="add", lateness=10_000)
    monitor.extend([("first", [5.0])], [0])
    monitor.advance(1)
    # Many come and go while the next row of `first`, and the first row of `later`, wait.
    monitor.extend([("first", [-3.0]), ("later", [1.0]), ("later", [2.0])], [9_000, 9_000, 9_001])
    for turn in range(30):
        names = [f"{turn}-{one}" for one in range(40)]
        monitor.extend([(name, [9.0]) for name in names], [10 * turn + 2] * 40)
        monitor.extend([(name, None) for name in names], [10 * turn + 3] * 40)
        monitor.advance(10 * turn + 5)
    assert len(monitor._names) <= 2 * SWEEP + 2 and len(monitor) == 1
    assert listed(monitor.advance(9_000)) == [(9_000, "-", "first"), (9_000, "+", "later")]
    assert listed(monitor.advance(9_001)) == [(9_001, "-", "later"), (9_001, "+", "first")]
    assert monitor.values("later") == (3.0,) and monitor.values("first") == (2.0,)


def test_an_object_that_wanders_from_group_to_group_leaves_none_behind() -> None:
    monitor = sk.Snapshots(sk.Preference(minimize=["a"], by=["g"]))
    kept = {"a": 1.0, "g": -1}
    monitor.apply([("stays", kept)], 0)
    most = 0
    for time in range(1, 3 * SWEEP):
        found = monitor.apply([("wanders", {"a": 1.0, "g": time})], time)
        assert listed(found) == ([(1, "+", "wanders")] if time == 1 else [])
        most = max(most, len(monitor._groups.keys))
    assert most <= SWEEP + 1 and monitor.stats()["groups"] == 2
    assert sorted(monitor.skyline().groups, key=str) == [(-1,), (3 * SWEEP - 1,)]
    assert len(monitor.to_bytes()) < 10_000


def test_groups_of_rows_that_wait_are_not_forgotten() -> None:
    monitor = sk.Snapshots(sk.Preference(minimize=["a"], by=["g"]), lateness=10 * SWEEP)
    monitor.extend([("waits", {"a": 1.0, "g": "far"})], [9 * SWEEP])
    for time in range(1, 2 * SWEEP, 2):
        monitor.extend([("wanders", {"a": 1.0, "g": time}), ("wanders", {"a": 1.0, "g": time + 1})], [time, time + 1])
        monitor.advance(time + 1)
    assert len(monitor._groups.keys) <= SWEEP + 2
    monitor.advance(9 * SWEEP)
    assert dict(zip(monitor.skyline().ids.tolist(), monitor.skyline().groups, strict=True))["waits"] == ("far",)


def test_many_groups_are_independent() -> None:
    count = 300
    rng = np.random.default_rng(2)
    monitor = sk.Snapshots(sk.Preference(minimize=["a", "b"], by=["g", "h"]))
    times, ids, rows, groups = [], [], [], []
    for time in range(4):
        own = rng.permutation(3 * count)[: 2 * count]
        times += [time] * len(own)
        ids += own.tolist()
        rows += rng.integers(0, 4, (len(own), 2)).astype(float).tolist()
        groups += [(f"g{one % 20}", one // 20 % 15) for one in (own + time * (own % 7 == 0)).tolist()]
    table = {
        "a": [row[0] for row in rows],
        "b": [row[1] for row in rows],
        "g": [group[0] for group in groups],
        "h": [group[1] for group in groups],
    }
    told = listed(monitor.extend(table, times, ids=ids)) + listed(monitor.advance(9))
    assert told == [tuple(one) for one in snapshot_changes(times, ids, rows, by=groups)]
    assert monitor.stats()["groups"] == len({group for group in groups}) == count
    assert {one: group for one, group in zip(monitor.skyline(), monitor.skyline().groups, strict=True)} == {
        one: {own: group for own, group in zip(ids, groups, strict=True)}[one] for one in monitor.skyline()
    }


def test_a_group_that_empties_and_returns_starts_anew() -> None:
    monitor = sk.Snapshots(sk.Preference(minimize=["a"], by=["g"]), method="mbr")
    low, high = {"a": 1.0, "g": "x"}, {"a": 2.0, "g": "x"}
    assert listed(monitor.apply([("p", low), ("q", high)], 1)) == [(1, "+", "p")]
    worked = monitor.stats()["searches"]
    assert listed(monitor.apply([("p", None), ("q", None)], 2)) == [(2, "-", "p")]
    stats = monitor.stats()
    assert stats["groups"] == 0 and stats["candidates"] == 0 and stats["memory_bytes"] == 0
    assert stats["searches"] >= worked, "what was done is not forgotten with the group"
    assert listed(monitor.apply([("q", high)], 3)) == [(3, "+", "q")]
    assert listed(monitor.apply([("p", low)], 4)) == [(4, "-", "q"), (4, "+", "p")]
    # Emptied and filled again within one snapshot, and by an object that comes over from another group.
    assert listed(monitor.apply([("p", None), ("q", None), ("q", high)], 5)) == [(5, "-", "p"), (5, "+", "q")]
    assert listed(monitor.apply([("r", {"a": 3.0, "g": "y"})], 6)) == [(6, "+", "r")]
    assert listed(monitor.apply([("q", None), ("r", {"a": 0.0, "g": "x"})], 7)) == [(7, "-", "q")]
    assert listed(monitor.apply([("q", {"a": 5.0, "g": "y"})], 8)) == [(8, "+", "q")]


def test_an_object_that_changes_its_group_leaves_the_one_and_enters_the_other() -> None:
    monitor = sk.Snapshots(sk.Preference(minimize=["a"], by=["g"]))
    monitor.apply([("p", {"a": 1.0, "g": "x"}), ("q", {"a": 2.0, "g": "x"}), ("r", {"a": 1.5, "g": "y"})], 1)
    assert listed(monitor.apply([("p", {"a": 1.0, "g": "y"})], 2)) == [(2, "-", "r"), (2, "+", "q")]
    # There and back within one snapshot is no change.
    assert listed(monitor.apply([("p", {"a": 1.0, "g": "x"}), ("p", {"a": 1.0, "g": "y"})], 3)) == []
    assert listed(monitor.apply([("p", {"a": 3.0, "g": "x"})], 4)) == [(4, "-", "p"), (4, "+", "r")]


@pytest.mark.parametrize("ids", [[5, 7, 5, 70_000, 3], [-1, 2**62, 7, -1, 0], [4_000_000, 2, 4_000_000, 70_001, 9]])
def test_whole_numbers_get_numbers_however_far_apart_they_are(ids: list[int]) -> None:
    names, plain = Names(), dict[int, int]()
    for batch in (ids[:2], ids, [1, *ids], list(range(300)), [*ids, 80_000, 299]):
        numbers = names.numbers(np.array(batch)).tolist()
        for one, number in zip(batch, numbers, strict=True):
            assert plain.setdefault(one, number) == number and names.number(one) == number
        assert len(set(plain.values())) == len(plain) == len(names)
        assert names.ids(np.array(numbers)).tolist() == batch
    known = len(names)
    names.numbers(np.array([10**6, 10**6 + 1, 77_777]))
    names.forget_since(known)
    assert len(names) == known and names.number(10**6) is None and names.number(77_777) is None
    names.numbers(np.array([61_000]))
    names.forget_since(known)
    assert sorted(names.numbers(np.array([61_001, 61_000])).tolist()) == [known, known + 1]
    assert names.ids(names.numbers(np.array([61_000, 61_001]))).tolist() == [61_000, 61_001]
    names.forget_since(known)
    kept = np.arange(known) % 2 == 0
    expected = names.ids(np.flatnonzero(kept)).tolist()
    names.keep(kept)
    assert names.ids(np.arange(len(names))).tolist() == expected
    assert names.numbers(np.array(expected)).tolist() == list(range(len(expected)))
    assert names.numbers(np.array([77_777])).tolist() == [len(expected)]
