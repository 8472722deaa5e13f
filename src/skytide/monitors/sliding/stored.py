"""A sliding window as bytes and back: its configuration, the retained and the pending rows, ids and tallies.

Engines are not stored: any engine that loads the retained rows has the same future.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from skytide.errors import StateError
from skytide.model import Preference
from skytide.monitors.sliding import admission
from skytide.monitors.sliding.clock import HIGHEST, KINDS, LOWEST
from skytide.monitors.sliding.engine import Engine, Rows
from skytide.monitors.sliding.flow import CountFlow, TimeFlow
from skytide.monitors.sliding.groups import Groups, canonical
from skytide.monitors.sliding.shedding import SheddingEngine
from skytide.monitors.sliding.waiting import Arrivals
from skytide.monitors.storage import HOSTILE, Parts, pack, unpack

if TYPE_CHECKING:
    from skytide.monitors.sliding.base import MovingWindow
    from skytide.monitors.sliding.scoring import ScoreFunction
    from skytide.monitors.sliding.window import SlidingWindow

KIND = "SlidingWindow"
VERSION = 1


def dump(window: SlidingWindow) -> bytes:
    """The window as bytes. O(retained rows, pending rows and live ids)."""
    return pack(KIND, VERSION, *contents(window))


def contents(window: MovingWindow) -> tuple[dict[str, Any], Parts]:
    """What there is to store of any window: plain values and arrays."""
    flow, clock = window._flow, window._clock
    retained = flow.retained()
    meta: dict[str, Any] = {
        "options": window.options(),
        "tallies": window._tallies,
        "work": {name: amount for name, amount in flow.counters().items() if name != "memory_bytes"},
        "handles": {"kind": window._handles.kind, "next": window._handles.next},
        "came_again": window._live.came_again,
        "groups": {"codes": list(window._groups.keys), "next": window._groups.next},
    }
    parts: Parts = {
        "codes": np.repeat(list(retained) or [0], [len(rows) for rows in retained.values()] or [0]).astype(np.int64),
        "values": np.concatenate([np.zeros((0, flow.dimensions)), *(rows.values for rows in retained.values())]),
        **{
            name: np.concatenate([np.zeros(0, np.int64), *(getattr(rows, name) for rows in retained.values())])
            for name in ("arrivals", "handles")
        },
        "known_handles": np.fromiter(window._handles.known, dtype=np.int64),
        "known_ids": _objects(window._handles.known.values()),
    }
    for position in range(len(window._groups.by)):
        parts[f"group_{position}"] = _objects(key[position] for key in window._groups.keys.values())
    if isinstance(flow, TimeFlow):
        assert clock is not None
        meta["time"] = {"kind": clock.kind, "latest": flow.latest, "closed": flow.closed}
        parts |= {f"pending_{name}": part for name, part in flow.waiting.all()._asdict().items()}
    else:
        meta["count"] = {"number": flow.number}
        parts["counted"] = np.array(list(flow.counts.items()), dtype=np.int64).reshape(-1, 2)
    for code, engine in flow.engines.items():
        if isinstance(engine, SheddingEngine):
            state = engine.shedder.state()
            state["numbers"][:-1] = 0  # what was counted is part of the window's work
            parts |= {f"shed_{code}_{name}": part for name, part in state.items()}
    admission.spread(window._live, flow)
    known = [(one, arrival) for one, held in window._live.arrivals.items() for arrival in _listed(held)]
    parts["live_ids"] = _objects(one for one, _ in known)
    width = 1 if isinstance(flow, TimeFlow) else 3
    parts["live_arrivals"] = np.array([arrival for _, arrival in known], dtype=np.int64).reshape(len(known), width)
    return meta, parts


def restore(blob: bytes, make: type[SlidingWindow], score: ScoreFunction | None = None) -> SlidingWindow:
    """The window that `dump` wrote; a `StateError` for any other bytes."""
    meta, parts = unpack(blob, KIND, VERSION)
    with in_order():
        if (meta["options"]["score"] == []) != (score is not None):
            raise StateError(
                "the stored window has " + ("no score function" if score else "a score function, which is not stored"),
                remedy="leave score out" if score else "give it again: from_bytes(blob, score=...)",
            )
        preference, options = preference_and_options(meta)
        if score is not None:
            options["score"] = score
        window = make(preference, **options)
        fill(window, meta, parts)
        return window


@contextmanager
def in_order() -> Iterator[None]:
    """Whatever stored parts of no window make Python raise is a `StateError`."""
    try:
        yield
    except StateError:
        raise
    except HOSTILE as reason:
        raise StateError(f"the stored window is not in order ({reason!r:.120})", remedy="store it again") from None


def preference_and_options(meta: dict[str, Any]) -> tuple[Preference, dict[str, Any]]:
    """What the stored window was made with."""
    options = dict(meta["options"])
    return Preference(**{role: tuple(options.pop(role)) for role in ("minimize", "maximize", "by")}), options


def fill(window: MovingWindow, meta: dict[str, Any], parts: Parts) -> None:
    """Give a new window the rows, ids, groups and tallies that `contents` took."""
    flow = window._flow
    window._tallies = {name: whole(meta["tallies"][name]) for name in window._tallies}
    flow.work = {**flow.work, **{str(name): whole(amount) for name, amount in meta["work"].items()}}
    window._live.came_again = bool(meta["came_again"])
    kind, number = meta["handles"]["kind"], whole(meta["handles"]["next"])
    must(kind in (None, "number", "integer", "other"), "kind of ids")
    window._handles.kind, window._handles.next = kind, number
    window._handles.known = dict(zip(parts["known_handles"].tolist(), parts["known_ids"].tolist(), strict=True))
    restore_groups(window._groups, meta, parts)
    retained, waiting = _rows(window, parts, ""), _rows(window, parts, "pending_") if window._clock else None
    if isinstance(flow, TimeFlow):
        _restore_time(flow, meta["time"])
        assert waiting is not None
        must(flow.clock.holds(waiting.keys) and bool((waiting.keys > flow.closed).all()), "times")
        flow.waiting.add(waiting, flow.closed)
    else:
        flow.number = whole(meta["count"]["number"])
        flow.counts = {code: whole(count) for code, count in parts["counted"].tolist()}
    _load_engines(flow, retained, parts)
    for one, arrival in zip(parts["live_ids"].tolist(), parts["live_arrivals"].tolist(), strict=True):
        held = window._live.arrivals.get(one)
        fresh = int(arrival[0]) if isinstance(flow, TimeFlow) else tuple(map(int, arrival))
        window._live.arrivals[one] = fresh if held is None else [*_listed(held), fresh]


def restore_groups(groups: Groups, meta: dict[str, Any], parts: Parts) -> None:
    """Give the groups of a new monitor their stored codes."""
    if groups.by:
        columns = [parts[f"group_{position}"].tolist() for position in range(len(groups.by))]
        for code, key in zip(meta["groups"]["codes"], zip(*columns, strict=True), strict=True):
            groups.add(tuple(map(canonical, key)), whole(code))
        must(len(groups.codes) == len(groups.keys) and groups.next <= whole(meta["groups"]["next"]), "groups")
        groups.next = meta["groups"]["next"]


def _restore_time(flow: TimeFlow, meta: dict[str, Any]) -> None:
    if meta["kind"] is not None:
        must(meta["kind"] in KINDS, "kind of time")
        flow.clock.settle(meta["kind"])
    flow.latest, flow.closed = whole(meta["latest"], LOWEST), whole(meta["closed"], LOWEST)


def _rows(window: MovingWindow, parts: Parts, prefix: str) -> Arrivals:
    """Retained or waiting rows; compiled code will trust what is checked here."""
    times = "keys" if prefix else "arrivals"
    rows = Arrivals(*(parts[prefix + name] for name in ("values", "codes", "handles", times)))
    n = len(rows.handles)
    must(rows.values.dtype == np.float64 and rows.values.shape == (n, window._flow.dimensions), "values")
    must(not np.isnan(rows.values).any(), "values")
    must(all(column.dtype == np.int64 and column.shape == (n,) for column in rows[1:]), "columns")
    must(set(rows.codes.tolist()) <= (window._groups.keys.keys() if window._groups.by else {0}), "groups")
    must(window._handles.kind != "other" or window._handles.known.keys() >= set(rows.handles.tolist()), "ids")
    return rows


def _load_engines(flow: CountFlow | TimeFlow, retained: Arrivals, parts: Parts) -> None:
    shedding = {int(name.split("_")[1]) for name in parts if name.startswith("shed_")}
    for code in sorted(shedding.union(retained.codes.tolist())):
        mine = retained.pick(np.flatnonzero(retained.codes == code))
        now = flow.closed if isinstance(flow, TimeFlow) else flow.counts[code]
        timely = flow.clock.holds(mine.keys) if isinstance(flow, TimeFlow) else bool((mine.keys >= 1).all())
        must(timely and bool((mine.keys <= now).all() and (mine.keys[1:] >= mine.keys[:-1]).all()), "times")
        expiries = flow.clock.expiries(mine.keys) if isinstance(flow, TimeFlow) else mine.keys + flow.length
        engine = flow.engine(code)
        engine.load(Rows(mine.values, mine.keys, expiries, mine.handles), now)
        _restore_shedder(engine, code, parts)
        if isinstance(flow, TimeFlow):
            flow.wake(code, engine.next_event())


def whole(value: Any, least: int = 0) -> int:
    """A stored whole number that a monitor could have."""
    must(type(value) is int and least <= value <= HIGHEST, "numbers")
    return int(value)


def must(holds: bool, what: str) -> None:
    """A `StateError` that says what is wrong, unless it holds."""
    if not holds:
        raise StateError(f"the stored window's {what} are not in order", remedy="store it again")


def _restore_shedder(engine: Engine, code: int, parts: Parts) -> None:
    if isinstance(engine, SheddingEngine):
        prefix = f"shed_{code}_"
        engine.shedder.restore(
            {name.removeprefix(prefix): part for name, part in parts.items() if name.startswith(prefix)}
        )


def _objects(values: Any) -> npt.NDArray[Any]:
    return np.fromiter(values, dtype=object)


def _listed(held: Any) -> list[Any]:
    return held if isinstance(held, list) else [held]
