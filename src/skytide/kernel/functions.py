"""Functions of averaged vectors, compiled: their values, and bounds that the drift vector alone decides.

After Papapetrou, Garofalakis, "Continuous Fragmented Skylines over Distributed Streams" (ICDE 2014, papa14). An
object's global vector v is an average of its sites' drift vectors u, all seen from one common estimate e. Each site
must know that g(v) stays at or below h (or at or above it) from its own u. The paper looks for the largest g over the
ball between e and u. Here *above* is a function of u, equal at all sites, whose level sets are convex and which is
nowhere below g: if it is at most h at every u, it is so at their average, and so is g. *below* is its mirror image. No
ball is needed.

Both come from one walk through the expression. For each part two functions of u are kept, a convex one that is never
below the part and a concave one that is never above it: a convex increasing function of a convex function is convex; a
concave function is replaced by its tangent at e; a product is the difference of two squares. So *above* of a convex g
is g itself and *above* of a concave g is its tangent. Where nothing is added afterwards it is enough that level sets
are convex: an increasing function at the top is applied as it is, a quotient at the top needs no tangent.

Everything is padded, so that it also holds for values as they are computed: with each operation rounded, at a mean that
is a rounded sum over n, from vectors u that may be wrong themselves by `DRIFT` times |u| + |e| on each component. The
pads are convex too. A part that might be without a value, or infinite, makes the bounds infinite.
"""

# mypy: disable-error-code="no-any-return"
# (compiled functions that call each other have no types for mypy)

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skytide.kernel.compiled import entrance, exp, inline, lean, log, njit, power, row_of
from skytide.kernel.relaxations import (
    AT_E,
    HIGH,
    LIBRARY,
    LOW,
    TINY,
    exponential,
    inverse,
    logarithm,
    norm,
    padded,
    powered,
    product,
    quotient,
    root,
    scaled,
    square,
)  # fmt: skip
from skytide.model import Floats, Integers

(
    CONST, COLUMN, NEG, ADD, SUB, MUL, SCALE, SQUARE, DIV, OVER, UNDER, POWER, RAISE, SQRT, ABS, MIN, MAX, EXP, LOG,
    NORM,
) = range(20)  # fmt: skip
"""What a node does with its arguments. SCALE, OVER, UNDER and POWER have a constant in place of one: c x, x / c, c / x,
x ** c (c not 2). NORM takes the nodes just before it."""
LINEAR, CONVEX, CONCAVE, GENERAL = range(4)
"""The shapes of functions."""
ANY, LENGTH, APART, VARIANCE = range(4)
"""Forms whose extremes over a ball are known: norms of components, distances, variances."""
OP, LEFT, RIGHT, TOP = range(4)
"""The columns of `nodes`: what to do, the two arguments (of COLUMN: the component; of NORM: how many), and whether only
increasing functions and such are above the node, so that convex level sets are enough."""

DRIFT = 2.0**-48


class Programs(NamedTuple):
    """The functions of a query.

    The nodes of function k are `start[k]` to `start[k + 1]`, arguments before what uses them, with a constant for each
    and the range that its value always lies in. A LINEAR one has `coefficients` by component, and the constant term
    behind them; `sizes` are the same without cancellation, times the share of them that rounding may cost. `sign` is -1
    where the function is maximised; shapes are those of sign times function, forms those of the function. `scratch` is
    overwritten by every call.
    """

    nodes: Integers
    constants: Floats
    ranges: Floats
    start: Integers
    shape: Integers
    sign: Floats
    form: Integers
    coefficients: Floats
    sizes: Floats
    scratch: Floats


# -- values ------------------------------------------------------------------------------------------------------------


@inline
def _power(x: float, y: float) -> float:
    return math.nan if x == 0.0 and y < 0.0 else power(x, y)


@lean
def run(nodes: Integers, constants: Floats, scratch: Floats, start: int, stop: int, means: Floats) -> float:
    """The value of a program at a vector; the values of its nodes are left in `scratch`. O(nodes)."""
    x = math.nan
    for i in range(start, stop):
        op, left, right = nodes[i, OP], nodes[i, LEFT], nodes[i, RIGHT]
        if op == COLUMN:
            x = means[left]
        elif op == CONST:
            x = constants[i]
        elif op == NORM:
            x = 0.0
            for j in range(i - right, i):
                x += scratch[j, AT_E] * scratch[j, AT_E]
            x = math.sqrt(x)
        else:
            a, b = scratch[left, AT_E], scratch[right, AT_E]
            if op == ADD:
                x = a + b
            elif op == SUB:
                x = a - b
            elif op == MUL:
                x = a * b
            elif op == SCALE:
                x = constants[i] * a
            elif op == SQUARE:
                x = a * a
            elif op == DIV:
                x = math.nan if b == 0.0 else a / b
            elif op == OVER:
                x = a / constants[i]
            elif op == UNDER:
                x = math.nan if a == 0.0 else constants[i] / a
            elif op == NEG:
                x = -a
            elif op == ABS:
                x = abs(a)
            elif op == MIN:
                x = math.nan if a != a or b != b else (b if b < a else a)
            elif op == MAX:
                x = math.nan if a != a or b != b else (b if b > a else a)
            elif op == SQRT:
                x = math.nan if a < 0.0 else math.sqrt(a)
            elif op == EXP:
                x = exp(a)
            elif op == LOG:
                x = math.log(a) if a > 0.0 else math.nan
            elif op == POWER:
                x = _power(a, constants[i])
            else:
                x = _power(a, b)
        scratch[i, AT_E] = x
    return x


evaluate = entrance(run)
"""`run`, for those who are not compiled."""


@njit(cache=True, _nrt=False, error_model="numpy", forceinline=True)
def value(programs: Programs, k: int, means: Floats) -> float:
    """Function k, smaller is better, at a vector of means: to the last bit as the reference computes it. O(nodes)."""
    start, stop = programs.start[k], programs.start[k + 1]
    if stop - start == 1 and programs.nodes[start, OP] == COLUMN:
        return float(programs.sign[k] * means[programs.nodes[start, LEFT]])
    return float(
        programs.sign[k] * run(programs.nodes, programs.constants, programs.scratch, start, stop, means)
    )  # fmt: skip


def values(programs: Programs, means: Floats) -> Floats:
    """All functions, smaller is better, at the vectors that are the rows of a matrix: a row for each. O(n nodes)."""
    found = np.empty((means.shape[0], programs.sign.shape[0]))
    _values(programs, means, found)
    return found


@entrance
@lean
def _values(programs: Programs, means: Floats, found: Floats) -> None:
    for i in range(found.shape[0]):
        at = row_of(means, i)
        for k in range(found.shape[1]):
            found[i, k] = value(programs, k, at)


# -- bounds ------------------------------------------------------------------------------------------------------------


@njit(cache=True, _nrt=False, error_model="numpy", forceinline=True)
def bounds(programs: Programs, k: int, e: Floats, u: Floats) -> tuple[float, float]:
    """What function k stays at or above, and at or below, at every average of vectors u where this holds for each.

    O(nodes), for a LINEAR function O(d).
    """
    if programs.shape[k] == LINEAR:
        d = len(e)
        total, size = programs.coefficients[k, d], programs.sizes[k, d]
        for i in range(d):
            total += programs.coefficients[k, i] * u[i]
            size += programs.sizes[k, i] * (abs(u[i]) + abs(e[i]))
        low, high = total - size, total + size
        if low > -math.inf and high < math.inf:
            return low, high
        return -math.inf, math.inf
    low, high = enclosing(
        programs.nodes, programs.constants, programs.ranges, programs.scratch,
        programs.start[k], programs.start[k + 1], e, u,
    )  # fmt: skip
    if programs.sign[k] < 0:
        return -high, -low
    return low, high


def bounds_of(programs: Programs, k: int, e: Floats, u: Floats) -> Floats:
    """The `bounds` of function k at the rows of two matrices: a row with the two for each. O(n nodes)."""
    found = np.empty((e.shape[0], 2))
    _bounds_of(programs, k, e, u, found)
    return found


@entrance
@lean
def _bounds_of(programs: Programs, k: int, e: Floats, u: Floats, found: Floats) -> None:
    for i in range(found.shape[0]):
        found[i, 0], found[i, 1] = bounds(programs, k, row_of(e, i), row_of(u, i))


@lean
def enclosing(
    nodes: Integers, constants: Floats, ranges: Floats, scratch: Floats, start: int, stop: int, e: Floats, u: Floats
) -> tuple[float, float]:
    """The concave function below a program and the convex one above it, both at u. Without the sign. O(nodes)."""
    run(nodes, constants, scratch, start, stop, e)
    low, high = -math.inf, math.inf
    for i in range(start, stop):
        c = scratch[i, AT_E]
        if not abs(c) < math.inf:
            return -math.inf, math.inf
        op, left, right, top = nodes[i, OP], nodes[i, LEFT], nodes[i, RIGHT], nodes[i, TOP] == 1
        if op == COLUMN:
            room = DRIFT * (abs(u[left]) + abs(e[left])) + TINY
            low, high = u[left] - room, u[left] + room
        elif op == CONST:
            low, high = c, c
        elif op == NORM:
            low, high = norm(scratch, i - right, i, c)
        else:
            low_a, high_a, at = scratch[left, LOW], scratch[left, HIGH], scratch[left, AT_E]
            low_b, high_b = scratch[right, LOW], scratch[right, HIGH]
            if op == ADD:
                low, high = padded(low_a + low_b, high_a + high_b, top)
            elif op == SUB:
                low, high = padded(low_a - high_b, high_a - low_b, top)
            elif op == SCALE:
                low, high = scaled(low_a, high_a, constants[i], top)
            elif op == OVER:
                x, y = low_a / constants[i], high_a / constants[i]
                low, high = padded(y, x, top) if constants[i] < 0 else padded(x, y, top)
            elif op == NEG:
                low, high = -high_a, -low_a
            elif op == SQUARE:
                low, high = square(low_a, high_a, at, top)
            elif op == MUL:
                low, high = product(low_a, high_a, at, low_b, high_b, scratch[right, AT_E])
            elif op == DIV:
                low, high = quotient(low_a, high_a, at, low_b, high_b, scratch[right, AT_E], top)
            elif op == ABS:
                low, high = (-high_a if at < 0 else low_a), max(high_a, -low_a)
            elif op == MAX:
                low, high = (low_b if scratch[right, AT_E] > at else low_a), max(high_a, high_b)
            elif op == MIN:
                low, high = min(low_a, low_b), (high_b if scratch[right, AT_E] < at else high_a)
            else:
                low, high = _curved(
                    op, low_a, high_a, at, ranges[left, 0], constants[i], low_b, high_b, scratch[right, AT_E],
                    nodes[left, OP] == CONST, top,
                )  # fmt: skip
        if not (low <= high and low < math.inf and high > -math.inf):
            return -math.inf, math.inf
        if top:
            low, high = max(low, ranges[i, 0]), min(high, ranges[i, 1])
        # One may be infinite for want of a tangent, where the range says that the value is finite all the same.
        if max(low, ranges[i, 0]) == -math.inf or min(high, ranges[i, 1]) == math.inf:
            return -math.inf, math.inf
        scratch[i, LOW], scratch[i, HIGH] = low, high
    return low, high


@lean
def _curved(
    op: int, low: float, high: float, at: float, least: float, constant: float,
    low_b: float, high_b: float, at_b: float, fixed: bool, top: bool,
) -> tuple[float, float]:  # fmt: skip
    """The functions that call the library, and powers; `least` is what the argument never goes below."""
    if op == UNDER:
        if top:
            return quotient(constant, constant, constant, low, high, at, top)
        low, high = inverse(low, high, at)
        if low != low:
            return math.nan, math.nan
        return scaled(low, high, constant, False)
    if op == EXP:
        return exponential(low, high, at, top)
    if op == LOG:
        return logarithm(low, high, at, least, top)
    if op == SQRT:
        return root(low, high, at, 0.5, least, top)
    if op == POWER:
        return powered(low, high, at, constant, least, top)
    # a ** b is exp(b log a)
    if not low > 0:
        return math.nan, math.nan
    exponent = log(at)
    low, high = logarithm(low, high, at, least, False)
    if fixed:
        low, high = scaled(low_b, high_b, exponent, False)
        room = max(high, -low) * LIBRARY
        low, high = low - room, high + room
    else:
        low, high = product(low, high, exponent, low_b, high_b, at_b)
    return exponential(low, high, exponent * at_b, top)
