"""Objects under bulk updates: their values change from snapshot to snapshot, and the changes of the skyline come out.

After Udomlamlert, Hara, Nishio, "Skyline computation under frequent data updates" (2014); `kernel.snapshots` says how
the method works and where it differs. Here objects come and go, values are set, added to, multiplied or averaged, rows
may come out of order, and groups are independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.errors import IdError, InputError, OptionError, SkytideError, WindowError
from skytide.kernel.updates import BAD, missing_in
from skytide.missing import with_worst
from skytide.model import (
    Booleans,
    Changes,
    Column,
    Floats,
    Integers,
    MissingPolicy,
    Preference,
    check_missing_policy,
    duration_value,
)
from skytide.monitors.drawing import answer_figure
from skytide.monitors.sliding.clock import LOWEST, Clock
from skytide.monitors.sliding.groups import Groups
from skytide.monitors.sliding.ids import net
from skytide.monitors.sliding.waiting import Arrivals, Waiting, no_arrivals
from skytide.monitors.snapshots import stored
from skytide.monitors.snapshots.changes import NONE_SPOILED, SnapshotChanges, Spoiled
from skytide.monitors.snapshots.choice import METHODS, maker
from skytide.monitors.snapshots.names import Names
from skytide.monitors.snapshots.objects import NOWHERE, Effect, Objects
from skytide.monitors.snapshots.reading import check_operation, column_beside, opened, operations_of, picked, repeated
from skytide.tables import partly, row_count

_SWEEP = 1024


class _Span(NamedTuple):
    """What the clock wants to know: an instant has no length."""

    lateness: float | int | str
    duration: float | int | str | None = 0

    @property
    def fractional(self) -> bool:
        return isinstance(self.lateness, float) and not self.lateness.is_integer()


@dataclass(frozen=True)
class Standing:
    """An answer: the objects' ids, their preference columns as they are now, and their groups."""

    ids: npt.NDArray[Any]
    values: Floats
    groups: list[tuple[Any, ...]]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids.tolist())


class Snapshots:
    """Keeps the skyline of objects whose values change in bulk, and says what changes from snapshot to snapshot.

    `method` is `mbr` (udom14's boxes, improved), `recompute` (a fresh skyline per snapshot) or `auto`, which goes from
    one to the other while running. All give the same changes. `op` is what an update does to an object that is there:
    `set`, `add`, `multiply` or `average` (of old and new); the first update of an object sets it. `cfp` is how many
    snapshots in a row an object may be a candidate in vain before its box is rebuilt. `lateness` is how far rows of
    `extend` may come out of order. With `by` columns each group has a skyline of its own; an object is in the group
    that its last update names.

    >>> cars = Snapshots(Preference.columns(2))
    >>> for change in cars.apply([("a", (1, 4)), ("b", (2, 2)), ("c", (3, 3))], time=1):
    ...     print(*change)
    1 + a
    1 + b
    >>> for change in cars.apply([("b", (9, 9)), ("a", None)], time=2):
    ...     print(*change)
    2 - a
    2 - b
    2 + c
    """

    def __init__(
        self,
        preference: Preference,
        *,
        method: str = "auto",
        op: str = "set",
        nulls: MissingPolicy = "error",
        cfp: int = 50,
        lateness: float | int | str = 0,
    ) -> None:
        if method not in METHODS:
            raise OptionError("is not a method", value=method, remedy="choose one of " + ", ".join(METHODS))
        if isinstance(cfp, bool) or not isinstance(cfp, int | np.integer) or cfp < 1:
            raise OptionError("is not a number of snapshots", value=cfp, remedy="give a whole number from 1")
        if isinstance(lateness, np.integer | np.floating):  # a monitor can be stored: plain numbers only
            lateness = lateness.item()
        if not 0 <= duration_value(lateness) < np.inf:
            raise WindowError("is not a lateness", value=lateness, remedy="give 0 or more, and finite")
        self.preference = preference
        self.method, self.op, self.cfp = method, check_operation(op), int(cfp)
        self.nulls = check_missing_policy(nulls)
        self.lateness = lateness
        self._clock = Clock(_Span(lateness))
        self._groups = Groups(tuple(preference.by))
        self._names = Names()
        make = maker(method, preference.dimensions, cfp)
        signs = np.array(preference.signs, dtype=np.float64)
        self._objects = Objects(preference.dimensions, signs, nulls == "worst", make, bool(preference.by))
        self._waiting = Waiting(preference.dimensions)
        self._latest = self._closed = LOWEST
        self._calculates = False
        self._tallies = {"rows": 0, "late": 0, "bad": 0, "snapshots": 0, "entered": 0, "left": 0}

    # -- updates in ----------------------------------------------------------------------------------------------------

    def apply(self, updates: Any, time: Any, ids: Any = None, op: Any = None) -> SnapshotChanges:
        """Take all updates of one snapshot, and return the changes of the skyline from the snapshot before to this one.

        `updates` are pairs of an id and a row of values, or a mapping of columns to values, or None, which deletes the
        object (a third member is the operation); or they are a table: then `ids` is a column or the name of one, by
        default the column called id, and a row without any value deletes. `op` says for this call what updates do: one
        word, a column of words, or the name of one. Several updates of one object are applied in order. Every call is a
        snapshot, also without updates. Its time must be later than all before. A call that is refused changes nothing.
        Cost: a few comparisons per update where objects move a little; with the method `auto` never much more than a
        fresh skyline. A call takes a fraction of a millisecond in any case: give many snapshots at once to `extend`.
        """
        table, ids, op = opened(updates, self.preference, ids, op)
        total, kind = row_count(table), self._clock.kind
        try:
            key = self._moment(time)
            if key <= self._closed:
                raise WindowError(
                    "is not later than the snapshots before", value=time, remedy="apply snapshots in order"
                )
            if total:
                found = self._extend(table, repeated(time, total), ids, op, key)
            else:
                found = self._take(no_arrivals(self.preference.dimensions), None, None, key)
        except SkytideError:
            self._clock.reset(kind)
            raise
        moment = self._clock.times(np.array([key]))
        if not len(found.snapshots):
            found = SnapshotChanges.over(found, moment, found.spoiled)
        elif found.snapshots[-1] != moment[0]:
            found = SnapshotChanges.over(found, np.append(found.snapshots, moment), found.spoiled)
        else:
            return found
        self._tallies["snapshots"] += 1
        return found

    def extend(self, updates: Any, times: Any, ids: Any = None, op: Any = None) -> SnapshotChanges:
        """Take updates with their times, and return the changes over all snapshots that are complete now.

        Each distinct time is a snapshot. It is complete when a later row, and `lateness` more, has been seen, or by
        `advance`. Rows for a snapshot that is complete are late and are not taken; nor are rows that the policy `drop`
        leaves out: their positions are in `late` and `bad` of the result, and they are counted. An update whose result
        is not a number (inf - inf) is refused under the policy `error`; under `drop` it is found when its snapshot is
        complete, leaves its object as it was, is counted, and is in `spoiled` of that result. Otherwise as `apply`.
        """
        table, ids, op = opened(updates, self.preference, ids, op)
        return self._extend(table, times, ids, op) if row_count(table) else self._nothing()

    def _extend(self, table: Any, times: Any, ids: Any, op: Any, until: int = LOWEST) -> SnapshotChanges:
        """Take rows, and complete the snapshots that they complete, and those up to `until`."""
        known, kind_of_time, groups = len(self._names), self._clock.kind, self._groups.next
        kind_of_ids = self._names.kind
        try:
            rows, kept, late, bad = self._read(table, times, ids, op, row_count(table))
            effect, due = self._foresee(rows, until)
        except BaseException:
            self._names.forget_since(known)
            self._names.kind = kind_of_ids
            self._groups.forget_since(groups)
            self._clock.reset(kind_of_time)
            raise
        # From here on the objects change, and nothing is refused any more.
        for name, amount in (("rows", len(kept)), ("late", len(late)), ("bad", len(bad))):
            self._tallies[name] += amount
        return self._take(rows, effect, due, until).beside(late, bad)

    def advance(self, now: Any) -> SnapshotChanges:
        """Every snapshot up to and including `now` is complete."""
        bound = self._moment(now)
        if bound <= self._closed:
            self._latest = max(self._latest, bound)
            return self._nothing()
        self._latest = max(self._latest, bound)
        due = self._waiting.release(bound)
        self._closed = bound
        return self._play(due, self._effect(due))

    def _moment(self, time: Any) -> int:
        """The key of one time."""
        try:
            stamp = self._clock.prepare([time])
        except WindowError:
            stamp = np.array([np.nan])
        if np.isnat(stamp[0]) if stamp.dtype.kind == "M" else np.isnan(stamp[0]):
            reason = "there is no time" if time is None else "is not a time"
            raise WindowError(reason, value=time, remedy="give a number or a timestamp")
        return int(self._clock.keys(stamp)[0])

    # -- answers out ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many objects there are after the last complete snapshot."""
        return int(np.count_nonzero(self._objects.present))

    @property
    def lengths(self) -> tuple[float | int | str, ...]:
        """The lengths of time that were asked for."""
        return (self.lateness,)

    @property
    def latest(self) -> Any:
        """The latest time seen, in the form in which times came in; None before the first row."""
        return None if self._latest == LOWEST else self._clock.times(np.array([self._latest]))[0]

    def times_like(self, form: np.dtype[Any]) -> np.dtype[Any]:
        """The type of the times in changes where the rows' times have this type."""
        return self._clock.form_of(form)

    def skyline(self) -> Standing:
        """The skyline as of the latest row, also where its snapshot is not complete yet."""
        objects = self._objects
        waiting = self._waiting.all().in_order()
        if not len(waiting.keys):
            return self._standing(objects.skyline(), objects.values, objects.home)
        values, present, home = objects.after(waiting.handles, waiting.codes >> 2, self._effect(waiting))
        return self._standing(_skylines(values, present, home, self.nulls == "worst"), values, home)

    def plot(self, path: str | Path | None = None, *, columns: Sequence[Column] | None = None) -> Any:
        """The skyline against the other objects, as a matplotlib figure; otherwise as `SlidingWindow.plot`.

        >>> cars = Snapshots(Preference.columns(2))
        >>> _ = cars.apply([("a", (1, 4)), ("b", (2, 2)), ("c", (3, 3))], time=1)
        >>> cars.plot().axes[0].get_title(loc="left")
        '2 rows in the skyline'
        """
        return answer_figure(self.preference, self.skyline(), self.standing().values, path, columns)

    def values(self, id: Any) -> tuple[float, ...] | None:
        """The values of an object after the last complete snapshot; None where there is no such object."""
        number = self._names.number(id)
        if number is None or number >= len(self._objects.present) or not self._objects.present[number]:
            return None
        return tuple((self._objects.values[number] * self.preference.signs).tolist())

    def is_over(self, times: Any) -> Booleans:
        """Which of these times have complete snapshots, whatever comes. O(times)."""
        return np.asarray(self._clock.keys(self._clock.prepare(times)) <= self._closed)

    def standing(self, ids: Any = None) -> Standing:
        """Those of these objects, or of all, that are there after the last complete snapshot. O(ids)."""
        objects = self._objects
        if ids is None:
            return self._standing(np.flatnonzero(objects.present), objects.values, objects.home)
        known = [number for number in map(self._names.number, ids) if number is not None]
        numbers = np.array([one for one in known if one < len(objects.present)], np.int64)
        return self._standing(numbers[objects.present[numbers]], objects.values, objects.home)

    def stats(self) -> dict[str, int]:
        """Rows taken, late, bad and pending; objects, groups, snapshots; the methods' work, split into PRE, SKY, POST.

        `candidates` are those of the last snapshot, `candidates_seen` those of all snapshots together.
        """
        return {
            **self._objects.counters(),
            **self._tallies,
            "pending": len(self._waiting),
            "objects": len(self),
            "groups": len(self._objects.groups),
        }

    # -- stored --------------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """How the monitor was made, as plain values."""
        return {
            "minimize": list(self.preference.minimize),
            "maximize": list(self.preference.maximize),
            "by": list(self.preference.by),
            "method": self.method,
            "op": self.op,
            "nulls": self.nulls,
            "cfp": self.cfp,
            "lateness": self.lateness,
        }

    def to_bytes(self) -> bytes:
        """The monitor as bytes: versioned, checked, without pickle. O(objects and pending rows).

        >>> cars = Snapshots(Preference.columns(1), op="add")
        >>> _ = cars.apply([("a", [2.0]), ("b", [3.0])], time=1)
        >>> [tuple(change) for change in Snapshots.from_bytes(cars.to_bytes()).apply([("a", [5.0])], time=2)]
        [(2, '-', 'a'), (2, '+', 'b')]
        """
        return stored.dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Snapshots:
        """The monitor that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return stored.restore(blob, cls)

    # -- details -------------------------------------------------------------------------------------------------------

    def _read(
        self, table: Any, times: Any, ids: Any, op: Any, total: int
    ) -> tuple[Arrivals, Integers, Integers, Integers]:
        """The rows of a call that are taken, and the positions of those that are, come too late, or are left out."""
        rows = partly(table, self.preference)
        partial, deletes = np.empty(total, bool), np.empty(total, bool)
        missing_in(np.ascontiguousarray(rows), partial, deletes)
        fit = self._fit(rows, partial)
        stamps = self._clock.prepare(column_beside(table, times, "times", WindowError))
        if len(stamps) != total:
            raise WindowError(f"there are {len(stamps)} times for {total} rows", remedy="give one time per row")
        timeless = np.isnat(stamps) if stamps.dtype.kind == "M" else np.isnan(stamps)
        if timeless.any():
            if self.nulls != "drop":
                row = int(np.argmax(timeless)) + 1
                raise InputError("the time is missing", row=row, remedy="fill it in, or choose the policy drop")
            fit &= ~timeless
        operations = operations_of(table, op, self.op, total)
        kind, column = self._names.check(column_beside(table, ids, "ids", IdError), total)
        kept = np.flatnonzero(fit)
        keys = self._clock.keys(stamps[kept])
        tardy = self._tardy(keys)
        late, kept, keys = kept[tardy], kept[~tardy], keys[~tardy]
        codes = np.full(len(kept), NOWHERE if self.preference.by else 0, np.int64)
        placed = ~deletes[kept]
        if self.preference.by and placed.any():
            codes[placed] = self._groups.of(table, kept[placed])
        whole = len(kept) == total
        numbers = self._names.take(kind, column if whole else picked(column, kept))
        self._objects.reserve(len(self._names))
        arrivals = Arrivals(rows if whole else rows[kept], (codes << 2) | operations[kept], numbers, keys)
        return arrivals, kept, late, np.flatnonzero(~fit)

    def _fit(self, rows: Floats, partial: Booleans) -> Booleans:
        """Which rows the missing-value policy takes, where these miss some values but not all."""
        if self.nulls == "error" and partial.any():
            row = int(np.argmax(partial))
            raise InputError(
                "the value is missing (NULL or NaN), but not all values of the row",
                row=row + 1,
                column=self.preference.names[int(np.argmax(np.isnan(rows[row])))],
                remedy="choose the policy drop or worst for missing values; a row without any value deletes",
            )
        return ~partial if self.nulls == "drop" else np.ones(len(partial), bool)

    def _tardy(self, keys: Integers) -> Booleans:
        """Which rows are for a complete snapshot, judged row by row in the order in which they come."""
        if not len(keys) or (keys[0] >= self._latest and keys[0] > self._closed and (keys[1:] >= keys[:-1]).all()):
            return np.zeros(len(keys), dtype=bool)
        seen = np.maximum.accumulate(np.concatenate(([self._latest], keys[:-1])))
        return (keys <= self._closed) | self._clock.too_late(keys, seen)

    def _foresee(self, rows: Arrivals, until: int) -> tuple[Effect | None, Arrivals | None]:
        """What becomes due with these rows and what it does, if nothing waits; a result that is refused is so here."""
        if not len(rows.keys):
            return None, None
        bound = max(until, self._clock.closed_by(max(self._latest, int(rows.keys.max()))))
        if len(self._waiting):
            if self.nulls == "error" and self._calculate_with(rows):
                waiting = self._waiting.all()
                same = waiting.pick(np.flatnonzero(np.isin(waiting.handles, rows.handles)))
                together = same.join(rows).in_order()
                self._refuse_bad(together, self._effect(together))
            return None, None
        ordered = rows.in_order()
        due = ordered.pick(slice(0, int(np.searchsorted(ordered.keys, bound, side="right"))))
        if self.nulls != "error":
            return self._effect(due), due
        # Judged now, also where it is not due yet: who brings a row learns what is wrong with it, not who comes later.
        effect = self._effect(ordered)
        self._refuse_bad(ordered, effect)
        return Effect(effect.values[: len(due.keys)], effect.verdicts[: len(due.keys)], 0), due

    def _calculate_with(self, rows: Arrivals) -> bool:
        """Whether these rows, or those that wait, do more than to set objects: else every result is a number."""
        return (self._calculates and len(self._waiting) > 0) or bool((rows.codes & 3).any())

    def _refuse_bad(self, due: Arrivals, effect: Effect) -> None:
        if not effect.bad:
            return
        one = self._names.ids(due.handles[effect.verdicts == BAD][:1])[0]
        raise InputError(
            "the result of an update is not a number",
            value=one,
            remedy="leave infinite values out, or choose the policy drop or worst",
        )

    def _take(self, rows: Arrivals, effect: Effect | None, due: Arrivals | None, until: int) -> SnapshotChanges:
        self._calculates = self._calculate_with(rows)
        self._latest = max(self._latest, until, int(rows.keys.max(initial=LOWEST)))
        bound = max(until, LOWEST if self._latest == LOWEST else self._clock.closed_by(self._latest))
        if effect is not None and due is not None:
            if len(due.keys) < len(rows.keys):
                self._waiting.add(rows.in_order().pick(slice(len(due.keys), None)), bound)
        else:
            self._waiting.add(rows, max(bound, self._closed))
            due = self._waiting.release(bound) if bound > self._closed else rows.pick(slice(0, 0))
            effect = self._effect(due)
        self._closed = max(self._closed, bound)
        return self._play(due, effect)

    def _effect(self, due: Arrivals) -> Effect:
        return self._objects.effect(due.handles, due.values, due.codes & 3)

    def _play(self, due: Arrivals, effect: Effect) -> SnapshotChanges:
        if not len(due.keys):
            return self._nothing()
        sound, spoiled = due.keys, NONE_SPOILED
        if effect.bad:
            unsound = effect.verdicts == BAD
            sound = due.keys[~unsound]
            spoiled = Spoiled(self._clock.times(due.keys[unsound]), self._names.ids(due.handles[unsound]))
        snapshots = sound[np.concatenate((np.ones(min(1, len(sound)), bool), sound[1:] != sound[:-1]))]
        self._tallies["rows"] -= effect.bad
        self._tallies["bad"] += effect.bad
        self._tallies["snapshots"] += len(snapshots)
        turns = self._objects.play(due.handles, due.keys, due.codes >> 2, effect)
        keys, signs, numbers = turns
        if self.preference.by:  # an object that goes from skyline to skyline neither leaves nor enters
            stays = net(keys, signs, numbers)
            keys, signs, numbers = keys[stays], signs[stays], numbers[stays]
        entered = int(np.count_nonzero(signs > 0))
        self._tallies["entered"] += entered
        self._tallies["left"] += len(signs) - entered
        changes = Changes.of(self._clock.times(keys), signs, self._names.ids(numbers))
        self._sweep()
        return SnapshotChanges.over(changes, self._clock.times(snapshots), spoiled)

    def _nothing(self) -> SnapshotChanges:
        """No changes, in the form that changes have: times and ids of the monitor's kinds."""
        none = np.zeros(0, np.int64)
        times = self._clock.times(none)
        return SnapshotChanges(times, np.zeros(0, np.int8), self._names.ids(none), snapshots=times)

    def _sweep(self) -> None:
        """Forget objects and groups that are gone, when they are more than those that are there. Amortised O(1)."""
        objects, known = self._objects, len(self._names)
        if known > _SWEEP and 2 * (np.count_nonzero(objects.present) + len(self._waiting)) <= known:
            self._forget_objects()
        if len(self._groups.keys) > max(_SWEEP, 2 * (len(objects.groups) + len(self._waiting))):
            waiting = set((self._waiting.all().codes >> 2).tolist())
            for code in set(self._groups.keys) - objects.groups.keys() - waiting:
                self._groups.forget(code)

    def _forget_objects(self) -> None:
        objects, known, waiting = self._objects, len(self._names), self._waiting.all()
        kept = objects.present[:known].copy()
        kept[waiting.handles] = True
        fresh = np.cumsum(kept) - 1
        self._names.keep(kept)
        objects.fill(objects.values[:known][kept], objects.present[:known][kept], objects.home[:known][kept])
        self._waiting = Waiting(self.preference.dimensions)
        self._waiting.add(waiting._replace(handles=fresh[waiting.handles]), self._closed)

    def _standing(self, numbers: Integers, values: Floats, home: Integers) -> Standing:
        return Standing(
            self._names.ids(numbers),
            values[numbers] * self.preference.signs,
            [self._groups.keys.get(code, ()) for code in home[numbers].tolist()],
        )


def _skylines(values: Floats, present: Booleans, home: Integers, worst: bool) -> Integers:
    """The skyline of every group of objects, computed from nothing."""
    from skytide.kernel.batch import skyline_mask

    order = np.flatnonzero(present)
    if not len(order):
        return order
    order = order[np.argsort(home[order], kind="stable")]
    offsets = np.concatenate(([0], np.flatnonzero(np.diff(home[order])) + 1, [len(order)]))
    points = values[order]
    return order[skyline_mask(with_worst(points) if worst else points, offsets=offsets)]
