"""The first pass over many rows: drop what a few strong rows dominate.

A sample shows which rows dominate most. They are chosen greedily, each for the sample rows that the ones before it
leave, so that the pass does not depend on the scale of the columns, as sums of coordinates do (the filter of SFS and of
Hybrid's pre-filter, Chester et al., ICDE 2015). On correlated data little is left after it, on anti-correlated data of
many columns it drops little, and the sample says so before the pass is made. Passes repeat while they pay: a sample of
what one pass leaves holds stronger rows than a sample of everything.
"""

# ruff: noqa: SIM110 (numba has no any() over a generator)

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.batch_codes import LANES, count_below, count_bits, lanes_at_most, lowest_bit
from skytide.kernel.dominance import dominates_at
from skytide.model import Floats, Integers

GROUP = 8
"""Strong rows are compared in groups of so many at once."""


def choose_strong(sample: Floats, candidates: int, most: int, least_gain: float) -> tuple[Integers, float, float]:
    """The rows of the sample, strongest first, and the shares of it that they dominate together and the first alone.

    `candidates` rows are looked at, at most `most` are taken, and each must dominate at least the share `least_gain` of
    what those before it leave. O(sample * (d log sample + candidates)).
    """
    size = len(sample)
    # The share of the sample that a row would dominate if the columns were independent, as a logarithm.
    promise = np.zeros(size)
    shares = np.log1p(-np.arange(size) / (size + 1.0))
    for column in sample.T:
        promise[np.argsort(column)] += shares
    best = np.argsort(-promise)[:candidates]
    chosen, left = greedy_cover(sample, best, most, least_gain)
    return chosen, 1.0 - left[-1], 1.0 - left[0]


@njit(cache=True)
def greedy_cover(sample: Floats, candidates: Integers, most: int, least_gain: float) -> tuple[Integers, Floats]:
    """Greedily the candidates that dominate enough of what is left of the sample, and the shares left after each.

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
    shares = np.ones(chosen.shape[0])
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
        remaining -= best_gain
        shares[taken] = remaining / size
        taken += 1
        for word in range(words):
            left[word] &= ~covers[best, word]
    return chosen[:taken], shares[: max(1, taken)]


def lay_out(strong: Floats) -> Floats:
    """Strong rows in groups, column by column within a group, filled up with copies of the last row."""
    groups = -(-len(strong) // GROUP)
    filled = strong[np.minimum(np.arange(groups * GROUP), len(strong) - 1)]
    return np.ascontiguousarray(filled.reshape(groups, GROUP, -1).transpose(0, 2, 1)).reshape(-1)


@njit(cache=True, forceinline=True, _nrt=False)
def differs(values: Floats, i: int, strong: Floats, place: int) -> bool:
    """Whether row i is not equal to the strong row whose first value is at this place."""
    for k in range(values.shape[1]):
        if values[i, k] != strong[place + k * GROUP]:
            return True
    return False


@njit(cache=True, nogil=True, _nrt=False)
def drop_dominated(
    values: Floats, start: int, stop: int, strong: Floats, lead: bool, kept: Integers, counts: Integers
) -> int:
    """Write the rows of start:stop that no strong row dominates to `kept`, and give their number.

    With `lead` the first strong row is tried by itself before the groups, which pays where it dominates nearly all.
    """
    d = values.shape[1]
    groups = strong.shape[0] // (GROUP * d)
    size = 0
    tests = 0
    for i in range(start, stop):
        if lead:
            k = 0
            while k < d and strong[k * GROUP] <= values[i, k]:
                k += 1
            tests += 1
            if k == d and differs(values, i, strong, 0):
                continue
        dominated = False
        for group in range(groups):
            base = group * GROUP * d
            found = lanes_at_most(strong, base, values[i, 0])
            for k in range(1, d):
                found &= lanes_at_most(strong, base + k * GROUP, values[i, k])
            tests += GROUP
            if found != 0:
                # At least as good everywhere: equal, or it dominates.
                dominated = differs(values, i, strong, base + lowest_bit(found))
                if dominated:
                    break
        kept[size] = i
        size += not dominated
    counts[0] += tests
    return size


def lay_out_stairs(strong: Floats) -> Floats:
    """The first sixteen strong rows of two columns as stairs: where each step begins, then how low it is."""
    steps = strong[:LANES][np.argsort(strong[:LANES, 0])]
    stairs = np.full(2 * LANES + 1, np.inf)
    stairs[: len(steps)] = steps[:, 0]
    # Left of all steps nothing is dominated, not even infinity: NaN is at most nothing.
    stairs[LANES] = np.nan
    stairs[LANES + 1 :] = np.minimum.accumulate(steps[:, 1])[-1]
    stairs[LANES + 1 : LANES + 1 + len(steps)] = np.minimum.accumulate(steps[:, 1])
    return stairs


@njit(cache=True, nogil=True, _nrt=False)
def drop_above_stairs(values: Floats, start: int, stop: int, stairs: Floats, kept: Integers, counts: Integers) -> int:
    """The same pass for two columns: a row falls when a step that begins before it is not above it.

    A row on the edge of a step is kept, dominated or not; the sweep that follows knows better.
    """
    size = 0
    for i in range(start, stop):
        step = count_below(stairs, 0, values[i, 0])
        kept[size] = i
        size += not stairs[LANES + step] <= values[i, 1]
    counts[0] += stop - start
    return size
