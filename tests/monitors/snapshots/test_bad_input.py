"""What is refused: the error says what, why and what to do, and the monitor is as it was, with the same future."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skytide as sk
from skytide.errors import IdError, InputError, OptionError, SkytideError, WindowError
from skytide.monitors.snapshots.changes import SnapshotChanges
from tests.monitors.snapshots.streams import listed

NAN, INF = float("nan"), float("inf")
STAMP = dt.datetime(2024, 1, 1)
ROWS: dict[str, Any] = {"p": [1.0, 2.0], "q": [3.0, 4.0], "g": ["x", "new"]}
IDS = ["a", "new"]
Call = Callable[[sk.Snapshots], Any]


def _monitor(**options: Any) -> sk.Snapshots:
    """Two groups, an object complete, two pending."""
    preference = sk.Preference(minimize=["p"], maximize=["q"], by=["g"])
    monitor = sk.Snapshots(preference, op="add", lateness=2, **options)
    monitor.extend({"p": [1.0, 2.0, 3.0], "q": [1.0, 2.0, 3.0], "g": ["x", "y", "x"]}, [1, 4, 5], ids=["a", "b", "c"])
    return monitor


def _extend(times: Any = (6, 6), ids: Any = IDS, op: Any = None, **columns: Any) -> Call:
    times = list(times) if isinstance(times, tuple) else times
    return lambda monitor: monitor.extend({**ROWS, **columns}, times, ids=ids, op=op)


def _apply(time: Any = 6, updates: Any = None, ids: Any = IDS, op: Any = None) -> Call:
    if updates is not None:
        return lambda monitor: monitor.apply(updates, time, op=op)
    return lambda monitor: monitor.apply(ROWS, time, ids=ids, op=op)


def _advance(now: Any) -> Call:
    return lambda monitor: monitor.advance(now)


REFUSED: list[tuple[Call, type[SkytideError], str]] = [
    (_extend(ids=["a"]), IdError, "there are 1 ids for 2 rows; give one id per row"),
    (_extend(ids=np.zeros((2, 2))), IdError, "ids for 2 rows"),
    (_extend(ids=None), IdError, "updates need ids; give ids, a column or the name of one"),
    (_extend(ids="name"), InputError, "column 'name': there is no such column; choose one of: p, q, g"),
    (_extend(ids=5), IdError, "5 is not a column of ids"),
    (_extend(ids=np.array("a")), IdError, "is not a column of ids"),
    (_extend(ids=[1, 2]), IdError, "of the kind 'other', these are of the kind 'integer'; give ids of one kind"),
    (_extend(ids=["a", None]), IdError, "row 2: the id is missing"),
    (_extend(ids=pa.array(["a", None])), IdError, "row 2: the id is missing"),
    (_extend(ids=["a", NAN]), IdError, "row 2: the id is missing"),
    (_extend(ids=[["a"], ["b"]]), IdError, "row 1: the id is not hashable"),
    (_extend((6,)), WindowError, "there are 1 times for 2 rows; give one time per row"),
    (_extend(None), WindowError, "there are no times; give the times"),
    (_extend(6), WindowError, "6 is not a column of times"),
    (_extend("t"), InputError, "column 't': there is no such column"),
    (_extend((6, None)), InputError, "row 2: the time is missing; fill it in, or choose the policy drop"),
    (_extend((STAMP, STAMP)), WindowError, "times are numbers; give numbers throughout"),
    (_extend(("6", "7")), WindowError, "are not times; give numbers or timestamps"),
    (_extend((6.5, 7)), WindowError, "whole numbers; give floating-point times from the first row on"),
    (_extend((6, 2**62)), WindowError, "use a later origin"),
    (_extend((6, 2**70)), WindowError, "are not times"),
    (_extend(q=[1.0, None]), InputError, "row 2, column 'q': the value is missing .* a row without any value deletes"),
    (_extend(q=["1", "x"]), InputError, "row 2, column 'q': 'x' is text, not a number"),
    (_extend(q=[2**53 + 1, 1]), InputError, "column 'q': 9007199254740993 is a whole number beyond 2"),
    (_extend(q=[1.0]), InputError, "the columns differ in length"),
    (_extend(op="divide"), OptionError, "'divide' is neither an operation nor a column; choose one of set, add"),
    (_extend(op=["add", "divide"]), OptionError, "'divide' is not an operation; choose one of set, add"),
    (_extend(op=["add", None]), OptionError, "'None' is not an operation"),
    (_extend(op=["add"]), OptionError, "there are 1 operations for 2 rows; give one per row"),
    (_extend(op=3), OptionError, "3 is not a column of operations"),
    (_extend(q=[INF, -INF], ids=["n", "n"]), InputError, "'n' the result of an update is not a number; leave infinite"),
    # Not due yet: who brings the row is told, not who comes later.
    (_extend((6, 60), q=[INF, -INF], ids=["n", "n"]), InputError, "'n' the result of an update is not a number"),
    (_extend((7, 7), ids=["c", "c"], q=[INF, -INF]), InputError, "'c' the result of an update is not a number"),
    (lambda one: one.extend("cars.csv", [6], ids=["a"]), InputError, "a str is not a table; give"),
    (lambda one: one.extend(ROWS | {"g": [1.0]}, [6], ids=["a"]), InputError, "differ in length"),
    (lambda one: one.extend({"p": [1.0], "q": [1.0]}, [6], ids=["a"]), InputError, "column 'g': there is no such"),
    (lambda one: one.extend({"p": [1.0], "g": [1.0]}, [6], ids=["a"]), InputError, "column 'q': there is no such"),
    (_apply(2), WindowError, "2 is not later than the snapshots before; apply snapshots in order"),
    (_apply(NAN), WindowError, "nan is not a time; give a number or a timestamp"),
    (_apply(None), WindowError, "there is no time; give a number or a timestamp"),
    (_apply("noon"), WindowError, "'noon' is not a time; give a number or a timestamp"),
    (_apply([6]), WindowError, r"\[6\] is not a time"),
    (_apply(2**70), WindowError, "is not a time"),
    (_apply(STAMP), WindowError, "times are numbers; give numbers throughout"),
    (_apply(INF), WindowError, "times are whole numbers"),
    (_apply(ids=["a"]), IdError, "there are 1 ids for 2 rows"),
    (_apply(op="divide"), OptionError, "'divide' is neither"),
    (_apply(updates=[("a", (1, 2))]), InputError, "row 1: a row of 2 values .* give a mapping of columns"),
    (_apply(updates=[("a", {"p": 1.0, "q": 2.0})]), InputError, "row 1, column 'g': the row has no such column"),
    (_apply(updates=[("b", None), ("a", {"price": 1})]), InputError, "row 2, column 'p': the row has no such column"),
    (_apply(updates=[("a", {"p": 1.0, "q": "x", "g": 1})]), InputError, "row 1, column 'q': 'x' is text"),
    (_apply(updates=[("a", {"p": 10**400, "q": 1, "g": 1})]), InputError, "column 'p': the values are not a column"),
    (_apply(updates=[("a", 3.0)]), IdError, "updates need ids; give ids, or pairs of an id and a row of values"),
    (_apply(updates=[("a", None, "add"), ("b", None)]), OptionError, "have an operation and some have none"),
    (_apply(updates=[("a", None, "divide")]), OptionError, "'divide' is not an operation"),
    (_apply(updates=[(None, None)]), IdError, "row 1: the id is missing"),
    (_apply(updates=[([], None)]), IdError, "row 1: the id is not hashable"),
    (_apply(updates=iter([])), InputError, "a list_iterator is not a table"),
    (_advance(NAN), WindowError, "nan is not a time"),
    (_advance(None), WindowError, "there is no time"),
    (_advance(STAMP), WindowError, "times are numbers"),
    (_advance(7.5), WindowError, "times are whole numbers"),
    (_advance("x"), WindowError, "'x' is not a time"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED, ids=range(len(REFUSED)))
def test_a_refused_call_says_why_and_leaves_no_trace(call: Call, kind: type[SkytideError], text: str) -> None:
    monitor = _monitor()
    before, asked, known = monitor.to_bytes(), monitor.stats(), len(monitor._names)
    with pytest.raises(kind, match=text) as caught:
        call(monitor)
    assert caught.value.reason and caught.value.remedy
    assert "\n" not in str(caught.value)
    assert monitor.to_bytes() == before and monitor.stats() == asked and len(monitor._names) == known
    untouched = _monitor()
    for one in (monitor, untouched):
        one.extend({"p": [0.5, 7.0], "q": [3.0, 4.0], "g": ["x", "z"]}, [6, 8], ids=["a", "d"])
    assert listed(monitor.advance(9)) == listed(untouched.advance(9))
    assert monitor.to_bytes() == untouched.to_bytes()


FRESH: list[Call] = [
    lambda one: one.apply([("a", (1.0, None))], 1),
    lambda one: one.apply([("a", (1.0, "x"))], 1),
    lambda one: one.apply(np.zeros((1, 2)), 1, ids=[1, 2]),
    lambda one: one.apply(np.zeros((1, 2)), 1, ids=["a"], op="divide"),
    lambda one: one.extend(np.zeros((1, 2)), [1.5], ids=[None]),
    lambda one: one.extend(np.zeros((2, 2)), [STAMP], ids=["a", "b"]),
    lambda one: one.extend(np.array([[1.0, INF], [1.0, -INF]]), [1, 2], ids=["a", "a"], op="add"),
    lambda one: one.advance(NAN),
]


@pytest.mark.parametrize("call", FRESH, ids=range(len(FRESH)))
@pytest.mark.parametrize("time", [3, 3.5, STAMP], ids=["whole", "real", "stamps"])
@pytest.mark.parametrize("name", [7, "seven"])
def test_a_refused_first_call_settles_nothing(call: Call, time: Any, name: Any) -> None:
    monitor = sk.Snapshots(sk.Preference.columns(2))
    before = monitor.to_bytes()
    with pytest.raises(SkytideError):
        call(monitor)
    assert monitor.to_bytes() == before and monitor.latest is None
    # Times and ids of any kind may be the first.
    assert listed(monitor.apply([(name, (1.0, 1.0))], time)) == [(time, "+", name)]


@pytest.mark.parametrize("stored", [False, True])
def test_a_row_that_makes_one_that_waits_go_wrong_is_refused(stored: bool) -> None:
    monitor = sk.Snapshots(sk.Preference.columns(1), lateness=9)
    monitor.extend([("a", [1.0]), ("b", [1.0])], [1, 1])
    monitor.extend([("a", [-INF], "add")], [5])
    if stored:
        monitor = sk.Snapshots.from_bytes(monitor.to_bytes())
    before = monitor.to_bytes()
    with pytest.raises(InputError, match="'a' the result of an update is not a number"):
        monitor.extend(
            [("b", [INF]), ("a", [INF])], [4, 4]
        )  # both only set: it is the row of 5 that has no result then
    assert monitor.to_bytes() == before
    monitor.extend([("b", [INF]), ("a", [INF])], [4, 6])
    assert listed(monitor.advance(9))[-2:] == [(4, "-", "b"), (6, "+", "b")]


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"method": "fast"}, OptionError, "'fast' is not a method; choose one of auto, mbr, recompute"),
        ({"op": "divide"}, OptionError, "'divide' is not an operation; choose one of set, add, multiply, average"),
        ({"nulls": "keep"}, OptionError, "'keep' is not a missing-value policy; use error, drop or worst"),
        *(
            ({"cfp": cfp}, OptionError, "is not a number of snapshots; give a whole number")
            for cfp in (0, -1, 2.5, True)
        ),
        *(({"lateness": one}, WindowError, "is not a lateness; give 0 or more, and finite") for one in (-1, INF, NAN)),
        *(
            ({"lateness": one}, WindowError, "is not a duration; write a number, or text")
            for one in ("soon", None, True)
        ),
    ],
)
def test_options_that_are_none_are_refused(options: dict[str, Any], kind: type[SkytideError], text: str) -> None:
    with pytest.raises(kind, match=text):
        sk.Snapshots(sk.Preference.columns(1), **options)


def test_numbers_of_numpy_are_numbers() -> None:
    monitor = sk.Snapshots(sk.Preference.columns(1), cfp=np.int64(3), lateness=np.int32(2))  # type: ignore[arg-type]
    assert sk.Snapshots.from_bytes(monitor.to_bytes()).options() == monitor.options()
    assert type(monitor.cfp) is int and type(monitor.lateness) is int


def test_a_lateness_must_fit_the_times() -> None:
    monitor = sk.Snapshots(sk.Preference.columns(1), lateness=5)
    with pytest.raises(WindowError, match="5 is a plain number, but the times are timestamps; write durations like"):
        monitor.apply([("a", [1.0])], STAMP)
    assert listed(monitor.apply([("a", [1.0])], 1)) == [(1, "+", "a")]
    monitor = sk.Snapshots(sk.Preference.columns(1), lateness="5s")
    with pytest.raises(WindowError, match="'5s' has a unit, but the times are plain numbers"):
        monitor.advance(1)
    assert listed(monitor.apply([("a", [1.0])], STAMP)) == [(STAMP, "+", "a")]


def test_what_the_policy_drop_leaves_out_is_reported_and_counted() -> None:
    monitor = _monitor(nulls="drop")
    found = monitor.extend(
        {"p": [1.0, 2.0, None, 4.0, 5.0], "q": [None, 2.0, None, 4.0, NAN], "g": ["x"] * 5},
        [6, None, 6, 2, 2],
        ids=["a", "b", "c", "d", "e"],
    )
    assert found.bad.tolist() == [0, 1, 4] and found.late.tolist() == [3]
    stats = monitor.stats()
    assert stats["bad"] == 3 and stats["late"] == 1 and stats["rows"] == 4
    # Under `drop` a result that is no number leaves the object as it was, and is counted when its snapshot is complete.
    monitor.extend({"p": [INF, -INF], "q": [0.0, 0.0], "g": ["x", "x"]}, [7, 8], ids=["n", "n"])
    assert listed(monitor.advance(7)) and monitor.stats()["bad"] == 3
    found = monitor.advance(9)
    assert listed(found) == [] and found.snapshots.tolist() == []
    assert [part.tolist() for part in found.spoiled] == [[8], ["n"]]
    assert monitor.stats()["bad"] == 4 and monitor.stats()["rows"] == 5 and monitor.values("n") == (INF, 0.0)


def test_spoiled_updates_are_told_by_every_way_to_complete_a_snapshot() -> None:
    def told(found: SnapshotChanges) -> list[tuple[int, str]]:
        return list(zip(*(part.tolist() for part in found.spoiled), strict=True))

    monitor = sk.Snapshots(sk.Preference.columns(1), nulls="drop", op="add")
    first = monitor.apply([("a", (INF,)), ("b", (-INF,)), ("b", (INF,))], 1)
    second = monitor.apply([("a", (-INF,))], 2)
    third = monitor.extend(np.array([[-INF], [INF]]), [3, 4], ids=["a", "b"])
    assert [told(found) for found in (first, second, third)] == [[(1, "b")], [(2, "a")], [(3, "a")]]
    together = SnapshotChanges.concatenate([first, second, third, monitor.advance(9)])
    assert told(together) == [(1, "b"), (2, "a"), (3, "a"), (4, "b")]
    assert monitor.stats()["bad"] == 4 and told(monitor.advance(10)) == []


def test_under_the_policy_worst_every_row_counts() -> None:
    monitor = sk.Snapshots(sk.Preference.columns(2), nulls="worst", op="add")
    assert listed(monitor.apply([("a", (INF, 1.0)), ("b", (INF, None)), ("c", (2.0, INF))], 1)) == [
        (1, "+", "a"), (1, "+", "c")
    ]  # fmt: skip
    monitor.apply([("a", (-INF, 1.0))], 2)  # inf - inf is missing from then on
    assert str(monitor.values("a")) == "(nan, 2.0)"
    monitor.apply([("a", (5.0, -9.0))], 3)
    assert str(monitor.values("a")) == "(nan, -7.0)" and set(monitor.skyline()) == {"a", "c"}
    monitor.apply([("a", (5.0, 5.0), "set")], 4)
    assert monitor.values("a") == (5.0, 5.0)
