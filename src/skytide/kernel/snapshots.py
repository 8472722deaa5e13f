"""Objects under bulk updates, compiled: who is in the skyline after each snapshot, without looking at every object.

After Udomlamlert, Hara, Nishio, "Skyline computation under frequent data updates" (2014). An object that is dominated
hangs on one dominator (the paper's `adrm`; the hangers-on are its `DRM`) and is not looked at again as long as the link
holds. A dominator has a box over the places where it has been since, of which only the upper corner matters: as long as
the corner dominates an object, so does the dominator wherever it is in its box. Objects without a link are the
candidates (the paper's SKM), and the skyline is among them.

A snapshot has three phases. PRE moves the objects and checks the links that this touches; what hangs on nothing any
more looks for a candidate whose corner dominates it, else it becomes a candidate. SKY brings the skyline of the
candidates up to date: only moved and new ones can change anything. POST hangs a candidate that has been dominated for
`patience` snapshots in a row on its dominator, and shrinks the dominator's box for it.

Where we differ from the paper:

- Dominance between a corner and a point needs one strictly better column, so that equal objects all stay.
- Every dominator's links are checked when its box grows, candidate or not.
- A link holds between the corner and the point as it is. The paper's lower corner is never above the point, so it only
  breaks more links.
- The box of an object on which nothing hangs is the point itself, and a box is cut when a link would break that the
  point still upholds: halfway between the dominator and the object, which leaves both of them room.
- A dominated candidate remembers who dominates it (its rival), and is looked at again when one of the two has moved.
- Equal candidates are compared with the others once: all but one of them take over what it found.
- Objects come and go.

Where there are many candidates and much has moved, they are searched by bitmaps over cells (`eager_bits`), which are
filled once per snapshot; where there are few, one by one.

All arrays are made outside, nothing is allocated here. An object is a slot, a row of the arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from skytide.kernel.dominance import dominates_at, equal_at, weakly_dominates_at
from skytide.kernel.eager_bits import SETS, fill, stride_of, take_dominated
from skytide.kernel.eager_codes import CELLS, cell_of
from skytide.kernel.snapshot_bits import first_no_worse
from skytide.model import Floats, Integers

FREE, NOBODY, WAITING = -3, -1, -2
"""Instead of a dominator: the slot holds no object; the object is a candidate; the object looks for a place."""

CANDIDATES, OBJECTS, CLOCK, WAITERS, TOUCHED, UNSURE = 0, 1, 2, 3, 4, 5
"""What the first `numbers` say: sizes of the lists, live objects, snapshots so far."""
PRE, SKY, POST, SEARCHES, DEMOTED, CUTS, SEEN, PASSED = 6, 7, 8, 9, 10, 11, 12, 13
"""And what was done: dominance tests by phase, searches among the candidates, candidates hung up in POST, boxes cut,
candidates summed over the snapshots, updates that changed no link."""
FILLED, CODED = 14, 15
"""How many candidates the bitmaps hold in this snapshot; the snapshot in which the cells were cut, 0 before."""
NUMBERS = 16

MANY = 192
"""From so many candidates on they may be searched by bitmaps."""
PAIRS = 2
"""Where they spare more than so many comparisons per column and entry of the bitmaps."""
MOST = 1 << 18
"""And up to so many: beyond, the bitmaps would take much more memory than the points."""
RECUT = 512
"""After so many snapshots the cells are cut anew."""


class State(NamedTuple):
    """One group of objects. Rows of the first arrays are slots; the lists hold slots."""

    points: Floats
    corners: Floats
    dominator: Integers
    """The slot on which the object hangs, or one of the words above."""
    first: Integers
    after: Integers
    before: Integers
    """The objects that hang on a slot, as a list: the first of them, and of each the next and the one before."""
    place: Integers
    """Where a candidate stands among the candidates."""
    rival: Integers
    """A slot that dominates the candidate; NOBODY in the skyline."""
    since: Integers
    """The snapshot since which the candidate is dominated."""
    moved: Integers
    """The last snapshot in which the object moved, came or went."""
    stirred: Integers
    """The last snapshot in which the object moved as a candidate."""
    alike: Integers
    """The last snapshot in which an equal candidate before it stood for it."""
    shown: Integers
    """Whether the answer as last told holds the object."""
    asked: Integers
    """The last snapshot at whose end the object was looked at for changes."""
    candidates: Integers
    front: Floats
    """The candidates' points, in their order."""
    waiters: Integers
    touched: Integers
    unsure: Integers
    edges: Floats
    """The cuts between the cells, by column."""
    cells: np.ndarray
    """The candidates' cells, in their order."""
    bits: np.ndarray
    """For each column and cell, the candidates below it."""
    sets: np.ndarray
    open_rows: np.ndarray
    taken: Integers
    work: Integers
    """Scratch of the searches by bitmaps."""
    numbers: Integers


# -- lists -------------------------------------------------------------------------------------------------------------


@njit(cache=True, forceinline=True, _nrt=False)
def _hang(s: State, one: int, on: int) -> None:
    s.dominator[one] = on
    head = s.first[on]
    s.after[one] = head
    s.before[one] = NOBODY
    if head >= 0:
        s.before[head] = one
    s.first[on] = one


@njit(cache=True, forceinline=True, _nrt=False)
def _unhang(s: State, one: int) -> None:
    earlier, later = s.before[one], s.after[one]
    if earlier >= 0:
        s.after[earlier] = later
    else:
        s.first[s.dominator[one]] = later
    if later >= 0:
        s.before[later] = earlier


@njit(cache=True, forceinline=True, _nrt=False)
def _wait(s: State, one: int) -> None:
    s.dominator[one] = WAITING
    s.waiters[s.numbers[WAITERS]] = one
    s.numbers[WAITERS] += 1


@njit(cache=True, forceinline=True, _nrt=False)
def _doubt(s: State, one: int) -> None:
    """Whether the object is in the answer may have changed."""
    if s.asked[one] != s.numbers[CLOCK]:
        s.asked[one] = s.numbers[CLOCK]
        s.unsure[s.numbers[UNSURE]] = one
        s.numbers[UNSURE] += 1


@njit(cache=True, forceinline=True, _nrt=False)
def _write(s: State, at: int, one: int) -> None:
    """Copy a candidate's point, and its cells where they are kept."""
    coded = s.numbers[CODED] > 0
    for k in range(s.points.shape[1]):
        s.front[at, k] = s.points[one, k]
        if coded:
            s.cells[at, k] = cell_of(s.edges[k], s.points[one, k])


@njit(cache=True, _nrt=False)
def _add_candidate(s: State, one: int, rival: int) -> None:
    at = s.numbers[CANDIDATES]
    s.candidates[at] = one
    s.place[one] = at
    _write(s, at, one)
    s.numbers[CANDIDATES] = at + 1
    s.dominator[one] = NOBODY
    s.rival[one] = rival
    s.since[one] = s.numbers[CLOCK]
    s.touched[s.numbers[TOUCHED]] = one
    s.numbers[TOUCHED] += 1
    _doubt(s, one)


@njit(cache=True, _nrt=False)
def _drop_candidate(s: State, one: int) -> None:
    at, last = s.place[one], s.numbers[CANDIDATES] - 1
    moved = s.candidates[last]
    s.candidates[at] = moved
    s.place[moved] = at
    for k in range(s.points.shape[1]):
        s.front[at, k] = s.front[last, k]
        s.cells[at, k] = s.cells[last, k]
    s.numbers[CANDIDATES] = last
    s.place[one] = NOBODY
    _doubt(s, one)


# -- boxes -------------------------------------------------------------------------------------------------------------


@njit(cache=True, _nrt=False)
def _cut(s: State, on: int, one: int) -> None:
    """Shrink the box of a dominator until its corner dominates the object, as its point does."""
    s.numbers[CUTS] += 1
    for k in range(s.points.shape[1]):
        low, high = s.points[on, k], s.points[one, k]
        middle = 0.5 * low + 0.5 * high
        # Not so between neighbours among the floats, and for infinities.
        if not (low <= middle < high):
            middle = low
        s.corners[on, k] = min(s.corners[on, k], middle)


@njit(cache=True, _nrt=False)
def _let_go(s: State, on: int) -> None:
    """Objects whose dominator has gone look for another place."""
    one = s.first[on]
    while one >= 0:
        later = s.after[one]
        _wait(s, one)
        one = later
    s.first[on] = NOBODY


@njit(cache=True, _nrt=False)
def _grow(s: State, on: int) -> int:
    """Take the point into the box, and let go of what the corner no longer dominates; how many tests."""
    grown = False
    for k in range(s.points.shape[1]):
        if s.points[on, k] > s.corners[on, k]:
            s.corners[on, k] = s.points[on, k]
            grown = True
    tests = 0
    if grown:
        one = s.first[on]
        while one >= 0:
            later = s.after[one]
            tests += 1
            if not dominates_at(s.corners, on, s.points, one):
                _unhang(s, one)
                _wait(s, one)
            one = later
    return tests


# -- a snapshot --------------------------------------------------------------------------------------------------------


@njit(cache=True, _nrt=False)
def _remove(s: State, one: int) -> None:
    held = s.dominator[one]
    if held == FREE:
        return
    if held >= 0:
        _unhang(s, one)
    elif held == NOBODY:
        _drop_candidate(s, one)
    _doubt(s, one)
    _let_go(s, one)
    s.dominator[one] = FREE
    s.moved[one] = s.numbers[CLOCK]
    s.numbers[OBJECTS] -= 1


@njit(cache=True, forceinline=True, _nrt=False)
def _place(s: State, one: int, rows: Floats, row: int) -> int:
    """An object comes, or moves; how many tests."""
    d = s.points.shape[1]
    for k in range(d):
        s.points[one, k] = rows[row, k]
    s.moved[one] = s.numbers[CLOCK]
    held = s.dominator[one]
    tests = 0
    if s.first[one] >= 0:
        tests += _grow(s, one)
    else:
        for k in range(d):
            s.corners[one, k] = rows[row, k]
    if held >= 0:
        tests += 1
        if dominates_at(s.corners, held, s.points, one):
            s.numbers[PASSED] += 1
        elif dominates_at(s.points, held, s.points, one):
            _cut(s, held, one)
        else:
            _unhang(s, one)
            _wait(s, one)
    elif held == NOBODY:
        _write(s, s.place[one], one)
        s.stirred[one] = s.numbers[CLOCK]
        s.touched[s.numbers[TOUCHED]] = one
        s.numbers[TOUCHED] += 1
    elif held == FREE:
        s.numbers[OBJECTS] += 1
        _wait(s, one)
    return tests


# -- searches ----------------------------------------------------------------------------------------------------------


@njit(cache=True, _nrt=False)
def recode(s: State) -> None:
    """Find the cells of all candidates, after new cuts. O(candidates d)."""
    for at in range(s.numbers[CANDIDATES]):
        for k in range(s.points.shape[1]):
            s.cells[at, k] = cell_of(s.edges[k], s.front[at, k])
    s.numbers[CODED] = max(1, s.numbers[CLOCK])


@njit(cache=True, _nrt=False)
def fits(s: State) -> bool:
    """Whether the bitmaps have room for the candidates."""
    return bool(stride_of(s.numbers[CANDIDATES]) * s.points.shape[1] * SETS <= s.bits.shape[0])


@njit(cache=True, _nrt=False)
def _fill(s: State, searches: int) -> None:
    """Fill the bitmaps with the candidates where so many searches to come pay for it. O(d candidates) and more."""
    n = s.numbers
    count, d = n[CANDIDATES], s.points.shape[1]
    beyond = count - n[FILLED]
    if count >= MANY and n[CODED] > 0 and searches * beyond > PAIRS * d * (CELLS + count) and fits(s):
        fill(s.bits, s.cells, count, d)
        n[FILLED] = count


@njit(cache=True, _nrt=False)
def _by_cells(s: State, at: int, one: int, itself: int) -> int:
    """The first candidate in the bitmaps, from position `at` on, that is nowhere worse than the object, or -1."""
    filled = s.numbers[FILLED]
    stride = stride_of(filled)
    for k in range(s.points.shape[1]):
        s.sets[k] = np.uint64((k * SETS + cell_of(s.edges[k], s.points[one, k]) + 1) * stride)
    found: int = first_no_worse(s.bits, s.sets, s.front, filled, at, s.points, one, itself, s.work)
    return found


@njit(cache=True, _nrt=False)
def _next_no_worse(s: State, start: int, one: int, itself: int) -> int:
    """The first candidate from this position on, but not at `itself`, that dominates the object or equals it, or -1."""
    at = start
    if at < s.numbers[FILLED]:
        found: int = _by_cells(s, at, one, itself)
        if found >= 0:
            return found
        at = s.numbers[FILLED]
    while at < s.numbers[CANDIDATES]:
        s.work[0] += 1
        if at != itself and weakly_dominates_at(s.front, at, s.points, one):
            return at
        at += 1
    return -1


@njit(cache=True, _nrt=False)
def _search(s: State, one: int) -> tuple[int, int]:
    """A candidate whose corner dominates the object, if any, and one whose point does.

    An object that equals a member of the skyline, as it was, becomes a candidate beside it: SKY sees to it.
    """
    s.numbers[SEARCHES] += 1
    rival = NOBODY
    at = _next_no_worse(s, 0, one, NOBODY)
    while at >= 0:
        other = s.candidates[at]
        if equal_at(s.front, at, s.points, one):
            if s.rival[other] < 0:
                s.stirred[one] = s.numbers[CLOCK]
                return NOBODY, NOBODY
        else:
            rival = other
            s.work[0] += 1
            if dominates_at(s.corners, rival, s.points, one):
                return rival, rival
        at = _next_no_worse(s, at + 1, one, NOBODY)
    return NOBODY, rival


@njit(cache=True, _nrt=False)
def pre(s: State, slots: Integers, rows: Floats, gone: np.ndarray, start: int, stop: int) -> None:
    """Apply the updates [start, stop) of one snapshot. O(updates), and a search for each link that breaks."""
    n = s.numbers
    n[CLOCK] += 1
    n[WAITERS] = n[TOUCHED] = n[UNSURE] = 0
    tests = 0
    for u in range(start, stop):
        if gone[u]:
            _remove(s, slots[u])
        else:
            tests += _place(s, slots[u], rows, u)
    n[FILLED] = 0
    _fill(s, n[WAITERS] + n[TOUCHED])
    s.work[0] = 0
    for at in range(n[WAITERS]):
        one = s.waiters[at]
        if s.dominator[one] != WAITING:
            continue
        if at & 255 == 255:
            _fill(s, n[WAITERS] - at)
        found, rival = _search(s, one)
        if found >= 0:
            _hang(s, one, found)
        else:
            _add_candidate(s, one, rival)
    n[PRE] += tests + s.work[0]


@njit(cache=True, _nrt=False)
def _dominating(s: State, one: int) -> int:
    """A candidate that dominates the candidate, or NOBODY; an equal one before it knows already."""
    place: int = s.place[one]
    at = _next_no_worse(s, 0, one, place)
    while at >= 0:
        other: int = s.candidates[at]
        if not equal_at(s.front, at, s.points, one):
            return other
        if at < place:
            s.alike[one] = s.numbers[CLOCK]
            known: int = s.rival[other]
            return known
        at = _next_no_worse(s, at + 1, one, place)
    return NOBODY


@njit(cache=True, _nrt=False)
def _keep_touched(s: State) -> None:
    """Of the touched objects, keep those that are candidates, once each, and of equal ones the first."""
    n = s.numbers
    kept = 0
    for touched in range(n[TOUCHED]):
        one = s.touched[touched]
        if s.place[one] >= 0 and s.alike[one] != n[CLOCK]:
            s.alike[one] = n[CLOCK]
            s.touched[kept] = one
            kept += 1
    n[TOUCHED] = kept


@njit(cache=True, _nrt=False)
def _settle(s: State, one: int, rival: int) -> None:
    """Note who dominates a candidate now."""
    if rival != s.rival[one]:
        if (rival < 0) != (s.rival[one] < 0):
            s.since[one] = s.numbers[CLOCK]
            _doubt(s, one)
        s.rival[one] = rival


@njit(cache=True, _nrt=False)
def _outdone(s: State) -> None:
    """Find those of the skyline's candidates in the bitmaps that a touched candidate dominates now."""
    n = s.numbers
    filled, d = n[FILLED], s.points.shape[1]
    stride = stride_of(filled)
    open_rows = s.open_rows[:stride]
    open_rows[:] = np.uint64(0)
    for at in range(filled):
        if s.rival[s.candidates[at]] < 0:
            open_rows[at >> 6] |= np.uint64(1) << np.uint64(at & 63)
    for touched in range(n[TOUCHED]):
        other = s.touched[touched]
        for k in range(d):
            s.sets[k] = np.uint64((k * SETS + s.cells[s.place[other], k]) * stride)
        found = take_dominated(
            s.bits, s.sets, open_rows, s.front, 0, s.front, s.place[other], False, s.taken, s.work
        )  # fmt: skip
        for i in range(found):
            _settle(s, s.candidates[s.taken[i]], other)


@njit(cache=True, _nrt=False)
def _outdone_from(s: State, start: int) -> None:
    """The same for the candidates from this position on, one by one."""
    n = s.numbers
    for at in range(start, n[CANDIDATES]):
        one = s.candidates[at]
        if s.rival[one] >= 0:
            continue
        for touched in range(n[TOUCHED]):
            other = s.touched[touched]
            s.work[0] += 1
            if dominates_at(s.front, s.place[other], s.front, at):
                _settle(s, one, other)
                break


@njit(cache=True, _nrt=False)
def sky(s: State) -> None:
    """Bring the candidates' rivals up to date. O(candidates), and O(candidates) for each that moved."""
    n = s.numbers
    now = n[CLOCK]
    s.work[0] = 0
    for at in range(n[CANDIDATES]):
        one = s.candidates[at]
        rival = s.rival[one]
        if rival >= 0 and (s.moved[rival] == now or s.stirred[one] == now):
            s.work[0] += 1
            if s.dominator[rival] == FREE or not dominates_at(s.points, rival, s.points, one):
                _settle(s, one, _dominating(s, one))
        elif rival < 0 and s.stirred[one] == now:
            _settle(s, one, _dominating(s, one))
    _keep_touched(s)
    if n[TOUCHED]:
        _fill(s, n[TOUCHED])
        if n[FILLED]:
            _outdone(s)
        _outdone_from(s, n[FILLED])
    n[SKY] += s.work[0]
    n[SEEN] += n[CANDIDATES]


@njit(cache=True, _nrt=False)
def post(s: State, patience: int) -> None:
    """Hang candidates that have been dominated for so many snapshots on their rivals. O(candidates)."""
    n = s.numbers
    now = n[CLOCK]
    at = 0
    while at < n[CANDIDATES]:
        one = s.candidates[at]
        rival = s.rival[one]
        if rival >= 0 and now - s.since[one] + 1 >= patience:
            _drop_candidate(s, one)
            n[POST] += 1
            if not dominates_at(s.corners, rival, s.points, one):
                _cut(s, rival, one)
            _hang(s, one, rival)
            n[DEMOTED] += 1
        else:
            at += 1


@njit(cache=True, _nrt=False)
def tell(s: State, moment: int, moves: Integers, told: int) -> int:
    """Write down who has entered and left since it was last told, after `told` lines; how many lines there are."""
    for at in range(s.numbers[UNSURE]):
        one = s.unsure[at]
        inside = s.dominator[one] == NOBODY and s.rival[one] < 0
        if inside != (s.shown[one] != 0):
            moves[0, told] = moment
            moves[1, told] = 1 if inside else -1
            moves[2, told] = one
            s.shown[one] = 1 if inside else 0
            told += 1
    return told


@njit(cache=True, _nrt=False)
def due(s: State) -> bool:
    """Whether the cells are to be cut, or the bitmaps need more room, before the next snapshot."""
    n = s.numbers
    old = n[CODED] == 0 or n[CLOCK] - n[CODED] >= RECUT
    return MANY <= n[CANDIDATES] <= MOST and (old or not fits(s))


@njit(cache=True, nogil=True, _nrt=False)
def replay(
    s: State,
    slots: Integers,
    rows: Floats,
    gone: np.ndarray,
    cuts: Integers,
    begin: int,
    patience: int,
    moves: Integers,
) -> tuple[int, int]:
    """Play the snapshots from number `begin` on; snapshot i has the updates [cuts[i], cuts[i + 1]).

    The number of the next snapshot, and how many moves there are. It stops early where the moves might find no room,
    and where the cells are due to be cut.
    """
    told = 0
    i = begin
    while i < cuts.shape[0] - 1:
        n = s.numbers
        size = cuts[i + 1] - cuts[i]
        if told + n[CANDIDATES] + n[OBJECTS] + size > moves.shape[1] or due(s):
            break
        pre(s, slots, rows, gone, cuts[i], cuts[i + 1])
        sky(s)
        post(s, patience)
        told = tell(s, i, moves, told)
        i += 1
    return i, told
