from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.kernel import dominance
from skytide.reference import batch as reference

EXTREMES = [-np.inf, -1.797e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.797e308, np.inf]
VALUES = st.sampled_from(EXTREMES)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    d = draw(st.integers(1, 5))
    values = draw(st.sampled_from([VALUES, st.sampled_from([0.0, 1.0])]))
    row = st.lists(values, min_size=d, max_size=d)
    return draw(row), draw(row)


@given(pairs())
def test_every_relation_follows_from_the_definition(pair: tuple[list[float], list[float]]) -> None:
    a, b = np.array(pair[0]), np.array(pair[1])
    forth, back = reference.dominates(pair[0], pair[1]), reference.dominates(pair[1], pair[0])
    same = pair[0] == pair[1]
    assert dominance.dominates(a, b) == forth
    assert dominance.weakly_dominates(a, b) == (forth or same)
    assert dominance.equal(a, b) == same
    assert dominance.relation(a, b) == int(back) - int(forth)
    assert dominance.precedes(a, b) == (pair[0] < pair[1])


@given(pairs())
def test_what_dominates_a_row_precedes_it(pair: tuple[list[float], list[float]]) -> None:
    a, b = np.array(pair[0]), np.array(pair[1])
    assert dominance.precedes(a, b) or not dominance.dominates(a, b)


@pytest.mark.parametrize("name", ["weakly_dominates", "equal", "dominates", "relation", "precedes"])
def test_a_row_within_a_matrix_is_compared_like_the_row_itself(name: str) -> None:
    grid = np.array([[x, y, z] for x in (0.0, 1.0, np.inf) for y in (-0.0, 2.0) for z in (0.0, 1.0)])
    apart, within = getattr(dominance, name), getattr(dominance, f"{name}_at")
    for i, a in enumerate(grid):
        for j, b in enumerate(grid):
            assert within(grid, i, grid, j) == apart(a, b)
