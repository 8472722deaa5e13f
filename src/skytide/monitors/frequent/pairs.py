"""Pairs of theta and over: which share of how many snapshots makes an id frequent."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from skytide.errors import OptionError

Theta = float | str | Decimal | Fraction
NEVER = 2**62
"""More snapshots than come: a longer window, and a higher bar, are cut to it."""
_PLACES = 1000
"""The most decimal places of a theta."""
_FRACTION = re.compile(rf"[0-9]{{1,{_PLACES + 1}}}/[0-9]{{1,{_PLACES + 1}}}")


class Pair(NamedTuple):
    """A share of a number of snapshots. Theta is the decimal that it was written as.

    >>> Pair.of(0.07, 100).need, 0.07 * 100 > 7
    (7, True)
    """

    theta: Fraction
    over: int

    @classmethod
    def of(cls, theta: Theta, over: int) -> Pair:
        """The pair, checked."""
        share = _exact(theta)
        if isinstance(over, bool) or not isinstance(over, int | np.integer) or over < 1:
            raise OptionError("is not a number of snapshots", value=over, remedy="give a whole number from 1")
        return cls(share, int(over))

    @property
    def need(self) -> int:
        """In how many of the snapshots an id must have been."""
        return math.ceil(self.theta * self.over)

    @property
    def window(self) -> int:
        """The number of snapshots, for arithmetic in 64 bits."""
        return min(self.over, NEVER)

    @property
    def bar(self) -> int:
        """What is needed, for arithmetic in 64 bits."""
        return min(self.need, NEVER)


def pairs_of(theta: Theta | None, over: int | None, pairs: Sequence[tuple[Theta, int]] | None) -> tuple[Pair, ...]:
    """The pairs that a monitor is made for: one, or several in the order given, each once."""
    if pairs is None:
        if theta is None or over is None:
            raise OptionError(
                "a frequent skyline needs a share and a number of snapshots", remedy="give theta and over, or pairs"
            )
        return (Pair.of(theta, over),)
    if theta is not None or over is not None:
        raise OptionError("theta and over are given beside pairs", remedy="give either theta and over, or pairs")
    found = [_pair(one) for one in _listed(pairs)]
    if not found:
        raise OptionError("there is no pair", value=pairs, remedy="give pairs of theta and over: [(0.8, 1000)]")
    for pair, times in Counter(found).items():
        if times > 1:
            raise OptionError("is given twice", value=(float(pair.theta), pair.over), remedy="give each pair once")
    return tuple(found)


def _listed(pairs: Any) -> list[Any]:
    try:
        return list(pairs)
    except TypeError:
        raise OptionError("are not pairs", value=pairs, remedy="give pairs of theta and over: [(0.8, 1000)]") from None


def _pair(one: Any) -> Pair:
    try:
        theta, over = one
    except (TypeError, ValueError):
        raise OptionError("is not a pair", value=one, remedy="give pairs of theta and over: [(0.8, 1000)]") from None
    return Pair.of(theta, over)


def _exact(theta: Any) -> Fraction:
    """Theta as the decimal or fraction that it is written as, above 0 and up to 1."""
    if isinstance(theta, bool) or not isinstance(theta, int | float | str | Decimal | Fraction | np.number):
        raise _refused(theta)
    try:
        found = theta if isinstance(theta, Fraction) else _read(str(theta))
    except (InvalidOperation, ZeroDivisionError):
        raise _refused(theta) from None
    if found is None or not 0 < found <= 1:
        raise _refused(theta)
    return found


def _read(text: str) -> Fraction | None:
    if _FRACTION.fullmatch(text):
        return Fraction(text)
    decimal = Decimal(text)
    # Compared as a decimal first: the fraction of one with a large exponent alone would fill the memory.
    small = decimal.is_finite() and 0 < decimal <= 1 and int(decimal.as_tuple().exponent) >= -_PLACES
    return Fraction(decimal) if small else None


def _refused(theta: Any) -> OptionError:
    return OptionError("is not a share of the snapshots", value=theta, remedy="give a number above 0, up to 1")
