"""Whether kernels of the sites' side are compiled: the one place that decides, and what they need to run either way.

With numba they are. Where it is missing, or `SKYTIDE_PLAIN=1` is in the environment when this is imported, they are the
Python functions that they are written as: a site starts quickly and needs numpy alone, and is slow where it has many
rows. Both give the same bits. What Python does otherwise than compiled code goes through here: it raises where that has
an infinity or no number, and an element of an array is no plain number, hence slow, and warns. All other kernels are
compiled always.
"""

# mypy: disable-error-code="no-any-return"
# (compiled functions have no types for mypy)

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from skytide.model import Floats

__all__ = ["PLAIN", "entrance", "exp", "inline", "lean", "log", "njit", "over", "power", "row_of"]

PLAIN = os.environ.get("SKYTIDE_PLAIN") == "1"
"""Whether nothing is compiled."""

if not PLAIN:
    try:
        from numba import njit
    except ImportError:
        PLAIN = True

_LEAN = {"cache": True, "_nrt": False, "error_model": "numpy"}

if PLAIN:

    def njit(**_: Any) -> Callable[[Any], Any]:
        """In place of numba's: leaves a function as it is."""
        return lambda function: function


lean = njit(**_LEAN)
"""Compiles a function that makes no array. Arrays that it is handed stay uncounted: with a dozen of them in a tree,
counting references up and down around every call costs more than the call."""
inline = njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_LEAN)
"""The same for a function that becomes part of whatever compiled one calls it."""


# -- what is written the same and done otherwise -----------------------------------------------------------------------

if PLAIN:

    def entrance(function: Callable[..., Any]) -> Callable[..., Any]:
        """Makes a kernel one that is called with arrays, by themselves or in named tuples.

        It is given views of them, whose elements are plain numbers. Views of a tuple are kept until another comes in
        its place: to make those of a block's dozens of arrays takes longer than a row or two.
        """
        kept: dict[int, tuple[Any, Any]] = {}

        def views(place: int, columns: Any) -> Any:
            before = kept.get(place)
            if before is None or before[0] is not columns:
                before = kept[place] = columns, type(columns)._make(memoryview(column) for column in columns)
            return before[1]

        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            seen = list(arguments)
            for place, argument in enumerate(arguments):
                if isinstance(argument, np.ndarray):
                    seen[place] = memoryview(argument)  # type: ignore[arg-type]
                elif isinstance(argument, tuple):
                    seen[place] = views(place, argument)
            return function(*seen)

        return call

    def row_of(matrix: Any, place: int) -> Any:
        """A row of a matrix, to be read. O(columns)."""
        return [matrix[place, column] for column in range(matrix.shape[1])]

    def exp(x: float) -> float:
        """As in C: infinite where it is too large."""
        try:
            return math.exp(x)
        except OverflowError:
            return math.inf

    def log(x: float) -> float:
        """As in C: -inf at 0, and no number below it."""
        if x > 0.0:
            return math.log(x)
        return -math.inf if x == 0.0 else math.nan

    def power(x: float, y: float) -> float:
        """As in C: infinite where it is too large or 0 has a negative exponent, no number for a root below 0."""
        try:
            return math.pow(x, y)
        except OverflowError:
            pass
        except ValueError:
            if x != 0.0:
                return math.nan
        odd = math.fmod(y, 2.0) in (-1.0, 1.0)
        return math.copysign(math.inf, x) if odd else math.inf

    def over(x: float, y: float) -> float:
        """As in C: x / y, infinite or no number where y is 0."""
        if y != 0.0:
            return x / y
        if x == 0.0 or x != x:
            return math.nan
        return math.copysign(math.inf, x) * math.copysign(1.0, y)

else:

    def entrance(function: Callable[..., Any]) -> Callable[..., Any]:
        """Makes a kernel one that is called with arrays, by itself or in named tuples: compiled ones are."""
        return function

    exp, log = cast(Any, math.exp), cast(Any, math.log)

    @njit(inline="always")  # as text: a function that counts no references cannot be given an array by another
    def row_of(matrix: Floats, place: int) -> Floats:
        """A row of a matrix, to be read. O(1)."""
        return matrix[place]

    @inline
    def power(x: float, y: float) -> float:
        """x ** y."""
        return x**y

    @inline
    def over(x: float, y: float) -> float:
        """x / y."""
        return x / y
