"""The board tells what a query tells: checked against sets and lists that are kept beside it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.dashboard.board import Board
from skytide.dashboard.rows import Rows
from skytide.dashboard.values import column_values, moment_text, moments
from skytide.errors import InputError, OptionError
from skytide.explain import dominators_of
from skytide.model import Preference
from skytide.monitors.sliding.window import SlidingWindow

PREFERENCE = Preference(minimize=["price"], maximize=["rating"])
EXTREMES = [math.inf, -math.inf, 1.797e308, 5e-324, -0.0]
VALUES = st.integers(0, 3) | st.sampled_from(EXTREMES)
ROWS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=40)


def table(rows: list[tuple[Any, Any]]) -> pa.Table:
    prices, ratings = zip(*rows, strict=True) if rows else ((), ())
    return pa.table({"price": pa.array(prices, pa.float64()), "rating": pa.array(ratings, pa.float64())})


def keys(rows: list[Any]) -> list[str]:
    return sorted(row[0] for row in rows)


def replay(rows: list[tuple[Any, Any]], times: list[int], pieces: list[int], board: Board) -> list[Any]:
    """A window's changes onto a board, piece by piece; all changes."""
    window = SlidingWindow(PREFERENCE, duration=3)
    found, start = [], 0
    for stop in [*sorted(pieces), len(rows)]:
        part = slice(start, max(start, stop))
        names = [str(one) for one in range(len(rows))][part]
        board.see(table(rows[part]), names)
        changes = window.extend(table(rows[part]), times=times[part], ids=names)
        board.change(changes.times, changes.signs, changes.ids)
        found += [tuple(change) for change in changes]
        start = part.stop
    changes = window.advance(times[-1])
    board.change(changes.times, changes.signs, changes.ids)
    return found + [tuple(change) for change in changes]


STREAMS = ROWS.flatmap(
    lambda rows: st.tuples(
        st.just(rows),
        st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)).map(lambda d: np.cumsum(d).tolist()),
        st.lists(st.integers(0, len(rows)), max_size=4),
    )
)


@given(STREAMS)
@settings(max_examples=60, deadline=None)
def test_at_every_instant_the_history_is_the_answer_that_the_changes_make(stream: Any) -> None:
    board = Board(PREFERENCE)
    rows, times, pieces = stream
    changes = replay(rows, times, pieces, board)
    there: set[str] = set()
    sizes: dict[float, int] = {}
    by_time: dict[int, set[str]] = {}
    for time, sign, name in changes:
        there = there | {name} if sign == "+" else there - {name}
        by_time[time] = set(there)
        sizes[float(time)] = len(there)
    assert keys(board.state()["rows"]) == sorted(there)
    for time, members in by_time.items():
        assert keys(board.at(time)) == sorted(members)
    told = board.sizes()
    assert dict(zip(told["time"], told["size"], strict=True)) == sizes
    assert json.loads(json.dumps(board.recording(), allow_nan=False))["state"]["recorded"]


@given(STREAMS, st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_a_reader_that_adds_up_ticks_has_the_answer(stream: Any, begin: int) -> None:
    board = Board(PREFERENCE, keep=25)
    rows, times, pieces = stream
    reader: dict[str, Any] = {}
    known = -1

    def look() -> None:
        nonlocal known, reader
        tick = None if known < 0 else board.since(known)
        if tick is None:
            reader = {row[0]: row for row in board.state()["rows"]}
            known = board.number
            return
        for key, _ in tick["left"]:
            del reader[key]
        for row in tick["entered"]:
            assert row[0] not in reader
            reader[row[0]] = row
        for row in tick["moved"]:
            assert row[0] in reader
            reader[row[0]] = row
        known = tick["number"]

    window = SlidingWindow(PREFERENCE, duration=3)
    for at, (row, time) in enumerate(zip(rows, times, strict=True)):
        board.see(table([row]), [str(at)])
        changes = window.extend(table([row]), times=[time], ids=[str(at)])
        board.change(changes.times, changes.symbols, changes.ids)
        if at in pieces or at == begin:
            look()
    look()
    assert reader == {row[0]: row for row in board.state()["rows"]}
    if known:
        assert board.since(known + 1) is None, "a number that is not there yet is another board's"


@given(ROWS, st.integers(0, 39))
@settings(max_examples=80, deadline=None)
def test_an_explanation_names_the_dominators_of_the_answer_and_ways_that_bring_the_row_in(rows: Any, at: int) -> None:
    board = Board(PREFERENCE)
    window = SlidingWindow(PREFERENCE, count=len(rows))
    names = [str(one) for one in range(len(rows))]
    board.see(table(rows), names)
    changes = window.extend(table(rows), ids=names)
    board.change(changes.times, changes.signs, changes.ids)
    key = str(at % len(rows))
    found = board.explain(key)
    inside = set(window.skyline())
    assert found["inside"] == (key in inside)
    values = np.array([[float(price), -float(rating)] for price, rating in rows])
    above = set(np.flatnonzero(dominators_of(values, values[int(key)])).tolist())
    assert {int(row[0]) for row in found["dominators"]} == {one for one in above if str(one) in inside}
    assert bool(found["smallest"]) == (not found["inside"])
    json.dumps(found, allow_nan=False)


def test_values_that_move_are_told_and_the_past_keeps_the_old_ones() -> None:
    board = Board(PREFERENCE, kind="snapshots")
    board.see(table([(5, 1)]), ["a"])
    board.change([1], [1], ["a"])
    known = board.number
    board.see(table([(4, 1)]), ["a"], times=[3])
    tick = board.since(known)
    assert tick is not None and tick["moved"] == [["a", "a", None, 1.0, [4.0, 1.0], None]]
    assert board.at(2)[0][4] == [5.0, 1.0] and board.at(3)[0][4] == [4.0, 1.0]
    assert board.stays() == [["a", "a", None, 1.0, None]], "a move does not end a stay"
    board.change([7], [-1], ["a"])
    assert board.stays("a") == [["a", "a", None, 1.0, 7.0]]
    assert board.explain("a")["stays"] == [[1.0, 7.0]]


def test_rows_of_groups_may_share_an_id_where_the_changes_bring_their_groups() -> None:
    preference = Preference(minimize=["price"], by=["city"])
    board = Board(preference, keyed_by=["city"])
    values = pa.table({"price": [1, 2], "city": ["Lyon", "Porto"]})
    board.change([1, 1], "++", ["x", "x"], values=values)
    rows = board.state()["rows"]
    assert [(row[1], row[2]) for row in rows] == [("x", "Lyon"), ("x", "Porto")]
    board.change([2], "-", ["x"], values=values.slice(1, 1))
    assert [row[2] for row in board.state()["rows"]] == ["Lyon"]


def test_of_several_thresholds_the_smallest_makes_the_answer_and_probabilities_reach_readers_once() -> None:
    board = Board(PREFERENCE, kind="uncertain", thresholds=[0.3, 0.6])
    board.see(table([(1, 1), (2, 2)]), ["a", "b"])
    board.change([1, 1, 2], "++-", ["a", "a", "a"], thresholds=[0.3, 0.6, 0.6])
    assert keys(board.state()["rows"]) == ["a"]
    before, number = board.beat, board.number
    board.probabilities(["a"], [0.45])
    tick = board.since(number, beat=before)
    assert tick is not None and tick["probabilities"] == {"a": 0.45}
    again = board.since(number, beat=board.beat)
    assert again is not None and again["probabilities"] is None
    assert board.state()["rows"][0][5] == 0.45


def test_a_reader_hears_of_each_change_once_also_of_those_that_move_nothing() -> None:
    board = Board(PREFERENCE, kind="uncertain", thresholds=[0.3, 0.6])
    board.see(table([(1, 1), (2, 2)]), ["a", "b"])
    board.change([1], "+", ["a"], thresholds=[0.3])
    state = board.state()
    board.see(table([(5, 1)]), ["a"])
    board.change([2, 3], "+-", ["a", "a"], thresholds=[0.6, 0.6])
    tick = board.since(state["number"], state["meters"]["changes"])
    assert tick is not None
    assert [change[:2] for change in tick["changes"]] == [[2.0, "+"], [3.0, "-"]]
    again = board.since(tick["number"], tick["meters"]["changes"])
    assert again is not None and again["changes"] == []


def test_old_history_goes_and_says_so() -> None:
    board = Board(PREFERENCE, keep=4)
    for time in range(20):
        board.change([time], "+", [f"r{time}"])
        board.change([time + 0.5], "-", [f"r{time}"])
    with pytest.raises(InputError, match="begins later"):
        board.at(0)
    assert board.at(19)[0][0] == "r19"


def test_what_is_not_known_is_an_error() -> None:
    board = Board(PREFERENCE)
    with pytest.raises(InputError, match="not a row"):
        board.explain("nobody")
    with pytest.raises(OptionError, match="kind"):
        Board(PREFERENCE, kind="riddle")


def test_times_of_all_forms_become_numbers() -> None:
    stamps = np.array(["2024-01-01T00:00:01.5"], "datetime64[ns]")
    assert moments(stamps)[0].tolist() == moments(pa.array(stamps))[0].tolist() == [1704067201500.0]
    zoned = pa.array(stamps).cast(pa.timestamp("us", "UTC"))
    assert moments(zoned) == (np.array([1704067201500.0]), "time")
    assert moments(zoned.to_pylist())[0].tolist() == [1704067201500.0]
    days = pa.array([19723], pa.int32()).cast(pa.date32())
    assert moments(days)[0].tolist() == moments(days.to_pylist())[0].tolist() == [1704067200000.0]
    assert moment_text(1704067200000.0, "time") == "2024-01-01 00:00:00"


def test_values_of_all_forms_can_be_said_in_json() -> None:
    import decimal

    told = [
        column_values(pa.array([decimal.Decimal("1.50"), None])),
        column_values(pa.array(["a", None]).dictionary_encode()),
        column_values(pa.array([True, False])),
        column_values(pa.array([math.nan, -math.inf])),
        column_values(pa.array([2**60])),
    ]
    assert told == [[1.5, None], ["a", None], [True, False], [None, "-Infinity"], [2**60]]


def test_a_sample_of_the_rest_leaves_out_the_answer_and_the_forgotten() -> None:
    board = Board(PREFERENCE, remember=3)
    board.see(table([(1, 1), (2, 1), (3, 1), (4, 1)]), list("abcd"))
    board.change([1], "+", ["d"])
    assert keys(board.rest()["rows"]) == ["b", "c"], "a was first and went"
    board.forget(["b"])
    assert keys(board.rest()["rows"]) == ["c"] and board.rest()["seen"] == 4


def test_a_sample_is_large_enough_also_where_most_rows_were_forgotten() -> None:
    rows = Rows(room=10_000)
    names = [str(one) for one in range(10_000)]
    rows.put(names, [(one,) for one in range(10_000)])
    rows.forget(names[:9_000])
    assert {key for key, _ in rows.sample(1_000)} == set(names[9_000:]), "all that there are"
    drawn = [key for key, _ in rows.sample(500)]
    assert len(drawn) == len(set(drawn)) and 250 < len(drawn) < 750 and set(drawn) <= set(names[9_000:])


def test_a_state_does_not_change_after_it_was_read() -> None:
    now = iter(range(1000))
    board = Board(Preference(minimize=["a"]), clock=lambda: float(next(now)))
    board.meter(rows=1)
    state = board.state()
    before = json.dumps(state)
    for count in range(20):
        board.meter(rows=count)
        board.notice(False, ["late"])
    assert json.dumps(state) == before


def test_limits_are_named_in_full_and_dates_are_compared() -> None:
    board = Board(Preference(minimize=["day", "price", "count"]), kind="snapshots")
    rows = {"day": ["2020-01-01", "2021-01-01"], "price": [0.1 + 0.2, 0.5], "count": [1234567890123456, 2**53]}
    board.see(pa.table(rows), ["ant", "bee"])
    board.change([1], "+", ["ant"])
    found = board.explain("bee")
    assert [row[0] for row in found["dominators"]] == ["ant"]
    assert found["ways"] == [
        "day below 2020-01-01 alone",
        "price below 0.30000000000000004 alone",
        "count below 1234567890123456 alone",
    ]


def test_groups_whose_texts_are_alike_are_different_ones() -> None:
    board = Board(Preference(minimize=["price"], by=["city", "street"]), kind="snapshots")
    groups = {"city": ["a, b", "a", None, "NULL"], "street": ["c", "b, c", "x", "x"]}
    board.see(pa.table({"price": [1, 2, 3, 4], **groups}), list("klmn"))
    board.change([1] * 4, "++++", list("klmn"))
    assert [board.explain(key)["dominators"] for key in "klmn"] == [[]] * 4


def test_a_row_of_an_answer_that_is_not_exact_now_is_explained_too() -> None:
    board = Board(PREFERENCE, kind="monitor")
    board.see(table([(1, 5), (2, 4)]), ["ant", "bee"])
    board.change([1, 1], "++", ["ant", "bee"])
    found = board.explain("bee")
    assert found["inside"] and found["ways"] == [] and [row[0] for row in found["dominators"]] == ["ant"]


def test_moments_that_are_missing_are_not_numbers() -> None:
    found, clock = moments(pa.array([1000, None, -3], pa.timestamp("us", tz="Europe/Paris")))
    assert clock == "time" and found.tolist() == pytest.approx([1.0, math.nan, -0.003], nan_ok=True)


def test_the_sizes_of_a_recording_begin_with_its_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skytide.dashboard.board.RECORDED_VERSIONS", 5)
    board = Board(PREFERENCE)
    for at in range(20):
        board.change([at, at + 0.5], "+-", [str(at)] * 2)
    recording = board.recording()
    assert recording["sizes"]["from"] == recording["begins"] == 14.5
    assert board.sizes()["from"] == 0


def test_who_moves_later_than_it_leaves_was_there_until_it_left() -> None:
    """Rows may be seen before their instants are closed, where they may come late."""
    board = Board(PREFERENCE, kind="snapshots")
    board.see(table([(5, 1)]), ["a"])
    board.change([1], "+", ["a"])
    for moved, time in ((4, 2), (3, 6), (2, 8)):
        board.see(table([(moved, 1)]), ["a"], times=[time])
    board.change([4], "-", ["a"])
    assert [board.at(time)[0][4][0] for time in (1, 2, 3)] == [5.0, 4.0, 4.0]
    assert [board.at(time) for time in (4, 6, 8, 9)] == [[], [], [], []]
    assert board.stays("a") == [["a", "a", None, 1.0, 4.0]]
