"""The filtering protocol's machines as bytes: the arrays and numbers that a new machine of the same kind has, too.

A machine is made anew from the query and then filled. What it only has within a timestamp is not stored.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from skytide.errors import StateError
from skytide.monitors.frequent.frequent import Frequent
from skytide.monitors.storage import HOSTILE, Parts, pack, unpack
from skytide.protocols.filtering.schedule import Schedule

KIND, VERSION = "FilteringRounds", 1
_PLAIN = (bool, int, float, str, type(None))


def dump(machine: Any) -> bytes:
    """A machine as bytes. O(its arrays)."""
    meta: dict[str, Any] = {}
    parts: Parts = {}
    for name in vars(machine):
        _take(name, getattr(machine, name), meta, parts)
    return pack(KIND, VERSION, meta, parts)


def _take(name: str, value: Any, meta: dict[str, Any], parts: Parts) -> None:
    if isinstance(value, np.ndarray):
        parts[name] = value
    elif isinstance(value, Frequent):
        parts[name] = np.frombuffer(value.to_bytes(), np.uint8)
    elif isinstance(value, Schedule):
        meta[name] = [value.seed, value.rate]
    elif isinstance(value, _PLAIN):
        meta[name] = value
    elif isinstance(value, deque):
        parts[f"{name}.times"] = np.array([time for time, _ in value], np.int64)
        parts[f"{name}.sizes"] = np.array([len(members) for _, members in value], np.int64)
        parts[f"{name}.members"] = np.concatenate([np.zeros(0, np.int64), *(members for _, members in value)])
    elif isinstance(value, tuple | list):
        for place, one in enumerate(value):
            _take(f"{name}.{place}", one, meta, parts)
    elif hasattr(value, "__dict__"):
        for inner, one in vars(value).items():
            _take(f"{name}.{inner}", one, meta, parts)
    else:
        meta[name] = str(value)  # of the query, such as a fraction: compared, not restored


def fill(machine: Any, blob: bytes) -> None:
    """Give a new machine what `dump` took of another; a `StateError` for any other bytes."""
    meta, parts = unpack(blob, KIND, VERSION)
    try:
        for name in vars(machine):
            setattr(machine, name, _given(name, getattr(machine, name), meta, parts))
    except HOSTILE as reason:
        raise StateError(
            f"the stored protocol is not in order ({str(reason)[:80]})", remedy="start with a new checkpoint"
        ) from None


def _given(name: str, value: Any, meta: dict[str, Any], parts: Parts) -> Any:
    if isinstance(value, Frequent):
        return Frequent.from_bytes(parts[name].tobytes())
    if name in parts:
        found = parts[name]
        if isinstance(value, np.ndarray) and (found.dtype != value.dtype or found.shape[1:] != value.shape[1:]):
            raise ValueError(f"{name} has another form")
        return found
    if isinstance(value, Schedule) or (value is None and isinstance(meta.get(name), list)):
        return Schedule(int(meta[name][0]), float(meta[name][1]))
    if isinstance(value, _PLAIN):
        return meta[name]
    if isinstance(value, deque):
        sizes = np.cumsum(parts[f"{name}.sizes"])
        pieces = np.split(parts[f"{name}.members"], sizes[:-1]) if len(sizes) else []
        return deque(zip(parts[f"{name}.times"].tolist(), pieces, strict=True))
    if isinstance(value, tuple | list):
        found_all = [_given(f"{name}.{place}", one, meta, parts) for place, one in enumerate(value)]
        return value._make(found_all) if hasattr(value, "_make") else type(value)(found_all)
    if hasattr(value, "__dict__"):
        for inner, one in vars(value).items():
            setattr(value, inner, _given(f"{name}.{inner}", one, meta, parts))
        return value
    if meta[name] != str(value):
        raise ValueError(f"{name} is {meta[name]}")
    return value
