"""The methods of the coordinator by name.

`central` has everything told. `pivot` and `direct` are those of papa14. `auto` is `direct` where objects are at about
the same sites, and hands over to `pivot` where they are not, or where it meets what it cannot watch.
"""

from __future__ import annotations

from typing import Any

from skytide.errors import OptionError
from skytide.protocols.fragmented.direct import DirectCoordinator
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.pivot import PivotCoordinator, Tuning

METHODS = ("central", "pivot", "direct", "auto")
PAIRED = ("direct", "auto")
"""The methods whose sites watch objects in pairs."""
WIDEST = 1.25
"""`auto` stretches drift by so much at most, because two objects are not at the same sites."""


def coordinator_of(method: str, functions: Functions, **options: Any) -> PivotCoordinator | DirectCoordinator:
    """The coordinator of a method; options are those of the coordinators."""
    if method == "central":
        return PivotCoordinator(functions, **{**options, "tuning": Tuning(zones=False)})
    if method == "pivot":
        return PivotCoordinator(functions, **options)
    if method in PAIRED:
        return DirectCoordinator(functions, widest=WIDEST if method == "auto" else float("inf"), **options)
    raise OptionError("is not a method", value=method, remedy=f"use one of {', '.join(METHODS)}")
