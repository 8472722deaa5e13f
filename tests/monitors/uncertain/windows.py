"""Streams and comparisons that the tests of uncertain windows share."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import skytide as sk
from skytide.monitors.uncertain.changes import ThresholdChanges
from skytide.monitors.uncertain.window import Ranking
from skytide.reference.uncertain import Object, probability, reaches
from skytide.reference.window import alive, lives

METHODS = ["auto", "scan", "tree"]
CELLS = st.one_of(st.integers(0, 3).map(float), st.sampled_from([float("inf"), float("-inf"), -0.0, 1.797e308, 5e-324]))
CHANCES = st.one_of(
    st.sampled_from([1.0, 0.5, 0.25, 0.3, 0.7, 0.0, 1e-9, 1 - 1e-12, 5e-324]),
    st.integers(1, 99).map(lambda percent: percent / 100),
)
THRESHOLDS = st.lists(st.sampled_from([0.25, 0.5, 0.3, 0.7, 1.0, 0.09, 0.01]), min_size=1, max_size=3, unique=True)


@st.composite
def streams(draw: st.DrawFn, *, jitter: bool = False) -> dict[str, Any]:
    """Rows with ties, probabilities, times that repeat, groups and cuts into batches."""
    dimensions = draw(st.integers(1, 3))
    rows = draw(st.lists(st.tuples(*[CELLS] * dimensions), min_size=1, max_size=10))
    n = len(rows)
    times = draw(st.lists(st.integers(-5, 12) if jitter else st.integers(-3, 12), min_size=n, max_size=n))
    return {
        "rows": rows,
        "times": times if jitter else sorted(times),
        "chances": draw(st.lists(CHANCES, min_size=n, max_size=n)),
        "groups": draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n)),
        "cuts": sorted(draw(st.lists(st.integers(0, n), max_size=3))),
    }


def parts(stream: dict[str, Any]) -> list[slice]:
    edges = [0, *stream["cuts"], len(stream["rows"])]
    return [slice(start, stop) for start, stop in itertools.pairwise(edges)]


def table(stream: dict[str, Any], part: slice) -> pa.Table:
    rows = stream["rows"]
    columns: dict[str, Any] = {
        f"x{k}": pa.array([row[k] for row in rows[part]], pa.float64()) for k in range(len(rows[0]))
    }
    columns["g"] = pa.array(stream["groups"][part], pa.string())
    return pa.table(columns | {"p": pa.array(stream["chances"][part], pa.float64())})


def preference(stream: dict[str, Any], by: bool) -> sk.Preference:
    return sk.Preference(minimize=[f"x{k}" for k in range(len(stream["rows"][0]))], by=["g"] if by else [])


def listed(changes: ThresholdChanges) -> list[tuple[Any, ...]]:
    return [tuple(change) for change in changes]


def truth_at(
    at: Any,
    objects: list[Object],
    times: list[Any] | None,
    ids: list[Any],
    by: list[Any] | None = None,
    **length: Any,
) -> dict[Any, Fraction]:
    """The skyline probability of everything that lives at an instant, by definition."""
    every = lives(times, len(objects), by=by, **length)
    live = [position for position, life in enumerate(every) if alive(life, at)]
    found = {}
    for position in live:
        rivals = [other for other in live if by is None or by[other] == by[position]]
        found[ids[position]] = probability([objects[other] for other in rivals], rivals.index(position))
    return found


def agrees(ranking: Ranking, truth: dict[Any, Fraction], least: float) -> None:
    """The ranking is the truth, in order."""
    expected = {one: chance for one, chance in truth.items() if reaches(chance, least)}
    found = dict(ranking)
    assert found.keys() == expected.keys()
    for one, chance in found.items():
        assert abs(chance - float(expected[one])) <= 1e-12 * float(expected[one])
    order = list(ranking)
    for (one, chance), (other, next_chance) in itertools.pairwise(order):
        assert next_chance <= chance * (1 + 1e-12)
        if expected[one] == expected[other]:
            assert str(one) < str(other)
    assert np.isfinite(ranking.probabilities).all()
