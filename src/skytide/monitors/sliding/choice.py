"""Which engine a window gets: the one asked for, or the one that `auto` picks."""

from __future__ import annotations

from functools import partial

from skytide.errors import OptionError
from skytide.monitors.sliding.auto import AutoEngine
from skytide.monitors.sliding.engines import load_engine
from skytide.monitors.sliding.flow import MakeEngine
from skytide.monitors.sliding.shedding import Shedder, SheddingEngine
from skytide.monitors.sliding.skyband import SkybandEngine

METHODS = ("auto", "lazy", "eager")
INDEXES = ("auto", "list", "rtree")


def maker(method: str, index: str, dimensions: int, k: int = 1, capacity: int | None = None) -> MakeEngine:
    """A function that makes engines of the wanted kind, one per group."""
    if method not in METHODS:
        raise OptionError("is not a method", value=method, remedy=f"use one of: {', '.join(METHODS)}")
    if index not in INDEXES:
        raise OptionError("is not an index", value=index, remedy=f"use one of: {', '.join(INDEXES)}")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise OptionError("is not a number of rows for k", value=k, remedy="give a whole number from 1")
    if k != 1:
        if method == "lazy" or index == "rtree":
            raise OptionError(
                f"a window with k = {k} is kept by Eager over a list", remedy="leave method and index out"
            )
        if capacity is not None:
            raise OptionError("load is shed for skylines only", remedy="leave capacity out, or k")
        return partial(SkybandEngine, dimensions, k)
    chosen = "eager" if method == "auto" else method
    engine = partial(AutoEngine, method=chosen) if index == "auto" else load_engine(chosen, index)
    if capacity is None:
        return partial(engine, dimensions)
    Shedder(capacity)  # refuses what is not a capacity now, not at the first row
    return lambda: SheddingEngine(engine(dimensions), capacity)
