"""Why a row is not in the skyline, and the smallest change that would bring it in; or how far it may worsen.

Below, smaller is better in every column, x is the row, and S are the best of its dominators: those that no other one
dominates. x moved to x' is in the skyline if and only if every y of S is beaten somewhere, x'_i < y_i, or x' equals one
of them. For: a dominator of x' that improves on x dominates x too, a worsened column never helps, and whoever beats or
equals the best dominators is dominated by none of the others.

One column alone: it must be better than the best value of S there; as good as it is enough where those who have that
value equal x in all other columns. This is exact. Several columns: a best-first search over the columns in which each
y is beaten. Its cost is the sum of the changes, each divided by the range of its column; a value that is infinite or
missing counts as one range beyond the finite ones. The search ends with a proof that nothing cheaper exists, or, when
its budget is spent, with the best move it knows and `exact=False`. Either way the move is checked against all rows.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.batch import skyline
from skytide.errors import InputError, OptionError
from skytide.model import Booleans, Column, Floats, Integers, MissingPolicy, Preference
from skytide.tables import Table, group_codes, numbers, open_table, oriented, row_count

MEASURE = "the sum of the changes, each divided by the range of its column"
SEARCH_WORK = 2 * 10**8
"""The search compares at most so many values before it settles for the best move known."""


@dataclass(frozen=True)
class Bound:
    """A column's limit: the value that row `like` has, which must be bettered if `strict`, else at least equalled.

    For slack it is read the other way: the column may worsen up to this value, if `strict` not quite to it.
    `value` is NaN where row `like` has no value: then any value is better.
    """

    column: Column
    value: float
    like: int
    strict: bool


@dataclass(frozen=True)
class Move:
    """A change of some columns that brings the row in: its cost by `MEASURE`, and whether that is proven the least."""

    bounds: tuple[Bound, ...]
    cost: float
    exact: bool


@dataclass(frozen=True)
class Explanation:
    """What `explain` found. Rows are positions from 0.

    Outside the skyline: `dominators`, `alone` (for each column the bound that it must reach on its own; None where no
    value would do) and `smallest`. Inside: `slack` (for each column how far it may worsen; None where there is no
    limit). In both cases `dominated` is the number of rows that it dominates.
    """

    row: int
    dominators: Integers
    dominated: int
    alone: tuple[Bound | None, ...] = ()
    smallest: Move | None = None
    slack: tuple[Bound | None, ...] = ()
    among: tuple[Any, Preference] | None = field(default=None, repr=False, compare=False)
    """The table and the preference that were asked about."""

    @property
    def inside(self) -> bool:
        """Whether the row is in the skyline."""
        return len(self.dominators) == 0

    def plot(self, path: str | Path | None = None, *, name: str | None = None) -> Any:
        """A matplotlib figure: the row, its dominators, and where the smallest change would put it. O(n).

        With `path` it is also written there: .png, .svg or .pdf. `name` is what the row is called. Needs matplotlib.
        """
        from skytide.plots import Explained, Sample, explained

        if self.among is None:
            raise OptionError("the explanation does not know its table", remedy="let explain() make it")
        table, preference = self.among
        values = np.column_stack([numbers(table, column) for column in preference.names])
        target = None
        if self.smallest is not None:
            target = values[self.row].copy()
            for bound in self.smallest.bounds:
                target[preference.names.index(bound.column)] = bound.value
        rivals = values
        if preference.by:
            codes, _ = group_codes(table, tuple(preference.by))
            rivals = values[codes == codes[self.row]]
        called = str(self.row + 1) if name is None else name
        shown = Explained(preference, called, values[self.row], values[self.dominators], Sample.of(rivals), target)
        return explained(shown, path)


def explain(data: Table, preference: Preference, row: int, *, nulls: MissingPolicy = "error") -> Explanation:
    """Who dominates the row at this position, and what would bring it in. O(n d), and the search over S.

    >>> cars = {"price": [20, 25, 30], "mpg": [30, 40, 38]}
    >>> found = explain(cars, Preference(minimize=["price"], maximize=["mpg"]), 2)
    >>> found.dominators.tolist(), [(bound.value, bound.strict) for bound in found.alone]
    ([1], [(25.0, True), (40.0, True)])
    >>> [(bound.column, bound.value, bound.strict) for bound in found.smallest.bounds]
    [('mpg', 40.0, True)]
    """
    table = open_table(data)
    if not 0 <= row < row_count(table):
        raise InputError("there is no row at this position", value=row, remedy=f"rows are 0 to {row_count(table) - 1}")
    places, values = _rivals(table, preference, nulls)
    mine = int(np.searchsorted(places, row))
    if mine == len(places) or places[mine] != row:
        raise InputError(
            "the row has a missing value, and the policy drop leaves it out",
            row=row + 1,
            remedy="choose the policy worst, or fill the value in",
        )
    if preference.by:
        codes, _ = group_codes(table, tuple(preference.by))
        same = codes[places] == codes[row]
        places, values, mine = places[same], values[same], int(np.count_nonzero(same[:mine]))
    case = _Case(table, preference, places, values, mine)
    found = case.outside() if case.above.any() else case.inside()
    return replace(found, among=(table, preference))


def _rivals(table: Any, preference: Preference, nulls: MissingPolicy) -> tuple[Integers, Floats]:
    found = oriented(table, preference, nulls)
    places = np.arange(row_count(table)) if found.rows is None else found.rows
    return places, found.values


def dominators_of(values: Floats, point: Floats) -> Booleans:
    """Which rows of a matrix dominate a point. O(n d)."""
    return np.asarray((values <= point).all(axis=1) & (values < point).any(axis=1))


class _Case:
    """One row among the rows that compete with it."""

    def __init__(self, table: Any, preference: Preference, places: Integers, values: Floats, mine: int) -> None:
        self.table, self.names = table, preference.names
        self.places, self.values = places, values
        self.mine, self.point = mine, values[mine]
        self.above = dominators_of(values, self.point)
        self.below = int(dominators_of(-values, -self.point).sum())

    def bound(self, column: int, rival: int, strict: bool) -> Bound:
        place = int(self.places[rival])
        return Bound(self.names[column], float(numbers(self.table, self.names[column])[place]), place, strict)

    # -- in the skyline ------------------------------------------------------------------------------------------------

    def inside(self) -> Explanation:
        slack = tuple(self._slack(column) for column in range(len(self.names)))
        return Explanation(int(self.places[self.mine]), self.places[:0], self.below, slack=slack)

    def _slack(self, column: int) -> Bound | None:
        """The best value of those who are as good in all other columns; to equal them in all is still allowed."""
        others = np.arange(len(self.names)) != column
        near = (self.values[:, others] <= self.point[others]).all(axis=1)
        near[self.mine] = False
        rivals = np.flatnonzero(near)
        if not len(rivals):
            return None
        limits = self.values[rivals, column]
        first = rivals[limits == limits.min()]
        equal = (self.values[np.ix_(first, others)] == self.point[others]).all()
        return self.bound(column, int(first[0]), strict=not equal)

    # -- outside -------------------------------------------------------------------------------------------------------

    def outside(self) -> Explanation:
        above = np.flatnonzero(self.above)
        best = above[skyline(np.ascontiguousarray(self.values[above]))]
        alone = tuple(self._alone(column, best) for column in range(len(self.names)))
        return Explanation(
            int(self.places[self.mine]),
            self.places[above],
            self.below,
            alone=alone,
            smallest=self._smallest(best),
        )

    def _alone(self, column: int, best: Integers) -> Bound | None:
        limits = self.values[best, column]
        first = best[limits == limits.min()]
        others = np.arange(len(self.names)) != column
        equal = bool((self.values[np.ix_(first, others)] == self.point[others]).all())
        if np.isneginf(limits.min()) and not equal:
            return None
        return self.bound(column, int(first[0]), strict=not equal)

    def _smallest(self, best: Integers) -> Move:
        chosen, cost, exact = _search(self.values[best], self.point, _scaled(self.values, self.mine, best))
        target = self.point.copy()
        for column, rival in chosen.items():
            target[column] = self.values[best[rival], column]
        strict = _strict_columns(self.values[best], target, set(chosen))
        rivals = {column: int(best[rival]) for column, rival in chosen.items()}
        for column in strict - set(rivals):
            rivals[column] = self.mine
        moved = target.copy()
        for column in strict:
            moved[column] = np.nextafter(target[column], -np.inf)
        others = np.delete(self.values, self.mine, axis=0)
        assert not dominators_of(others, moved).any(), "the suggested change does not bring the row in"
        bounds = tuple(self.bound(column, rivals[column], column in strict) for column in sorted(rivals))
        return Move(bounds, cost, exact)


def _scaled(values: Floats, mine: int, best: Integers) -> tuple[Floats, Floats]:
    """The row and its best dominators in units of the column's range; halved first, or extremes would overflow."""
    point, rivals = values[mine] / 2, values[best] / 2
    for column in range(values.shape[1]):
        finite = values[:, column][np.isfinite(values[:, column])] / 2
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
        width = high - low or 1.0
        for one in (point[column : column + 1], rivals[:, column]):
            one[:] = np.where(np.isposinf(one), 2.0, np.where(np.isneginf(one), -1.0, (one - low) / width))
    return point, rivals


def _search(best: Floats, point: Floats, scaled: tuple[Floats, Floats]) -> tuple[dict[int, int], float, bool]:
    """The cheapest way to beat or equal the best dominators: for each column to change, whose value it must reach.

    A state says for each column whose value has been reached. A dominator is beaten where the state is at least as low
    as it, for the least step more makes it strict; not so at minus infinity, below which there is nothing. States come
    off the heap by cost plus what the dearest unbeaten dominator costs at least, so the first complete one is cheapest.
    """
    own, rivals = scaled
    bottomless = np.isneginf(best)
    equal = int(np.argmin((own - rivals).sum(axis=1)))
    known = ({i: equal for i in range(len(point)) if best[equal, i] < point[i]}, float((own - rivals[equal]).sum()))
    work = itertools.count(0, best.size)
    ticket = itertools.count()
    heap: list[tuple[float, int, float, tuple[int, ...]]] = [(0.0, next(ticket), 0.0, (-1,) * len(point))]
    seen: set[tuple[float, ...]] = set()
    while heap:
        least, _, cost, state = heapq.heappop(heap)
        if least >= known[1] or next(work) > SEARCH_WORK:
            return known[0], known[1], least >= known[1]
        reached = np.array([point[i] if who < 0 else best[who, i] for i, who in enumerate(state)])
        if tuple(reached) in seen:
            continue
        open_ = np.flatnonzero(((best < reached) | bottomless).all(axis=1))
        if not len(open_):
            return {i: who for i, who in enumerate(state) if who >= 0}, cost, True
        at = np.array([own[i] if who < 0 else rivals[who, i] for i, who in enumerate(state)])
        steps = np.where(bottomless[open_], np.inf, at - rivals[open_])
        dearest = int(np.argmax(steps.min(axis=1)))
        promised = cost + float(steps[dearest].min())
        if promised > least and heap and heap[0][0] < promised:
            heapq.heappush(heap, (promised, next(ticket), cost, state))
            continue
        seen.add(tuple(reached))
        for column in np.flatnonzero(np.isfinite(steps[dearest])).tolist():
            further = (*state[:column], int(open_[dearest]), *state[column + 1 :])
            spent = cost + max(0.0, float(steps[dearest, column]))
            if spent < known[1]:
                heapq.heappush(heap, (max(promised, spent), next(ticket), spent, further))
    return known[0], known[1], True


def _strict_columns(best: Floats, target: Floats, changed: set[int]) -> set[int]:
    """The columns that must be better than the target, not just as good; of those that change anyway if possible."""
    rivals = best[dominators_of(best, target)]
    ties: npt.NDArray[np.bool_] = (rivals == target) & ~np.isneginf(target)
    strict: set[int] = set()
    while len(ties):
        hits = ties.sum(axis=0)
        column = max(range(len(target)), key=lambda i: (i in changed and hits[i] > 0, hits[i]))
        strict.add(column)
        ties = ties[~ties[:, column]]
    return strict
