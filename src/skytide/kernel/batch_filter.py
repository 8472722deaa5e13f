"""The first pass over many rows: drop what a few strong rows dominate.

A sample shows which rows dominate most. They are chosen greedily, each for the sample rows that the ones before it
leave, so that the pass does not depend on the scale of the columns, as sums of coordinates do (the filter of SFS and of
Hybrid's pre-filter, Chester et al., ICDE 2015). On correlated data little is left after it, on anti-correlated data of
many columns it drops little, and the sample says so before the pass is made. Passes repeat while they pay: a sample of
what one pass leaves holds stronger rows than a sample of everything.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.batch_codes import count_bits, lanes_at_most, lowest_bit
from skytide.kernel.dominance import dominates_at
from skytide.model import Floats, Integers

GROUP = 8
"""Strong rows are compared in groups of so many at once."""


def choose_strong(sample: Floats, candidates: int, most: int, least_gain: float) -> tuple[Integers, float]:
    """The rows of the sample, strongest first, that together dominate most of it, and the share that they dominate.

    `candidates` rows are looked at, at most `most` are taken, and each must dominate at least the share `least_gain` of
    what those before it leave. O(sample * (d log sample + candidates)).
    """
    size = len(sample)
    # The share of the sample that a row would dominate if the columns were independent, as a logarithm.
    promise = np.zeros(size)
    for column in sample.T:
        promise += np.log1p(-np.searchsorted(np.sort(column), column) / (size + 1.0))
    best = np.argsort(-promise, kind="stable")[:candidates]
    chosen, left = greedy_cover(sample, best, most, least_gain)
    return chosen, 1.0 - left


@njit(cache=True)
def greedy_cover(sample: Floats, candidates: Integers, most: int, least_gain: float) -> tuple[Integers, float]:
    """Greedily the candidates that dominate enough of what is left of the sample, and the share left in the end.

    Every second row of the sample stands for all of it, and sets of rows are bits of words.
    """
    count, size = candidates.shape[0], (sample.shape[0] + 1) // 2
    words = (size + 63) // 64
    covers = np.zeros((count, words), dtype=np.uint64)
    left = np.zeros(words, dtype=np.uint64)
    for j in range(size):
        bit = np.uint64(1) << np.uint64(j % 64)
        left[j // 64] |= bit
        for i in range(count):
            if dominates_at(sample, candidates[i], sample, 2 * j):
                covers[i, j // 64] |= bit
    remaining = size
    chosen = np.empty(min(most, count), dtype=np.int64)
    taken = 0
    while taken < chosen.shape[0]:
        best, best_gain = -1, max(1, int(least_gain * remaining))
        for i in range(count):
            gain = 0
            for word in range(words):
                gain += count_bits(covers[i, word] & left[word])
            if gain > best_gain:
                best, best_gain = i, gain
        if best < 0:
            break
        chosen[taken] = candidates[best]
        taken += 1
        remaining -= best_gain
        for word in range(words):
            left[word] &= ~covers[best, word]
    return chosen[:taken], remaining / size


def lay_out(strong: Floats) -> Floats:
    """Strong rows in groups, column by column within a group, filled up with copies of the last row."""
    groups = -(-len(strong) // GROUP)
    filled = strong[np.minimum(np.arange(groups * GROUP), len(strong) - 1)]
    return np.ascontiguousarray(filled.reshape(groups, GROUP, -1).transpose(0, 2, 1)).reshape(-1)


@njit(cache=True, nogil=True, _nrt=False)
def drop_dominated(values: Floats, start: int, stop: int, strong: Floats, kept: Integers, counts: Integers) -> int:
    """Write the rows of start:stop that no strong row dominates to `kept`, and give their number."""
    d = values.shape[1]
    groups = strong.shape[0] // (GROUP * d)
    size = 0
    tests = 0
    for i in range(start, stop):
        dominated = False
        for group in range(groups):
            base = group * GROUP * d
            found = lanes_at_most(strong, base, values[i, 0])
            for k in range(1, d):
                found &= lanes_at_most(strong, base + k * GROUP, values[i, k])
            tests += GROUP
            if found != 0:
                # At least as good everywhere: equal, or it dominates.
                lane = lowest_bit(found)
                for k in range(d):
                    if strong[base + k * GROUP + lane] != values[i, k]:
                        dominated = True
                        break
                if dominated:
                    break
        kept[size] = i
        size += not dominated
    counts[0] += tests
    return size
