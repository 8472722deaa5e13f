"""Objects with continuous distributions, as objects with n sampled instances of equal weight.

zhang09p treats discrete distributions; a continuous one is sampled into them. Each object draws from a generator of its
own, made from the seed and the object's number: the sample of an object does not depend on which others are sampled
with it, so that a stream may be sampled in batches. With n instances each, the skyline probability of an object is off
by 1 / (2 sqrt(n)) or less, one standard deviation, for its own sampling, and the other objects' sampling adds to that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.errors import OptionError
from skytide.model import Floats

Distribution = Callable[[np.random.Generator, int], npt.ArrayLike]
"""Draws so many points, as (n, d), from the generator."""


class Sample(NamedTuple):
    """Instances as rows: values (n, d), probabilities, and the number of the object that each belongs to, from 0."""

    values: Floats
    probabilities: Floats
    objects: npt.NDArray[np.int64]


def normal(mean: npt.ArrayLike, deviation: npt.ArrayLike) -> Distribution:
    """A normal distribution; `deviation` is a number, one number per dimension, or a covariance matrix."""
    centre, spread = _finite("mean", mean, 1), np.asarray(deviation, dtype=np.float64)
    if spread.ndim == 2:
        if spread.shape != (len(centre), len(centre)) or not np.allclose(spread, spread.T):
            raise OptionError("is not a covariance matrix", value=deviation, remedy="give a symmetric matrix")
        if (np.linalg.eigvalsh(spread) < -1e-12 * max(1.0, float(np.abs(spread).max()))).any():
            raise OptionError("is not a covariance matrix", value=deviation, remedy="no direction may vary negatively")
        return lambda source, n: source.multivariate_normal(centre, spread, n, method="eigh")
    if not (np.isfinite(spread) & (spread >= 0)).all() or spread.shape not in ((), centre.shape):
        raise OptionError("is not a deviation", value=deviation, remedy="give finite numbers from 0, one per dimension")
    return lambda source, n: source.normal(centre, spread, (n, len(centre)))


def uniform(low: npt.ArrayLike, high: npt.ArrayLike) -> Distribution:
    """A uniform distribution over the box between two corners."""
    lower, upper = _finite("corner", low, 1), _finite("corner", high, 1)
    if lower.shape != upper.shape or (lower > upper).any():
        raise OptionError("is not an upper corner", value=high, remedy="give a number not below the lower one's, each")
    return lambda source, n: source.uniform(lower, upper, (n, len(lower)))


def sample(
    distributions: Sequence[Distribution],
    n: int,
    *,
    probabilities: npt.ArrayLike = 1.0,
    seed: int = 0,
    start: int = 0,
) -> Sample:
    """n instances of weight P / n for each object, ready for `UncertainWindow.extend`. O(n objects).

    `probabilities` are one number, or one per object: that the object is anywhere. `start` is the number of the first
    object in its stream. A distribution may be any function (generator, n) that gives n points.

    >>> found = sample([normal([1.0, 2.0], 0.1), uniform([0.0, 0.0], [1.0, 1.0])], 4, probabilities=[1.0, 0.6], seed=7)
    >>> found.values.shape, found.probabilities.tolist(), found.objects.tolist()
    ((8, 2), [0.25, 0.25, 0.25, 0.25, 0.15, 0.15, 0.15, 0.15], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> again = sample([uniform([0.0, 0.0], [1.0, 1.0])], 4, seed=7, start=1)
    >>> bool((again.values == found.values[4:]).all())
    True
    """
    for what, number, least in (("a number of instances", n, 1), ("a seed", seed, 0), ("a start", start, 0)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
            raise OptionError(f"is not {what}", value=number, remedy=f"give a whole number from {least}")
    chances = np.asarray(probabilities, dtype=np.float64)
    if chances.shape not in ((), (len(distributions),)) or not ((chances >= 0) & (chances <= 1)).all():
        raise OptionError("are not probabilities", value=probabilities, remedy="give one number from 0 to 1 per object")
    points = [_points(draw, n, [seed, start + place], start + place) for place, draw in enumerate(distributions)]
    if len({one.shape[1] for one in points}) > 1:
        raise OptionError("the distributions differ in their dimensions", remedy="give points of one dimension")
    weights = np.broadcast_to(chances / n, len(points))
    return Sample(
        np.concatenate(points) if points else np.zeros((0, 0)),
        np.repeat(weights, n),
        np.repeat(np.arange(start, start + len(points)), n),
    )


def _points(draw: Distribution, n: int, entropy: list[int], number: int) -> Floats:
    points = np.asarray(draw(np.random.default_rng(entropy), n), dtype=np.float64)
    if points.ndim != 2 or len(points) != n or np.isnan(points).any():
        raise OptionError(
            f"the distribution of object {number} gave {points.shape} in place of {n} points, or NaN",
            remedy="give a function (generator, n) that returns an array of shape (n, d)",
        )
    return points


def _finite(what: str, given: Any, dimensions: int) -> Floats:
    array = np.asarray(given, dtype=np.float64)
    if array.ndim != dimensions or not len(array) or not np.isfinite(array).all():
        raise OptionError(f"is not a {what}", value=given, remedy="give finite numbers, one per dimension")
    return array
