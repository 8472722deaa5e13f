"""Frequent skylines: who was in at least a share theta of the last `over` snapshots, and who stayed for how long.

After Zhang, Cheng, Papadias and Tung, "Minimizing the Communication Cost for Continuous Skyline Maintenance", SIGMOD
2009 (zhang09c): FSQW, several pairs of theta and `over` (there: s) at once, here computed in one place. Where we
differ: nothing is counted per member and snapshot (see `kernel.frequent`), theta is read as a decimal, and the share is
taken literally also before `over` snapshots have been seen. The stays are kept as well: who stays for long is what
udom14 asks skylines for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.errors import IdError, InputError, OptionError, OutputError, SkytideError, WindowError
from skytide.kernel.frequent import CROSSINGS, SLOPES, STEPS
from skytide.model import Changes, Integers
from skytide.monitors.frequent import stored
from skytide.monitors.frequent.changes import PairChanges
from skytide.monitors.frequent.clock import SeriesClock
from skytide.monitors.frequent.counts import Counts
from skytide.monitors.frequent.history import History, Stay
from skytide.monitors.frequent.ids import Column, Slots, check_each
from skytide.monitors.frequent.members import Difference, Members, difference, members_of
from skytide.monitors.frequent.pairs import NEVER, Theta, pairs_of
from skytide.monitors.sliding.clock import HIGHEST

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Frequencies:
    """Ids with the number of snapshots that they were in, the most frequent first, equal ones by id as text."""

    ids: npt.NDArray[Any]
    counts: Integers

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(zip(self.ids.tolist(), self.counts.tolist(), strict=True))


class Frequent:
    """Keeps who is frequent in a series of skylines: in at least theta * over of the last `over` snapshots.

    Either one pair of `theta` (above 0, up to 1; read as the decimal it is written as) and `over`, or several `pairs`.
    With one pair the changes are `Changes`, with several `PairChanges`, of which each says which pair it is about.
    Any skyline can be counted: its change stream goes in with `extend`, or its members with `observe`. There are no
    groups: ids are unique over the groups of a monitor with `by` columns, so its changes are counted as they come.

    With `history` all stays in the skyline are remembered; with a number, those that touch the last so many snapshots;
    without, only what the largest `over` needs. Memory follows the changes, not the snapshots.

    >>> monitor = Frequent(theta=0.5, over=4)
    >>> skyline = Changes.of(times=[1, 2, 2, 6], signs=[1, 1, -1, -1], ids=["a", "b", "a", "b"])
    >>> for change in monitor.extend(skyline, snapshots=range(1, 10)):
    ...     print(*change)
    3 + b
    8 - b
    >>> monitor.stays("b"), monitor.longest(), monitor.at(4).tolist()
    ([(2, 6)], [Stay(id='b', entered=2, left=6, snapshots=4)], ['b'])
    """

    def __init__(
        self,
        theta: Theta | None = None,
        over: int | None = None,
        *,
        pairs: Sequence[tuple[Theta, int]] | None = None,
        history: bool | int = True,
    ) -> None:
        self.pairs = pairs_of(theta, over, pairs)
        self._clock = SeriesClock()
        self._ids = Slots()
        self._counts = Counts(self.pairs)
        self._history = History(history, self._clock, self._ids, self._counts)
        self._order = np.empty(len(self.pairs), np.int64)  # the place of each pair when theta and over rise
        self._order[sorted(range(len(self.pairs)), key=self.pairs.__getitem__)] = np.arange(len(self.pairs))
        self._seen: Members | None = None  # who is in, as long as snapshots are observed
        self._tallies = {"snapshots": 0, "changes": 0, "entered": 0, "left": 0}

    # -- snapshots in --------------------------------------------------------------------------------------------------

    def extend(self, changes: Changes, *, snapshots: Any) -> Changes | PairChanges:
        """Take a run of a skyline's change stream and the times of all its snapshots; what changes among the frequent.

        The times rise from call to call, and every change falls on one of them. An id enters that is not in, leaves
        that is in, and does not do both in one snapshot. A call that is refused leaves the monitor as it was.
        Cost: O(log ids) per change, per change that leaves a window and per change that comes out. A snapshot in which
        nothing happens costs the reading of its time.
        """
        with self._all_or_nothing():
            keys = self._clock.rising(snapshots)
            column = self._ids.read(getattr(changes, "ids", ()))
            numbers, signs = self._read(changes, keys, len(column))
            slots = self._ids.take(column)
            self._admit(numbers, slots, signs)
        # From here on the monitor changes, and nothing is refused any more.
        self._seen = None
        return self._pass(keys, len(numbers))

    def observe(self, ids: Any, time: Any) -> Changes | PairChanges:
        """Take one snapshot, of which the members of the skyline are given, each once or more. O(members) and as above.

        >>> monitor = Frequent(pairs=[(1, 1), (1, 2)])
        >>> for members in ({"a"}, {"a", "b"}):
        ...     for change in monitor.observe(members, time=monitor.snapshots + 1):
        ...         print(*change)
        1 + a 1.0 1
        2 + a 1.0 2
        2 + b 1.0 1
        """
        with self._all_or_nothing():
            keys = self._clock.rising([time])
            found = self._difference(ids)
            slots = np.concatenate([self._ids.take(Column(one, None)) for one in (found.left, found.entered)])
            signs = np.repeat([-1, 1], [len(found.left), len(found.entered)])
            self._admit(np.full(len(slots), self._counts.now + 1), slots, signs)
        self._seen = found.members
        return self._pass(keys, len(slots))

    # -- answers out ---------------------------------------------------------------------------------------------------

    @property
    def snapshots(self) -> int:
        """How many snapshots have been taken."""
        return self._counts.now

    @property
    def latest(self) -> Any:
        """The time of the last snapshot, in the form in which times come in; None before the first one."""
        return self._clock.shown(self._clock.latest) if self.snapshots else None

    def frequent(self, pair: int = 0) -> Frequencies:
        """Who is frequent after the last snapshot, for one of the pairs (its position, from 0). O(known ids).

        >>> monitor = Frequent(theta=0.5, over=2)
        >>> _ = monitor.observe(["a", "b"], time=1), monitor.observe(["b"], time=2)
        >>> list(monitor.frequent()), monitor.count("a")
        ([('b', 2), ('a', 1)], 1)
        """
        slots = self._counts.frequent(self._pair(pair))
        counts = self._counts.counts(slots, pair)
        order = np.lexsort((self._ids.ranks(slots), -counts))
        return Frequencies(self._ids.ids(slots[order]), counts[order])

    def count(self, id: Any, pair: int = 0) -> int:
        """In how many of a pair's last `over` snapshots the id was, frequent or not. O(1)."""
        slot, pair = self._ids.slot(id), self._pair(pair)
        return 0 if slot is None else int(self._counts.counts(np.array([slot]), pair)[0])

    # -- the durable questions -----------------------------------------------------------------------------------------

    def stays(self, id: Any) -> list[tuple[Any, Any]]:
        """When the id entered the skyline and left it, in order; one that is in has not left: None. O(all stays)."""
        return self._remembered().stays(id)

    def longest(self, k: int = 1) -> list[Stay]:
        """The stays of the most snapshots, so far for those who are in; ties by time of entry, then id as text.

        O(all stays).
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise OptionError("is not a number of stays", value=k, remedy="give a whole number from 1")
        return self._remembered().longest(int(k))

    def at(self, time: Any) -> npt.NDArray[Any]:
        """Who was in the skyline at a time up to that of the last snapshot, in the order of the ids as text.

        Between two snapshots it is the skyline of the first. O(skyline, and one step per 512 stays that ended later).
        """
        return self._remembered().at(time)

    def history(self) -> pa.Table:
        """All stays as an Arrow table (id, entered, left, snapshots), by time of entry, then id as text.

        `left` is NULL for those who are in. O(all stays, sorted).

        >>> monitor = Frequent(theta=0.5, over=2)
        >>> _ = monitor.observe([7], time=1.5), monitor.observe([8], time=2.5)
        >>> monitor.history().to_pydict()
        {'id': [7, 8], 'entered': [1.5, 2.5], 'left': [2.5, None], 'snapshots': [1, 1]}
        """
        return self._remembered().table()

    def plot(self, path: str | os.PathLike[str] | None = None, *, most: int = 30) -> Any:
        """The stays of `most` ids, those with the longest ones first, as a matplotlib figure: a bar per stay.

        With `path` it is also written there. Needs matplotlib, and the history. O(all stays) per id.

        >>> monitor = Frequent(theta=0.5, over=2)
        >>> _ = monitor.observe(["a", "b"], time=1), monitor.observe(["b"], time=2)
        >>> [label.get_text() for label in monitor.plot().axes[0].get_yticklabels()]
        ['b', 'a']
        """
        from skytide.plots import Stay as Bar
        from skytide.plots import stays_picture

        stays = self._remembered().longest(len(self._history.log) + len(self._counts.members)) if self.snapshots else []
        names = list(dict.fromkeys(stay.id for stay in stays))[:most]
        bars = [Bar(one, entered, left) for one in names for entered, left in self.stays(one)]
        return stays_picture(bars, self.latest, None if path is None else os.fspath(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write `history()` to a file: .parquet, .csv or .jsonl. It appears whole or not at all."""
        from skytide.streams.files.output import write_table

        target = os.fspath(path)
        try:
            write_table(target, self.history())
        except SkytideError:
            raise
        except (OSError, pa.ArrowException) as reason:
            raise OutputError(
                f"the history cannot be written ({reason})", file=target, remedy="write elsewhere"
            ) from None

    def stats(self) -> dict[str, int]:
        """Snapshots and changes taken, entered and left, what is held, work done (see `kernel.frequent`), bytes."""
        counts, meta = self._counts, self._counts.meta
        return {
            **self._tallies,
            "skyline": len(counts.members),
            "known_ids": len(self._ids),
            "queued": counts.queued,
            "stays": len(self._history.log),
            "slopes": int(meta[SLOPES]),
            "crossings": int(meta[CROSSINGS]),
            "heap_steps": int(meta[STEPS]),
            "memory_bytes": counts.memory_bytes + self._history.log.memory_bytes,
        }

    # -- stored --------------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """How the monitor was made, as plain values."""
        pairs = [[str(pair.theta), pair.over] for pair in self.pairs]
        return {"pairs": pairs, "history": self._history.asked}

    def to_bytes(self) -> bytes:
        """The monitor as bytes: versioned, checked, without pickle. O(changes in the largest window, stays and ids).

        >>> monitor = Frequent(theta=0.5, over=2)
        >>> _ = monitor.observe(["a"], time=1)
        >>> again = Frequent.from_bytes(monitor.to_bytes())
        >>> [tuple(change) for time in (2, 3) for change in again.observe([], time)]
        [(3, '-', 'a')]
        """
        return stored.dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Frequent:
        """The monitor that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return stored.restore(blob, cls)

    # -- details -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """While snapshots are read and judged: if they are refused, what they settled is as it was."""
        kind = self._clock.kind
        self._ids.begin()
        try:
            yield
        except BaseException:
            self._ids.undo()
            self._clock.reset(kind)
            raise

    def _read(self, changes: Changes, keys: Integers, count: int) -> tuple[Integers, npt.NDArray[Any]]:
        """The numbers of the snapshots on which changes fall, and their signs."""
        try:
            times, signs = changes.times, np.asarray(changes.signs)
        except AttributeError:
            raise InputError(
                f"a {type(changes).__name__} is not a run of a change stream",
                remedy="give Changes, or the members of each snapshot to observe()",
            ) from None
        if not len(times) == len(signs) == count:
            raise InputError("the columns of the changes differ in length", remedy="give columns of one length")
        if not count:
            return _NONE, _NONE
        if not (np.abs(signs) == 1).all():
            raise InputError("a sign is neither 1 nor -1", remedy="enter with 1, leave with -1")
        found = self._clock.read(times)
        places = np.searchsorted(keys, found)
        inside = np.append(keys, HIGHEST)[places] == found
        if not inside.all():
            row = int(np.argmin(inside))
            raise WindowError(
                "is not the time of a snapshot of this call",
                value=self._clock.shown(int(found[row])),
                row=row + 1,
                remedy="name the snapshots of all changes",
            )
        return self._counts.now + 1 + places, signs

    def _difference(self, ids: Any) -> Difference:
        """What changes when the given ids are the members."""
        column = self._ids.read(ids, encode=False).distinct
        whole = Column(column, None).kind == "integer" if len(column) else self._ids.kind == "integer"
        before = members_of(self._ids.ids(self._counts.members)) if self._seen is None else self._seen
        try:
            found = difference(before, column, whole)
        except TypeError:
            check_each(column.tolist())
            raise
        if not whole and any(one is None or one != one for one in found.entered.tolist()):
            check_each(column.tolist())
        return found

    def _admit(self, numbers: Integers, slots: Integers, signs: npt.NDArray[Any]) -> None:
        """Take changes, which may be in any order, if all of them can be."""
        order = None
        if not (numbers[1:] >= numbers[:-1]).all():
            order = np.argsort(numbers, kind="stable")
            numbers, slots, signs = numbers[order], slots[order], signs[order]
        self._counts.widen(self._ids.room)
        refused = self._counts.admit(numbers, slots, signs)
        if refused is not None:
            position = refused.position
            reason = "leaves the skyline, but is not in it" if signs[position] < 0 else "enters, but is in the skyline"
            raise IdError(
                "changes twice in one snapshot" if refused.twice else reason,
                value=self._ids.ids(slots[position : position + 1]).tolist()[0],
                row=(position if order is None else int(order[position])) + 1,
                remedy="give every change of the skyline once, in order",
            )

    def _pass(self, keys: Integers, changes: int) -> Changes | PairChanges:
        """Let snapshots pass whose changes have been admitted."""
        before = self._counts.now
        if changes:
            self._history.note(keys)
        moves = self._counts.run(before + len(keys))
        if len(keys):
            self._clock.latest = int(keys[-1])
        found = self._changes(moves, keys, before)
        entered = int((found.signs > 0).sum()) if len(found) else 0
        for name, amount in zip(self._tallies, (len(keys), changes, entered, len(found) - entered), strict=True):
            self._tallies[name] += amount
        self._ids.forget(self._history.forget() + self._counts.drain())
        return found

    def _changes(self, moves: Integers, keys: Integers, before: int) -> Changes | PairChanges:
        """Crossings in the order of the change stream."""
        numbers, nodes, signs = moves
        slots, pairs = np.divmod(nodes, len(self.pairs)) if len(self.pairs) > 1 else (nodes, 0 * nodes)
        if len(numbers):
            order = self._stream_order(numbers - before, signs, slots, pairs)
            numbers, signs, slots, pairs = numbers[order], signs[order], slots[order], pairs[order]
        times, ids = self._clock.times(keys[numbers - before - 1]), self._ids.ids(slots)
        signs = signs.astype(np.int8)
        if len(self.pairs) == 1:
            return Changes(times, signs, ids)
        thetas = np.array([float(pair.theta) for pair in self.pairs])
        overs = np.array([pair.window for pair in self.pairs])
        return PairChanges(times, signs, ids, thetas[pairs], overs[pairs])

    def _stream_order(self, steps: Integers, signs: Integers, slots: Integers, pairs: Integers) -> Integers:
        """By snapshot, `-` before `+`, id as text, then pair. O(n log n)."""
        ranks = self._ids.ranks(slots) * len(self.pairs) + self._order[pairs]
        most = int(ranks.max()) + 1
        if int(steps[-1]) < NEVER // (2 * most):  # one key for all is sorted several times faster
            return np.argsort((2 * steps + (signs > 0)) * most + ranks)
        return np.lexsort((ranks, signs, steps))

    def _pair(self, pair: Any) -> int:
        if isinstance(pair, bool) or not isinstance(pair, int | np.integer) or not 0 <= pair < len(self.pairs):
            raise OptionError(
                "is not one of the pairs", value=pair, remedy=f"give a position from 0 to {len(self.pairs) - 1}"
            )
        return int(pair)

    def _remembered(self) -> History:
        if self._history.asked is False:
            raise OptionError(
                "the monitor has no history", remedy="make it with history=True, or a number of snapshots"
            )
        return self._history
