"""The answers of a population by their definitions, in blocks of numpy: the oracles of `skytide.reference`, faster.

Small populations are handed to the reference itself. Rows are oriented: smaller is better; NaN is missing, which is
worse than every value.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from skytide.model import Booleans, Floats, Integers
from skytide.reference.batch import skyline, worst_for_missing
from skytide.reference.uncertain import TOLERANCE, Instance, probability, reaches

FEW = 10
"""Up to so many rows the reference itself is asked."""
_BLOCK = 256
_SURE = 1e-9
"""Relative: what is farther from a bar than this, floats decide about."""
_ROUNDING = 5e-13
"""Relative: as far as sums of probabilities are decided "up to the rounding of the last digits"."""
SLACK = 1e-14
"""The same for what is left of 1, where the places of an object have it all but for a rest: of that few digits are."""


def undominated(points: Floats) -> Integers:
    """The positions of the rows that no row dominates, in input order. O(n · answer · d).

    In lexicographic order no row dominates one before it, and who is dominated is dominated by a member of the answer.

    >>> undominated(np.array([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0], [np.nan, 1.0]])).tolist()
    [0, 1, 3, 4]
    """
    if len(points) <= FEW:
        missing = bool(np.isnan(points).any())
        return np.array(skyline(worst_for_missing(points.tolist()) if missing else points.tolist()), np.int64)
    points = ranked(points) if np.isnan(points).any() else points
    order = np.lexsort(points.T[::-1])
    found: Integers = np.zeros(0, np.int64)
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        for at in range(0, len(found), _BLOCK):
            block = block[~dominating(points[found[at : at + _BLOCK]], points[block]).any(axis=0)]
        block = block[~dominating(points[block], points[block]).any(axis=0)]
        found = np.concatenate((found, block))
    return np.sort(found)


def ranked(points: Floats) -> Floats:
    """Each value's place among those of its column, with missing ones last and equal; every comparison stays."""
    found = np.empty(points.shape)
    for column in range(points.shape[1]):
        missing = np.isnan(points[:, column])
        distinct, places = np.unique(points[~missing, column], return_inverse=True)
        found[~missing, column], found[missing, column] = places, len(distinct)
    return found


def dominating(a: Floats, b: Floats) -> Booleans:
    """Which rows of a dominate which rows of b: at least as good everywhere, better somewhere."""
    no_worse = np.ones((len(a), len(b)), np.bool_)
    better = np.zeros((len(a), len(b)), np.bool_)
    for column in range(a.shape[1]):
        x, y = a[:, column, None], b[None, :, column]
        no_worse &= x <= y
        better |= x < y
    return no_worse & better


class Places(NamedTuple):
    """The places where objects may be: points, probabilities, and of each place the number of its object, ascending."""

    points: Floats
    chances: Floats
    owner: Integers


class Members(NamedTuple):
    """Who must be in an answer, and who may: there, the last digits decide."""

    must: set[Any]
    may: set[Any]


def probabilities(places: Places, least: float) -> Floats:
    """The skyline probability of each object that reaches `least`, within rounding; of others, something below it.

    Leaving dominators out makes a probability larger only, so that an object is done with once it is too small.
    """
    points = ranked(places.points) if np.isnan(places.points).any() else places.points
    objects = int(places.owner[-1]) + 1 if len(places.owner) else 0
    product = np.ones(len(points))
    chances = np.bincount(places.owner, places.chances, objects)
    best = np.full(objects, np.inf)
    np.minimum.at(best, places.owner, _level(points))
    for block in np.array_split(np.argsort(best, kind="stable"), max(1, objects // _BLOCK)):
        open_ones = np.flatnonzero(chances[places.owner] >= least * (1 - _SURE))
        if not len(open_ones):
            break
        inside = np.isin(places.owner, block)
        owners = places.owner[inside]
        starts = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1])))
        there = dominating(points[inside], points[open_ones]) * places.chances[inside, None]
        mass = np.add.reduceat(there, starts, axis=0) if len(starts) else there
        mass[owners[starts][:, None] == places.owner[open_ones][None, :]] = 0.0
        product[open_ones] *= np.prod(1 - mass, axis=0)
        chances = np.bincount(places.owner, places.chances * product, objects)
    return np.asarray(chances, np.float64)


def _level(points: Floats) -> Floats:
    """Small for rows that dominate many: only the order of the work depends on it."""
    return np.asarray(ranked(points).sum(axis=1))


def reaching(places: Places, chances: Floats, threshold: float, exact: bool) -> tuple[Integers, Integers]:
    """The objects that reach a threshold, and those that may; near the bar it is decided in exact arithmetic."""
    bar, slack = threshold * (1 - float(TOLERANCE)), 0.0 if exact else SLACK
    sure = bar * _SURE + 10 * slack
    must, may = np.flatnonzero(chances >= bar + sure).tolist(), []
    for one in np.flatnonzero((chances >= bar - sure) & (chances < bar + sure)).tolist():
        true = exact_probability(places, one)
        if not exact and abs(float(true) - bar) <= bar * _ROUNDING + slack:
            may.append(one)
        elif reaches(true, threshold):
            must.append(one)
    return np.array(sorted(must), np.int64), np.array(may, np.int64)


def exact_probability(places: Places, which: int) -> Fraction:
    """The probability of one object as the reference has it; of the others only dominators are handed over."""
    mine = places.owner == which
    points = ranked(places.points)
    near = dominating(points, points[mine]).any(axis=1) & ~mine
    owners = [which, *np.unique(places.owner[near]).tolist()]
    objects = [
        [
            Instance(tuple(points[place].tolist()), Fraction(float(places.chances[place])))
            for place in np.flatnonzero(places.owner == one).tolist()
        ]
        for one in owners
    ]
    return probability(objects, 0)


def most_probable(
    chances: Floats, reached: tuple[Integers, Integers], k: int, slack: float = 0.0
) -> tuple[Integers, Integers]:
    """Of those that reach a threshold, those with fewer than k more probable ones by more than 1e-12; and the doubt."""
    bar, must, may = 1 - float(TOLERANCE), [], reached[1].tolist()
    everyone = chances[np.concatenate(reached)]
    for one in reached[0].tolist():
        surely = int((everyone * bar * (1 - _ROUNDING) > chances[one] + slack).sum())
        perhaps = int((everyone * bar * (1 + _ROUNDING) > chances[one] - slack).sum())
        if perhaps < k:
            must.append(one)
        elif surely < k:
            may.append(one)
    return np.array(must, np.int64), np.array(may, np.int64)
