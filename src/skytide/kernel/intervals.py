"""The range of a function over a ball or a box, compiled.

papa14 asks for the least and the largest value of f over a ball around the middle of estimate and drift vector. Linear
functions, norms, distances and variances have a formula; of other expressions interval arithmetic gives an enclosure.
All ends are moved outwards, so that they also enclose the values as they are computed, each operation rounded. Where a
value may be missing or infinite, so are the ends.
"""

# mypy: disable-error-code="no-any-return"
# (compiled functions that call each other have no types for mypy)

from __future__ import annotations

import math

from skytide.kernel.compiled import entrance, exp, inline, lean, njit, power
from skytide.kernel.functions import (
    ABS,
    ADD,
    APART,
    COLUMN,
    CONST,
    DIV,
    EXP,
    LEFT,
    LENGTH,
    LINEAR,
    LOG,
    MAX,
    MIN,
    MUL,
    NEG,
    NORM,
    OP,
    OVER,
    POWER,
    RIGHT,
    SCALE,
    SQRT,
    SQUARE,
    SUB,
    UNDER,
    VARIANCE,
    Programs,
    run,
)
from skytide.kernel.relaxations import AT_E, HIGH, LOW
from skytide.model import Floats, Integers

_PAD = 2.0**-51
_LIBRARY = 2.0**-49
_TINY = 2.0**-1070
_TINY_NORM = 2.0**-530
_WIDE = 2.0**-46
_STEPS = 40
"""Halvings: an error of 2^-40 counts squared."""


# -- balls -------------------------------------------------------------------------------------------------------------


@njit(cache=True, _nrt=False, error_model="numpy")
def ball_range(programs: Programs, k: int, centre: Floats, radius: float) -> tuple[float, float]:
    """The least and the largest value of function k, smaller is better, over a ball. O(nodes).

    To the last digits for linear functions, norms, distances and variances; for others an enclosure.
    """
    start, stop, d = programs.start[k], programs.start[k + 1], centre.shape[0]
    if not 0.0 <= radius < math.inf:
        return -math.inf, math.inf
    if programs.shape[k] == LINEAR:
        total, size, slope = programs.coefficients[k, d], programs.sizes[k, d], 0.0
        for i in range(d):
            total += programs.coefficients[k, i] * centre[i]
            size += programs.sizes[k, i] * (abs(centre[i]) + radius)
            slope += programs.coefficients[k, i] * programs.coefficients[k, i]
        reach = math.sqrt(slope) * radius
        return _finite(total - reach - size - reach * _WIDE, total + reach + size + reach * _WIDE)
    if programs.form[k] == LENGTH or programs.form[k] == APART:
        length = run(programs.nodes, programs.constants, programs.scratch, start, stop, centre)
        size = 0.0
        for i in range(start, stop):
            if programs.nodes[i, OP] == COLUMN:
                size += abs(programs.scratch[i, AT_E])
        reach = radius * (math.sqrt(2.0) if programs.form[k] == APART else 1.0)
        room = _WIDE * (size + reach) + _TINY_NORM
        low, high = max(length - reach - room, 0.0), length + reach + room
    elif programs.form[k] == VARIANCE:
        low, high = _variance(centre[programs.nodes[start + 1, LEFT]], centre[programs.nodes[start, LEFT]], radius)
    else:
        low, high = _over_box(programs.nodes, programs.constants, programs.scratch, start, stop, centre, radius)
    if programs.sign[k] < 0:
        low, high = -high, -low
    return _finite(low, high)


@inline
def _finite(low: float, high: float) -> tuple[float, float]:
    if low > -math.inf and high < math.inf:
        return low, high
    return -math.inf, math.inf


@lean
def _variance(x: float, y: float, r: float) -> tuple[float, float]:
    """y - x² over a disc. Both extremes lie on the rim, at (x / (1 + 2 t), y + t): t > 0 for the largest value, t in
    (-1/2, 0) for the least. Neither t need be exact: a tangent at any point is above, a Lagrangian dual below."""
    x = abs(x)
    least, most = 0.0, r
    for _ in range(_STEPS):
        t = (least + most) / 2
        away = x * (2 * t / (1 + 2 * t))
        if away * away + t * t > r * r:
            most = t
        else:
            least = t
    there = x / (1 + 2 * least)
    high = y + there * (there - 2 * x) + math.sqrt(1 + 4 * there * there) * r

    # The least of y - x² + s (distance² - r²) over the plane, at s = 1 / p = (1 + z) / z: D = y - p / 4 - x² / (1 - p)
    # - r² / p. At its largest, r / p is the root of 1 / 4 + x² / (1 - p)², so p <= 2 r and z = p / (1 - p) <= r / x.
    p, bend = min(2 * r, 1.0), 0.0
    if x > 0:
        least, most = 0.0, min(r / x, 2 * r / (1 - 2 * r) if 2 * r < 1 else 2.0**500)
        for _ in range(_STEPS):
            z = (least + most) / 2
            far = x * z
            half = z / (1 + z) / 2
            if far * far + half * half > r * r:
                most = z
            else:
                least = z
        p, bend = most / (1 + most), x * x * (1 + most)
    low = y - p / 4 - bend - (r * (r / p) if p > 0 else 0.0)
    room = _WIDE * (abs(y) + (x + r) * (x + r) + r) + _TINY_NORM
    # where digits run out, the box around the disc is better
    return max(low, y - r - (x + r) * (x + r)) - room, min(high, y + r) + room


# -- boxes -------------------------------------------------------------------------------------------------------------


@lean
def _over_box(
    nodes: Integers, constants: Floats, scratch: Floats, start: int, stop: int, centre: Floats, radius: float
) -> tuple[float, float]:
    """Interval arithmetic over the box around a ball."""
    for i in range(start, stop):
        if nodes[i, OP] == COLUMN:
            x = centre[nodes[i, LEFT]]
            scratch[i, LOW], scratch[i, HIGH] = _out(x - radius, x + radius, _PAD)
    if not enclose(nodes, constants, scratch, start, stop):
        return -math.inf, math.inf
    for i in range(start, stop):
        if not (scratch[i, LOW] > -math.inf and scratch[i, HIGH] < math.inf):
            return -math.inf, math.inf
    return scratch[stop - 1, LOW], scratch[stop - 1, HIGH]


@lean
def enclose(nodes: Integers, constants: Floats, scratch: Floats, start: int, stop: int) -> bool:
    """Interval arithmetic: from the ranges of the columns in `scratch`, those of all nodes. O(nodes).

    They enclose the values that there are. The answer is whether there is a value everywhere.
    """
    certain = True
    for i in range(start, stop):
        op, left, right = nodes[i, OP], nodes[i, LEFT], nodes[i, RIGHT]
        if op == COLUMN:
            continue
        low, high, fine = 0.0, 0.0, True
        if op == CONST:
            low, high = constants[i], constants[i]
        elif op == NORM:
            for j in range(i - right, i):
                square_low, square_high = _squared(scratch[j, LOW], scratch[j, HIGH])
                low, high = _out(low + square_low, high + square_high, _PAD)
            low, high = _out(math.sqrt(max(low, 0.0)), math.sqrt(high), _PAD)
            low = max(low, 0.0)
        else:
            a, b, c, d = scratch[left, LOW], scratch[left, HIGH], scratch[right, LOW], scratch[right, HIGH]
            if op == ADD:
                low, high = _out(a + c, b + d, _PAD)
            elif op == SUB:
                low, high = _out(a - d, b - c, _PAD)
            elif op == MUL:
                low, high = _times(a, b, c, d)
            elif op == SCALE:
                low, high = _times(a, b, constants[i], constants[i])
            elif op == SQUARE:
                low, high = _squared(a, b)
            elif op == DIV:
                low, high, fine = _divided(a, b, c, d)
            elif op == OVER:
                low, high, fine = _divided(a, b, constants[i], constants[i])
            elif op == UNDER:
                low, high, fine = _divided(constants[i], constants[i], a, b)
            elif op == NEG:
                low, high = -b, -a
            elif op == ABS:
                low, high = (0.0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
            elif op == MIN:
                low, high = min(a, c), min(b, d)
            elif op == MAX:
                low, high = max(a, c), max(b, d)
            elif op == SQRT:
                fine = a >= 0
                low, high = _out(math.sqrt(max(a, 0.0)), math.sqrt(max(b, 0.0)), _PAD)
                low = max(low, 0.0)
            elif op == EXP:
                low, high = _out(exp(a), exp(b), _LIBRARY)
                low = max(low, 0.0)
            elif op == LOG:
                fine = a > 0
                low = math.log(a) if a > 0 else -math.inf
                low, high = _out(low, math.log(b) if b > 0 else math.inf, _LIBRARY)
            elif op == POWER:
                low, high, fine = _raised(a, b, constants[i])
            else:
                # a ** b is exp(b log a)
                fine = a > 0
                low, high = -math.inf, math.inf
                if fine:
                    low, high = _out(math.log(a), math.log(b), _LIBRARY)
                    low, high = _times(low, high, c, d)
                    low, high = _out(exp(low), exp(high), _LIBRARY)
                    low = max(low, 0.0)
        certain &= fine
        scratch[i, LOW], scratch[i, HIGH] = low, high
    return certain


enclosed = entrance(enclose)
"""`enclose`, for those who are not compiled."""


@inline
def _out(low: float, high: float, share: float) -> tuple[float, float]:
    """Both ends moved outwards by a share and a little; what is not a number is unbounded."""
    low, high = low - (abs(low) * share + _TINY), high + (abs(high) * share + _TINY)
    return (low if low == low else -math.inf), (high if high == high else math.inf)


@inline
def _product(x: float, y: float) -> float:
    """An infinite end stands for all large numbers: 0 times that is 0."""
    return 0.0 if x == 0.0 or y == 0.0 else x * y


@inline
def _times(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    p, q, r, s = _product(a, c), _product(a, d), _product(b, c), _product(b, d)
    return _out(min(min(p, q), min(r, s)), max(max(p, q), max(r, s)), _PAD)


@inline
def _squared(a: float, b: float) -> tuple[float, float]:
    near, far = (0.0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
    low, high = _out(near * near, far * far, _PAD)
    return max(low, 0.0), high


@inline
def _divided(a: float, b: float, c: float, d: float) -> tuple[float, float, bool]:
    if not (c > 0 or d < 0):
        return -math.inf, math.inf, False
    # infinity / infinity is no number: the ends of 1 / x first
    low, high = _out(1 / d, 1 / c, _PAD)
    low, high = _times(a, b, low, high)
    return low, high, True


@lean
def _raised(a: float, b: float, p: float) -> tuple[float, float, bool]:
    """x ** p for a constant p: pieces on which it is monotone."""
    if p == 0.0:
        return 1.0, 1.0, True
    whole = abs(p) >= 2.0**53 or p == math.floor(p)
    odd = whole and abs(p) < 2.0**53 and p / 2 != math.floor(p / 2)
    if p < 0 and a <= 0 <= b:
        return -math.inf, math.inf, False
    if not whole:
        fine = a >= 0
        x, y = power(max(a, 0.0), p), power(max(b, 0.0), p)
        if p < 0:
            x, y = y, x
        low, high = _out(x, y, _LIBRARY)
        return max(low, 0.0), high, fine
    x, y = power(a, p), power(b, p)
    if odd:
        low, high = _out(min(x, y), max(x, y), _LIBRARY)
        return low, high, True
    low, high = _out(0.0 if a <= 0 <= b else min(x, y), max(x, y), _LIBRARY)
    return max(low, 0.0), high, True
