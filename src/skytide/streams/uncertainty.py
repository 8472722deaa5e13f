"""Occurrence probabilities after zhang09p, Section V: uniform, or normal with a given mean and deviation 0.3.

Normal draws can leave (0, 1]; the paper does not say what becomes of them. Ours are clipped: those above 1 become 1, a
probability that real data has often, and those below `LEAST` become `LEAST`: an element that cannot occur is none.
"""

from __future__ import annotations

import numpy as np

from skytide.errors import OptionError
from skytide.model import Floats
from skytide.streams.generators import BLOCK, assemble, block_source, check_whole, source_key

LEAST = 1e-6
"""The smallest probability that a clipped normal draw gets."""
DISTRIBUTIONS = ("uniform", "normal")


def probabilities(
    n: int,
    seed: int = 0,
    *,
    distribution: str = "uniform",
    mean: float = 0.5,
    deviation: float = 0.3,
    start: int = 0,
) -> Floats:
    """n probabilities in (0, 1], from position `start` of the stream on; mean and deviation are for normal ones. O(n).

    >>> drawn = probabilities(1000, seed=1, distribution="normal", mean=0.9)
    >>> bool((drawn > 0).all() and (drawn <= 1).all() and (drawn == 1).any())
    True
    """
    check_whole("a number of rows", n, least=0)
    if distribution not in DISTRIBUTIONS:
        raise OptionError("is not a distribution of probabilities", value=distribution, remedy="use uniform or normal")
    if not (0 <= mean <= 1):
        raise OptionError("is not a mean probability", value=mean, remedy="give a number from 0 to 1")
    if not (0 <= deviation < np.inf):
        raise OptionError("is not a deviation", value=deviation, remedy="give a finite number from 0")

    def draw(block: int) -> Floats:
        source = block_source(entropy, block)
        if distribution == "uniform":
            return 1 - source.random(BLOCK)
        return np.clip(source.normal(mean, deviation, BLOCK), LEAST, 1.0)

    entropy = source_key(seed, f"probabilities/{distribution}")
    return assemble(n, start, draw, np.empty(n))
