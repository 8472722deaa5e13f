"""Skytide keeps Pareto-optimal answers (skylines) true while the data moves.

Importing this module is cheap: compiled code, Spark and plotting are loaded by the parts that use them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "AsyncSite": "skytide.runtime.network.site",
    "Change": "skytide.model",
    "Changes": "skytide.model",
    "Frequent": "skytide.monitors.frequent.frequent",
    "Ledger": "skytide.model",
    "Preference": "skytide.model",
    "Site": "skytide.runtime.network.site",
    "SkytideError": "skytide.errors",
    "SlidingWindow": "skytide.monitors.sliding.window",
    "Snapshots": "skytide.monitors.snapshots.snapshots",
    "UncertainWindow": "skytide.monitors.uncertain.window",
    "Window": "skytide.model",
    "plot": "skytide.batch",
    "skyline": "skytide.batch",
}

if TYPE_CHECKING:
    from skytide.batch import plot, skyline
    from skytide.errors import SkytideError
    from skytide.model import Change, Changes, Ledger, Preference, Window
    from skytide.monitors.frequent.frequent import Frequent
    from skytide.monitors.sliding.window import SlidingWindow
    from skytide.monitors.snapshots.snapshots import Snapshots
    from skytide.monitors.uncertain.window import UncertainWindow
    from skytide.runtime.network.site import AsyncSite, Site

__all__ = [
    "AsyncSite",
    "Change",
    "Changes",
    "Frequent",
    "Ledger",
    "Preference",
    "Site",
    "SkytideError",
    "SlidingWindow",
    "Snapshots",
    "UncertainWindow",
    "Window",
    "plot",
    "skyline",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'skytide' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
