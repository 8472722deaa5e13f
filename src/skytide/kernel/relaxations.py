"""A convex function above and a concave one below, for each operation on such pairs, compiled.

An operation's argument x comes as `low` <= x <= `high`: values at one vector u of a concave and of a convex function of
u. So does what is returned. `at` is x at the estimate e, which all have in common: tangents are taken there, and
branches depend on nothing else. At the `top` of an expression it is enough that level sets are convex. Pads are convex
functions too, or at the top increasing ones of each bound; they make room for the rounding here and in the value
itself. An infinite bound says that there is none, bounds that are no numbers that x itself may have no value.
"""

# mypy: disable-error-code="no-any-return"
# (compiled functions that call each other have no types for mypy)

from __future__ import annotations

import math

from skytide.kernel.compiled import exp, inline, lean, log, over, power
from skytide.model import Floats

AT_E, LOW, HIGH = range(3)
"""The columns of `scratch`, which has a row for each node: the value at e and the two bounds at u."""

PAD = 2.0**-51
"""The rounding of an operation and of its pad, as a share."""
LIBRARY = 2.0**-48
"""The same for functions of the library, which may be some digits off."""
TINY = 2.0**-1000
"""The rounding of what is too small for shares."""
_TINY_NORM = 2.0**-500
_SMALL = 2.0**-900
"""Where products lose digits: what is smaller has no tangent."""


@inline
def padded(low: float, high: float, top: bool) -> tuple[float, float]:
    """Room for the rounding of one operation, here and in the value itself.

    At the top it is an increasing function of each bound, which keeps level sets; else a convex function of both.
    """
    if top:
        return low - (abs(low) * PAD + TINY), high + (abs(high) * PAD + TINY)
    room = max(high, -low) * PAD + TINY
    return low - room, high + room


@inline
def widened(low: float, high: float, share: float) -> tuple[float, float]:
    """Room for rounding at the top, for any share."""
    return low - (abs(low) * share + TINY), high + (abs(high) * share + TINY)


@inline
def scaled(low: float, high: float, factor: float, top: bool) -> tuple[float, float]:
    """x times a constant."""
    if factor < 0:
        low, high = high, low
    return padded(factor * low, factor * high, top)


@inline
def norm(scratch: Floats, first: int, stop: int, length: float) -> tuple[float, float]:
    """The norm of the largest magnitudes, and the tangent at e; 0 where there is none."""
    far, near = 0.0, 0.0
    for j in range(first, stop):
        most = max(scratch[j, HIGH], -scratch[j, LOW])
        far += most * most
        if scratch[j, AT_E] > 0:
            near += scratch[j, AT_E] * scratch[j, LOW]
        else:
            near += scratch[j, AT_E] * scratch[j, HIGH]
    far = math.sqrt(far)
    room = (stop - first + 8) * PAD * far + _TINY_NORM
    return (near / length - room if length > _TINY_NORM else -room), far + room


@inline
def square(low: float, high: float, at: float, top: bool) -> tuple[float, float]:
    """x²: convex, with a tangent below."""
    most = max(high, -low)
    near = -high if at < 0 else low
    if top:
        return padded(near * near if near > 0 else 0.0, most * most, top)
    at = abs(at)
    room = PAD * (most * most + 2 * at * most + at * at) + TINY
    return at * (2 * near - at) - room, most * most + room


@inline
def product(low_a: float, high_a: float, at_a: float, low_b: float, high_b: float, at_b: float) -> tuple[float, float]:
    """a b = ((s a + b / s)² - (s a - b / s)²) / 4: of each square one side is convex, the other has a tangent.

    s makes both of one size at e; what is lost is (s da - db / s)² / 4 for steps da and db from e.
    """
    s = math.sqrt(abs(at_b)) / math.sqrt(abs(at_a)) if at_a != 0 and at_b != 0 else 1.0
    s = min(max(s, 2.0**-400), 2.0**400)
    a, b = s * at_a, at_b / s
    low_a, high_a = padded(s * low_a, s * high_a, False)
    low_b, high_b = padded(low_b / s, high_b / s, False)
    low_p, high_p = padded(low_a + low_b, high_a + high_b, False)
    low_q, high_q = padded(low_a - high_b, high_a - low_b, False)
    p, q = a + b, a - b
    most_p, most_q = max(high_p, -low_p), max(high_q, -low_q)
    near_p = abs(p) * (2 * (low_p if p > 0 else -high_p) - abs(p))
    near_q = abs(q) * (2 * (low_q if q > 0 else -high_q) - abs(q))
    far_p, far_q = most_p + abs(p), most_q + abs(q)
    room = PAD * (far_p * far_p + far_q * far_q) + TINY
    return (near_p - most_q * most_q) / 4 - room, (most_p * most_p - near_q) / 4 + room


@inline
def inverse(low: float, high: float, at: float) -> tuple[float, float]:
    """1 / x, convex for x > 0. For x < 0 it is -1 / -x."""
    negative = at < 0
    if negative:
        low, high, at = -high, -low, -at
    if not low > 0:
        return math.nan, math.nan
    room = PAD * (1 / low + (2 + high / at) / at) + TINY
    low, high = (2 - high / at) / at - room, 1 / low + room
    if negative:
        return -high, -low
    return low, high


@inline
def quotient(
    low_a: float, high_a: float, at_a: float, low_b: float, high_b: float, at_b: float, top: bool
) -> tuple[float, float]:
    """At the top: where b > 0, a / b <= h is a - h b <= 0, which is convex for every h. Else a times 1 / b."""
    if not top:
        low_r, high_r = inverse(low_b, high_b, at_b)
        if low_r != low_r:
            return math.nan, math.nan
        return product(low_a, high_a, at_a, low_r, high_r, 1 / at_b)
    if at_b < 0:
        low_a, high_a, low_b, high_b = -high_a, -low_a, -high_b, -low_b
    if not low_b > 0:
        return math.nan, math.nan
    low = low_a / (high_b if low_a >= 0 else low_b)
    high = high_a / (low_b if high_a >= 0 else high_b)
    return padded(low, high, top)


# -- functions with a curve --------------------------------------------------------------------------------------------


@inline
def exponential(low: float, high: float, at: float, top: bool) -> tuple[float, float]:
    """exp(x): convex and increasing, with a tangent below."""
    most = exp(high)
    if top:
        return widened(exp(low), most, LIBRARY)
    there = exp(at)
    room = LIBRARY * (most + there * (1 + max(high, -low) + abs(at))) + TINY
    if there < _SMALL:
        return -room, most + room
    return there * (1 + low - at) - room, most + room


@inline
def logarithm(low: float, high: float, at: float, least: float, top: bool) -> tuple[float, float]:
    """log(x): concave and increasing, with a tangent above; `least` is what x never goes below."""
    if not low > 0 and not least > 0:
        return math.nan, math.nan
    under = log(low) if low > 0 else -math.inf
    if top:
        return widened(under, log(high), LIBRARY)
    there = log(at)
    upper = there + over(high - at, at)
    deepest = log(least) if least > 0 else under
    room = LIBRARY * (max(upper, -deepest) + abs(there) + over(high, at) + 1) + TINY
    return under - room, upper + room


@inline
def root(low: float, high: float, at: float, p: float, least: float, top: bool) -> tuple[float, float]:
    """x ** p for 0 < p < 1, and the square root: concave, and nothing below 0."""
    if not low >= 0 and not least >= 0:
        return math.nan, math.nan
    under = (math.sqrt(low) if p == 0.5 else power(low, p)) if low >= 0 else -math.inf
    if top:
        over = (math.sqrt(high) if p == 0.5 else power(high, p)) if high >= 0 else 0.0
        return widened(max(under, 0.0), over, LIBRARY)
    if not at > _SMALL:
        return under - (abs(under) * LIBRARY + TINY), math.inf
    there = math.sqrt(at) if p == 0.5 else power(at, p)
    slope = p * there / at
    room = LIBRARY * (there + slope * (high + at)) + TINY
    return under - room, there + slope * (high - at) + room


@inline
def risen(low: float, high: float, at: float, p: float) -> tuple[float, float]:
    """x ** p where it is convex and increasing for x > 0, and 0 before that (p > 1)."""
    most = power(high, p) if high > 0 else 0.0
    there = power(at, p) if at > 0 else 0.0
    if there < _SMALL:
        return 0.0, most * (1 + LIBRARY) + TINY
    slope = p * (there / at)
    size = max(high, -low)
    room = LIBRARY * (power(size, p) + there + slope * (size + at)) + TINY
    return there + slope * (low - at) - room, most + room


@lean
def powered(low: float, high: float, at: float, p: float, least: float, top: bool) -> tuple[float, float]:
    """x ** p for a constant p."""
    if p == 0.0:
        return 1.0, 1.0
    whole = abs(p) >= 2.0**53 or p == math.floor(p)
    odd = whole and abs(p) < 2.0**53 and p / 2 != math.floor(p / 2)
    if p < 0.0:
        # convex and falling for x > 0; for x < 0 a function of -x
        negative = at < 0
        if negative:
            low, high, at = -high, -low, -at
        if not low > 0 or (negative and not whole):
            return math.nan, math.nan
        most = power(low, p)
        if top:
            low, high = widened(power(high, p), most, LIBRARY)
        else:
            there = power(at, p)
            slope = -p * (there / at)
            room = LIBRARY * (most + there + slope * (high + at)) + TINY
            low, high = (there - slope * (high - at) - room if min(there, slope) > _SMALL else -room), most + room
        if negative and odd:
            return -high, -low
        return low, high
    if p == 1.0:
        return low, high
    if not whole and p < 1.0:
        return root(low, high, at, p, least, top)
    if not whole:
        if not low >= 0 and not least >= 0:
            return math.nan, math.nan
        if top:
            return widened(power(low, p) if low > 0 else 0.0, power(high, p) if high > 0 else 0.0, LIBRARY)
        return risen(low, high, at, p)
    if odd:
        if top:
            return widened(power(low, p), power(high, p), LIBRARY)
        low_p, high_p = risen(low, high, at, p)
        low_q, high_q = risen(-high, -low, -at, p)
        return padded(low_p - high_q, high_p - low_q, False)
    most = max(high, -low)
    if top:
        near = -high if at < 0 else low
        return widened(power(near, p) if near > 0 else 0.0, power(most, p), LIBRARY)
    # even: the function of |x|, whose bounds at e's side are those of x or of -x
    if at < 0:
        low, high = -high, -low
    low, _ = risen(low, most, abs(at), p)
    return low, power(most, p) * (1 + LIBRARY) + TINY
