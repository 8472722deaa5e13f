"""Who competes at each instant of a run, and what the answer is then, by definition.

A population is moved from instant to instant. It says which groups changed, and what the answer of a group is: where a
group did not change, neither did its answer. Members of answers are ids, or pairs of an id and a threshold.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from skytide.cli._verify.definition import SLACK, Members, Places, most_probable, probabilities, reaching, undominated
from skytide.cli._verify.rows import FAR, Question, Rows
from skytide.cli._verify.witnesses import Witnesses
from skytide.errors import InputError
from skytide.expressions import parse
from skytide.model import Floats, Integers
from skytide.reference.batch import ABOVE_SEAM, SEAM
from skytide.reference.functional import Averages, Local, expression
from skytide.reference.snapshots import apply, missing


class Population(Protocol):
    """Who competes, from instant to instant."""

    instants: npt.NDArray[Any]
    """The closed ones, in order; between them nothing changes."""

    def step(self, number: int) -> Iterable[Hashable]:
        """Go on to the instant of this number, which follows the last one; the groups that change."""
        ...

    def answer(self, group: Hashable) -> Members:
        """The answer of a group now."""
        ...


def signs_of(question: Question) -> Floats:
    """1 for what is minimised, -1 for what is maximised."""
    return np.array([1.0] * len(question.minimize) + [-1.0] * len(question.maximize))


def oriented(question: Question, values: Floats) -> Floats:
    """Values of which smaller ones are better; two that the policy `worst` holds for equal are."""
    points = values * signs_of(question)
    return np.where(points == ABOVE_SEAM, SEAM, points) if question.nulls == "worst" else points


def by_group(groups: Integers) -> dict[Hashable, Integers]:
    """The places of the members of each group, in their order. O(n log n), however many groups there are.

    >>> {group: places.tolist() for group, places in by_group(np.array([7, 5, 7])).items()}
    {5: [1], 7: [0, 2]}
    """
    order = np.argsort(groups, kind="stable")
    names, first = np.unique(groups[order], return_index=True)
    return dict(zip(names.tolist(), np.split(order, first)[1:], strict=True))


class Living:
    """The rows, or objects, of a sliding window: each lives on [start, end)."""

    def __init__(self, question: Question, rows: Rows) -> None:
        self._points, self._ids = oriented(question, rows.values), rows.ids
        self._elements(rows)
        members = by_group(self._groups)
        count = question.options.get("count")
        if count is not None:
            self.starts = np.arange(1, len(self._first) + 1)
            self.ends = np.full(len(self._first), FAR)
            for places in members.values():  # a row ends with the row of its group that comes `count` later, if ever
                self.ends[places[: -int(count)]] = places[int(count) :] + 1
            last: Any = len(self._first)
        else:
            assert rows.times is not None
            self.starts = rows.times[self._first]
            self.ends = rows.unit.later(self.starts, rows.unit.length(question.length("duration")))
            last = max([*self.starts.tolist(), *([] if rows.until is None else [rows.until])], default=0)
        times = np.concatenate((self.starts, self.ends))
        order = np.argsort(times, kind="stable")
        self._times, self._changed = times[order], np.concatenate((self._groups, self._groups))[order]
        self.instants = np.unique(times[times <= last])
        # In the order of their starts, which is that of their ends.
        self._members = {name: one[np.argsort(self.starts[one], kind="stable")] for name, one in members.items()}
        self._spans = {group: (self.starts[mine], self.ends[mine]) for group, mine in self._members.items()}
        self._witnesses: dict[Hashable, Witnesses] = {}
        self._seen = 0
        self.now: Any = None

    def _elements(self, rows: Rows) -> None:
        runs = rows.beside.get("runs")
        new = np.ones(len(rows.ids), np.bool_)
        if runs is not None:
            new[1:] = runs[1:] != runs[:-1]
        self._first = np.flatnonzero(new)
        self._stop = np.append(self._first[1:], len(rows.ids))
        self._groups = rows.groups[self._first]

    def unusable(self) -> str:
        """Why the ids cannot be used: two that live at one time have the same; or nothing. O(elements)."""
        free: dict[Any, Any] = {}
        for one in np.argsort(self.starts, kind="stable").tolist():
            name = self._ids[self._first[one]]
            if name in free and self.starts[one] < free[name]:
                return f"{name} is the id of two that live at the same time"
            free[name] = self.ends[one]
        return ""

    def step(self, number: int) -> Iterable[Hashable]:
        """Who begins and ends to live from the last instant on."""
        self.now = self.instants[number]
        upto = int(np.searchsorted(self._times, self.now, side="right"))
        before, self._seen = self._seen, upto
        return set(self._changed[before:upto].tolist())

    def _span(self, group: Hashable) -> tuple[int, int]:
        """Which of a group's elements live now: from the first place to before the second."""
        starts, ends = self._spans[group]
        return int(np.searchsorted(ends, self.now, side="right")), int(np.searchsorted(starts, self.now, side="right"))

    def _alive(self, group: Hashable) -> Integers:
        return self._members[group][slice(*self._span(group))]

    def answer(self, group: Hashable) -> Members:
        """The skyline of what lives."""
        mine = self._members[group]
        if group not in self._witnesses:
            self._witnesses[group] = Witnesses(self._points[self._first[mine]])
        found = mine[self._witnesses[group].skyline(*self._span(group))]
        return Members({self._ids[self._first[one]] for one in found.tolist()}, set())


class Uncertain(Living):
    """Rows or objects that exist with a probability."""

    def __init__(self, question: Question, rows: Rows) -> None:
        super().__init__(question, rows)
        self._chances = rows.beside["chances"]
        self._exact = "runs" not in rows.beside
        self.slack = 0.0 if self._exact else SLACK
        self._thresholds = sorted(set(question.thresholds))
        self._top = question.top

    def _places(self, alive: Integers) -> Places:
        spans = [np.arange(self._first[one], self._stop[one]) for one in alive.tolist()]
        rows = np.concatenate(spans) if spans else np.zeros(0, np.int64)
        owner = np.repeat(np.arange(len(alive)), [len(span) for span in spans])
        return Places(self._points[rows], self._chances[rows], owner)

    def answer(self, group: Hashable) -> Members:
        """Who reaches which threshold."""
        members = Members(set(), set())
        alive = self._alive(group)
        places = self._places(alive)
        chances = probabilities(places, self._thresholds[0])
        for threshold in self._thresholds if self._top is None else self._thresholds[:1]:
            found = reaching(places, chances, threshold, self._exact)
            if self._top is not None:
                found = most_probable(chances, found, self._top, self.slack)
            for whom, into in zip(found, members, strict=True):
                into.update((self._ids[self._first[alive[one]]], threshold) for one in whom.tolist())
        return members

    def last(self) -> tuple[set[Any], set[Any], dict[Any, float]]:
        """Who must and who may reach the smallest threshold now, and the probabilities by id."""
        must, may, found = set[Any](), set[Any](), dict[Any, float]()
        for group in self._members:
            members, alive = self.answer(group), self._alive(group)
            for into, whom in zip((must, may), members, strict=True):
                into.update(one for one, threshold in whom if threshold == self._thresholds[0])
            chances = probabilities(self._places(alive), self._thresholds[0])
            found |= {self._ids[self._first[one]]: float(chances[at]) for at, one in enumerate(alive.tolist())}
        return must, may, found


class Updates:
    """Objects that rows set, add to, multiply, average and delete; `monitor` is the case of `set`."""

    def __init__(self, question: Question, rows: Rows) -> None:
        assert rows.times is not None
        self._operation, self._nulls = question.options.get("op", "set"), question.nulls
        self._question, self._width = question, len(question.columns)
        order = np.argsort(rows.times, kind="stable")
        self._values, self._ids = rows.values[order].tolist(), [rows.ids[row] for row in order.tolist()]
        self._names = rows.groups[order].tolist()
        self.instants, first = np.unique(rows.times[order], return_index=True)
        self._cuts = [*first.tolist(), len(order)]
        self._objects: dict[Any, Any] = {}
        self._home: dict[Any, int] = {}
        self._members: dict[Hashable, dict[Any, Any]] = {}
        self.taken = np.zeros(len(self.instants), np.bool_)
        """Which of the instants that have passed are snapshots: at least one row was taken."""
        self.spoiled: list[tuple[Any, Any]] = []
        """Times and ids of the rows that were left out so far because their result is not a number."""

    def unusable(self) -> str:
        """Why the rows cannot be used: a result is not a number, and the policy `error` refuses that; or nothing.

        Applies all rows, so that a population which was asked is used up.
        """
        if self._nulls != "error" or self._operation == "set":
            return ""
        try:
            for number in range(len(self.instants)):
                self.step(number)
        except InputError:
            return "the result of an update is not a number"
        return ""

    def step(self, number: int) -> Iterable[Hashable]:
        """Apply the rows of an instant in their order."""
        changed = set()
        for place in range(self._cuts[number], self._cuts[number + 1]):
            one, row = self._ids[place], self._values[place]
            if not apply(self._objects, one, row, self._operation, self._nulls):
                self.spoiled.append((self.instants[number].item(), one))
                continue
            self.taken[number] = True
            before = self._home.get(one, self._names[place])
            if not all(missing(value) for value in row):
                self._home[one] = self._names[place]
            after = self._home.get(one, before)
            self._members.setdefault(before, {}).pop(one, None)
            if one in self._objects:
                self._members.setdefault(after, {})[one] = self._objects[one]
            changed |= {before, after}
        return changed

    def answer(self, group: Hashable) -> Members:
        """The skyline of a group's objects."""
        members = self._members.get(group, {})
        points = np.array(list(members.values()), np.float64).reshape(len(members), self._width)
        names = list(members)
        return Members({names[place] for place in undominated(oriented(self._question, points)).tolist()}, set())


class Fragments:
    """Objects in fragments: functions of the averages over their sites."""

    def __init__(self, question: Question, rows: Rows) -> None:
        assert rows.times is not None
        self._question, self._nulls = question, question.nulls
        self._functions = [expression(parse(text, question.known)) for text in (*question.minimize, *question.maximize)]
        order = np.argsort(rows.times, kind="stable")
        self._vectors = [dict(zip(question.columns, row, strict=True)) for row in rows.values[order].tolist()]
        self._ids = [rows.ids[row] for row in order.tolist()]
        self._sites = [rows.beside["sites"][row] for row in order.tolist()]
        self._names = rows.groups[order].tolist()
        self.instants, first = np.unique(rows.times[order], return_index=True)
        self._cuts = [*first.tolist(), len(order)]
        self._local: dict[Any, dict[Any, Local]] = {}
        self._home: dict[Any, int] = {}
        self._members: dict[Hashable, set[Any]] = {}
        self._known: dict[Any, list[float]] = {}

    def unusable(self) -> str:
        """Why the rows cannot be used: a function has no value, and the policy `error` refuses that; or nothing.

        Applies all rows, so that a population which was asked is used up.
        """
        if self._nulls != "error":
            return ""
        for number in range(len(self.instants)):
            self.step(number)
            touched = set(self._ids[self._cuts[number] : self._cuts[number + 1]])
            if not all(self._defined(one) for one in touched if self._local.get(one)):
                return "an object has a function without a value"
        return ""

    def step(self, number: int) -> Iterable[Hashable]:
        """Give sites their new vectors."""
        changed = set()
        for place in range(self._cuts[number], self._cuts[number + 1]):
            one, vector = self._ids[place], self._vectors[place]
            before = self._home.get(one, self._names[place])
            if all(missing(value) for value in vector.values()):
                self._local.get(one, {}).pop(self._sites[place], None)
            else:
                self._local.setdefault(one, {})[self._sites[place]] = vector
                self._home[one] = self._names[place]
            after = self._home.get(one, before)
            self._known.pop(one, None)
            self._members.setdefault(before, set()).discard(one)
            if self._local.get(one):
                self._members.setdefault(after, set()).add(one)
            changed |= {before, after}
        return changed

    def answer(self, group: Hashable) -> Members:
        """The skyline of the functions of a group's objects."""
        names = [one for one in self._members.get(group, ()) if self._nulls == "worst" or self._defined(one)]
        points = np.array([self._value(one) for one in names]).reshape(len(names), len(self._functions))
        return Members({names[place] for place in undominated(oriented(self._question, points)).tolist()}, set())

    def _defined(self, one: Any) -> bool:
        return not any(missing(value) for value in self._value(one))

    def _value(self, one: Any) -> list[float]:
        if one not in self._known:
            averages = Averages(list(self._local[one].values()))
            self._known[one] = [function(averages) for function in self._functions]
        return self._known[one]


class Counted:
    """Who is in enough of the last skylines; the skylines are those of a run that was itself compared.

    With `sampled` only some skylines count, as docs/filtering.md says; then C of T must reach theta s / min(t, s).
    """

    def __init__(
        self, instants: npt.NDArray[Any], skylines: Iterable[set[Any]], theta: Fraction, over: int, sampled: Any = None
    ) -> None:
        self.instants = instants
        self._skylines, self._theta, self._over = iter(skylines), theta, over
        self._sampled = sampled or (lambda number: True)
        self._counts: Counter[Any] = Counter()
        self._kept: deque[tuple[int, frozenset[Any]]] = deque()
        self._seen = 0

    def step(self, number: int) -> Iterable[Hashable]:
        """Count the skyline of an instant, and forget the one that is too old."""
        self.count(next(self._skylines))
        return (None,)

    def count(self, skyline: set[Any]) -> None:
        """Count one more skyline."""
        number, self._seen = self._seen, self._seen + 1
        while self._kept and self._kept[0][0] <= number - self._over:
            self._counts.subtract(self._kept.popleft()[1])
        if self._sampled(number):
            self._kept.append((number, frozenset(skyline)))
            self._counts.update(skyline)
        self._counts = +self._counts if number % 64 == 0 else self._counts

    def answer(self, group: Hashable) -> Members:
        """Who is at the bar or above."""
        if not self._kept:
            return Members(set(), set())
        bar = math.ceil(self._theta * self._over * len(self._kept) / min(self._seen, self._over))
        return Members({one for one, count in self._counts.items() if count and count >= bar}, set())


class CountedByGroup:
    """Who is in enough of the last skylines of a group, as Spark counts: over the times at which the group has rows.

    The skylines are those of the definition. A time whose updates are all left out is no snapshot.
    """

    def __init__(self, updates: Updates, theta: Fraction, over: int, sampled: Any = None) -> None:
        self.instants = updates.instants
        self.updates = updates
        self._settings = theta, over, sampled
        self._counts: dict[Hashable, Counted] = {}

    def step(self, number: int) -> Iterable[Hashable]:
        """Count the skylines of the groups of which a row was taken."""
        seen = set(self.updates.step(number))
        for group in seen:
            if group not in self._counts:
                self._counts[group] = Counted(self.instants, (), *self._settings)
            self._counts[group].count(self.updates.answer(group).must)
        return seen

    def answer(self, group: Hashable) -> Members:
        """Who is at the bar of the group, or above."""
        return self._counts[group].answer(group)
