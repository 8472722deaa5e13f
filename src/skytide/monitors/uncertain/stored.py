"""An uncertain window as bytes and back: as a sliding window, and whether its rows are instances of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skytide.monitors.sliding.flow import TimeFlow
from skytide.monitors.sliding.stored import contents, fill, in_order, must, preference_and_options
from skytide.monitors.storage import Parts, pack, unpack
from skytide.monitors.uncertain.engine import TOLERANCE

if TYPE_CHECKING:
    from skytide.monitors.uncertain.window import UncertainWindow

KIND = "UncertainWindow"
VERSION = 1


def dump(window: UncertainWindow) -> bytes:
    """The window as bytes. O(retained rows, pending rows and live ids)."""
    meta, parts = contents(window)
    return pack(KIND, VERSION, meta | {"objects": window._objects}, parts)


def restore(blob: bytes, make: type[UncertainWindow]) -> UncertainWindow:
    """The window that `dump` wrote; a `StateError` for any other bytes."""
    meta, parts = unpack(blob, KIND, VERSION)
    with in_order():
        preference, options = preference_and_options(meta)
        window = make(preference, **options)
        must(meta["objects"] is None or isinstance(meta["objects"], bool), "kinds of rows")
        must(not meta["objects"] or (meta["handles"]["kind"] == "other" and window.method != "tree"), "objects")
        window._objects = meta["objects"]
        _check(window, parts, "", "arrivals")
        if isinstance(window._flow, TimeFlow):
            _check(window, parts, "pending_", "keys")
        fill(window, meta, parts)
        return window


def _check(window: UncertainWindow, parts: Parts, prefix: str, times: str) -> None:
    """Refuse probabilities that are none; and objects that are none: of two times, or more probable than certain."""
    chances, handles = parts[prefix + "values"][:, -1], parts[prefix + "handles"]
    must(bool(((chances >= 0) & (chances <= 1)).all()), "probabilities")
    if window._objects and len(handles):
        begins = np.concatenate(([True], handles[1:] != handles[:-1]))
        starts = np.flatnonzero(begins)
        must(len(np.unique(handles[starts])) == len(starts), "objects")
        for column in (parts[prefix + times], parts[prefix + "codes"]):
            must(bool((column[1:] == column[:-1])[~begins[1:]].all()), "objects")
        must(bool((np.add.reduceat(chances, starts) <= 1 + TOLERANCE).all()), "probabilities")
