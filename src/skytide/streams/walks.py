"""Objects that move from snapshot to snapshot: the update streams of udom14 and zhang09c.

udom14, Section 6.1: objects start anywhere in [0, 100]^m; in every snapshot each attribute moves with probability p,
by a step from N(0, 0.5), taken as the standard deviation. As printed, there are no walls: objects may leave the cube.
zhang09c, Section 7.1: objects start at rows of Börzsönyi's generator; in every snapshot each is anywhere in the cube of
half extent u around its start, so all of them move. Those cubes may reach beyond [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from skytide.errors import OptionError
from skytide.model import Floats, Integers
from skytide.streams.generators import block_source, check_whole, generate, source_key

OPERATIONS = ("set", "add")


class Updates(NamedTuple):
    """Updates as columns: the snapshot's number, from 0, the object's number, from 0, and its values."""

    times: Integers
    ids: Integers
    values: Floats


def random_walk(
    objects: int,
    d: int,
    snapshots: int,
    seed: int = 0,
    *,
    share: float = 0.025,
    step: float = 0.5,
    side: float = 100.0,
    operation: str = "set",
) -> Iterator[Updates]:
    """The updates of udom14's walk, one run per snapshot; snapshot 0 has all objects. O(objects · d) per snapshot.

    `share` is the probability p with which an attribute moves. With the operation `add`, snapshots after the first
    hold steps instead of positions; both describe the same walk.

    >>> runs = list(random_walk(1000, 3, 4, seed=1))
    >>> [len(run.ids) for run in runs][0], runs[0].values.shape, 40 < len(runs[1].ids) < 110
    (1000, (1000, 3), True)
    """
    _check_objects(objects, d, snapshots)
    if not 0 <= share <= 1:
        raise OptionError("is not a share of attributes", value=share, remedy="give a number from 0 to 1")
    if not (0 <= step < np.inf and 0 < side < np.inf):
        raise OptionError("are not a step and a side", value=(step, side), remedy="give finite numbers above 0")
    if operation not in OPERATIONS:
        raise OptionError("is not an operation of a walk", value=operation, remedy="use set or add")
    return _walk(objects, d, snapshots, source_key(seed, f"walk/{objects}/{d}"), share, step, side, operation)


def _walk(
    objects: int, d: int, snapshots: int, entropy: list[int], share: float, step: float, side: float, operation: str
) -> Iterator[Updates]:
    everyone = np.arange(objects)
    positions = np.zeros((0, d))
    for snapshot in range(snapshots):
        source = block_source(entropy, snapshot)
        if snapshot == 0:
            positions = source.random((objects, d)) * side
            yield Updates(np.zeros(objects, np.int64), everyone, positions.copy())
            continue
        moving = np.flatnonzero(source.random(objects * d) < share)
        steps = np.zeros((objects, d))
        steps.reshape(-1)[moving] = source.normal(0.0, step, len(moving))
        moved = np.unique(moving // d)
        positions[moved] += steps[moved]
        values = positions[moved] if operation == "set" else steps[moved]
        yield Updates(np.full(len(moved), snapshot), moved, values)


def jitter(
    kind: str,
    objects: int,
    d: int,
    snapshots: int,
    seed: int = 0,
    *,
    extent: float = 0.08,
    deviation: float | None = None,
) -> Iterator[Updates]:
    """The updates of zhang09c's objects, all of them in every snapshot, within `extent` (its u) of their start.

    >>> first, second = jitter("independent", 100, 2, 2, seed=1)
    >>> len(second.ids), bool((abs(first.values - second.values) <= 0.16).all())
    (100, True)
    """
    _check_objects(objects, d, snapshots)
    if not 0 <= extent < np.inf:
        raise OptionError("is not an extent", value=extent, remedy="give a finite number from 0")
    centres = generate(kind, objects, d, seed, deviation=deviation)
    entropy = source_key(seed, f"jitter/{kind}/{d}")
    everyone = np.arange(objects)
    return (
        Updates(
            np.full(objects, snapshot),
            everyone,
            centres + block_source(entropy, snapshot).uniform(-extent, extent, (objects, d)),
        )
        for snapshot in range(snapshots)
    )


def _check_objects(objects: int, d: int, snapshots: int) -> None:
    check_whole("a number of objects", objects, least=1)
    check_whole("a number of columns", d, least=1)
    check_whole("a number of snapshots", snapshots, least=0)


def together(runs: Iterator[Updates], d: int) -> Updates:
    """All runs of an update stream of d columns as one. O(n d).

    >>> together(random_walk(10, 3, 5, share=1.0), 3).values.shape
    (50, 3)
    """
    parts = [Updates(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, d))), *runs]
    times, ids, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Updates(times, ids, values)
