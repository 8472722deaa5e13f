"""The methods of the coordinator by name."""

from __future__ import annotations

from typing import Any

from skytide.errors import OptionError
from skytide.protocols.fragmented.direct import DirectCoordinator
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.pivot import PivotCoordinator

METHODS = ("central", "pivot", "direct", "auto")


def coordinator_of(method: str, functions: Functions, **options: Any) -> PivotCoordinator | DirectCoordinator:
    """The coordinator of a method."""
    if method == "pivot":
        return PivotCoordinator(functions, **options)
    if method == "direct":
        return DirectCoordinator(functions, **options)
    raise OptionError("is not a method", value=method, remedy=f"use one of {', '.join(METHODS)}")
