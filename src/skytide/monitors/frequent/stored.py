"""A frequent-skyline monitor as bytes and back: who is in, the changes in the largest window, and the ended stays.

Counts and crossings are not stored: they follow from the changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skytide.kernel.frequent import CROSSINGS, SLOPES, STEPS
from skytide.model import Integers
from skytide.monitors.frequent.counts import Queued
from skytide.monitors.frequent.log import ENTERED, ENTERED_AT, LEFT, LEFT_AT
from skytide.monitors.frequent.pairs import NEVER
from skytide.monitors.sliding.clock import KINDS
from skytide.monitors.sliding.stored import in_order, must
from skytide.monitors.storage import Parts, pack, unpack

if TYPE_CHECKING:
    from skytide.monitors.frequent.frequent import Frequent

KIND = "Frequent"
VERSION = 1
_WORK = [SLOPES, CROSSINGS, STEPS]


def dump(monitor: Frequent) -> bytes:
    """The monitor as bytes. O(changes in the largest window, stays and ids)."""
    counts, ids, log = monitor._counts, monitor._ids, monitor._history.log
    numbers, queued, signs = counts.changes
    members = np.sort(counts.members)
    used = np.unique(np.concatenate((members, queued, log.slots)))
    remembers = monitor._history.asked is not False
    entries = monitor._history.entries[:, members] if remembers else np.zeros((2, len(members)), np.int64)
    meta: dict[str, Any] = {
        "options": monitor.options(),
        "tallies": monitor._tallies,
        "work": counts.meta[_WORK].tolist(),
        "now": counts.now,
        "time": {"kind": monitor._clock.kind, "latest": monitor._clock.latest, "horizon": log.horizon},
        "ids": ids.kind,
    }
    parts: Parts = {
        "ids": ids.ids(used),
        "queue": np.array((numbers, np.searchsorted(used, queued), signs)),
        "members": np.vstack((np.searchsorted(used, members), entries)),
        "stays": np.vstack((log.columns, np.searchsorted(used, log.slots))),
    }
    return pack(KIND, VERSION, meta, parts)


def restore(blob: bytes, make: type[Frequent]) -> Frequent:
    """The monitor that `dump` wrote; a `StateError` for any other bytes."""
    meta, parts = unpack(blob, KIND, VERSION)
    with in_order():
        monitor = make(**meta["options"])
        must(monitor.options() == meta["options"], "options")
        monitor._tallies = {name: _whole(meta["tallies"][name]) for name in monitor._tallies}
        now = _whole(meta["now"])
        must(now < NEVER // 2, "numbers")
        _restore_times(monitor, meta["time"], now)
        names = parts["ids"].tolist()
        form = object if meta["ids"] == "other" else np.int64
        must(meta["ids"] in (None, "integer", "other") and parts["ids"].dtype == form, "kinds of ids")
        monitor._ids.restore(meta["ids"], names)
        queue = _columns(parts, "queue", 3)
        members = _columns(parts, "members", 3)
        _check_queue(monitor, now, len(names), queue, members[0])
        monitor._counts.load(now, len(names), members[0], Queued(*queue))
        monitor._counts.meta[_WORK] = [_whole(amount) for amount in meta["work"]]
        _restore_history(monitor, meta["time"]["horizon"], queue, members, _columns(parts, "stays", 5))
        unused = np.flatnonzero(monitor._counts.uses[: len(names)] == 0)
        must(bool(np.isin(unused, members[0]).all()), "ids")
        return monitor


def _restore_times(monitor: Frequent, meta: dict[str, Any], now: int) -> None:
    clock, kind, latest = monitor._clock, meta["kind"], meta["latest"]
    must((kind is None) == (now == 0) and (kind is None or kind in KINDS), "kind of time")
    must(type(latest) is int and (now > 0 or latest == clock.latest), "times")
    if kind is not None:
        clock.settle(kind)
        must(clock.holds(np.array([latest], np.int64)), "times")
    clock.latest = latest


def _check_queue(monitor: Frequent, now: int, slots: int, queue: Integers, members: Integers) -> None:
    """Refuse changes and members that no series of snapshots leads to; compiled code trusts what is checked here."""
    numbers, names, signs = queue
    gone = now - max(pair.window for pair in monitor.pairs)
    must(_between(numbers, max(gone, 0) + 1, now) and bool((numbers[1:] >= numbers[:-1]).all()), "changes")
    must(_between(names, 0, slots - 1) and bool((np.abs(signs) == 1).all()), "changes")
    must(_between(members, 0, slots - 1) and len(np.unique(members)) == len(members), "members")
    order = np.lexsort((numbers, names))
    numbers, names, signs = numbers[order], names[order], signs[order]
    same = names[1:] == names[:-1]
    must(bool((~same | ((signs[1:] != signs[:-1]) & (numbers[1:] > numbers[:-1]))).all()), "changes")
    last = np.append(~same, True)[: len(names)]
    must(bool((np.isin(names[last], members) == (signs[last] > 0)).all()), "members")
    if gone <= 0:  # all that ever changed is in the queue: who is in has entered, and nobody left first
        first = np.insert(~same, 0, True)[: len(names)]
        must(bool((signs[first] > 0).all() and np.isin(members, names).all()), "members")


def _restore_history(monitor: Frequent, horizon: Any, queue: Integers, members: Integers, stays: Integers) -> None:
    history, counts, clock = monitor._history, monitor._counts, monitor._clock
    if history.asked is False:
        must(horizon is None and stays.shape[1] == 0, "stays")
        return
    must(_between(stays[4], 0, len(monitor._ids) - 1), "stays")
    history.restore(members, stays[:4], stays[4], horizon)
    columns, slots = history.every()
    ended = columns[:, : stays.shape[1]]
    must(_between(columns[ENTERED], 1, counts.now) and bool((columns[ENTERED] < columns[LEFT]).all()), "stays")
    must(_between(ended[LEFT], 1, counts.now) and _rising(ended[LEFT]) and _rising(ended[LEFT_AT]), "stays")
    must(clock.holds(columns[ENTERED_AT]) and clock.holds(ended[LEFT_AT]), "times of stays")
    must(bool((columns[ENTERED_AT] < columns[LEFT_AT]).all()), "times of stays")
    must(all(_between(one, -(2**63), clock.latest) for one in (columns[ENTERED_AT], ended[LEFT_AT])), "times of stays")
    order = np.lexsort((columns[ENTERED], slots))
    again = slots[order][1:] == slots[order][:-1]
    must(bool((columns[ENTERED, order[1:]] > columns[LEFT, order[:-1]])[again].all()), "stays")
    _check_bound(monitor, horizon, ended)
    _check_agreement(monitor, queue, columns, slots)


def _check_agreement(monitor: Frequent, queue: Integers, columns: Integers, slots: Integers) -> None:
    """Refuse stays that begin or end in the largest window without a change, and changes without a stay."""
    now = monitor._counts.now
    gone = now - max(pair.window for pair in monitor.pairs)
    changes = set(zip(*queue.tolist(), strict=True))
    known = set()
    for row, sign in ((ENTERED, 1), (LEFT, -1)):
        recent = (columns[row] > gone) & (columns[row] <= now)
        known |= {(*one, sign) for one in zip(columns[row][recent].tolist(), slots[recent].tolist(), strict=True)}
    must(known == changes if monitor._history.asked is True else known <= changes, "stays")


def _check_bound(monitor: Frequent, horizon: Any, ended: Integers) -> None:
    asked = monitor._history.asked
    if isinstance(asked, bool):
        must(horizon is None, "stays")
        return
    must(_between(ended[LEFT], monitor._counts.now - asked + 2, monitor._counts.now), "stays")
    must(horizon is None or (type(horizon) is int and monitor._clock.holds(np.array([horizon], np.int64))), "times")
    must(horizon is None or _between(ended[LEFT_AT], horizon, monitor._clock.latest), "times")


def _columns(parts: Parts, name: str, rows: int) -> Integers:
    found = parts[name]
    must(found.dtype == np.int64 and found.ndim == 2 and len(found) == rows, name)
    return found


def _between(values: Integers, least: int, most: int) -> bool:
    return not len(values) or (int(values.min()) >= least and int(values.max()) <= most)


def _rising(values: Integers) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _whole(value: Any) -> int:
    must(type(value) is int and 0 <= value < NEVER, "numbers")
    return int(value)
