"""Frequent skylines by definition (FSQW of zhang09c): who is in at least theta * s of the last s skylines.

Taken literally also before s snapshots have been seen. Theta is read as a decimal: as binary floats, 0.07 * 100 > 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from skytide.model import Change
from skytide.reference.window import differences


def exact(theta: float | str | Decimal | Fraction) -> Fraction:
    """Theta as the decimal that it is written as.

    >>> exact(0.07) * 100 == 7
    True
    """
    return theta if isinstance(theta, Fraction) else Fraction(str(theta))


def frequent(answers: Sequence[set[Any]], theta: float | str | Decimal | Fraction, over: int) -> set[Any]:
    """The ids in at least theta * over of the last `over` answers. O(answers · ids).

    >>> sorted(frequent([{"a", "b"}, {"a"}, {"b"}], 0.5, over=2))
    ['a', 'b']
    """
    last = list(answers)[-over:]
    ids = {one for answer in last for one in answer}
    return {one for one in ids if sum(one in answer for answer in last) >= exact(theta) * over}


def frequent_answers(
    answers: Sequence[tuple[Any, set[Any]]], theta: float | str | Decimal | Fraction, over: int
) -> list[tuple[Any, set[Any]]]:
    """The frequent ids after each snapshot of a series of (time, answer)."""
    series = [answer for _, answer in answers]
    return [(time, frequent(series[: number + 1], theta, over)) for number, (time, _) in enumerate(answers)]


def frequent_changes(
    answers: Sequence[tuple[Any, set[Any]]], theta: float | str | Decimal | Fraction, over: int
) -> list[Change]:
    """The change stream of the frequent ids.

    >>> for change in frequent_changes([(1, {"a"}), (2, {"a"}), (3, {"b"}), (4, {"b"})], 0.6, over=3):
    ...     print(*change)
    2 + a
    4 - a
    4 + b
    """
    return differences(frequent_answers(answers, theta, over))
