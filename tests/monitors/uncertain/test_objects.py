"""Objects with several instances by possible worlds and by definition (4), also where the paper's rule fails."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import IdError, InputError, OptionError
from skytide.model import Floats
from skytide.monitors.uncertain.engine import UncertainRows
from skytide.monitors.uncertain.objects import ObjectEngine
from skytide.reference.uncertain import Instance, Object, probability_by_worlds, uncertain_changes
from tests.monitors.uncertain.windows import CELLS, THRESHOLDS, agrees, listed, truth_at


@st.composite
def streams(draw: st.DrawFn, most: int = 7, instances: int = 3, cells: Any = CELLS) -> dict[str, Any]:
    """Objects of a few instances with ties, some certain, some perhaps nowhere; times, groups and cuts."""
    dimensions, n = draw(st.integers(1, 3)), draw(st.integers(1, most))
    objects: list[Object] = []
    for _ in range(n):
        places = draw(st.lists(st.tuples(*[cells] * dimensions), min_size=1, max_size=instances))
        weights = draw(st.lists(st.integers(0, 4), min_size=len(places) + 1, max_size=len(places) + 1))
        whole = sum(weights) or 1
        objects.append([Instance(row, weight / whole) for row, weight in zip(places, weights, strict=False)])
    return {
        "objects": objects,
        "times": sorted(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))),
        "groups": draw(st.lists(st.sampled_from("xy"), min_size=n, max_size=n)),
        "cuts": sorted(draw(st.lists(st.integers(0, n), max_size=3))),
    }


def call(stream: dict[str, Any], part: slice, names: list[Any], timed: bool) -> tuple[Any, dict[str, Any]]:
    """The arguments of `extend` for some of the objects."""
    positions = [k for k in range(len(names))[part] for _ in stream["objects"][k]]
    rows = [one for k in range(len(names))[part] for one in stream["objects"][k]]
    d = len(stream["objects"][0][0].row)
    table: dict[str, Any] = {f"x{k}": np.array([one.row[k] for one in rows], dtype=float) for k in range(d)}
    table["g"] = np.array([stream["groups"][k] for k in positions], dtype=object)
    return table, {
        "times": [stream["times"][k] for k in positions] if timed else None,
        "objects": [names[k] for k in positions],
        "probabilities": [one.probability for one in rows],
    }


@settings(max_examples=120, deadline=None)
@given(
    stream=streams(),
    length=st.sampled_from([("count", 1), ("count", 3), ("count", 9), ("duration", 2), ("duration", 5)]),
    by=st.booleans(),
    text=st.booleans(),
    thresholds=THRESHOLDS,
    top=st.sampled_from([None, None, 1, 2]),
    store=st.booleans(),
)
def test_windows_of_objects_give_the_reference_stream_after_every_batch(
    stream: dict[str, Any],
    length: tuple[str, int],
    by: bool,
    text: bool,
    thresholds: list[float],
    top: int | None,
    store: bool,
) -> None:
    objects, timed = stream["objects"], length[0] == "duration"
    options: dict[str, Any] = {length[0]: length[1]}
    names: list[Any] = [f"o{k}" if text else 10 - k for k in range(len(objects))]
    pref = sk.Preference(minimize=[f"x{k}" for k in range(len(objects[0][0].row))], by=["g"] if by else [])
    window = sk.UncertainWindow(pref, thresholds=thresholds, top=top, **options)
    found: list[tuple[Any, ...]] = []
    for start, stop in itertools.pairwise([0, *stream["cuts"], len(objects)]):
        if start == stop:
            continue
        table, arguments = call(stream, slice(start, stop), names, timed)
        found += listed(window.extend(table, **arguments))
        times = stream["times"][:stop] if timed else None
        keys = stream["groups"][:stop] if by else None
        every = uncertain_changes(
            objects[:stop],
            times,
            names[:stop],
            thresholds=thresholds,
            by=keys,
            top=top,
            close_last=False,
            **options,
        )
        assert found == [tuple(change) for change in every]
        at = times[-1] if times else stop
        agrees(window.query(), truth_at(at, objects[:stop], times, names[:stop], keys, **options), min(thresholds))
        if store:
            window = sk.UncertainWindow.from_bytes(window.to_bytes())
    if timed:
        found += listed(window.advance(30))
        keys = stream["groups"] if by else None
        every = uncertain_changes(
            objects, stream["times"], names, thresholds=thresholds, by=keys, top=top, until=30, **options
        )
        assert found == [tuple(change) for change in every]
        assert window.stats()["retained"] == 0


@settings(max_examples=60, deadline=None)
@given(stream=streams(most=5), count=st.integers(1, 4), q=st.sampled_from([0.05, 0.3, 0.5]))
def test_probabilities_are_those_of_the_possible_worlds_after_every_arrival(
    stream: dict[str, Any], count: int, q: float
) -> None:
    objects: list[Object] = stream["objects"]
    window = sk.UncertainWindow(sk.Preference.columns(len(objects[0][0].row)), count=count, thresholds=q)
    for k, one in enumerate(objects):
        window.extend(
            np.array([instance.row for instance in one], dtype=float),
            probabilities=[float(instance.probability) for instance in one],
            objects=[k] * len(one),
        )
        live = list(range(max(0, k + 1 - count), k + 1))
        alive = [objects[other] for other in live]
        truth = {other: probability_by_worlds(alive, place) for place, other in enumerate(live)}
        agrees(window.query(), truth, q)


EXAMPLE: list[list[tuple[int, int]]] = [
    [(0, 1), (2, 5), (5, 5)],
    [(1, 2)],
    [(5, 3), (0, 4)],
    [(1, 0), (5, 1), (4, 5)],
    [(0, 1), (4, 2)],
]


def test_the_stream_on_which_the_papers_candidates_go_wrong_comes_out_right() -> None:
    objects = [[Instance(row, Fraction(1, len(rows))) for row in rows] for rows in EXAMPLE]
    for count in range(1, 6):
        window = sk.UncertainWindow(sk.Preference.columns(2), count=count, thresholds=0.5)
        for k, rows in enumerate(EXAMPLE):
            chances = np.full(len(rows), 1 / len(rows))
            window.extend(np.array(rows, dtype=float), probabilities=chances, objects=[k] * len(rows))
            live = range(max(0, k + 1 - count), k + 1)
            alive = [objects[other] for other in live]
            truth = {other: probability_by_worlds(alive, place) for place, other in enumerate(live)}
            agrees(window.query(), truth, 0.5)


def _stream(n: int, m: int, seed: int, grid: int) -> tuple[Floats, Floats, Any]:
    source = np.random.default_rng(seed)
    values = source.integers(0, grid, (n * m, 2)).astype(float)
    chances = source.dirichlet(np.ones(m + 1), n)[:, :m]
    chances[source.random(n) < 0.2] = 1 / m
    return values, chances.ravel(), np.repeat(np.arange(n), m)


def test_forgotten_instances_change_no_answer_of_a_long_stream() -> None:
    n, m, count, q = 2000, 3, 800, 0.2
    values, chances, names = _stream(n, m, 7, 40)
    window = sk.UncertainWindow(sk.Preference.columns(2), count=count, thresholds=q)
    for k in range(0, n, 200):
        part = slice(k * m, (k + 200) * m)
        window.extend(values[part], probabilities=chances[part], objects=names[part])
        first = max(0, k + 200 - count) * m
        truth = _by_definition(values[first : part.stop], chances[first : part.stop], m)
        expected = {first // m + place: chance for place, chance in enumerate(truth) if chance >= q * (1 - 1e-12)}
        assert dict(window.query()) == pytest.approx(expected, rel=1e-11)
    assert window.stats()["retained"] < count * m / 2


def _by_definition(values: Floats, chances: Floats, m: int) -> Floats:
    n = len(values) // m
    weaker = (values[:, None, :] <= values[None]).all(2) & (values[:, None, :] < values[None]).any(2)
    there = (weaker * chances[:, None]).reshape(n, m, n * m).sum(1)
    there[np.arange(n).repeat(m), np.arange(n * m)] = 0
    return np.asarray((chances * (1 - there).clip(0).prod(0)).reshape(n, m).sum(1))


def test_an_instance_is_forgotten_when_a_newer_object_dominates_it_with_certainty() -> None:
    engine = ObjectEngine(1, np.array([0.5]))
    rows = UncertainRows(
        np.array([[4.0], [1.0], [2.0], [3.0]]),
        np.array([0.5, 0.5, 0.5, 0.5]),
        np.array([1, 1, 2, 2]),
        np.array([9, 9, 10, 10]),
        np.array([1, 1, 2, 2]),
    )
    engine.run(rows, 2)
    assert engine.retained().values.ravel().tolist() == [1.0, 2.0, 3.0]


def test_instances_that_are_all_but_surely_dominated_are_forgotten() -> None:
    engine = ObjectEngine(1, np.array([0.5]))
    n = 200
    rows = UncertainRows(
        np.arange(float(n))[::-1, None].copy(), np.full(n, 0.5), np.arange(n), np.arange(n) + n, np.arange(n)
    )
    engine.run(rows, n - 1)
    assert 60 <= len(engine.retained()) <= 63


@pytest.mark.parametrize("newer", [False, True])
@pytest.mark.parametrize("places", [3, 10, 100])
@pytest.mark.parametrize("missing", [1e-6, 1e-10, 1e-13])
def test_what_an_all_but_certain_object_leaves_is_not_lost_in_rounding(
    places: int, missing: float, newer: bool
) -> None:
    likely = [Instance((k / places,), (1 - missing) / places) for k in range(places)]
    objects: list[Object] = [likely, [Instance((5.0,), 1.0)], [Instance((0.5,), 0.25), Instance((-1.0,), 0.5)]]
    order = [1, 2, 0] if newer else [0, 1, 2]
    window = sk.UncertainWindow(sk.Preference.columns(1), count=5, thresholds=1e-15)
    for k in order:
        rows, chances = zip(*objects[k], strict=True)
        window.extend(np.array(rows), probabilities=list(chances), objects=[k] * len(rows))
    truth = {k: probability_by_worlds([objects[k] for k in order], place) for place, k in enumerate(order)}
    assert dict(window.query()) == pytest.approx({k: float(chance) for k, chance in truth.items()}, rel=1e-12, abs=0)


# -- what objects are --------------------------------------------------------------------------------------------------


def window_of(**options: Any) -> sk.UncertainWindow:
    return sk.UncertainWindow(sk.Preference(minimize=["v"]), **({"count": 5, "thresholds": 0.5} | options))


def test_counts_count_objects_and_the_id_is_the_object() -> None:
    window = window_of(count=1)
    data = {"v": [1.0, 2.0, 5.0], "p": [0.25, 0.5, 0.5], "o": ["a", "a", "b"]}
    assert listed(window.extend(data, probabilities="p", objects="o")) == [
        (1, "+", "a", 0.5),
        (2, "-", "a", 0.5),
        (2, "+", "b", 0.5),
    ]
    assert window.skyline().values.shape == (1, 0) and list(window.skyline()) == ["b"]


def test_an_object_without_probability_takes_its_place() -> None:
    window = window_of(count=1)
    data = {"v": [1.0, 2.0], "p": [0.5, 0.0], "o": ["a", "b"]}
    assert listed(window.extend(data, probabilities="p", objects="o")) == [(1, "+", "a", 0.5), (2, "-", "a", 0.5)]


def test_instances_that_the_policy_leaves_out_are_places_that_the_object_is_not_at() -> None:
    window = window_of(nulls="drop")
    data = {"v": [1.0, None, 3.0], "p": [0.5, 0.4, None], "o": ["a", "a", "b"]}
    assert window.extend(data, probabilities="p", objects="o").bad.tolist() == [1, 2]
    assert list(window.query()) == [("a", 0.5)]


def test_sums_that_rounding_takes_above_1_are_taken() -> None:
    window = window_of()
    window.extend({"v": [1.0] * 10}, probabilities=[0.1 + 1e-14] * 10, objects=["a"] * 10)
    window.extend({"v": [2.0]}, probabilities=[1.0], objects=["b"])
    assert [one for one, _ in window.query()] == ["a"]


def test_the_rounding_of_a_million_instances_is_no_probability_above_1() -> None:
    for n in (300_000, 1_000_000):
        window = window_of()
        window.extend({"v": np.zeros(n)}, probabilities=np.full(n, 1 / n), objects=np.zeros(n, np.int64))
        assert dict(window.query()) == pytest.approx({0: 1.0}, rel=1e-15) and window.probability(0) <= 1


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"p": [0.5, 0.5 + 1e-11, 1.0]}, InputError, "row 1.*'a'"),
        ({"p": [0.5, -0.5, 1.0]}, InputError, "row 2"),
        ({"t": [1, 2, 3]}, InputError, "row 2.*different times"),
        ({"g": ["x", "y", "x"]}, InputError, "row 2.*different groups"),
        ({"o": ["a", None, "b"]}, IdError, "row 2"),
        ({"o": ["a", "b", "a"]}, IdError, "row 3.*live at the same time"),
    ],
)
def test_objects_that_are_none_are_refused_and_leave_nothing_behind(change: Any, error: Any, says: str) -> None:
    good: dict[str, Any] = {
        "v": [1.0, 2.0, 3.0],
        "p": [0.5, 0.5, 1.0],
        "t": [1, 1, 2],
        "g": ["x"] * 3,
        "o": ["a", "a", "b"],
    }
    window = sk.UncertainWindow(sk.Preference(minimize=["v"], by=["g"]), duration=5, thresholds=0.5)
    names = {"times": "t", "probabilities": "p", "objects": "o"}
    with pytest.raises(error, match=says):
        window.extend(good | change, **names)
    assert window.stats()["rows"] == 0 and not window._groups.codes
    window.extend(good, **names)
    with pytest.raises(IdError, match=r"row 1.*live at the same time"):
        window.extend({name: column[2:] for name, column in good.items()}, **names)


def test_a_window_has_rows_or_objects_and_objects_are_their_own_ids() -> None:
    rows = {"v": [1.0], "p": [0.5], "o": ["a"]}
    window = window_of()
    with pytest.raises(OptionError, match="either"):
        window.extend(rows, probabilities="p", objects="o", ids="o")
    with pytest.raises(OptionError, match="tree"):
        window_of(method="tree").extend(rows, probabilities="p", objects="o")
    window.extend(rows, probabilities="p", objects="o")
    with pytest.raises(OptionError, match="objects"):
        window.extend(rows, probabilities="p", ids="o")
    with pytest.raises(OptionError, match="objects"):
        sk.UncertainWindow.from_bytes(window.to_bytes()).extend(rows, probabilities="p", ids="o")
    plain = window_of()
    plain.extend(rows, probabilities="p")
    with pytest.raises(OptionError, match="single rows"):
        plain.extend(rows, probabilities="p", objects="o")
