"""A monitor of snapshots as bytes and back: its options, the objects, the pending rows and the tallies.

Engines are not stored: any engine that loads the objects has the same future.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skytide.monitors.sliding.clock import KINDS, LOWEST
from skytide.monitors.sliding.stored import in_order, must, preference_and_options, restore_groups, whole
from skytide.monitors.sliding.waiting import Arrivals
from skytide.monitors.snapshots.objects import NOWHERE
from skytide.monitors.storage import Parts, pack, unpack

if TYPE_CHECKING:
    from skytide.monitors.snapshots.snapshots import Snapshots

KIND = "Snapshots"
VERSION = 1


def dump(monitor: Snapshots) -> bytes:
    """The monitor as bytes. O(objects and pending rows)."""
    objects, names, known = monitor._objects, monitor._names, len(monitor._names)
    waiting = monitor._waiting.all()
    kept = objects.present[:known].copy()
    kept[waiting.handles] = True
    numbers = np.flatnonzero(kept)
    fresh = np.cumsum(kept) - 1
    meta: dict[str, Any] = {
        "options": monitor.options(),
        "tallies": monitor._tallies,
        "work": {k: v for k, v in objects.counters().items() if k not in ("memory_bytes", "candidates")},
        "ids": names.kind,
        "time": {"kind": monitor._clock.kind, "latest": monitor._latest, "closed": monitor._closed},
        "groups": {"codes": list(monitor._groups.keys), "next": monitor._groups.next},
    }
    parts: Parts = {
        "ids": names.ids(numbers),
        "values": objects.values[numbers],
        "present": objects.present[numbers],
        "home": objects.home[numbers],
        "pending_values": waiting.values,
        "pending_codes": waiting.codes,
        "pending_objects": fresh[waiting.handles].astype(np.int64) if known else waiting.handles,
        "pending_keys": waiting.keys,
    }
    for position in range(len(monitor._groups.by)):
        column = (key[position] for key in monitor._groups.keys.values())
        parts[f"group_{position}"] = np.fromiter(column, dtype=object)
    return pack(KIND, VERSION, meta, parts)


def restore(blob: bytes, make: type[Snapshots]) -> Snapshots:
    """The monitor that `dump` wrote; a `StateError` for any other bytes."""
    meta, parts = unpack(blob, KIND, VERSION)
    with in_order():
        preference, options = preference_and_options(meta)
        monitor = make(preference, **options)
        restore_groups(monitor._groups, meta, parts)
        _restore_time(monitor, meta["time"])
        _restore_objects(monitor, meta, parts)
        _restore_pending(monitor, parts)
        monitor._tallies = {name: whole(meta["tallies"][name], -(2**62)) for name in monitor._tallies}
        work = {str(name): whole(amount) for name, amount in meta["work"].items()}
        fresh = monitor._objects.counters()
        # What loading took is not part of the work that was stored.
        monitor._objects.work = {name: amount - fresh.get(name, 0) for name, amount in work.items()}
        return monitor


def _restore_time(monitor: Snapshots, meta: dict[str, Any]) -> None:
    if meta["kind"] is not None:
        must(meta["kind"] in KINDS, "kind of time")
        monitor._clock.settle(meta["kind"])
    monitor._latest, monitor._closed = whole(meta["latest"], LOWEST), whole(meta["closed"], LOWEST)
    must((monitor._clock.kind is None) == (monitor._latest == LOWEST), "kind of time")
    must(monitor._latest == LOWEST or monitor._clock.holds(np.array([monitor._latest])), "times")
    must(monitor._closed <= monitor._latest, "times")


def _restore_objects(monitor: Snapshots, meta: dict[str, Any], parts: Parts) -> None:
    ids, values, present, home = (parts[name] for name in ("ids", "values", "present", "home"))
    n, d = len(ids), monitor.preference.dimensions
    must(meta["ids"] in (None, "integer", "other") and (n == 0 or meta["ids"] is not None), "kind of ids")
    must(meta["ids"] != "integer" or ids.dtype == np.int64, "ids")
    must(values.dtype == np.float64 and values.shape == (n, d), "values")
    must(present.dtype == bool and present.shape == (n,) and home.dtype == np.int64 and home.shape == (n,), "objects")
    must(monitor.nulls == "worst" or not np.isnan(values[present]).any(), "values")
    known = monitor._groups.keys.keys() if monitor.preference.by else {0}
    must(set(home[present].tolist()) <= set(known) and bool((home[~present] == NOWHERE).all()), "groups")
    monitor._names.restore(meta["ids"], ids.tolist())
    must(len(set(ids.tolist())) == n and not any(one is None or one != one for one in ids.tolist()), "ids")
    monitor._objects.fill(values, present, home)


def _restore_pending(monitor: Snapshots, parts: Parts) -> None:
    names = ("pending_values", "pending_codes", "pending_objects", "pending_keys")
    waiting = Arrivals(*(parts[name] for name in names))
    n, d = len(waiting.keys), monitor.preference.dimensions
    must(waiting.values.dtype == np.float64 and waiting.values.shape == (n, d), "pending rows")
    must(all(column.dtype == np.int64 and column.shape == (n,) for column in waiting[1:]), "pending rows")
    must(bool(((waiting.handles >= 0) & (waiting.handles < len(monitor._names))).all()), "pending rows")
    must(n == 0 or monitor._clock.kind is not None, "kind of time")
    must(monitor._clock.holds(waiting.keys) and bool((waiting.keys > monitor._closed).all()), "times")
    must(bool((waiting.keys <= monitor._latest).all()), "times")
    missing = np.isnan(waiting.values)
    deletes, groups = missing.all(axis=1), waiting.codes >> 2
    if monitor.preference.by:
        must(bool(((groups == NOWHERE) == deletes).all()), "groups")
        groups = groups[~deletes]
    must(set(groups.tolist()) <= (monitor._groups.keys.keys() if monitor.preference.by else {0}), "groups")
    partial = missing.any(axis=1) & ~deletes
    must(monitor.nulls == "worst" or not partial.any(), "pending rows")
    monitor._waiting.add(waiting, monitor._closed)
    monitor._calculates = bool((waiting.codes & 3).any())
