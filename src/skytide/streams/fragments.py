"""Objects in fragments over sites: the synthetic streams of papa14, Section V.

Every object is seen at every site. The paper does not say how an object is split; ours starts at all sites at the
object's own vector, a row of Börzsönyi's generator. Each update picks a site and an object at random and moves each
local value v to anywhere in [(1 - maxRC) v, (1 + maxRC) v].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from skytide.errors import OptionError
from skytide.model import Floats, Integers
from skytide.streams.generators import BLOCK, block_source, check_whole, generate, source_key


class LocalVectors(NamedTuple):
    """New local vectors as columns: time, site and object numbers from 0, values. Updates have times 1, 2, ..."""

    times: Integers
    sites: Integers
    ids: Integers
    values: Floats


def fragments(
    kind: str,
    objects: int,
    sites: int,
    d: int,
    updates: int,
    seed: int = 0,
    *,
    max_change: float = 0.02,
    deviation: float | None = None,
) -> Iterator[LocalVectors]:
    """The stream in runs: first, at time 0, all objects at all sites, then so many updates. O(rows · d) time.

    Memory for the local vectors of all objects at all sites. `max_change` is the paper's maxRC.

    >>> first, second = fragments("independent", 20, 5, 2, updates=30, seed=1)
    >>> len(first.ids), len(second.ids), second.times.tolist()[:3]
    (100, 30, [1, 2, 3])
    """
    check_whole("a number of objects", objects, least=1)
    check_whole("a number of sites", sites, least=1)
    check_whole("a number of updates", updates, least=0)
    if not 0 <= max_change <= 1:
        raise OptionError("is not a relative change", value=max_change, remedy="give a number from 0 to 1")
    vectors = generate(kind, objects, d, seed, deviation=deviation)
    return _runs(vectors, sites, updates, source_key(seed, f"fragments/{kind}/{objects}/{sites}/{d}"), max_change)


def _runs(vectors: Floats, sites: int, updates: int, entropy: list[int], max_change: float) -> Iterator[LocalVectors]:
    objects, d = vectors.shape
    local = np.tile(vectors, (sites, 1))
    cells = np.arange(sites * objects)
    yield LocalVectors(np.zeros(len(cells), np.int64), cells // objects, cells % objects, local.copy())
    for block in range(-(-updates // BLOCK)):
        source = block_source(entropy, block)
        cells = source.integers(0, sites * objects, BLOCK)
        factors = source.uniform(1 - max_change, 1 + max_change, (BLOCK, d))
        length = min(BLOCK, updates - block * BLOCK)
        cells, factors = cells[:length], factors[:length]
        values = _apply(local, cells, factors)
        times = np.arange(block * BLOCK + 1, block * BLOCK + length + 1)
        yield LocalVectors(times, cells // objects, cells % objects, values)


def _apply(local: Floats, cells: Integers, factors: Floats) -> Floats:
    """Multiply local vectors by factors, one update after the other; the vectors after each update."""
    values = np.empty_like(factors)
    order = np.argsort(cells, kind="stable")
    first = np.flatnonzero(np.diff(cells[order], prepend=-1))
    # A cell's n-th update needs its vector after the one before: all first updates at once, then all second ones, ...
    turns = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    for turn in range(int(turns.max(initial=-1)) + 1):
        now = order[turns == turn]
        values[now] = local[cells[now]] * factors[now]
        local[cells[now]] = values[now]
    return values
