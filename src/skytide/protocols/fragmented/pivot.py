"""The coordinator of the method PIVOT: boxes in the space of the functions, zones at the sites that keep to them.

A dialogue: `take` gets what sites say and gives orders, until there are none; then `skyline` is right for all that the
sites have seen. Objects and sites are numbers from 0 that the caller gives out.

PIVOT's threshold queries for one object are together a box of its function values: one dominator's corner for an object
outside the skyline, boundaries to others for one inside. The boxes are those of the filtering protocol (zhang09c), with
objects for clients and function values for points: `PivotBoxes` gives robust boxes, and after a crossing new ones
only to those that it must look at again, so that queries which still hold stay (papa14's lazy updating).

Where we differ from the paper: it answers every violation by balancing, which asks other sites. Here the coordinator is
itself a participant with a share of the weight, the reserve. With reserve r the global vector is a convex combination
of the sites' drift vectors, stretched by 1 / (1 - r), and of the coordinator's, the centre plus (known mean - centre) /
r. As long as that one is in the zone too, a violation costs a single message: the site tells its vector and begins
anew. Only when the reserve is used up, drift is shifted to sites which have room, as many as it takes; then the zone
gets a new centre; and last, where the box itself is left or too narrow, boxes are made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, Self

import numpy as np

from skytide.errors import InputError
from skytide.kernel.fragmented import inside, reserved
from skytide.kernel.functions import Programs
from skytide.kernel.functions import values as values_of
from skytide.missing import SEAM, with_worst
from skytide.model import Booleans, Floats, Integers, MissingPolicy, check_missing_policy
from skytide.monitors.storage import Parts
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.filtering.filter import FilterServer
from skytide.protocols.filtering.messages import Boxes, Kind, Reports
from skytide.protocols.filtering.server import Said
from skytide.protocols.fragmented.boxes import PivotBoxes
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.known import Known
from skytide.protocols.fragmented.messages import Arrivals, Order, Releases, Report, Shifts, Zonings
from skytide.protocols.fragmented.tuning import Tuning, reserve_of, tuning_of
from skytide.protocols.fragmented.watched import comparable, more_zones, no_zones, restored_zones, zone_parts
from skytide.protocols.fragmented.worth import Worth
from skytide.protocols.stored import Contents, dump, must, restore

NONE: Integers = np.zeros(0, np.int64)
QUIET, TOLD, ABSENT = 0, 1, 2
"""How an object is watched: by zones; by every update; not at all, since a function has no value or it has no site."""
WIDE = 64.0
"""Boxes reach so many times the size of an update from the object, where nothing is in their way."""
UNKNOWN = 0.5
"""Before any update was heard of: the reach as a share of the value itself."""
CHECK, CALM = 64, 4.0
"""Of an object of which all is told, every so often it is seen whether sites would stay quiet for that many updates."""


def function_steps(programs: Programs, step: Floats, means: Floats, values: Floats) -> Floats:
    """How far an update of a site would move the function values if it were the whole object; 0 if not known."""
    total = np.zeros(len(values))
    for j in np.flatnonzero(step).tolist():
        moved = means.copy()
        with np.errstate(invalid="ignore", over="ignore"):
            moved[j] += step[j]
            total += (values_at(programs, moved) - values) ** 2
    return np.where(np.isfinite(total), np.sqrt(total), 0.0)


def values_at(programs: Programs, means: Floats) -> Floats:
    """All functions at a vector; NaN where there is no value."""
    found: Floats = values_of(programs, means[None])[0]
    return found


class PivotCoordinator:
    """Keeps the exact f-skyline of objects whose sites speak only when their drift vectors leave their zones.

    >>> coordinator = PivotCoordinator(Functions(["x"], []))
    >>> sites, objects = np.array([0, 1, 0]), np.array([0, 0, 1])
    >>> orders = coordinator.take(0, [Arrivals(0, sites, objects, np.ones(3), np.array([[1.0], [3.0], [5.0]]))])
    >>> coordinator.skyline().tolist(), [type(order).__name__ for order in orders]
    ([0], ['Zonings'])
    """

    def __init__(self, functions: Functions, nulls: MissingPolicy = "error", tuning: Tuning | None = None) -> None:
        self._functions, self._nulls, self._tuning = functions, nulls, tuning or Tuning()
        self._programs = functions.programs
        self._known = Known(functions.d)
        self._filter: FilterServer = (
            PivotBoxes(functions.k) if self._tuning.walks else FilterServer(functions.k, boundaries="middle")
        )
        self._tune_boxes()
        d, k = functions.d, functions.k
        self._zones = no_zones(d, k)
        self._mode = np.zeros(0, np.int8)
        self._versions: Integers = np.zeros(0, np.int64)
        self._low: Floats = np.zeros((0, k))  # the boxes, in which the zones are
        self._high: Floats = np.zeros((0, k))
        self._room: Floats = np.zeros((0, k))  # from the values to the nearer ends of the box, when it was made
        self._heard: Integers = np.zeros(0, np.int64)  # updates since all of the object is told
        self._worth = Worth()
        self._shifted: Booleans = np.zeros(0, np.bool_)  # in this dialogue
        self._pending: list[int] = []
        self._comparable = False
        self._time = -1

    def _tune_boxes(self) -> None:
        if isinstance(self._filter, PivotBoxes):
            self._filter.apart = float(self._tuning.apart)

    def _reserve(self, objects: Integers) -> None:
        room = room_for(objects)
        if room > len(self._mode):
            self._zones = more_zones(self._zones, room)
            self._mode = grown(self._mode, room, ABSENT)
            self._versions, self._room = grown(self._versions, room), grown(self._room, room)
            self._low, self._high = grown(self._low, room), grown(self._high, room)
            self._heard, self._shifted = grown(self._heard, room), grown(self._shifted, room)
            self._worth.reserve(room)

    @classmethod
    def taking_over(
        cls, functions: Functions, nulls: MissingPolicy, tuning: Tuning, known: Known, versions: Integers
    ) -> PivotCoordinator:
        """A coordinator that goes on with what another one knows; sites have heard of centres up to these versions."""
        found = cls(functions, nulls, tuning)
        found._comparable, found._programs = True, comparable(functions.programs)
        found._known = known
        found._reserve(np.arange(max(len(known.members), len(versions))))
        found._versions[: len(versions)] = versions
        return found

    def begin(self, time: int) -> list[Order]:
        """Make boxes for all objects there are. As those of a beginning they are free: no account begins with them."""
        self._time = time
        here = np.flatnonzero(self._known.members)
        self._mode[here] = QUIET
        self._low[here], self._high[here] = np.inf, -np.inf
        orders = self._mended([], here.tolist())
        self._worth = Worth()
        self._worth.reserve(len(self._mode))
        return orders

    def to_bytes(self) -> bytes:
        """The coordinator as it is when nobody has anything to say, versioned and without pickle. O(cells)."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The coordinator that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        parts: Parts = {"mode": self._mode, "versions": self._versions, "low": self._low, "high": self._high}
        parts |= {"room": self._room, "heard": self._heard}
        parts |= zone_parts(self._zones)
        meta: dict[str, Any] = {**self._functions.texts(), "nulls": self._nulls, "tuning": list(astuple(self._tuning))}
        meta |= {"objects": len(self._mode), "comparable": self._comparable}
        found = Contents(meta, parts).within("known", self._known.contents()).within("worth", self._worth.contents())
        return found.within("boxes", self._filter._contents())

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        functions, room = Functions.from_texts(contents.meta), contents.whole("objects")
        made = cls(functions, check_missing_policy(contents.meta["nulls"]), tuning_of(contents.meta["tuning"]))
        if contents.meta["comparable"] is True:
            made._comparable, made._programs = True, comparable(functions.programs)
        d, k = functions.d, functions.k
        made._zones = restored_zones(contents, room, d, k)
        made._mode = contents.modes("mode", room)
        made._versions, made._heard = (contents.integers(name, room, 0, 1 << 62) for name in ("versions", "heard"))
        made._low, made._high, made._room = (contents.reals(name, room, k) for name in ("low", "high", "room"))
        made._shifted = np.zeros(room, np.bool_)
        made._known = Known.restored(contents.inner("known"), d)
        must(len(made._known.members) <= room, "objects")
        made._worth = Worth.restored(contents.inner("worth"))
        must(len(made._worth.wait) == room, "worth")
        made._filter = type(made._filter)._restored(contents.inner("boxes"))
        made._tune_boxes()
        return made

    # -- the dialogue --------------------------------------------------------------------------------------------------

    @np.errstate(invalid="ignore", over="ignore")  # what is infinite, or not a number, is in no zone
    def take(self, time: int, reports: Sequence[Report]) -> list[Order]:
        """Take what sites say; what they are to do. Empty when there is no more to say about this time."""
        self._time = time
        heard = [self._known.take(report) for report in reports]
        touched = heard[0] if len(heard) == 1 else np.unique(np.concatenate([NONE, *heard]))
        if self._pending:
            touched = np.union1d(touched, self._pending)
            self._pending = []
        self._reserve(touched)
        for report in reports:
            self._worth.hear(report)
        orders: list[Order] = []
        left, broken = [], []
        for one in touched.tolist():
            if self._known.members[one] == 0:
                left.append(one)
            elif not self._held(one):
                shift = self._shifting(one)
                if shift is None:
                    broken.append(one)
                else:
                    orders.append(shift)
        mended = self._mended(left, broken) if left or broken else []
        orders += self._welcomes(reports, mended) + mended
        if not orders:
            self._shifted[:] = False
        return orders

    @property
    def known(self) -> Known:
        """What sites have told."""
        return self._known

    def skyline(self) -> Integers:
        """The objects in the f-skyline, in order. O(objects)."""
        return self._filter.skyline()

    def undefined(self) -> Integers:
        """The objects with sites that do not compete, since a function has no value. O(objects)."""
        return np.flatnonzero((self._known.members > 0) & (self._mode[: len(self._known.members)] == ABSENT))

    def _welcomes(self, reports: Sequence[Report], mended: Sequence[Order]) -> list[Order]:
        """The zones for sites that are new to objects which have some, unless all their sites hear of new ones."""
        orders: list[Order] = []
        for report in reports:
            if isinstance(report, Arrivals):
                zoned = self._mode[report.objects] == QUIET
                for order in mended:
                    zoned &= ~np.isin(report.objects, order.objects)
                if zoned.any():
                    orders.append(self._zonings(report.sites[zoned], report.objects[zoned]))
        return orders

    # -- single objects ------------------------------------------------------------------------------------------------

    def _held(self, one: int) -> bool:
        """Whether an object is certainly in its box, and may stay as it is."""
        mode = self._mode[one]
        if mode == ABSENT:
            return False
        mean, zones = self._known.mean(one), self._zones
        if mode == QUIET:
            share = 1.0 - 1.0 / zones.stretch[one]
            return bool(reserved(self._programs, zones, one, mean - zones.centre[one], share))
        self._heard[one] += 1
        zones.centre[one] = mean
        if inside(self._programs, zones, one, mean):
            return not self._calm(one)
        values = self._values(self._known.exact_mean(one))
        return bool(((self._low[one] <= values) & (values <= self._high[one])).all())

    def _share(self, one: int) -> float:
        return reserve_of(int(self._known.members[one])) if self._tuning.reserve else 0.0

    def _values(self, means: Floats) -> Floats:
        """The function values at a vector; NaN where there are none, unless that is the worst value."""
        found = values_at(self._programs, means)
        return with_worst(found) if self._nulls == "worst" else found

    def _zone_end(self, high: Floats) -> Floats:
        """Where a zone may end if its box ends there: below the values that have made room for what is missing."""
        return np.minimum(high, SEAM) if self._nulls == "worst" else high

    def _steps(self, one: int, means: Floats, values: Floats) -> Floats:
        return function_steps(self._programs, self._known.step[one], means, values)

    def _rooms(self, one: int, values: Floats) -> Floats:
        """From values to the nearer ends of the box; not positive where they are not inside."""
        with np.errstate(invalid="ignore", over="ignore"):
            found: Floats = np.minimum(self._high[one] - values, values - self._low[one])
        return found

    def _patience(self, one: int, means: Floats, values: Floats) -> float:
        """How many updates a site stays quiet, by the model of a random walk: the room over the step, squared."""
        steps = self._steps(one, means, values)
        with np.errstate(invalid="ignore", divide="ignore"):
            walks = (self._rooms(one, values) * (1.0 - self._share(one)) / steps) ** 2
        return float(np.where(steps > 0.0, walks, np.inf).min())

    def _restless(self, one: int, means: Floats, values: Floats) -> bool:
        """Whether telling everything is cheaper: a site's walk out of its zone costs a message, and the whole object's,
        n times as long, n messages more. And whether zones have not paid so far.
        """
        if not self._tuning.streaming:
            return False
        members, wait = int(self._known.members[one]), self._worth.wait[one]
        if self._mode[one] == TOLD and wait > 0:
            return bool(self._heard[one] < wait) or self._patience(one, means, values) <= CALM
        if (
            members > 2
            and (self._mode[one] == ABSENT or not self._known.step[one].any())
            and self._known.scattered(one)
        ):
            return True
        if self._patience(one, means, values) < 1.0 + 1.0 / members:
            return True
        return bool(self._mode[one] == QUIET) and self._worth.losing(one, members)

    def _calm(self, one: int) -> bool:
        """Whether an object of which all is told should have a zone again, which is clearly worth what it costs."""
        least = max(self._known.members[one], self._worth.wait[one])
        if self._heard[one] % CHECK or self._heard[one] < least or not self._tuning.zones:
            return False
        means = self._known.mean(one)
        return self._patience(one, means, self._values(means)) > CALM

    def _shifting(self, one: int) -> Order | None:
        """Have sites that spoke lately, and so have room, take over what the reserve cannot hold."""
        allowed = self._tuning.shifting and self._zones.stretch[one] > 1.0 and not self._shifted[one]
        if self._mode[one] != QUIET or not allowed:
            return None
        zones, members = self._zones, int(self._known.members[one])
        centre = zones.centre[one]
        surplus = self._known.mean(one) - centre
        count = 1
        while 2 * count <= members:
            if inside(self._programs, zones, one, centre + surplus * (2.0 * zones.stretch[one] * members / count)):
                break
            count *= 2
        else:
            return None
        self._shifted[one] = True
        self._worth.give(np.array([one]), np.array([count]))
        sites = self._known.recent(one, count)
        amount = self._known.shift(one, sites, surplus)
        self._pending.append(one)  # what rounding has left must still be held
        versions = np.full(count, self._versions[one])
        return Shifts(self._time, sites, np.full(count, one), versions, np.tile(amount, (count, 1)))

    # -- boxes ---------------------------------------------------------------------------------------------------------

    def _mended(self, left: Sequence[int], broken: Sequence[int]) -> list[Order]:
        """New centres where that is enough, new boxes where it is not; the orders that tell of them."""
        gone = [one for one in left if self._mode[one] != ABSENT]
        self._mode[list(left)] = ABSENT
        points, zoned, freed = [], [], []
        for one in broken:
            if self._centred(one):
                zoned.append(one)
                continue
            means = self._known.exact_mean(one)
            values = self._values(means)
            if not np.isnan(values).any():
                points.append((one, means, values))
            elif self._mode[one] == QUIET:
                freed.append(one)
            else:
                gone += self._undefined(one)
        if points or gone:
            for one in self._boxed(points, np.array(gone, np.int64)):
                (zoned if self._settled(one) else freed).append(one)
        return self._orders(zoned, freed)

    def _undefined(self, one: int) -> list[int]:
        """An object whose functions have no value, for certain: it does not compete."""
        if self._nulls == "error":
            raise InputError("a function has no value", value=one, remedy="choose the policy drop or worst")
        before, self._mode[one] = self._mode[one], ABSENT
        return [one] if before != ABSENT else []

    def _centred(self, one: int) -> bool:
        """Whether a new centre in the old box is enough: it has half of the room that the box gave when it was made."""
        if self._mode[one] != QUIET or not self._tuning.centring:
            return False
        means = self._known.mean(one)
        values = self._values(means)
        if not (self._rooms(one, values) >= 0.5 * self._room[one]).all() or self._restless(one, means, values):
            return False
        return self._zoned(one, means, values)

    def _zoned(self, one: int, means: Floats, values: Floats) -> bool:
        """Make a zone of a box around a centre: about as far in either direction, in each function.

        A walk between two ends leaves them, on average, where it began: what sites tell adds up to nothing. If one end
        were far away, sites would tell of the near one only, and use the reserve up while the mean has not moved. With
        the ends at a and b, what sites do not tell comes to (b - a) / 3 on average, for which the reserve has room.
        False where there is no zone, since the box has no extent that floats can show.
        """
        zones, near = self._zones, self._rooms(one, values)
        if not (near > 0.0).all():
            return False
        with np.errstate(invalid="ignore", over="ignore"):
            near = near * (1.0 + 3.0 * self._share(one) if self._tuning.symmetric else np.inf)
            low = np.maximum(self._low[one], values - near)
            high = np.minimum(self._zone_end(self._high[one]), values + near)
        before = [column[one].copy() for column in (zones.centre, zones.low, zones.high)]
        zones.centre[one], zones.low[one], zones.high[one] = means, low, high
        if inside(self._programs, zones, one, means):
            return True
        zones.centre[one], zones.low[one], zones.high[one] = before
        return False

    def _boxed(self, points: Sequence[tuple[int, Floats, Floats]], gone: Integers) -> list[int]:
        """New boxes for these objects and those that must be looked at again; whose are new."""
        told = self._said(points)
        asked = self._filter.start(self._time, told._replace(gone=np.setdiff1d(gone, told.clients)))
        while len(asked):
            answers = self._said([self._guess(one) for one in asked.tolist()])
            asked = self._filter.answered(
                Reports(Kind.ANSWER, self._time, answers.clients, answers.points, answers.floor, answers.roof)
            )
        found: list[int] = []
        for boxes in self._filter.settle():
            assert isinstance(boxes, Boxes)
            found += boxes.clients.tolist()
            self._low[boxes.clients], self._high[boxes.clients] = boxes.low, boxes.high
        return found

    def _guess(self, one: int) -> tuple[int, Floats, Floats]:
        """An object's values as far as they are known, which is in its box; anywhere in it where they are not."""
        means, low, high = self._known.exact_mean(one), self._low[one], self._high[one]
        values = self._values(means)
        return one, means, np.clip(np.where(np.isnan(values), 0.0, values), low, high)

    def _said(self, points: Sequence[tuple[int, Floats, Floats]]) -> Said:
        """Objects as clients of the filtering protocol, with the reach that they may have."""
        k = self._functions.k
        who = np.array([one for one, _, _ in points], np.int64)
        values = np.array([values for _, _, values in points]).reshape(-1, k)
        reach = np.array([self._steps(*each) for each in points]).reshape(-1, k) * WIDE
        with np.errstate(invalid="ignore", over="ignore"):
            scale = np.where(np.isfinite(values), np.abs(values), 0.0)
            reach = np.where(reach > 0.0, reach, UNKNOWN * scale + 1e-300)
            return Said(who, values, values - reach, values + reach, NONE, NONE)

    def _settled(self, one: int) -> bool:
        """Give an object its new box: whether sites can keep it in there by a zone."""
        means = self._known.exact_mean(one)
        values = self._values(means)
        self._room[one] = self._rooms(one, values)
        if self._tuning.zones and self._zoned(one, means, values) and not self._restless(one, means, values):
            return True
        self._zones.low[one], self._zones.high[one] = self._low[one], self._zone_end(self._high[one])
        return False

    # -- orders --------------------------------------------------------------------------------------------------------

    def _orders(self, zoned: Sequence[int], freed: Sequence[int]) -> list[Order]:
        """Tell sites: the zones of some objects, and that all of others is to be told."""
        orders: list[Order] = []
        if zoned:
            known = np.array([one for one in zoned if self._mode[one] != ABSENT], np.int64)  # a first zone is free
            self._worth.give(known, self._known.members[known])
            self._mode[list(zoned)] = QUIET
            self._versions[list(zoned)] += 1
            for one in zoned:
                self._zones.stretch[one] = 1.0 / (1.0 - self._share(one))
            orders.append(self._zonings(*self._everywhere(zoned)))
        quiet = [one for one in freed if self._mode[one] == QUIET]
        self._heard[[one for one in freed if self._mode[one] != TOLD]] = 0
        self._mode[list(freed)] = TOLD
        if quiet:
            self._versions[quiet] += 1
            self._pending += quiet
            sites, objects = self._everywhere(quiet)
            orders.append(Releases(self._time, sites, objects, self._versions[objects]))
        return orders

    def _everywhere(self, objects: Sequence[int]) -> tuple[Integers, Integers]:
        """All pairs of a site and one of the objects that it has."""
        places = [self._known.cells(one)[0] for one in objects]
        return np.concatenate(places), np.repeat(np.array(objects, np.int64), [len(each) for each in places])

    def _zonings(self, sites: Integers, objects: Integers) -> Zonings:
        zones = self._zones
        return Zonings(
            self._time,
            sites,
            objects,
            self._versions[objects],
            zones.stretch[objects],
            zones.centre[objects],
            zones.low[objects],
            zones.high[objects],
        )
