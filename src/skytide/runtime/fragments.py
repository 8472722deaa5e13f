"""Objects in fragments in simulation over tables: rows that name sites, objects, times and values in, changes out.

What `skytide fragments` runs. A row is the new local vector of one object at one site. Rows of one time are one
instant: sites see them in their order, and what changes is said of all of them together. What is sent for the first
instant is the initialisation.

`by` columns split objects into groups that do not compete. A group is a query of its own, with a coordinator of its
own; a site has a part in each whose objects it has. An object belongs to the group that its last row names: when that
is another one, it leaves the old group at all its sites and comes to the new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from skytide.errors import InputError
from skytide.model import Changes, Floats, Integers, MissingPolicy, Preference
from skytide.monitors.snapshots.snapshots import Standing
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import Kind
from skytide.runtime.fragmented import FragmentSimulation
from skytide.runtime.instants import Instants, Moves
from skytide.tables import Table

ONE, SITE = 0, 1
"""The roles of a row's names: the object's, the site's."""


class _Answer(NamedTuple):
    """The objects that came and went in an instant, of which some have no function value."""

    key: int
    came: set[int]
    went: set[int]
    undefined: list[int]


class Fragmented(Instants):
    """A simulation whose sites and objects have names and whose updates have times.

    >>> monitor = Fragmented(Functions(["x"], []), "pivot")
    >>> rows = {"x": [4.0, 2.0, 0.0, None]}
    >>> for change in monitor.extend(rows, times=[1, 1, 2, 3], ids=["a", "b", "a", "a"], sites=["s", "s", "t", "t"]):
    ...     print(*change)
    1 + b
    2 + a
    >>> for change in monitor.advance(3):
    ...     print(*change)
    3 - a
    """

    EMPTY = "a row without any value takes the site out"

    def __init__(
        self,
        functions: Functions,
        method: str = "auto",
        *,
        by: tuple[str, ...] = (),
        nulls: MissingPolicy = "error",
        everything: bool = False,
        **options: Any,
    ) -> None:
        """`everything`: also count what sites would send that tell every change of a local vector."""
        super().__init__(Preference(minimize=functions.columns, by=by), nulls, "id", "site")
        self.functions = functions
        # Only at the end of an instant it is an error that a function has no value: until then, leave the object out.
        self._options = {"method": method, "nulls": "drop" if nulls == "error" else nulls, **options}
        self._parts: dict[int, _Part] = {}
        self._homes = _Homes() if by else None
        self._everything = _Everything() if everything else None
        self._started = False
        self._part(0)  # so that there is something to sum up before the first row

    def extend(self, rows: Table, times: Any, ids: Any, sites: Any) -> Changes:
        """Take rows; the changes of the instants that they complete, and the positions of rows not taken.

        After an error in what rows make of an object, rather than in the rows, the monitor cannot be used any more.
        """
        return self._extended(rows, times, ids, sites)

    def _part(self, group: int) -> _Part:
        if group not in self._parts:
            self._parts[group] = _Part(FragmentSimulation(self.functions, **self._options))
        return self._parts[group]

    def _instants(self, moves: Moves) -> Changes:
        first = 0 if self._started else int(np.searchsorted(moves.keys, moves.keys[0], side="right"))
        self._started = True
        if self._homes is not None:
            start, moves = int(moves.keys[0]), self._homes.moved(moves)
            first = int(np.searchsorted(moves.keys, start, side="right")) if first else 0
        if self._everything is not None:
            self._everything.count(moves, first)
        return self._netted(
            [
                answer
                for group in np.unique(moves.groups).tolist()
                for answer in self._answers(moves, moves.groups == group, first, group)
            ]
        )

    def _answers(self, moves: Moves, mine: Any, first: int, group: int) -> Iterator[_Answer]:
        """The answers of one group: those of the first instant of all, then of the others."""
        part, initial = self._part(group), np.arange(len(mine)) < first
        if (mine & initial).any():
            yield from part.start(moves.pick(mine & initial))
        if (mine & ~initial).any():
            yield from part.go_on(moves.pick(mine & ~initial))

    def _netted(self, answers: list[_Answer]) -> Changes:
        """The changes of all groups; who leaves one and enters another in one instant does not change."""
        signs: dict[tuple[int, int], int] = {}
        for answer in answers:
            if answer.undefined and self.nulls == "error":
                self._refuse(answer)
            for sign, whom in ((-1, answer.went), (1, answer.came)):
                for one in whom:
                    signs[answer.key, one] = signs.get((answer.key, one), 0) + sign
        found: Integers = np.array([(*key, sign) for key, sign in signs.items() if sign], np.int64).reshape(-1, 3)
        return self._changes(found[:, 0], found[:, 2], found[:, 1])

    def _refuse(self, answer: _Answer) -> None:
        name = self._names[ONE].ids(np.array(answer.undefined[:1]))[0]
        time = self._clock.times(np.array([answer.key]))[0]
        raise InputError(
            f"is an object of which a function has no value at time {time}",
            value=name.item() if isinstance(name, np.generic) else name,
            remedy="choose the policy drop or worst for missing values, or another expression",
        )

    @property
    def told_preference(self) -> Preference:
        """The preference of `standing`: the functions, in their texts."""
        return Preference(self.functions.minimize, self.functions.maximize, self.preference.by)

    def standing(self, ids: Any = None) -> Standing:
        """Those of these objects, or of all, that some site has; their functions and groups. O(ids groups sites)."""
        names = self._names[ONE]
        numbers = range(len(names)) if ids is None else [one for one in map(names.number, ids) if one is not None]
        found = [
            (number, values, group)
            for number in numbers
            for group, part in self._parts.items()
            if (values := part.values(number)) is not None
        ]
        matrix = np.array([values for _, values, _ in found]).reshape(-1, self.functions.k)
        groups = [self._groups.keys.get(group, ()) for _, _, group in found]
        return Standing(names.ids(np.array([number for number, _, _ in found], np.int64)), matrix, groups)

    def ledger(self) -> dict[str, Any]:
        """What was sent so far, as a board shows it; with `everything` beside how many messages that takes."""
        told: dict[Kind, list[tuple[int, int]]] = {}
        for part in self._parts.values():
            for kind, sent in part.simulation.kinds().items():
                told.setdefault(kind, []).append(sent)
        kinds: list[dict[str, Any]] = [
            {
                "way": "up" if kind.up else "down",
                "kind": kind.name.lower(),
                "messages": sum(count for count, _ in told[kind]),
                "bytes": sum(size for _, size in told[kind]),
            }
            for kind in sorted(told)
        ]
        sums = {name: sum(one[name] for one in kinds) for name in ("messages", "bytes")}
        naive = None if self._everything is None else self._everything.messages
        return {**sums, "naive_messages": naive, "naive_bytes": None, "kinds": kinds}

    def cost(self) -> dict[str, Any]:
        """What was sent after the first instant, by kind too, and what was sent in it; sums over all groups."""
        found = _summed([part.simulation.cost() for part in self._parts.values()])
        kinds = {kind: found["kinds"].get(kind.name.lower(), (0, 0))[0] for kind in Kind}
        ways = {"up": True, "down": False}
        found["kinds"] = {
            way: {kind.name.lower(): told for kind, told in kinds.items() if kind.up == up and told}
            for way, up in ways.items()
        }
        return {**found, "violations": kinds[Kind.VIOLATION]}


class _Part:
    """One group: its simulation, and which numbers its objects and sites have there."""

    def __init__(self, simulation: FragmentSimulation) -> None:
        self.simulation = simulation
        self._objects, self._sites = _Numbers(), _Numbers()
        self._members: set[int] = set()

    def start(self, moves: Moves) -> Iterator[_Answer]:
        """Run the very first instant, all at once: of several rows of one object at one site the last one counts."""
        _, first = np.unique(moves.who[::-1], axis=0, return_index=True)
        last = moves.pick(np.sort(len(moves.keys) - 1 - first))
        last = last.pick(~last.gone)
        if len(last.keys):
            self.simulation.run(0, *self._numbered(last))
            yield self._answer(int(last.keys[0]))

    def go_on(self, moves: Moves) -> Iterator[_Answer]:
        """Run instants, row by row; an answer for each of which the coordinator heard."""
        pending: _Answer | None = None
        steps = self.simulation.steps(1, *self._numbered(moves), moves.gone)
        for done in steps:
            key = int(moves.keys[done - 1])
            if pending is not None and pending.key < key:
                yield pending
                pending = None
            pending = self._joined(pending, self._answer(key))
        if pending is not None:
            yield pending

    def values(self, number: int) -> Floats | None:
        """The functions of an object; None where it is not in the group."""
        small = self._objects.known(number)
        return None if small is None else self.simulation.values(small)

    def _numbered(self, moves: Moves) -> tuple[Integers, Integers, Floats]:
        sites, objects = self._sites.of(moves.who[:, SITE]), self._objects.of(moves.who[:, ONE])
        return sites, objects, moves.values

    def _answer(self, key: int) -> _Answer:
        members = set(self._objects.names(self.simulation.skyline()))
        before, self._members = self._members, members
        return _Answer(key, members - before, before - members, self._objects.names(self.simulation.undefined()))

    def _joined(self, earlier: _Answer | None, later: _Answer) -> _Answer:
        """Two answers of one instant as one."""
        if earlier is None:
            return later
        came = (earlier.came - later.went) | (later.came - earlier.went)
        went = (earlier.went - later.came) | (later.went - earlier.came)
        return _Answer(later.key, came, went, later.undefined)


class _Numbers:
    """Small numbers for numbers: of all objects or sites, a group has some."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._names: list[int] = []

    def of(self, numbers: Integers) -> Integers:
        """The small numbers, new ones where there are none yet. O(n log n)."""
        distinct, places = np.unique(numbers, return_inverse=True)
        found = [self._known.setdefault(one, len(self._known)) for one in distinct.tolist()]
        self._names += list(self._known)[len(self._names) :]
        return np.array(found, np.int64)[places]

    def known(self, number: int) -> int | None:
        """The small number of one, if it has one. O(1)."""
        return self._known.get(number)

    def names(self, numbers: Integers) -> list[int]:
        """The numbers of small numbers. O(n)."""
        return [self._names[number] for number in numbers.tolist()]


class _Everything:
    """How many messages sites send that tell every change of a local vector."""

    def __init__(self) -> None:
        self.messages = 0
        self._known: dict[tuple[int, int, int], bytes] = {}

    def count(self, moves: Moves, first: int) -> None:
        """Take rows, of which so many are the initialisation. O(rows)."""
        for row, (one, site) in enumerate(moves.who.tolist()):
            key, before = (int(moves.groups[row]), one, site), self._known.get((int(moves.groups[row]), one, site))
            now = None if moves.gone[row] else (moves.values[row] + 0.0).tobytes()  # there is one zero
            if now is None:
                self._known.pop(key, None)
            else:
                self._known[key] = now
            self.messages += row >= first and now != before


class _Homes:
    """The group of each object, and what it is at its sites: for when it changes its group."""

    def __init__(self) -> None:
        self._group: dict[int, int] = {}
        self._local: dict[int, dict[int, Floats]] = {}

    def moved(self, moves: Moves) -> Moves:
        """The rows with the groups that they concern, and rows for what a change of group makes of an object."""
        rows: list[tuple[int, int, Any, bool, int, int]] = []
        empty = np.full(moves.values.shape[1], np.nan)
        for row in range(len(moves.keys)):
            (one, site), gone = moves.who[row].tolist(), bool(moves.gone[row])
            group, key = int(moves.groups[row]), int(moves.keys[row])
            local = self._local.setdefault(one, {})
            home = self._group.get(one, group)
            if gone:
                local.pop(site, None)
                rows.append((one, site, empty, True, home, key))
                continue
            if home != group:
                rows += [(one, there, empty, True, home, key) for there in local]
                rows += [(one, there, local[there], False, group, key) for there in local if there != site]
            self._group[one], local[site] = group, moves.values[row]
            rows.append((one, site, moves.values[row], False, group, key))
        who, values = [row[:2] for row in rows], [row[2] for row in rows]
        ends = np.array([row[3] for row in rows])
        groups, keys = (np.array([row[place] for row in rows], np.int64) for place in (4, 5))
        return Moves(np.array(who, np.int64), np.array(values), ends, groups, keys)


def _summed(costs: list[dict[str, Any]]) -> dict[str, Any]:
    """The sums of what is under the same names."""
    names = dict.fromkeys(name for cost in costs for name in cost)
    found: dict[str, Any] = {}
    for name in names:
        parts = [cost[name] for cost in costs if name in cost]
        if isinstance(parts[0], dict):
            found[name] = _summed(parts)
        elif isinstance(parts[0], tuple):
            found[name] = tuple(map(sum, zip(*parts, strict=True)))
        else:
            found[name] = sum(parts)
    return found
