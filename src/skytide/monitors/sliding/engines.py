"""The engines by name: what each combination of method and index is, loaded when first asked for.

A new engine is one more line here; the contract tests find it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from skytide.monitors.sliding.engine import Engine

ENGINES: dict[tuple[str, str], str] = {
    ("lazy", "list"): "skytide.monitors.sliding.lazy:LazyList",
    ("lazy", "rtree"): "skytide.monitors.sliding.lazy:LazyRtree",
    ("eager", "list"): "skytide.monitors.sliding.eager_list:EagerList",
    ("eager", "rtree"): "skytide.monitors.sliding.eager_rtree:EagerRtree",
}


def load_engine(method: str, index: str) -> Callable[[int], Engine]:
    """The class of an engine; called with the number of dimensions it gives one. Imports compiled code.

    >>> load_engine("eager", "rtree").__name__
    'EagerRtree'
    """
    module, name = ENGINES[method, index].split(":")
    engine: Callable[[int], Engine] = getattr(import_module(module), name)
    return engine
