"""A sliding window as bytes and back: its configuration, the retained and the pending rows, ids and tallies.

Engines are not stored: any engine that loads the retained rows has the same future.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from skytide.errors import StateError
from skytide.model import Preference
from skytide.monitors.sliding.engine import Engine, Rows
from skytide.monitors.sliding.flow import Arrivals, CountFlow, TimeFlow
from skytide.monitors.sliding.shedding import SheddingEngine
from skytide.monitors.storage import Parts, pack, unpack

if TYPE_CHECKING:
    from skytide.monitors.sliding.scoring import ScoreFunction
    from skytide.monitors.sliding.window import SlidingWindow

KIND = "SlidingWindow"
VERSION = 1


def dump(window: SlidingWindow) -> bytes:
    """The window as bytes. O(retained rows, pending rows and live ids)."""
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
            for name in ("arrivals", "expiries", "handles")
        },
        "known_handles": np.fromiter(window._handles.known, dtype=np.int64),
        "known_ids": _objects(window._handles.known.values()),
    }
    for position in range(len(window._groups.by)):
        parts[f"group_{position}"] = _objects(key[position] for key in window._groups.keys.values())
    if isinstance(flow, TimeFlow):
        assert clock is not None
        meta["time"] = {"kind": clock.kind, "latest": flow.latest, "closed": flow.closed}
        parts |= {f"pending_{name}": part for name, part in flow.pending._asdict().items()}
    else:
        meta["count"] = {"number": flow.number}
        parts["counted"] = np.array(list(flow.counts.items()), dtype=np.int64).reshape(-1, 2)
    for code, engine in flow.engines.items():
        if isinstance(engine, SheddingEngine):
            state = engine.shedder.state()
            state["numbers"][:-1] = 0  # what was counted is part of the window's work
            parts |= {f"shed_{code}_{name}": part for name, part in state.items()}
    known = [(one, arrival) for one, held in window._live.arrivals.items() for arrival in _listed(held)]
    parts["live_ids"] = _objects(one for one, _ in known)
    width = 1 if isinstance(flow, TimeFlow) else 3
    parts["live_arrivals"] = np.array([arrival for _, arrival in known], dtype=np.int64).reshape(len(known), width)
    return pack(KIND, VERSION, meta, parts)


def restore(blob: bytes, make: type[SlidingWindow], score: ScoreFunction | None = None) -> SlidingWindow:
    """The window that `dump` wrote; a `StateError` for any other bytes."""
    meta, parts = unpack(blob, KIND, VERSION)
    try:
        if (meta["options"]["score"] == []) != (score is not None):
            raise StateError(
                "the stored window has " + ("no score function" if score else "a score function, which is not stored"),
                remedy="leave score out" if score else "give it again: from_bytes(blob, score=...)",
            )
        return _rebuild(meta, parts, make, score)
    except (KeyError, TypeError, IndexError) as reason:
        raise StateError(f"the stored window lacks something ({reason!r})", remedy="store it again") from None


def _rebuild(
    meta: dict[str, Any], parts: Parts, make: type[SlidingWindow], score: ScoreFunction | None
) -> SlidingWindow:
    options = dict(meta["options"])
    preference = Preference(**{role: tuple(options.pop(role)) for role in ("minimize", "maximize", "by")})
    if score is not None:
        options["score"] = score
    window = make(preference, **options)
    flow = window._flow
    window._tallies = meta["tallies"]
    flow.work = meta["work"]
    window._live.came_again = meta["came_again"]
    window._handles.kind, window._handles.next = meta["handles"]["kind"], meta["handles"]["next"]
    window._handles.known = dict(zip(parts["known_handles"].tolist(), parts["known_ids"].tolist(), strict=True))
    columns = [parts[f"group_{position}"].tolist() for position in range(len(preference.by))]
    if preference.by:
        for code, key in zip(meta["groups"]["codes"], zip(*columns, strict=True), strict=True):
            window._groups.add(key, code)
        window._groups.next = meta["groups"]["next"]
    if isinstance(flow, TimeFlow):
        if meta["time"]["kind"] is not None:
            flow.clock.settle(meta["time"]["kind"])
        flow.latest, flow.closed = meta["time"]["latest"], meta["time"]["closed"]
        flow.pending = Arrivals(*(parts[f"pending_{name}"] for name in Arrivals._fields))
    else:
        flow.number = meta["count"]["number"]
        flow.counts = dict(parts["counted"].tolist())
    _load_engines(flow, parts)
    for one, arrival in zip(parts["live_ids"].tolist(), parts["live_arrivals"].tolist(), strict=True):
        held = window._live.arrivals.get(one)
        fresh = arrival[0] if len(arrival) == 1 else tuple(arrival)
        window._live.arrivals[one] = fresh if held is None else [*_listed(held), fresh]
    return window


def _load_engines(flow: CountFlow | TimeFlow, parts: Parts) -> None:
    shedding = {int(name.split("_")[1]) for name in parts if name.startswith("shed_")}
    for code in sorted(shedding.union(parts["codes"].tolist())):
        mine = parts["codes"] == code
        rows = Rows(parts["values"][mine], parts["arrivals"][mine], parts["expiries"][mine], parts["handles"][mine])
        engine = flow.engine(code)
        engine.load(rows, flow.closed if isinstance(flow, TimeFlow) else flow.counts[code])
        _restore_shedder(engine, code, parts)
        if isinstance(flow, TimeFlow):
            flow.wake(code, engine.next_event())


def _restore_shedder(engine: Engine, code: int, parts: Parts) -> None:
    if isinstance(engine, SheddingEngine):
        prefix = f"shed_{code}_"
        engine.shedder.restore(
            {name.removeprefix(prefix): part for name, part in parts.items() if name.startswith(prefix)}
        )


def _objects(values: Any) -> npt.NDArray[Any]:
    listed = list(values)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return column


def _listed(held: Any) -> list[Any]:
    return held if isinstance(held, list) else [held]
