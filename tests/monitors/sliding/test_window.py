"""SlidingWindow against the reference: the same changes after every call, whatever the method, index and batches."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import InputError, OptionError, StateError, WindowError
from skytide.reference.window import skyline_at, split_late, window_changes
from tests.monitors.sliding.windows import KINDS, batches, listed, preference, streams, table


@pytest.mark.parametrize(("method", "index"), KINDS)
@settings(max_examples=60)
@given(stream=streams(), count=st.integers(1, 8), by=st.booleans())
def test_a_count_window_gives_the_reference_stream_after_every_batch(
    method: str, index: str, stream: tuple[Any, Any, Any, Any], count: int, by: bool
) -> None:
    rows, _, groups, cuts = stream
    window = sk.SlidingWindow(preference(rows, by), count=count, method=method, index=index)
    found: list[tuple[Any, str, Any]] = []
    seen = 0
    for part in batches(len(rows), cuts):
        found += listed(window.extend(table(rows, groups, part)))
        seen = part.stop
        keys = groups[:seen] if by else None
        ids = list(range(1, seen + 1))
        assert found == [tuple(c) for c in window_changes(rows[:seen], None, ids, count=count, by=keys)]
        assert set(window.skyline()) == skyline_at(seen, rows[:seen], None, ids, count=count, by=keys)
    assert window.stats()["rows"] == len(rows)
    assert window.stats()["entered"] - window.stats()["left"] == len(window.skyline())


@pytest.mark.parametrize(("method", "index"), KINDS)
@settings(max_examples=60)
@given(
    stream=streams(),
    duration=st.sampled_from([1, 2, 5, 30, 0.5, 2.5]),
    by=st.booleans(),
    until=st.integers(0, 40),
    real=st.booleans(),
)
def test_a_time_window_gives_the_reference_stream_after_every_batch(
    method: str, index: str, stream: tuple[Any, Any, Any, Any], duration: float, by: bool, until: int, real: bool
) -> None:
    rows, times, groups, cuts = stream
    times = [time / 4 for time in times] if real else times
    window = sk.SlidingWindow(preference(rows, by), duration=duration, method=method, index=index)
    ids = [f"row {position}" for position in range(len(rows))]
    keys = groups if by else None
    found: list[tuple[Any, str, Any]] = []
    for part in batches(len(rows), cuts):
        found += listed(window.extend(table(rows, groups, part), times=times[part], ids=ids[part]))
        seen = part.stop
        so_far: dict[str, Any] = {
            "duration": duration,
            "by": None if keys is None else keys[:seen],
            "close_last": False,
        }
        assert found == [tuple(c) for c in window_changes(rows[:seen], times[:seen], ids[:seen], **so_far)]
        if seen:
            del so_far["close_last"]
            assert set(window.skyline()) == skyline_at(times[seen - 1], rows[:seen], times[:seen], ids[:seen], **so_far)
    found += listed(window.advance(times[-1] + until))
    assert found == [
        tuple(c) for c in window_changes(rows, times, ids, duration=duration, by=keys, until=times[-1] + until)
    ]


@settings(max_examples=150)
@given(
    stream=streams(jitter=True),
    duration=st.integers(1, 8),
    lateness=st.sampled_from([0, 1, 3, 20, 0.5]),
    by=st.booleans(),
)
def test_rows_out_of_order_are_put_in_order_and_late_ones_are_returned_and_counted(
    stream: tuple[Any, Any, Any, Any], duration: int, lateness: float, by: bool
) -> None:
    rows, times, groups, cuts = stream
    window = sk.SlidingWindow(preference(rows, by), duration=duration, lateness=lateness)
    ids = [f"r{position}" for position in range(len(rows))]
    found: list[tuple[Any, str, Any]] = []
    late: list[int] = []
    for part in batches(len(rows), cuts):
        changes = window.extend(table(rows, groups, part), times=times[part], ids=ids[part])
        found += listed(changes)
        late += [part.start + position for position in changes.late.tolist()]
    kept, expected_late = split_late(times, lateness)
    assert late == expected_late
    assert window.stats()["late"] == len(expected_late)

    def pick(column: list[Any]) -> list[Any]:
        return [column[position] for position in kept]

    options: dict[str, Any] = {
        "duration": duration,
        "by": pick(groups) if by else None,
        "lateness": lateness,
        "close_last": False,
    }
    assert found == [tuple(c) for c in window_changes(pick(rows), pick(times), pick(ids), **options)]
    found += listed(window.advance(max(times) + 100))
    assert found == [
        tuple(c) for c in window_changes(pick(rows), pick(times), pick(ids), **options, until=max(times) + 100)
    ]
    assert window.stats()["retained"] == 0 and window.stats()["groups"] == 0 and len(window.skyline()) == 0


@settings(max_examples=100)
@given(
    stream=streams(jitter=True),
    length=st.one_of(st.just(("count", 3)), st.just(("duration", 4)), st.just(("duration", 2.5))),
    by=st.booleans(),
    text=st.booleans(),
    other=st.sampled_from(KINDS),
)
def test_a_window_that_was_stored_and_restored_goes_on_as_if_nothing_had_happened(
    stream: tuple[Any, Any, Any, Any], length: tuple[str, Any], by: bool, text: bool, other: tuple[str, str]
) -> None:
    rows, times, groups, cuts = stream
    options: dict[str, Any] = {length[0]: length[1]} | ({"lateness": 20} if length[0] == "duration" else {})
    whole = sk.SlidingWindow(preference(rows, by), **options, method=other[0], index=other[1])
    broken = sk.SlidingWindow(preference(rows, by), **options, method=other[0], index=other[1])
    ids = [f"r{position}" if text else position for position in range(len(rows))]
    for part in batches(len(rows), cuts):
        when = times[part] if length[0] == "duration" else None
        one = whole.extend(table(rows, groups, part), times=when, ids=ids[part])
        two = broken.extend(table(rows, groups, part), times=when, ids=ids[part])
        assert listed(one) == listed(two)
        broken = sk.SlidingWindow.from_bytes(broken.to_bytes())
        assert set(whole.skyline()) == set(broken.skyline())
        same = ("rows", "late", "bad", "pending", "entered", "left", "groups")
        assert [whole.stats()[name] for name in same] == [broken.stats()[name] for name in same]
    if length[0] == "duration":
        assert listed(whole.advance(50)) == listed(broken.advance(50))


def test_bytes_that_are_not_a_window_are_refused() -> None:
    blob = sk.SlidingWindow(sk.Preference.columns(2), count=3).to_bytes()
    for wrong in (b"", b"hello", blob[:-1], blob[:50], blob + b"x"):
        with pytest.raises(StateError):
            sk.SlidingWindow.from_bytes(wrong)


# -- times, tables, missing values -------------------------------------------------------------------------------------


def stamps() -> list[Any]:
    base = [datetime.datetime(2024, 1, 1, 0, 0, second) for second in (0, 10, 40)]
    aware = [one.replace(tzinfo=datetime.UTC) for one in base]
    return [
        base,
        np.array(base, dtype="datetime64[s]"),
        np.array(base, dtype="datetime64[ns]"),
        pd.Series(base),
        pl.Series(base),
        pa.array(base),
        pa.chunked_array([pa.array(aware)]),
        pd.Series(aware),
    ]


@pytest.mark.parametrize("times", stamps(), ids=lambda one: type(one).__name__)
def test_timestamps_of_every_library_work(times: Any) -> None:
    window = sk.SlidingWindow(sk.Preference.columns(1), duration="15s")
    changes = window.extend(np.array([[1.0], [2.0], [0.0]]), times=times)
    seconds = [
        (str(np.datetime64(time, "s")) if isinstance(time, datetime.datetime) else time)
        for time in changes.times.astype("datetime64[s]").tolist()
    ]
    assert [one[-2:] for one in seconds] == ["00", "15", "15", "25"]
    assert listed(window.advance(datetime.datetime(2024, 1, 1, 0, 1)))[0][1:] == ("+", 3)


def test_a_duration_finer_than_the_times_is_kept_exactly() -> None:
    window = sk.SlidingWindow(sk.Preference.columns(1), duration="1500ms")
    window.extend(np.array([[1.0]]), times=np.array(["2024-01-01T00:00:00"], dtype="datetime64[s]"))
    changes = window.advance(np.datetime64("2024-01-01T00:00:02"))
    assert changes.times.astype("datetime64[ms]").tolist()[-1] == datetime.datetime(2024, 1, 1, 0, 0, 1, 500000)


def test_times_and_ids_may_be_columns_of_the_table() -> None:
    data = {"price": [3, 1], "at": [1, 2], "name": ["a", "b"]}
    window = sk.SlidingWindow(sk.Preference(minimize=["price"]), duration=5)
    assert listed(window.extend(data, times="at", ids="name")) == [(1, "+", "a")]
    assert listed(window.advance(2)) == [(2, "-", "a"), (2, "+", "b")]


def test_the_answer_carries_values_as_they_came_in() -> None:
    window = sk.SlidingWindow(sk.Preference(minimize=["a"], maximize=["b"], by=["g"]), duration=5, nulls="worst")
    window.extend({"a": [1.0, None], "b": [5.0, 7.0], "g": ["x", "y"]}, times=[1, 1], ids=["p", "q"])
    answer = window.skyline()
    assert dict(zip(answer.ids.tolist(), answer.groups, strict=True)) == {"p": ("x",), "q": ("y",)}
    found = {
        one: [None if np.isnan(v) else v for v in row]
        for one, row in zip(answer.ids, answer.values.tolist(), strict=True)
    }
    assert found == {"p": [1.0, 5.0], "q": [None, 7.0]}
    assert answer.times.tolist() == [1, 1]


def test_rows_with_missing_values_follow_the_policy() -> None:
    data = {"a": [1.0, None, 3.0]}
    strict = sk.SlidingWindow(sk.Preference(minimize=["a"]), duration=5)
    with pytest.raises(InputError, match="row 2"):
        strict.extend(data, times=[1, 2, 3])
    assert strict.stats()["rows"] == 0
    dropping = sk.SlidingWindow(sk.Preference(minimize=["a"]), duration=5, nulls="drop")
    changes = dropping.extend(data, times=[1, 2, None])
    assert changes.bad.tolist() == [1, 2] and dropping.stats()["bad"] == 2 and dropping.stats()["rows"] == 1


def test_the_callers_array_may_be_reused() -> None:
    window = sk.SlidingWindow(sk.Preference.columns(1), duration=5)
    rows = np.array([[1.0]])
    window.extend(rows, times=[1])
    rows[:] = 9.0
    window.extend(rows, times=[2])
    assert set(window.skyline()) == {1}


def test_a_row_that_lives_for_no_time_never_enters() -> None:
    window = sk.SlidingWindow(sk.Preference.columns(1), duration=1e-9)
    assert listed(window.extend(np.array([[0.0], [1.0]]), times=[1e18, 2e18])) == []


@pytest.mark.parametrize(
    ("times", "duration"),
    [
        ([2**62 - 2, 2**62 - 1], 10),
        ([2**62 - 2, 2**62 - 1], 2**63),
        ([-(2**62) + 1, -(2**62) + 2], 10),
        ([1.7e308, 1.75e308], 1e300),
        ([-1.7e308, -1.6e308], 1.7e308),
    ],
)
def test_extreme_times_do_not_overflow(times: list[Any], duration: float) -> None:
    window = sk.SlidingWindow(sk.Preference.columns(1), duration=duration)
    assert listed(window.extend(np.array([[1.0], [1.0]]), times=times))[0] == (times[0], "+", 1)
    assert len(window.skyline()) == (1 if duration == 1e300 else 2)


def test_times_out_of_range_are_refused() -> None:
    for time in (2**62, 2**63 - 1, -(2**63)):
        with pytest.raises(WindowError):
            sk.SlidingWindow(sk.Preference.columns(1), duration=1).extend(np.array([[1.0]]), times=[time])


def test_silent_groups_emit_their_expiries_and_are_forgotten() -> None:
    window = sk.SlidingWindow(sk.Preference(minimize=["v"], by=["g"]), duration=10)
    many = 3000
    window.extend({"v": [1.0] * many, "g": [f"g{k}" for k in range(many)]}, times=list(range(many)))
    assert window.stats()["groups"] <= 12 and window.stats()["left"] == many - 11
    assert len(window._groups.codes) <= 12


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), count=1, method="fast"), OptionError),
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), count=1, index="hash"), OptionError),
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), count=1, k=0), OptionError),
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), count=1, k=2, method="lazy"), OptionError),
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), count=1, score=[-1.0]), OptionError),
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), count=1, nulls="?"), OptionError),  # type: ignore[arg-type]
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), count=1, lateness=3), WindowError),
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), count=1).advance(3), WindowError),
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), count=1).extend(np.ones((1, 1)), times=[1]), WindowError),
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), duration=1).extend(np.ones((1, 1))), WindowError),
        (
            lambda: sk.SlidingWindow(sk.Preference.columns(1), duration=1).extend(np.ones((1, 1)), times=[1, 2]),
            WindowError,
        ),
        (
            lambda: sk.SlidingWindow(sk.Preference.columns(1), duration=1).extend(np.ones((1, 1)), times=["x"]),
            WindowError,
        ),
        (
            lambda: sk.SlidingWindow(sk.Preference.columns(1), duration=1).extend(np.ones((1, 1)), times=[np.inf]),
            WindowError,
        ),
        (lambda: sk.SlidingWindow(sk.Preference.columns(1), duration=1).advance(float("nan")), WindowError),
        (
            lambda: sk.SlidingWindow(sk.Preference.columns(1), duration=1).extend(
                np.ones((1, 1)), times=np.array(["2020-01-01"], dtype="datetime64[D]")
            ),
            WindowError,
        ),
        (
            lambda: sk.SlidingWindow(sk.Preference.columns(1), duration="1s").extend(np.ones((1, 1)), times=[1]),
            WindowError,
        ),
        (lambda: sk.SlidingWindow(sk.Preference.columns(2), count=1).insert([1.0]), InputError),
        (lambda: sk.SlidingWindow(sk.Preference(minimize=["a"], by=["g"]), count=1).insert([1.0]), InputError),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_the_times_of_a_window_stay_of_one_kind() -> None:
    window = sk.SlidingWindow(sk.Preference.columns(1), duration=1)
    window.insert([1.0], time=1)
    for time in (1.5, datetime.datetime(2020, 1, 1)):
        with pytest.raises(WindowError):
            window.insert([1.0], time=time)
    window.insert([1.0], time=2.0)


# -- the paper's examples ----------------------------------------------------------------------------------------------


def test_figure_1b_of_the_paper() -> None:
    rows = {"a": (2, 4, 1), "b": (1, 5, 3), "c": (3, 4.5, 5), "d": (4, 3, 7), "e": (3, 2, 9), "f": (5, 1, 11)}
    for method, index in KINDS:
        window = sk.SlidingWindow(sk.Preference.columns(2), duration=5, method=method, index=index)
        found = []
        for one, (x, y, time) in rows.items():
            found += listed(window.insert([x, y], time=time, id=one))
        found += listed(window.advance(11))
        assert [(sign + one, time) for time, sign, one in found] == [
            ("+a", 1), ("+b", 3), ("-a", 6), ("+c", 6), ("+d", 7),
            ("-b", 8), ("-c", 9), ("-d", 9), ("+e", 9), ("+f", 11),
        ]  # fmt: skip
