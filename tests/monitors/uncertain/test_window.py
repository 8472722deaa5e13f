"""UncertainWindow against the reference: the same changes and probabilities after every call, whatever the method."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import IdError, InputError, OptionError, WindowError
from skytide.reference.uncertain import most_probable, single, uncertain_changes
from skytide.reference.window import split_late
from tests.monitors.uncertain.windows import (
    METHODS,
    THRESHOLDS,
    agrees,
    listed,
    parts,
    preference,
    streams,
    table,
    truth_at,
)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40, deadline=None)
@given(stream=streams(), count=st.integers(1, 8), by=st.booleans(), thresholds=THRESHOLDS)
def test_a_count_window_gives_the_reference_stream_after_every_batch(
    method: str, stream: dict[str, Any], count: int, by: bool, thresholds: list[float]
) -> None:
    window = sk.UncertainWindow(preference(stream, by), count=count, thresholds=thresholds, method=method)
    objects = single(stream["rows"], stream["chances"])
    found: list[tuple[Any, ...]] = []
    for part in parts(stream):
        found += listed(window.extend(table(stream, part), probabilities="p"))
        seen = part.stop
        keys, ids = stream["groups"][:seen] if by else None, list(range(1, seen + 1))
        assert found == [
            tuple(change)
            for change in uncertain_changes(objects[:seen], None, ids, thresholds=thresholds, count=count, by=keys)
        ]
        truth = truth_at(seen, objects[:seen], None, ids, keys, count=count)
        for least in (min(thresholds), max(thresholds), 0.9):
            agrees(window.query(max(least, min(thresholds))), truth, max(least, min(thresholds)))
        assert list(window.skyline()) == [one for one, _ in window.query()]
    assert window.stats()["rows"] == len(stream["rows"])


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40, deadline=None)
@given(
    stream=streams(),
    duration=st.sampled_from([1, 2, 5, 30, 2.5]),
    by=st.booleans(),
    until=st.integers(0, 40),
    thresholds=THRESHOLDS,
)
def test_a_time_window_gives_the_reference_stream_after_every_batch(
    method: str, stream: dict[str, Any], duration: float, by: bool, until: int, thresholds: list[float]
) -> None:
    window = sk.UncertainWindow(preference(stream, by), duration=duration, thresholds=thresholds, method=method)
    objects, times = single(stream["rows"], stream["chances"]), stream["times"]
    ids = [f"row {position}" for position in range(len(objects))]
    groups = stream["groups"] if by else None
    options: dict[str, Any] = {"thresholds": thresholds, "duration": duration}
    found: list[tuple[Any, ...]] = []
    for part in parts(stream):
        found += listed(window.extend(table(stream, part), times=times[part], ids=ids[part], probabilities="p"))
        seen = part.stop
        keys = None if groups is None else groups[:seen]
        so_far = uncertain_changes(objects[:seen], times[:seen], ids[:seen], **options, by=keys, close_last=False)
        assert found == [tuple(change) for change in so_far]
        if seen:
            truth = truth_at(times[seen - 1], objects[:seen], times[:seen], ids[:seen], keys, duration=duration)
            agrees(window.query(), truth, min(thresholds))
    found += listed(window.advance(times[-1] + until))
    every = uncertain_changes(objects, times, ids, **options, by=groups, until=times[-1] + until)
    assert found == [tuple(change) for change in every]
    truth = truth_at(times[-1] + until, objects, times, ids, groups, duration=duration)
    agrees(window.query(), truth, min(thresholds))


@settings(max_examples=100, deadline=None)
@given(
    stream=streams(jitter=True),
    duration=st.integers(1, 8),
    lateness=st.sampled_from([0, 1, 3, 20, 0.5]),
    by=st.booleans(),
    thresholds=THRESHOLDS,
)
def test_rows_out_of_order_are_put_in_order_and_late_ones_are_returned_and_counted(
    stream: dict[str, Any], duration: int, lateness: float, by: bool, thresholds: list[float]
) -> None:
    window = sk.UncertainWindow(preference(stream, by), duration=duration, lateness=lateness, thresholds=thresholds)
    times, objects = stream["times"], single(stream["rows"], stream["chances"])
    found: list[tuple[Any, ...]] = []
    late: list[int] = []
    for part in parts(stream):
        changes = window.extend(
            table(stream, part), times=times[part], ids=list(range(len(times)))[part], probabilities="p"
        )
        found += listed(changes)
        late += [part.start + position for position in changes.late.tolist()]
    kept, expected_late = split_late(times, lateness)
    assert late == expected_late and window.stats()["late"] == len(late)
    ids = kept
    when = [times[position] for position in kept]
    there = [objects[position] for position in kept]
    keys = [stream["groups"][position] for position in kept] if by else None
    agrees(window.query(), truth_at(max(times), there, when, ids, keys, duration=duration), min(thresholds))
    found += listed(window.advance(max(times) + 100))
    every = uncertain_changes(
        there, when, ids, thresholds=thresholds, duration=duration, by=keys, until=max(times) + 100
    )
    assert found == [tuple(change) for change in every]
    assert window.stats()["retained"] == 0 and window.stats()["groups"] == 0 and len(window.query()) == 0


@settings(max_examples=60, deadline=None)
@given(
    stream=streams(),
    length=st.sampled_from([("count", 1), ("count", 4), ("duration", 3)]),
    by=st.booleans(),
    thresholds=THRESHOLDS,
    top=st.integers(1, 4),
    method=st.sampled_from(METHODS),
    store=st.booleans(),
)
def test_the_most_probable_are_those_of_the_reference_as_an_answer_and_as_a_change_stream(
    stream: dict[str, Any],
    length: tuple[str, int],
    by: bool,
    thresholds: list[float],
    top: int,
    method: str,
    store: bool,
) -> None:
    options: dict[str, Any] = {length[0]: length[1]}
    window = sk.UncertainWindow(preference(stream, by), thresholds=thresholds, method=method, top=top, **options)
    objects, n = single(stream["rows"], stream["chances"]), len(stream["rows"])
    timed = length[0] == "duration"
    found: list[tuple[Any, ...]] = []
    for part in parts(stream):
        times = stream["times"][part] if timed else None
        found += listed(window.extend(table(stream, part), times=times, probabilities="p"))
        if store:
            window = sk.UncertainWindow.from_bytes(window.to_bytes())
    found += listed(window.advance(stream["times"][-1])) if timed else []
    when, ids, keys = stream["times"] if timed else None, list(range(1, n + 1)), stream["groups"] if by else None
    every = uncertain_changes(objects, when, ids, thresholds=thresholds, by=keys, top=top, **options)
    assert found == [tuple(change) for change in every]
    everybody = sk.UncertainWindow(preference(stream, False), count=n, thresholds=thresholds, method=method)
    everybody.extend(table(stream, slice(None)), probabilities="p")
    best = most_probable(objects, min(thresholds), top)
    assert {one for one, _ in everybody.top(top)} == {position + 1 for position in best}


@settings(max_examples=60, deadline=None)
@given(
    stream=streams(jitter=True),
    length=st.sampled_from([("count", 3), ("duration", 4), ("duration", 2.5)]),
    by=st.booleans(),
    text=st.booleans(),
    thresholds=THRESHOLDS,
    method=st.sampled_from(METHODS),
)
def test_a_window_that_was_stored_and_restored_goes_on_as_if_nothing_had_happened(
    stream: dict[str, Any], length: tuple[str, Any], by: bool, text: bool, thresholds: list[float], method: str
) -> None:
    timed = length[0] == "duration"
    options: dict[str, Any] = {length[0]: length[1], "thresholds": thresholds, "method": method}
    options |= {"lateness": 20} if timed else {}
    whole = sk.UncertainWindow(preference(stream, by), **options)
    broken = sk.UncertainWindow(preference(stream, by), **options)
    ids = [f"r{position}" if text else position for position in range(len(stream["rows"]))]
    for part in parts(stream):
        call: dict[str, Any] = {"times": stream["times"][part] if timed else None, "ids": ids[part]}
        one = whole.extend(table(stream, part), probabilities="p", **call)
        two = broken.extend(table(stream, part), probabilities="p", **call)
        assert listed(one) == listed(two)
        broken = sk.UncertainWindow.from_bytes(broken.to_bytes())
        assert broken.options() == whole.options()
        assert dict(whole.query()) == pytest.approx(dict(broken.query()), rel=1e-12)
        # A group of a count window of which nothing is retained has no engine after that.
        same = ("rows", "late", "bad", "pending", "entered", "left", *(["groups"] if timed else []))
        assert [whole.stats()[name] for name in same] == [broken.stats()[name] for name in same]
    if timed:
        assert listed(whole.advance(50)) == listed(broken.advance(50))


@settings(max_examples=60, deadline=None)
@given(stream=streams(), duration=st.integers(1, 4), thresholds=THRESHOLDS, data=st.data())
def test_an_id_that_comes_again_as_its_row_expires_gives_no_change_where_it_stays(
    stream: dict[str, Any], duration: int, thresholds: list[float], data: st.DataObject
) -> None:
    ids: list[int] = []
    times = stream["times"]
    for position, time in enumerate(times):
        taken = {one for one, when in zip(ids, times[:position], strict=True) if when + duration > time}
        free = [one for one in range(len(times)) if one not in taken]
        ids.append(data.draw(st.sampled_from(free[:2]), label=f"id {position}"))
    window = sk.UncertainWindow(preference(stream, False), duration=duration, thresholds=thresholds)
    found: list[tuple[Any, ...]] = []
    for part in parts(stream):
        found += listed(window.extend(table(stream, part), times=times[part], ids=ids[part], probabilities="p"))
        window = sk.UncertainWindow.from_bytes(window.to_bytes())
    found += listed(window.advance(times[-1]))
    objects = single(stream["rows"], stream["chances"])
    every = uncertain_changes(objects, times, ids, thresholds=thresholds, duration=duration)
    assert found == [tuple(change) for change in every]


# -- probabilities -----------------------------------------------------------------------------------------------------


def window_of(dimensions: int = 1, **options: Any) -> sk.UncertainWindow:
    return sk.UncertainWindow(sk.Preference.columns(dimensions), **({"count": 5, "thresholds": 0.5} | options))


def test_a_row_of_probability_0_takes_its_place_and_is_in_no_answer() -> None:
    window = window_of(count=2, thresholds=1e-300)
    changes = window.extend(np.array([[3.0], [1.0], [2.0]]), probabilities=[0.5, 0.0, 0.5], ids=["a", "never", "b"])
    assert listed(changes) == [(1, "+", "a", 1e-300), (3, "-", "a", 1e-300), (3, "+", "b", 1e-300)]
    assert list(window.query()) == [("b", 0.5)]
    with pytest.raises(IdError, match="live at the same time"):
        window.extend(np.array([[5.0], [5.0]]), probabilities=[0.0, 0.0], ids=["never", "never"])


@pytest.mark.parametrize("wrong", [-0.1, 1.0000001, 2, float("inf"), float("-inf")])
@pytest.mark.parametrize("nulls", ["error", "drop", "worst"])
def test_a_number_that_is_no_probability_is_an_error_that_names_the_row(wrong: float, nulls: Any) -> None:
    window = window_of(nulls=nulls)
    with pytest.raises(InputError, match="row 2") as caught:
        window.extend({"v": [1.0, 2.0], "p": [0.5, wrong]}, probabilities="p")
    assert caught.value.column == "p" and window.stats()["rows"] == 0


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_probabilities_follow_the_policy(missing: Any) -> None:
    rows = np.array([[1.0], [2.0], [3.0]])
    for nulls in ("error", "worst"):
        with pytest.raises(InputError, match=r"row 2.*missing"):
            window_of(nulls=nulls).extend(rows, probabilities=[0.5, missing, 1.0])
    window = window_of(nulls="drop")
    changes = window.extend(rows, probabilities=[0.5, missing, 1.0])
    assert changes.bad.tolist() == [1] and window.stats()["bad"] == 1
    assert list(window.query()) == [(1, 0.5), (3, 0.5)]


@pytest.mark.parametrize(
    "given",
    [[0.5, 1.0], np.array([0.5, 1.0]), np.array([0.5, 1.0], dtype=np.float32), "p", 1],
    ids=["list", "array", "float32", "name", "position"],
)
def test_probabilities_are_a_column_or_its_name_or_its_position(given: Any) -> None:
    rows: Any = np.array([[1.0, 0.5], [2.0, 1.0]])
    if isinstance(given, str):
        rows = {"v": rows[:, 0], "p": rows[:, 1]}
    window = window_of()
    window.extend(rows, probabilities=given)
    assert list(window.query()) == [(1, 0.5), (2, 0.5)]


def test_rows_one_by_one_are_rows_of_a_batch() -> None:
    window = sk.UncertainWindow(sk.Preference(minimize=["v"]), duration=5, thresholds=[0.5])
    assert listed(window.insert({"v": 1.0, "p": 0.6}, time=1, id="a", probability="p")) == []
    assert listed(window.insert([0.0], time=2, id="b", probability=0.1)) == [(1, "+", "a", 0.5)]
    assert listed(window.advance(6)) == [(6, "-", "a", 0.5)]


def test_certain_rows_give_the_changes_of_a_sliding_window() -> None:
    rows = np.random.default_rng(5).integers(0, 6, (200, 2)).astype(float)
    certain = sk.SlidingWindow(sk.Preference.columns(2), count=20)
    for method in METHODS:
        window = sk.UncertainWindow(sk.Preference.columns(2), count=20, thresholds=1, method=method)
        found = [change[:3] for change in window.extend(rows, probabilities=np.ones(200))]
        certain = sk.SlidingWindow(sk.Preference.columns(2), count=20)
        assert found == [tuple(change) for change in certain.extend(rows)]


def test_the_answer_carries_values_as_they_came_in() -> None:
    pref = sk.Preference(minimize=["a"], maximize=["b"], by=["g"])
    window = sk.UncertainWindow(pref, duration=5, thresholds=0.2, nulls="worst")
    window.extend(
        {"a": [1.0, None], "b": [5.0, 7.0], "g": ["x", "y"], "p": [0.3, 0.8]},
        times=[1, 1],
        ids=["p", "q"],
        probabilities="p",
    )
    answer = window.skyline()
    assert answer.ids.tolist() == ["q", "p"] and answer.groups == [("y",), ("x",)] and answer.times.tolist() == [1, 1]
    assert answer.values[1].tolist() == [1.0, 5.0] and np.isnan(answer.values[0, 0]) and answer.values[0, 1] == 7.0
    assert window.skyline(0.5).ids.tolist() == ["q"]


@pytest.mark.parametrize("method", METHODS)
def test_a_query_before_an_instant_is_closed_takes_no_candidate_again(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(3).random((60, 2))
    window, other = (window_of(2, count=None, duration=40, thresholds=0.1, method=method) for _ in range(2))
    for at, row in enumerate(rows):
        other.insert(row, time=at, probability=0.4)
    other.advance(59)
    with monkeypatch.context() as patch:
        patch.setattr("skytide.monitors.uncertain.compiled.CompiledEngine.load", None)
        for at, row in enumerate(rows):
            window.insert(row, time=at, probability=0.4)
            assert len(window.query())
    assert list(window.query()) == list(other.query()) and window.stats()["pending"] == 1


def test_a_probability_is_known_of_members_alone() -> None:
    window = window_of(thresholds=[0.3, 0.6])
    window.extend(np.array([[1.0], [2.0], [3.0]]), probabilities=[0.5, 0.8, 0.2])
    assert window.probability(2) == pytest.approx(0.4)
    assert list(window.query(0.3 * (1 - 5e-13))) == list(window.query())
    with pytest.raises(IdError, match=r"0\.3"):
        window.probability(3)


def test_a_refused_call_leaves_the_window_as_it_was() -> None:
    window = sk.UncertainWindow(sk.Preference(minimize=["v"], by=["g"]), duration=5, thresholds=0.5)
    good = {"v": [1.0], "g": ["a"], "p": [0.9]}
    with pytest.raises(InputError):
        window.extend({"v": [1.0], "g": ["b"], "p": [9.0]}, times=[1.5], probabilities="p")
    with pytest.raises(IdError):
        window.extend({"v": [1.0] * 2, "g": ["b"] * 2, "p": [0.9] * 2}, times=[1, 2], ids=["k", "k"], probabilities="p")
    window.extend(good, times=[1], ids=["k"], probabilities="p")
    assert list(window._groups.codes) == [("a",)] and window.stats()["rows"] == 1


def test_silent_groups_emit_their_expiries_and_are_forgotten() -> None:
    window = sk.UncertainWindow(sk.Preference(minimize=["v"], by=["g"]), duration=10, thresholds=0.5)
    many = 300
    rows = {"v": [1.0] * many, "g": [f"g{k}" for k in range(many)], "p": [0.7] * many}
    window.extend(rows, times=list(range(many)), probabilities="p")
    assert window.stats()["groups"] <= 12 and window.stats()["left"] == many - 11
    assert len(window._groups.codes) <= 12


@pytest.mark.parametrize(
    "thresholds", [[], 0, 1.1, -0.5, float("nan"), "0.5", ["0.5"], [0.5, None], True, None, [[0.5]]]
)
def test_thresholds_that_are_none_are_refused_in_our_words(thresholds: Any) -> None:
    with pytest.raises(OptionError, match="thresholds"):
        window_of(thresholds=thresholds)


@pytest.mark.parametrize("half", [0.5, np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_a_threshold_is_any_real_number(half: Any) -> None:
    assert window_of(thresholds=half).thresholds == window_of(thresholds=[half]).thresholds == (0.5,)
    assert len(window_of(thresholds=0.1).query(half)) == 0


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: window_of(method="fast"), OptionError),
        (lambda: window_of(top=0), OptionError),
        (lambda: window_of(top=True), OptionError),
        (lambda: window_of(nulls="?"), OptionError),
        (lambda: window_of(lateness=3), WindowError),
        (lambda: window_of().advance(3), WindowError),
        (lambda: window_of().query(0.4), OptionError),
        (lambda: window_of().query(1.5), OptionError),
        (lambda: window_of().query(float("nan")), OptionError),
        (lambda: window_of().top(0), OptionError),
        (lambda: window_of().probability(1), IdError),
        (lambda: window_of().extend(np.ones((1, 1))), InputError),
        (lambda: window_of().extend(np.ones((1, 1)), probabilities=0.5), InputError),
        (lambda: window_of().extend(np.ones((1, 1)), probabilities=[0.5, 0.5]), InputError),
        (lambda: window_of().extend(np.ones((1, 1)), probabilities=["x"]), InputError),
        (lambda: window_of().extend(np.ones((1, 1)), probabilities="p"), InputError),
        (lambda: window_of().extend({"v": [1.0]}, probabilities="p"), InputError),
        (lambda: window_of().extend(np.ones((1, 1)), times=[1], probabilities=[1]), WindowError),
        (lambda: window_of(count=None, duration=1).extend(np.ones((1, 1)), probabilities=[1]), WindowError),
        (lambda: window_of().insert([1.0]), InputError),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
