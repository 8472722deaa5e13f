"""What a coordinator may do to save messages, and how much: the switches of both methods, their limits, two shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from skytide.protocols.stored import must

WIDEST = 1.25
"""`auto` stretches drift by so much at most, because two objects are not at the same sites."""
CROWDED = 16
"""`auto` leaves a skyline of more objects to PIVOT. Neighbours in a crowded one are restless pairs, and PIVOT alone can
have all told of an object: where 20 to 40 are in the skyline it sends between a third and 1.5 times of what DIRECT
does; where up to 10 are, two to a hundred times."""
APART = 0.3
"""How far objects begin beyond the one that they hang on. On generated streams 0.2 to 0.3 cost least of 0 to 1."""


@dataclass(frozen=True)
class Tuning:
    """What the coordinator may do to save messages; each can be switched off to see what it is worth."""

    reserve: bool = True
    shifting: bool = True
    centring: bool = True
    streaming: bool = True
    walks: bool = True
    """Boundaries by the sites' random walks; without, midway between two objects."""
    symmetric: bool = True
    """Zones reach about as far in either direction; without, to the ends of their boxes."""
    zones: bool = True
    """Without zones all is told: the method `central`."""
    apart: float = APART
    """How far objects begin beyond the one that they hang on: 0 where it ends (papa14's grouping of pivots), 1 at the
    boundary that each has with it alone (without grouping)."""


def reserve_of(members: int) -> float:
    """The coordinator's share of the weight of an object with so many sites.

    A walk leaves a zone that is narrower by the factor 1 - r about (1 - r)^-2 times as often, and r n violations in one
    direction use the reserve up, which costs about n messages: (1 - r)^-2 (1 + 1 / (r^2 n)) is least where r^3 n = 1 -
    2 r. With one or two sites there is nothing to balance.

    >>> [round(reserve_of(n), 3) for n in (1, 10, 100, 1000)]
    [0.0, 0.326, 0.185, 0.093]
    """
    if members <= 2:
        return 0.0
    low, high = 0.0, 0.5
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if middle**3 * members > 1.0 - 2.0 * middle else (middle, high)
    return low


def tuning_of(stored: Sequence[Any]) -> Tuning:
    """The tuning that was stored as a list; what was stored before `apart` was there goes on with what is usual."""
    names = [field.name for field in fields(Tuning)]
    given = dict(zip(names, stored, strict=False))
    must(names.index("apart") <= len(stored) <= len(names), "tuning")
    apart = given.pop("apart", APART)
    must(all(type(one) is bool for one in given.values()), "tuning")
    must(type(apart) in (int, float) and 0 <= apart <= 1, "tuning")
    return Tuning(**given, apart=apart)
