"""Inputs that are the same on every machine: counted, not drawn, and multiples of 2^-20, so that nothing is rounded."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.model import Floats, Integers

_STEP = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(44)
_UNIT = 2.0**-20


def uniform(seed: int, *shape: int) -> Floats:
    """Numbers from 0 to 1: the mixing function of SplitMix64 (Steele, Lea, Flood 2014) of the seed and a count.

    >>> uniform(1, 3).tolist() == uniform(1, 3).tolist() != uniform(2, 3).tolist()
    True
    """
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        words = np.arange(1, count + 1, dtype=np.uint64) * _STEP + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    words ^= words >> np.uint64(31)
    return ((words >> _SHIFT).astype(np.float64) * _UNIT).reshape(shape)


def whole(seed: int, below: int, *shape: int) -> Integers:
    """Whole numbers from 0 to `below` - 1."""
    return np.asarray(np.floor(uniform(seed, *shape) * below), np.int64)


def opposed(seed: int, rows: int, dimensions: int) -> Floats:
    """Rows near the plane on which no row dominates another."""
    found = uniform(seed, rows, dimensions)
    found[:, -1] = dimensions - found[:, :-1].sum(axis=1) + found[:, -1] / 4
    return found


class Moves(NamedTuple):
    """Who moves when and where to, in the order of time."""

    times: Integers
    ids: Integers
    values: Floats


def walks(seed: int, objects: int, steps: int, dimensions: int, moving: float = 0.3, stride: int = 16) -> Moves:
    """All objects at time 0, then at each time some of them, a step farther."""
    start = uniform(seed, objects, dimensions)
    shifts = (uniform(seed + 1, steps, objects, dimensions) - 0.5) / stride
    who = uniform(seed + 2, steps, objects) < moving
    places = start + np.cumsum(np.where(who[:, :, None], shifts, 0.0), axis=0)
    at, one = np.nonzero(who)
    times: npt.NDArray[np.int64] = np.concatenate((np.zeros(objects, np.int64), at + 1))
    return Moves(times, np.concatenate((np.arange(objects), one)), np.concatenate((start, places[at, one])))
