"""Which rows a witness dominates: the compiled answer against the definition, in every way of working."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import InputError
from skytide.kernel import witness
from skytide.kernel.batch import skyline_mask
from skytide.kernel.witness import dominated_by
from skytide.model import Booleans, Floats
from skytide.streams.generators import KINDS, generate

EXTREMES = [math.inf, -math.inf, 1.797e308, -1.797e308, 5e-324, -5e-324, -0.0, 0.0]
NUMBERS = st.one_of(st.integers(0, 3).map(float), st.sampled_from(EXTREMES))


def by_definition(rows: Floats, witnesses: Floats) -> Booleans:
    """At least as good everywhere and better somewhere, for every pair."""
    found = np.zeros(len(rows), dtype=bool)
    for one in witnesses:
        found |= (one <= rows).all(axis=1) & (one < rows).any(axis=1)
    return found


@pytest.fixture(params=[0, witness.PAIRS], ids=["tree", "pairs"])
def pairs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "PAIRS", request.param)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), dimensions=st.integers(1, 5), tree=st.booleans())
def test_any_rows_and_any_witnesses_with_ties_and_extremes(data: st.DataObject, dimensions: int, tree: bool) -> None:
    matrix = st.lists(st.tuples(*[NUMBERS] * dimensions), max_size=40)
    rows = np.array(data.draw(matrix), dtype=float).reshape(-1, dimensions)
    witnesses = np.array(data.draw(matrix), dtype=float).reshape(-1, dimensions)
    before = rows.copy(), witnesses.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(witness, "PAIRS", 0 if tree else witness.PAIRS)
        found = dominated_by(rows, witnesses)
    assert found.tolist() == by_definition(rows, witnesses).tolist()
    assert rows.tobytes() == before[0].tobytes() and witnesses.tobytes() == before[1].tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 7, 40])
def test_more_witnesses_than_one_node_of_the_tree_holds(kind: str, dimensions: int) -> None:
    """Enough for several nodes at every level; rows on a grid too, so that codes and whole rows are equal."""
    narrow = generate(kind, 9_000, min(dimensions, 20), 5)
    values = np.hstack([narrow, narrow[:, ::-1]])[:, :dimensions]  # more columns than a code has fields
    values[::3] = np.round(values[::3] * 20) / 20
    rows, witnesses = values[:1_500], values[1_000:]
    assert (dominated_by(rows, witnesses) == by_definition(rows, witnesses)).all()


@pytest.mark.parametrize("dimensions", [2, 3, 6])
def test_the_parts_of_a_union_make_up_its_skyline(dimensions: int) -> None:
    values = generate("anti-correlated", 40_000, dimensions, 2)
    union = np.concatenate([part[skyline_mask(part)] for part in (values[:15_000], values[15_000:], values[:100])])
    inside = np.empty(len(union), dtype=bool)
    for part in range(3):
        inside[part::3] = ~dominated_by(union[part::3], union)
    assert (inside == skyline_mask(union)).all()
    assert 0 < inside.sum() < len(union)


def test_a_row_that_equals_a_dominated_witness_is_dominated(pairs: None) -> None:
    witnesses = np.array([[2.0, 2.0, 2.0]] * 200 + [[1.0, 2.0, 2.0]] * 200)
    assert dominated_by(witnesses, witnesses).tolist() == [True] * 200 + [False] * 200


def test_views_and_other_numbers_are_taken_as_they_are(pairs: None) -> None:
    values = generate("independent", 600, 6, 3)
    rows, witnesses = values[::2, ::2], values[1::2, ::2]
    assert (dominated_by(rows, witnesses) == by_definition(rows, witnesses)).all()
    whole = np.asfortranarray((values[:, :3] * 9).astype(np.int32))
    assert (dominated_by(whole[:50], whole) == by_definition(whole[:50], whole)).all()  # type: ignore[arg-type]


def test_shapes_that_do_not_fit_are_refused() -> None:
    for rows, witnesses in (((3, 2), (3, 3)), ((3,), (3, 1)), ((3, 0), (3, 0))):
        with pytest.raises(InputError, match="are not the shapes of two matrices"):
            dominated_by(np.zeros(rows), np.zeros(witnesses))
    assert dominated_by(np.zeros((0, 3)), np.zeros((2, 3))).tolist() == []
    assert dominated_by(np.zeros((2, 3)), np.zeros((0, 3))).tolist() == [False, False]
