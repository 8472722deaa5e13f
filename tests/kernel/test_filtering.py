"""The kernel of the filters: judging by corners, probe order, boundaries, and the recent reach."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel.filtering import (
    BELOW,
    INSIDE,
    NOBODY,
    OPEN,
    Records,
    fitting,
    judge,
    keep_below,
    recall,
    set_apart,
    share_room,
    stand_apart,
)
from skytide.kernel.filtering_clients import outside
from skytide.model import Booleans, Floats, Integers
from skytide.reference.batch import dominates, skyline

VALUE = st.integers(0, 3).map(float)


def judged(low: Floats, high: Floats) -> tuple[list[int], Integers, Booleans]:
    """One round over all records: verdicts, witnesses, who is asked."""
    n = len(low)
    verdicts, witness, asked = np.full(n, OPEN, np.int8), np.full(n, NOBODY), np.zeros(n, np.bool_)
    known = (low == high).all(axis=1)
    judge(low, high, known, np.zeros(n, np.bool_), np.arange(n), verdicts, witness, asked)
    return verdicts.tolist(), witness, asked


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(VALUE, VALUE, VALUE, VALUE), min_size=1, max_size=7), st.data())
def test_verdicts_hold_wherever_the_points_are_in_their_boxes(
    corners: list[tuple[float, ...]], data: st.DataObject
) -> None:
    ends = np.sort(np.array(corners).reshape(-1, 2, 2), axis=1)
    low, high = np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])
    verdicts, witness, asked = judged(low, high)
    points = [
        tuple(data.draw(st.sampled_from([a, b])) for a, b in zip(*box, strict=True))
        for box in zip(low, high, strict=True)
    ]
    truth = set(skyline(points))
    for one, verdict in enumerate(verdicts):
        assert verdict != INSIDE or one in truth
        assert verdict != BELOW or dominates(points[witness[one]], points[one])
        known = (low[one] == high[one]).all()
        assert not (asked[one] and known)
        assert verdict != OPEN or known or asked[one]
    if OPEN not in verdicts:
        assert {one for one, verdict in enumerate(verdicts) if verdict == INSIDE} == truth
    else:
        assert asked.any()


def test_a_candidate_is_asked_before_those_that_may_dominate_it() -> None:
    low, high = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 2.0], [3.0, 3.0]])
    # Each of the two may dominate the other only as 0 over 1: 1 is in doubt, 0 is in doubt of 1.
    assert judged(low, high)[2].tolist() == [True, True]
    low, high = np.array([[0.0, 0.0], [2.0, 2.0]]), np.array([[3.0, 3.0], [2.0, 2.0]])
    verdicts, _, asked = judged(low, high)
    assert verdicts == [OPEN, OPEN] and asked.tolist() == [True, False]


def test_points_on_the_edge_are_inside_and_infinite_boxes_hold_all() -> None:
    inf = np.inf
    low, high = np.array([[0.0, -inf], [0.0, 0.0], [5e-324, 0.0]]), np.array([[1.0, inf], [1.0, 1.0], [1.0, 1.0]])
    points = np.array([[1.0, -inf], [1.0, np.nextafter(1.0, 2)], [0.0, 0.0]])
    assert outside(low, high, points).tolist() == [False, True, True]


def fresh_records(points: Floats, reach: float) -> Records:
    """Records that all get new boxes, as wide as anything."""
    wide = np.full_like(points, np.inf)
    return Records(points, -wide, wide, points - reach, points + reach, np.ones(len(points), np.bool_))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(VALUE, VALUE, VALUE), min_size=2, max_size=6),
    st.lists(st.tuples(VALUE, VALUE, VALUE), max_size=4),
)
def test_members_of_a_skyline_come_apart(rows: list[tuple[float, ...]], log: list[tuple[float, ...]]) -> None:
    members = np.array([rows[one] for one in skyline(rows)])
    records = fresh_records(members, 0.7)
    set_apart(records, np.arange(len(members)), np.array(log).reshape(-1, 3))
    assert not outside(records.low, records.high, members).any()
    for one in range(len(members)):
        for other in range(len(members)):
            equal = (members[one] == members[other]).all()
            extent = (records.low[[one, other]] == records.high[[one, other]]).all()
            assert one == other or (extent if equal else (records.high[one] < records.low[other]).any())


def test_the_cut_lies_between_two_reaches_that_do_not_meet_and_avoids_probe_sources() -> None:
    points = np.array([[0.0, 9.0], [8.0, 0.0]])
    records = fresh_records(points, 1.0)
    set_apart(records, np.arange(2), np.zeros((0, 2)))
    assert 1.0 <= records.high[0, 0] < records.low[1, 0] <= 7.0
    busy = fresh_records(points, 1.0)
    set_apart(busy, np.arange(2), np.full((64, 2), 3.0))
    assert 1.0 <= busy.high[0, 0] < 3.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=5), st.tuples(VALUE, VALUE))
def test_the_box_of_a_newcomer_fits_where_the_members_are(
    rows: list[tuple[float, ...]], newcomer: tuple[float, ...]
) -> None:
    members = [rows[one] for one in skyline(rows)]
    points = np.array([*members, newcomer])
    records, last = fresh_records(points, 0.3), len(members)
    stand_apart(records, np.array([last]), np.arange(last), np.zeros((0, 2)))
    assert not outside(records.low, records.high, points).any()
    low, high = points.copy(), points.copy()
    low[last], high[last] = records.low[last], records.high[last]
    hopeless = any(dominates(one, newcomer) or one == newcomer for one in members)
    assert hopeless or fitting(low, high, np.array([last]), np.arange(last)).all()


def test_a_box_fits_below_a_member_apart_from_all_or_above_them_and_not_across() -> None:
    members = np.array([[2.0, 6.0], [6.0, 2.0]])
    boxes = [((7.0, 7.0), (9.0, 9.0)), ((3.0, 3.0), (4.0, 5.0)), ((0.0, 0.0), (1.0, 1.0)), ((3.0, 3.0), (4.0, 7.0))]
    low = np.concatenate((members, [box[0] for box in boxes]))
    high = np.concatenate((members, [box[1] for box in boxes]))
    assert fitting(low, high, np.arange(2, 6), np.arange(2)).tolist() == [True, True, True, False]


def test_what_hangs_on_a_record_keeps_hanging() -> None:
    points = np.array([[0.0, 0.0], [4.0, 4.0], [4.0, 0.0]])
    records = fresh_records(points, 10.0)
    records.low[1], records.fresh[1] = (3.0, 0.0), False
    dominator = np.array([NOBODY, 0, 0])
    keep_below(records, dominator, np.array([1]))
    assert (records.high[0] <= records.low[1]).all() and (records.high[0] < records.low[1]).any()
    share_room(records, np.array([0]), np.array([0, 1]), np.array([2]))
    assert (records.high[0] <= records.low[2]).all() and (records.high[0] < records.low[2]).any()
    assert not outside(records.low, records.high, points).any()


def test_the_reach_holds_the_point_fades_and_forgets_infinities() -> None:
    inf, points = np.inf, np.array([[0.0, 1.797e308]])
    floor, roof = points.copy(), points.copy()
    for value, other in ((8.0, -1.797e308), (0.0, inf), (0.0, 1.0)):
        points[:] = value, other
        recall(points, floor, roof)
        assert (floor <= points).all() and (points <= roof).all()
    assert 7.0 < roof[0, 0] < 8.0 and floor[0, 0] == 0.0
    assert floor[0, 1] == roof[0, 1] == 1.0


def test_a_record_that_never_moves_has_no_reach() -> None:
    points = np.array([[0.1, -0.0, 5e-324]])
    floor, roof = points.copy(), points.copy()
    for _ in range(200):
        recall(points, floor, roof)
    assert (floor == points).all() and (roof == points).all()
