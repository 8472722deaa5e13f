"""The methods of the coordinator by name.

`central` has everything told. `pivot` and `direct` are those of papa14. `auto` is `direct` for one or two functions, if
objects are at about the same sites and few of them are in the skyline; it hands over to `pivot` where that is not so,
or where it meets what it cannot watch. For three functions and more it is `pivot`: neighbours on each of many functions
are close to each other.
"""

from __future__ import annotations

from typing import Any

from skytide.errors import OptionError
from skytide.protocols.fragmented.direct import DirectCoordinator
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.pivot import PivotCoordinator
from skytide.protocols.fragmented.tuning import CROWDED, WIDEST, Tuning

METHODS = ("central", "pivot", "direct", "auto")
MOST_PAIRED = 2
"""`auto` watches so many functions in pairs at most."""


def pairs_of(method: str, functions: Functions) -> bool:
    """Whether a method has sites watch objects in pairs, for which their bounds must be comparable."""
    return method == "direct" or (method == "auto" and functions.k <= MOST_PAIRED)


def coordinator_of(method: str, functions: Functions, **options: Any) -> PivotCoordinator | DirectCoordinator:
    """The coordinator of a method; options are those of the coordinators."""
    if method == "central":
        return PivotCoordinator(functions, **{**options, "tuning": Tuning(zones=False)})
    if method == "pivot" or (method == "auto" and not pairs_of(method, functions)):
        return PivotCoordinator(functions, **options)
    if method in ("direct", "auto"):
        limits: dict[str, Any] = {"widest": WIDEST, "most": CROWDED} if method == "auto" else {}
        return DirectCoordinator(functions, **limits, **options)
    raise OptionError("is not a method", value=method, remedy=f"use one of {', '.join(METHODS)}")
