"""Which engine an uncertain window gets: the one asked for, or the one that `auto` means.

`scan` is the paper's trivial algorithm, `tree` its aggregate R-tree, `auto` the scan by cells. The latter outruns both
on every stream of the paper: its rows are dropped after a handful of dominators, so that a scan of a few bytes per
candidate costs less than the upkeep of a tree. Where probabilities and thresholds are so small that most of the window
is in the answer (P = 1e-4 and q = 5e-5, say), each row changes thousands of others; there the tree, which changes whole
boxes at once, is the faster one and can be asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from skytide.errors import OptionError
from skytide.monitors.uncertain.engine import UncertainEngine

_ENGINES = {
    "auto": "skytide.monitors.uncertain.cells:CellsEngine",
    "tree": "skytide.monitors.uncertain.tree:TreeEngine",
    "scan": "skytide.monitors.uncertain.scan:ScanEngine",
}
METHODS = tuple(_ENGINES)


def make_engine(dimensions: int, thresholds: Sequence[float], method: str = "auto") -> UncertainEngine:
    """An engine for thresholds in falling order, by the method's name. Imports compiled code.

    >>> type(make_engine(2, [0.5, 0.3], method="scan")).__name__
    'ScanEngine'
    """
    module, name = _ENGINES[check_method(method)].split(":")
    engine: UncertainEngine = getattr(import_module(module), name)(dimensions, thresholds)
    return engine


def check_method(method: str) -> str:
    """The method itself, or an error that names the three."""
    if method not in METHODS:
        raise OptionError("is not a method", value=method, remedy=f"use one of: {', '.join(METHODS)}")
    return method
