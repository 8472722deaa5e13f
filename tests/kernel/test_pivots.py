"""Boundaries by random walks: members come apart, what hangs stays below, and the room is shared as the walks need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel.filtering import Records
from skytide.kernel.filtering_clients import outside
from skytide.kernel.pivots import part_holders, part_members
from skytide.model import Floats
from skytide.reference.batch import dominates, skyline

VALUE = st.one_of(st.integers(0, 3).map(float), st.sampled_from([np.inf, -np.inf, 1.797e308, -1.797e308, 5e-324, 0.0]))
STEP = st.sampled_from([0.0, 0.01, 1.0, 1e300])


def fresh(points: Floats) -> Records:
    wide = np.full_like(points, np.inf)
    return Records(points, -wide, wide, points.copy(), points.copy(), np.ones(len(points), np.bool_))


@settings(max_examples=150)
@given(st.lists(st.tuples(VALUE, VALUE), min_size=2, max_size=6), st.data())
def test_members_come_apart_and_keep_their_points(rows: list[tuple[float, ...]], data: st.DataObject) -> None:
    members = np.array([rows[one] for one in skyline(rows)])
    records = fresh(members)
    steps = np.array(data.draw(st.lists(st.tuples(STEP, STEP), min_size=len(members), max_size=len(members))))
    part_members(records, steps, np.arange(len(members)))
    assert not outside(records.low, records.high, members).any()
    for one in range(len(members)):
        for other in range(len(members)):
            if one != other:
                equal = (members[one] == members[other]).all()
                extent = (records.low[[one, other]] == records.high[[one, other]]).all()
                assert extent if equal else (records.high[one] < records.low[other]).any()


def test_members_keep_clear_of_boxes_that_stay() -> None:
    points = np.array([[0.0, 4.0], [4.0, 0.0]])
    records = fresh(points)
    records.fresh[1], records.low[1], records.high[1] = False, (1.0, -1.0), (9.0, 3.0)
    part_members(records, np.ones((2, 2)), np.arange(2))
    assert records.high[0, 0] < 1.0 and records.low[0, 1] > 3.0
    assert records.low[1].tolist() == [1.0, -1.0] and records.high[1].tolist() == [9.0, 3.0]


@pytest.mark.parametrize(("steps", "cut"), [((1.0, 1.0), 5.0), ((8.0, 1.0), 8.0), ((1.0, 8.0), 2.0), ((0.0, 1.0), 0.0)])
def test_the_room_between_two_members_is_as_their_steps_to_the_power_of_two_thirds(
    steps: tuple[float, float], cut: float
) -> None:
    records = fresh(np.array([[0.0, 1.0], [10.0, 0.0]]))
    part_members(records, np.array([[steps[0], 1e9], [steps[1], 1e9]]), np.arange(2))
    assert records.high[0, 0] == pytest.approx(cut, abs=1e-9)
    assert records.low[1, 0] == np.nextafter(records.high[0, 0], np.inf)


@settings(max_examples=100)
@given(st.lists(st.tuples(VALUE, VALUE), min_size=2, max_size=6), st.tuples(STEP, STEP), st.floats(0, 1), st.booleans())
def test_what_hangs_on_a_holder_stays_dominated_anywhere_in_its_box(
    rows: list[tuple[float, ...]], step: tuple[float, float], apart: float, stays: bool
) -> None:
    holder = rows[skyline(rows)[0]]
    below = [row for row in rows if dominates(holder, row)]
    points = np.array([holder, *below])
    records = fresh(points)
    own = np.arange(1, len(points))
    if stays:  # a holder that keeps its box, which is no larger than its point
        records.fresh[0], records.low[0], records.high[0] = False, points[0], points[0]
    part_holders(records, np.tile(step, (len(points), 1)), np.array([0]), np.array([0, len(own)]), own, apart)
    assert not outside(records.low, records.high, points).any()
    for one in own:
        assert dominates(records.high[0].tolist(), records.low[one].tolist())


def test_a_holder_ends_where_it_costs_all_of_them_least() -> None:
    points = np.array([[0.0], *[[10.0]] * 8])
    records, own = fresh(points), np.arange(1, 9)
    part_holders(records, np.ones((9, 1)), np.array([0]), np.array([0, 8]), own, 0.0)
    # The least of 1 / x² + 8 / (10 - x)² is at (10 - x) / x = 2.
    assert records.high[0, 0] == pytest.approx(10 / 3, abs=1e-3)


@pytest.mark.parametrize(("apart", "begins"), [(0.0, (3.0, 3.0)), (0.5, (3.0, 6.5)), (1.0, (3.0, 10.0))])
def test_objects_begin_between_the_end_of_their_holder_and_a_boundary_of_their_own(
    apart: float, begins: tuple[float, float]
) -> None:
    records = fresh(np.array([[0.0], [6.0], [20.0]]))
    records.high[0] = 3.0
    part_holders(records, np.ones((3, 1)), np.array([0]), np.array([0, 2]), np.array([1, 2]), apart)
    assert records.high[0, 0] == pytest.approx(3.0, abs=0.01)
    assert records.low[1:, 0].tolist() == pytest.approx(begins, abs=0.01)
