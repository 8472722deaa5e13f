"""The frequent-skyline monitor against the definition, after every snapshot, however the series is given."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.monitors.frequent.changes import PairChanges
from skytide.reference.frequent import frequent_changes
from tests.monitors.frequent.series import Series, agrees, expected_changes, listed, pairs_of, series

HISTORY = st.sampled_from([True, False, 1, 3, 20])


@settings(max_examples=80)
@given(series(), pairs_of(), HISTORY)
def test_after_every_snapshot_each_pair_has_the_answer_by_definition(
    drawn: Series, pairs: list[tuple[Any, int]], history: bool | int
) -> None:
    monitor = sk.Frequent(pairs=pairs, history=history)
    names = set().union(*drawn.answers)
    changes = []
    for number, (time, answer) in enumerate(drawn.timed, start=1):
        changes += listed(monitor.observe(answer, time))
        agrees(monitor, Series(drawn.times[:number], drawn.answers[:number]), pairs, names)
        monitor._counts._check()
        assert (monitor.snapshots, monitor.latest) == (number, time)
    assert changes == expected_changes(drawn, pairs)


@settings(max_examples=120)
@given(series(), pairs_of(), HISTORY, st.data())
def test_any_split_into_calls_and_any_restart_give_the_same(
    drawn: Series, pairs: list[tuple[Any, int]], history: bool | int, data: st.DataObject
) -> None:
    monitor = sk.Frequent(pairs=pairs, history=history)
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(drawn)), max_size=4))), len(drawn)]
    changes = []
    for start, stop in itertools.pairwise(cuts):
        if data.draw(st.booleans()):
            monitor = sk.Frequent.from_bytes(monitor.to_bytes())
        if data.draw(st.booleans()):
            changes += listed(monitor.extend(drawn.changes(start, stop), snapshots=drawn.times[start:stop]))
        else:
            for time, answer in drawn.timed[start:stop]:
                changes += listed(monitor.observe(sorted(answer), time))
        monitor._counts._check()
    assert changes == expected_changes(drawn, pairs)
    agrees(monitor, drawn, pairs, set().union(*drawn.answers))
    assert monitor.stats()["snapshots"] == len(drawn)
    assert monitor.stats()["entered"] == sum(one[1] == "+" for one in changes)
    assert monitor.stats()["left"] == sum(one[1] == "-" for one in changes)


@settings(max_examples=40)
@given(series(), st.sampled_from([0.5, 1, "0.3"]), st.integers(1, 6))
def test_one_pair_alone_gives_the_plain_change_stream(drawn: Series, theta: Any, over: int) -> None:
    monitor = sk.Frequent(theta, over)
    found = monitor.extend(drawn.changes(0, len(drawn)), snapshots=drawn.times)
    assert isinstance(found, sk.Changes)
    assert list(found) == frequent_changes(drawn.timed, theta, over)


def test_theta_is_read_as_a_decimal() -> None:
    assert 0.07 * 100 > 7
    monitor = sk.Frequent(theta=0.07, over=100)
    changes = sk.Changes.of(times=[1, 8], signs=[1, -1], ids=[5, 5])
    assert listed(monitor.extend(changes, snapshots=range(1, 200))) == [(7, "+", 5), (101, "-", 5)]


def test_with_theta_and_over_of_1_the_changes_are_those_of_the_skyline() -> None:
    changes = sk.Changes.of(times=[1, 2, 2, 4], signs=[1, -1, 1, -1], ids=["a", "a", "b", "b"])
    assert listed(sk.Frequent(1, 1).extend(changes, snapshots=[1, 2, 3, 4])) == listed(changes)


def test_an_id_that_is_gone_stays_frequent_while_its_appearances_count() -> None:
    monitor = sk.Frequent(theta=0.5, over=4)
    for time in (1, 2, 3):
        monitor.observe(["a"], time)
    assert listed(monitor.observe([], 4)) == listed(monitor.observe([], 5)) == []
    assert list(monitor.frequent()) == [("a", 2)]
    assert listed(monitor.observe([], 6)) == [(6, "-", "a")]


def test_several_pairs_name_the_pair_of_each_change() -> None:
    monitor = sk.Frequent(pairs=[(0.5, 2), (1, 1), (0.5, 1)])
    found = monitor.observe(["x"], time=1)
    assert isinstance(found, PairChanges) and len(found) == 3
    assert listed(found) == [(1, "+", "x", 0.5, 1), (1, "+", "x", 0.5, 2), (1, "+", "x", 1.0, 1)]
    assert found.symbols.tolist() == ["+", "+", "+"]


def test_ids_come_in_every_form_of_column() -> None:
    forms: list[Any] = [[1, 2], {1, 2}, (1, 2), np.array([2, 1, 1]), pa.array([1, 2]), iter([1, 2]), {1: 0, 2: 0}]
    for form in [*forms, np.array([1, 2], np.uint8), pa.chunked_array([[1], [2]])]:
        assert listed(sk.Frequent(1, 1).observe(form, 0)) == [(0, "+", 1), (0, "+", 2)]
    assert listed(sk.Frequent(1, 1).observe(np.array(["b", "a"]), 0)) == [(0, "+", "a"), (0, "+", "b")]
    assert listed(sk.Frequent(1, 1).observe(np.array([2**64 - 1], np.uint64), 0)) == [(0, "+", 2**64 - 1)]


def test_changes_in_any_order_are_put_in_order() -> None:
    shuffled = sk.Changes(np.array([3, 1, 2]), np.array([1, 1, -1], np.int8), np.array([7, 7, 7]))
    assert listed(sk.Frequent(1, 1).extend(shuffled, snapshots=[1, 2, 3])) == [(1, "+", 7), (2, "-", 7), (3, "+", 7)]


def test_long_runs_of_whole_numbers_give_the_same_as_single_snapshots() -> None:
    rng = np.random.default_rng(1)
    answers = [set(rng.choice(40, 12).tolist()) for _ in range(60)]
    drawn = Series(list(range(60)), answers)
    whole, single = (sk.Frequent(pairs=[(0.4, 10), (0.2, 25)]) for _ in range(2))
    assert len(drawn.changes(0, 60)) > 512
    found = listed(whole.extend(drawn.changes(0, 60), snapshots=drawn.times))
    assert found == [one for time, answer in drawn.timed for one in listed(single.observe(answer, time))]
    assert whole.history().equals(single.history())


def test_many_ids_that_cross_at_once_all_come_out_in_order() -> None:
    ids = np.arange(9_000)
    both = sk.Changes.of(np.repeat([1, 5], len(ids)), np.repeat([1, -1], len(ids)), np.tile(ids, 2))
    found = sk.Frequent(theta=0.5, over=4).extend(both, snapshots=range(1, 10))
    texts = sorted(map(str, ids.tolist()))
    assert listed(found) == [(2, "+", int(one)) for one in texts] + [(7, "-", int(one)) for one in texts]


def test_the_changes_of_a_sliding_window_are_counted_as_they_come() -> None:
    rows = np.random.default_rng(3).integers(0, 6, (120, 2)).astype(float)
    window, monitor = sk.SlidingWindow(sk.Preference.columns(2), count=7), sk.Frequent(theta=0.6, over=5)
    inside: set[int] = set()
    answers, found = [], []
    for start in range(0, 120, 40):
        changes = window.extend(rows[start : start + 40])
        found += listed(monitor.extend(changes, snapshots=range(start + 1, start + 41)))
        for time in range(start + 1, start + 41):
            inside ^= {change.id for change in changes if change.time == time}
            answers.append((time, set(inside)))
    assert inside == set(window.skyline())
    assert found == [tuple(change) for change in frequent_changes(answers, 0.6, 5)] != []


def test_nothing_in_gives_nothing_out() -> None:
    monitor = sk.Frequent(0.5, 3)
    assert listed(monitor.extend(sk.Changes.concatenate([]), snapshots=[])) == []
    assert (monitor.snapshots, monitor.latest, len(monitor.frequent())) == (0, None, 0)
    assert monitor.count("x") == 0 and monitor.stays("x") == [] and monitor.longest(3) == []
    assert monitor.history().num_rows == 0


# -- cost --------------------------------------------------------------------------------------------------------------


def _work(members: int, snapshots: int) -> tuple[int, int]:
    """Slopes changed and crossings, and steps in the heap, of a series with 60 changes beside a quiet skyline."""
    monitor = sk.Frequent(pairs=[(0.5, 100), (0.9, 30)])
    monitor.extend(
        sk.Changes.of(times=[0] * members, signs=[1] * members, ids=range(members)), snapshots=range(members + 500)
    )
    before, start = monitor.stats(), members + 500
    times = np.arange(60) * 90 + start
    changes = sk.Changes.of(times=times, signs=[1, -1] * 30, ids=np.repeat(np.arange(30) - 100, 2))
    monitor.extend(changes, snapshots=range(start, start + snapshots))
    after = monitor.stats()
    return (
        after["slopes"] + after["crossings"] - before["slopes"] - before["crossings"],
        after["heap_steps"] - before["heap_steps"],
    )


def test_the_work_follows_the_changes_and_neither_the_skyline_nor_quiet_snapshots() -> None:
    assert _work(10, 6_000) == _work(4_000, 6_000)
    assert _work(10, 6_000) == _work(10, 60_000)
    assert _work(10, 6_000)[0] <= 60 * 2 * 2 * 2  # a change comes and leaves, for each pair, and may cross each time


def test_where_the_whole_skyline_is_about_to_cross_a_change_costs_logarithmic_steps() -> None:
    monitor = sk.Frequent(theta=1, over=10**6)
    n = 2**12
    monitor.extend(sk.Changes.of(times=[0] * n, signs=[1] * n, ids=range(n)), snapshots=[0])
    before = monitor.stats()["heap_steps"]
    monitor.extend(sk.Changes.of(times=[1] * 2, signs=[1, -1], ids=[n, 5]), snapshots=[1])
    assert monitor.stats()["heap_steps"] - before <= 3 * 13


def test_without_history_memory_follows_the_largest_window() -> None:
    monitor = sk.Frequent(pairs=[(0.5, 10), (0.5, 4)], history=False)
    held = []
    for start in range(0, 4_000, 100):
        times = np.repeat(np.arange(start, start + 100), 2)
        ids = np.column_stack((np.arange(start, start + 100) - 1, np.arange(start, start + 100))).ravel()
        signs = np.tile([-1, 1], 100)
        if not start:
            times, ids, signs = times[1:], ids[1:], signs[1:]
        monitor.extend(sk.Changes.of(times, signs, ids), snapshots=range(start, start + 100))
        held.append(monitor.stats())
        assert held[-1]["known_ids"] <= 12 and held[-1]["queued"] <= 20 and held[-1]["stays"] == 0
    assert held[-1]["memory_bytes"] == held[4]["memory_bytes"]


def test_a_burst_does_not_hold_its_memory_for_ever() -> None:
    monitor = sk.Frequent(theta=0.5, over=2, history=False)
    ids = np.tile([1], 20_000)
    monitor.extend(sk.Changes.of(np.arange(20_000), np.tile([1, -1], 10_000), ids), snapshots=range(20_000))
    burst = monitor.stats()["memory_bytes"]
    monitor.extend(sk.Changes.of([20_000], [1], [2]), snapshots=[20_000])
    assert monitor.stats()["memory_bytes"] < burst / 4


# -- refusals ----------------------------------------------------------------------------------------------------------


NO_SHARES: list[Any] = [
    *(0, -0.1, 1.1, "x", "nan", float("inf"), True, None, [], "1/0"),
    *("1e-2000", "1e999999999", "-1e999999999", "3/2", "0/1", 1j, np.complex128(1)),
]


@pytest.mark.parametrize(
    "options",
    [
        *({}, {"theta": 0.5}, {"over": 3}, {"pairs": []}, {"pairs": [(0.5, 3)], "theta": 0.5}, {"pairs": 3}),
        *({"pairs": [0.5, 3]}, {"pairs": [(0.5, 3, 4)]}, {"pairs": [(0.5, 3), ("0.50", 3)]}),
        *({"theta": theta, "over": 3} for theta in NO_SHARES),
        *({"theta": 0.5, "over": over} for over in (0, -1, 1.5, True, "3", None)),
        *({"theta": 0.5, "over": 3, "history": history} for history in (0, -1, None, "x", 1.5)),
    ],
)
def test_pairs_and_lengths_that_are_none_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(sk.SkytideError):
        sk.Frequent(**options)


def _some() -> sk.Frequent:
    monitor = sk.Frequent(pairs=[(0.5, 3), (1, 2)])
    monitor.extend(sk.Changes.of([1, 2, 2], [1, 1, -1], ["a", "b", "a"]), snapshots=[1, 2, 3])
    return monitor


def _goes_on(monitor: sk.Frequent) -> list[tuple[Any, ...]]:
    changes = [listed(monitor.observe(answer, time)) for time, answer in enumerate((["b", "c"], ["c"], [], []), 4)]
    return [*itertools.chain(*changes), monitor.history().to_pydict(), monitor.stats()["known_ids"]]


def _of(times: Any, signs: Any, ids: Any) -> sk.Changes:
    return sk.Changes(np.array(times), np.array(signs), np.array(ids))


@pytest.mark.parametrize(
    ("changes", "snapshots", "reason"),
    [
        (_of([4, 5], [1, 1], ["c", "b"]), [4, 5], "'b' enters, but is in"),
        (_of([4, 5, 6], [1, -1, -1], ["c", "b", "b"]), [4, 5, 6], "row 3: 'b' leaves"),
        (_of([4, 4], [-1, 1], ["b", "b"]), [4], "'b' changes twice"),
        (_of([4], [-1], ["new"]), [4], "'new' leaves"),
        (_of([4], [1], ["c"]), [3, 4], "is not later"),
        (_of([4], [1], ["c"]), [5, 4], "4 is not later than the snapshot before it, 5"),
        (_of([4], [1], ["c"]), [4, 4], "is not later"),
        (_of([5], [1], ["c"]), [4, 6], "5 is not the time of a snapshot"),
        (_of([9], [1], ["c"]), [4, 6], "9 is not the time of a snapshot"),
        (_of([4], [1], ["c"]), [], "4 is not the time of a snapshot"),
        (_of([4], [0], ["c"]), [4], "sign"),
        (_of([4], [1], [7]), [4], "ids of one kind"),
        (_of([4, 5], [1], ["c"]), [4, 5], "differ in length"),
        (_of([4.5], [1], ["c"]), [4], "whole numbers"),
        (_of([4], [1], ["c"]), [4.5], "whole numbers"),
        (_of([4], [1], ["c"]), [None], "missing"),
        (_of([4], [1], ["c"]), ["x"], "not times"),
        (_of(np.array(["2024-01-01"], "M8[s]"), [1], ["c"]), [4], "numbers"),
        (sk.Changes(np.array([4]), np.array([1], np.int8), np.array([None])), [4], "missing"),
        ("no changes", [4], "not a run of a change stream"),
    ],
)
def test_a_run_that_cannot_be_is_refused_and_leaves_the_monitor_as_it_was(
    changes: Any, snapshots: Any, reason: str
) -> None:
    monitor = _some()
    before = monitor.to_bytes()
    with pytest.raises(sk.SkytideError, match=reason):
        monitor.extend(changes, snapshots=snapshots)
    monitor._counts._check()
    assert monitor.to_bytes() == before
    assert _goes_on(monitor) == _goes_on(_some()) != []


@pytest.mark.parametrize(
    ("ids", "time"),
    [("b", 4), (["b"], 3), (["b", None], 4), ([[1], [2]], 4), (5, 4), (["b"], None), ([7], 4), (np.zeros((2, 2)), 4)],
)
def test_a_snapshot_that_cannot_be_is_refused_and_leaves_the_monitor_as_it_was(ids: Any, time: Any) -> None:
    monitor = _some()
    before = monitor.to_bytes()
    with pytest.raises(sk.SkytideError):
        monitor.observe(ids, time)
    assert monitor.to_bytes() == before


def test_a_refused_first_call_settles_neither_ids_nor_times() -> None:
    monitor = sk.Frequent(1, 1)
    with pytest.raises(sk.SkytideError):
        monitor.extend(_of([1, 1], [1, -1], ["a", "b"]), snapshots=[1])
    found = monitor.extend(_of([1.5], [1], [3]), snapshots=[1.5])
    assert listed(found) == [(1.5, "+", 3)]


def test_questions_about_what_is_not_there_are_refused() -> None:
    monitor = _some()
    for pair in (2, -1, True, "0", 0.0, None):
        with pytest.raises(sk.SkytideError, match="not one of the pairs"):
            monitor.frequent(pair)  # type: ignore[arg-type]
        with pytest.raises(sk.SkytideError, match="not one of the pairs"):
            monitor.count("a", pair)  # type: ignore[arg-type]
    with pytest.raises(sk.SkytideError, match="not an id"):
        monitor.count([1])
    for k in (0, -1, True, 1.5):
        with pytest.raises(sk.SkytideError, match="number of stays"):
            monitor.longest(k)  # type: ignore[arg-type]
    with pytest.raises(sk.SkytideError, match="after the last snapshot"):
        monitor.at(4)
