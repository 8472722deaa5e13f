"""The methods by name."""

from __future__ import annotations

from collections.abc import Callable

from skytide.monitors.snapshots.engine import Engine

METHODS = ("auto", "mbr", "recompute")


def maker(method: str, dimensions: int, patience: int) -> Callable[[], Engine]:
    """A function that makes engines of a method; compiled code is loaded when the first one is made."""

    def make() -> Engine:
        if method == "recompute":
            from skytide.monitors.snapshots.recompute import RecomputeEngine

            return RecomputeEngine(dimensions)
        if method == "mbr":
            from skytide.monitors.snapshots.boxes import BoxEngine

            return BoxEngine(dimensions, patience=patience)
        from skytide.monitors.snapshots.auto import AutoEngine

        return AutoEngine(dimensions, patience=patience)

    return make
