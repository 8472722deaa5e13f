"""The compiled search for rows that strong rows outdo, against its definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel.cover import NOTHING, cover
from skytide.kernel.rtree_lanes import LANES


def dominates(a: list[float], b: list[float]) -> bool:
    return all(map(float.__le__, a, b)) and a != b


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda d: st.lists(
            st.tuples(
                st.lists(st.sampled_from([-np.inf, -0.0, 0.0, 1.0, 2.0, np.inf]), min_size=d, max_size=d),
                st.integers(0, 9),
                st.sampled_from([0.0, 1.0, 2.0, np.inf]),
            ),
            min_size=1,
            max_size=40,
        )
    ),
    st.integers(1, 3),
    st.integers(-1, 5),
    st.data(),
)
def test_what_is_covered_has_k_earlier_dominators_above_the_floor(
    drawn: list[tuple[list[float], int, float]], k: int, floor: int, data: st.DataObject
) -> None:
    values = [value for value, _, _ in drawn]
    marks = [mark for _, mark, _ in drawn]
    strengths = [strength for _, _, strength in drawn]
    first = data.draw(st.integers(0, len(drawn)))
    latest = data.draw(st.booleans())
    covered, best = cover(
        np.array(values),
        np.array(marks),
        np.array(strengths),
        first,
        k,
        floor,
        LANES * data.draw(st.integers(1, 3)),
        latest,
    )
    assert len(covered) == len(best) == len(drawn) - first
    for i in range(first, len(drawn)):
        found = [marks[j] for j in range(i) if dominates(values[j], values[i]) and marks[j] > floor]
        assert len(found) >= k or not covered[i - first]
        assert best[i - first] in ([NOTHING, *found] if not (latest and covered[i - first]) else found)


def test_the_mark_is_the_largest_among_the_strong_rows_that_dominate() -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(0, 40, (64, 2)).astype(float)
    marks = rng.integers(0, 1_000, 64)
    _, best = cover(values, marks, values.sum(axis=1), 0, 64, -1, 64, True)
    for i in range(64):
        found = [int(marks[j]) for j in range(i) if dominates(values[j].tolist(), values[i].tolist())]
        assert best[i] == max(found, default=NOTHING)


def test_with_room_for_all_nothing_that_is_covered_is_missed() -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(0, 5, (60, 2)).astype(float)
    covered, _ = cover(values, np.ones(60, np.int64), values.sum(axis=1), 0, 2, 0, 64, False)
    expected = [sum(dominates(values[j].tolist(), values[i].tolist()) for j in range(i)) >= 2 for i in range(60)]
    assert covered.tolist() == expected and 0 < sum(expected) < 60
