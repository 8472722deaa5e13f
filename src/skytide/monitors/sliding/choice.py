"""Which engine a window gets: the one asked for, or the one that `auto` picks."""

from __future__ import annotations

from functools import partial

from skytide.errors import OptionError
from skytide.monitors.sliding.engines import load_engine
from skytide.monitors.sliding.flow import MakeEngine

METHODS = ("auto", "lazy", "eager")
INDEXES = ("auto", "list", "rtree")


def maker(method: str, index: str, dimensions: int) -> MakeEngine:
    """A function that makes engines of the wanted kind, one per group."""
    if method not in METHODS:
        raise OptionError("is not a method", value=method, remedy=f"use one of: {', '.join(METHODS)}")
    if index not in INDEXES:
        raise OptionError("is not an index", value=index, remedy=f"use one of: {', '.join(INDEXES)}")
    chosen = ("eager" if method == "auto" else method, "list" if index == "auto" else index)
    return partial(load_engine(*chosen), dimensions)
