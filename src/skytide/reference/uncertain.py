"""Uncertain rows and objects by the possible worlds of zhang09p, in exact arithmetic.

An object has instances, each a row with a probability; they exclude each other and sum to at most 1, and what is left
is the probability that the object does not exist. A plain uncertain row is an object with one instance. Equation (1)
of the paper lacks the factor P(a); its definition of P_sky, which is ours, has it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from skytide.reference.batch import Row, dominates, groups
from skytide.reference.window import alive, closed, differences, instants, lives

TOLERANCE = Fraction(1, 10**12)
"""Probabilities that differ by less than this, relatively, count as equal where it decides about the answer."""


class Instance(NamedTuple):
    """One of the places where an object may be, with the probability that it is there."""

    row: Row
    probability: float | Fraction


Object = Sequence[Instance]


class ThresholdChange(NamedTuple):
    """One object entering or leaving the answer of one threshold."""

    time: Any
    change: str
    id: Any
    threshold: float


def single(rows: Sequence[Row], probabilities: Sequence[float | Fraction]) -> list[Object]:
    """Uncertain rows as objects with one instance each."""
    return [[Instance(row, probability)] for row, probability in zip(rows, probabilities, strict=True)]


def consecutive(
    rows: Sequence[Row], probabilities: Sequence[float | Fraction], keys: Sequence[Hashable]
) -> tuple[list[Hashable], list[Object]]:
    """The objects whose instances are runs of consecutive rows with one key: their keys and themselves.

    >>> keys, objects = consecutive([(1,), (2,), (3,)], [0.5, 0.5, 1.0], ["a", "a", "b"])
    >>> keys, [len(one) for one in objects]
    (['a', 'b'], [2, 1])
    """
    runs = [
        (key, [Instance(rows[position], probabilities[position]) for position in run])
        for key, run in itertools.groupby(range(len(rows)), key=lambda position: keys[position])
    ]
    return [key for key, _ in runs], [instances for _, instances in runs]


def worlds(objects: Sequence[Object]) -> Iterator[tuple[Fraction, list[Row | None]]]:
    """Every possible world: its probability, and for each object its row there, or None. O(product of instances)."""
    choices = []
    for instances in objects:
        left = 1 - sum(Fraction(instance.probability) for instance in instances)
        present: list[tuple[Fraction, Row | None]] = [(Fraction(one.probability), one.row) for one in instances]
        choices.append([*present, (left, None)])
    for world in itertools.product(*choices):
        yield Fraction(math.prod(chance for chance, _ in world)), [row for _, row in world]


def probability_by_worlds(objects: Sequence[Object], which: int) -> Fraction:
    """The definition: the total probability of the worlds in whose skyline the object is.

    >>> probability_by_worlds(single([(1,), (2,)], [Fraction(1, 4), Fraction(1, 2)]), 1)
    Fraction(3, 8)
    """
    total = Fraction(0)
    for chance, world in worlds(objects):
        own = world[which]
        if own is not None and not any(row is not None and dominates(row, own) for row in world):
            total += chance
    return total


def probability(objects: Sequence[Object], which: int) -> Fraction:
    """The same by the product formula, instance by instance. O(all instances · the object's instances).

    An instance is in the skyline when it occurs and no other object occurs at an instance that dominates it; the other
    objects are independent, so these probabilities multiply.
    """
    total = Fraction(0)
    for own in objects[which]:
        chance = Fraction(own.probability)
        for position, other in enumerate(objects):
            if position != which:
                chance *= 1 - sum(Fraction(one.probability) for one in other if dominates(one.row, own.row))
        total += chance
    return total


def reaches(chance: Fraction, threshold: float | Fraction) -> bool:
    """Whether a probability is at the threshold or above it, or below it by 1e-12 (relative) at most."""
    return chance >= Fraction(threshold) * (1 - TOLERANCE)


def at_least(objects: Sequence[Object], threshold: float | Fraction) -> list[int]:
    """The positions of the objects that are in the skyline with this probability or more."""
    return [position for position in range(len(objects)) if reaches(probability(objects, position), threshold)]


def most_probable(objects: Sequence[Object], threshold: float | Fraction, k: int) -> list[int]:
    """Of those, the k most probable: fewer than k objects are more probable by more than 1e-12 (relative).

    Objects that are equally probable share their fate, so there may be more than k.
    """
    chances = [probability(objects, position) for position in range(len(objects))]
    return [
        position
        for position in at_least(objects, threshold)
        if sum(chance * (1 - TOLERANCE) > chances[position] for chance in chances) < k
    ]


def uncertain_changes(
    objects: Sequence[Object],
    times: Sequence[Any] | None,
    ids: Sequence[Any],
    *,
    thresholds: Sequence[float],
    count: int | None = None,
    duration: Any = None,
    until: Any = None,
    by: Sequence[Hashable] | None = None,
    top: int | None = None,
    lateness: Any = 0,
    close_last: bool = True,
) -> list[ThresholdChange]:
    """The change stream of a window: per threshold, who reaches it. Ordered by time, - before +, id as text, threshold.

    All instances of an object share its time; counts count objects. With `top`, one answer: the most probable at the
    smallest threshold. The rest is as in `window_changes`.

    >>> for change in uncertain_changes(single([(2,), (1,)], [0.9, 0.5]), None, "ab", thresholds=[0.4, 0.6], count=9):
    ...     print(*change)
    1 + a 0.4
    1 + a 0.6
    2 - a 0.6
    2 + b 0.4
    """
    every = lives(times, len(objects), count=count, duration=duration, by=by)
    at_all = instants(every)
    if duration is not None and times is not None:
        at_all = [at for at in at_all if closed(at, times, until=until, lateness=lateness, close_last=close_last)]
    changes = []
    for threshold in sorted(set(thresholds)) if top is None else [min(thresholds)]:
        answers = []
        for at in at_all:
            live = [position for position, life in enumerate(every) if alive(life, at)]
            inside = set()
            for members in groups([None if by is None else by[position] for position in live]).values():
                group = [live[member] for member in members]
                there = [objects[position] for position in group]
                found = at_least(there, threshold) if top is None else most_probable(there, threshold, top)
                inside |= {ids[group[position]] for position in found}
            answers.append((at, inside))
        changes += [ThresholdChange(*change, threshold) for change in differences(answers)]
    return sorted(changes, key=lambda one: (one.time, one.change == "+", str(one.id), one.threshold))


def ranking(
    objects: Sequence[Object], ids: Sequence[Any], threshold: float | Fraction = 0
) -> list[tuple[Any, Fraction]]:
    """The ids and probabilities of those that reach the threshold, most probable first, equal ones by id as text.

    >>> ranking(single([(1,), (2,)], [Fraction(1, 4), Fraction(1, 2)]), "ab", Fraction(1, 4))
    [('b', Fraction(3, 8)), ('a', Fraction(1, 4))]
    """
    found = [(ids[position], probability(objects, position)) for position in at_least(objects, threshold)]
    return sorted(found, key=lambda pair: (-pair[1], str(pair[0])))
