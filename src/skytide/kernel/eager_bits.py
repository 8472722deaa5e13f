"""A time-ordered batch of rows as bitmaps over cells, which find the first or the last row that dominates another.

For every column and every cell there is the set of the batch's rows below that cell, one bit per row in the order of
time. The rows that may dominate a row are the intersection of d such sets, 512 rows in a few instructions; the first
bit (or the last) that stands up to the values is the earliest (the latest) dominator. The rows that may be dominated
are the intersection of the complements.

The sets lie in one array: that of column k and cell v (rows with a smaller cell) starts at word (k SETS + v) *
stride, a multiple of the block, so that a scan in whole blocks stays inside its set. Indices are unsigned, because
signed ones are checked for "from the end" at every access.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.dominance import dominates_at
from skytide.kernel.eager_codes import CELLS
from skytide.kernel.eager_words import BLOCK, highest_bit, left_words, lowest_bit, meeting_words
from skytide.model import Floats, Integers

ZERO, ONE, ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
SIX, SEVEN, LAST_BIT, WORDS = np.uint64(6), np.uint64(7), np.uint64(63), np.uint64(BLOCK)
SETS = CELLS + 1
"""Sets of one column: one per cell, and one of all rows."""
WHOLE = np.uint64(255)
"""All words of a block."""


@njit(cache=True)
def stride_of(rows: int) -> int:
    """The words from the start of one set to that of the next."""
    return ((rows + 64 * BLOCK - 1) // (64 * BLOCK)) * BLOCK


@njit(cache=True)
def fill(bits: np.ndarray, codes: np.ndarray, rows: int, d: int) -> None:
    """Build the sets of a batch. O(d rows + d cells rows / 64)."""
    stride = stride_of(rows)
    bits[: d * SETS * stride] = ZERO
    for k in range(d):
        base = np.uint64((k * SETS + 1) * stride)
        step = np.uint64(stride)
        for i in range(rows):
            at = base + np.uint64(codes[i, k]) * step + np.uint64(i >> 6)
            bits[at] |= ONE << np.uint64(i & 63)
        for v in range(1, CELLS):
            above = bits[(k * SETS + v + 1) * stride : (k * SETS + v + 2) * stride]
            below = bits[(k * SETS + v) * stride : (k * SETS + v + 1) * stride]
            for w in range(stride):
                above[w] |= below[w]


@njit(cache=True)
def clear(bits: np.ndarray, row: int, rows: int, d: int) -> None:
    """Take a row out of all sets. O(d cells)."""
    stride = stride_of(rows)
    mask = ~(ONE << np.uint64(row & 63))
    for v in range(d * SETS):
        bits[v * stride + (row >> 6)] &= mask


# -- who dominates a row -----------------------------------------------------------------------------------------------


@njit(cache=True)
def _meet(bits: np.ndarray, sets: np.ndarray, w: np.uint64) -> np.uint64:
    word: np.uint64 = bits[sets[0] + w]
    for k in range(1, sets.shape[0]):
        word &= bits[sets[k] + w]
    return word


@njit(cache=True)
def _below_any(bits: np.ndarray, sets: np.ndarray, stride: np.uint64, w: np.uint64) -> np.uint64:
    """The rows that are below the cells of the sets in some column."""
    word: np.uint64 = bits[sets[0] - stride + w]
    for k in range(1, sets.shape[0]):
        word |= bits[sets[k] - stride + w]
    return word


@njit(cache=True)
def first_dominator(
    bits: np.ndarray,
    sets: np.ndarray,
    rows: Floats,
    offset: int,
    count: int,
    begin: int,
    others: Floats,
    other: int,
    alike: bool,
    work: Integers,
) -> int:
    """The first row of the batch, from position `begin` on, that dominates row `other` of `others`; -1 where none does.

    `sets` are the places of the d sets that hold the possible dominators, `rows[offset]` is the batch's first row.
    O(d count / 512) and one comparison of values per bit that is left. With `alike`, rows of the same cells are equal
    to the row, and left out by cell: else a batch of equal rows would be compared each with each.
    """
    if begin >= count:
        return -1
    end = np.uint64((count + 63) >> 6)
    stride = np.uint64(stride_of(count))
    w = np.uint64(begin >> 6)
    block = w & ~SEVEN
    words = WHOLE
    word = _meet(bits, sets, w) & (ALL << np.uint64(begin & 63))
    fresh = True
    while True:
        if alike:
            word &= _below_any(bits, sets, stride, w)
        while word != ZERO:
            at: int = np.int64(w << SIX) + lowest_bit(word)
            work[0] += 1
            if dominates_at(rows, offset + at, others, other):
                return at
            word &= word - ONE
        if fresh:
            words = meeting_words(bits, sets, block) & ((WHOLE - ONE) << (w & SEVEN)) & WHOLE
            work[1] += 1
            fresh = False
        while words == ZERO:
            block += WORDS
            if block >= end:
                return -1
            words = meeting_words(bits, sets, block)
            work[1] += 1
        w = block + np.uint64(lowest_bit(words))
        words &= words - ONE
        word = _meet(bits, sets, w)


@njit(cache=True)
def last_dominator(
    bits: np.ndarray,
    sets: np.ndarray,
    rows: Floats,
    offset: int,
    count: int,
    end: int,
    others: Floats,
    other: int,
    alike: bool,
    work: Integers,
) -> int:
    """The last row of the batch before position `end` that dominates row `other`; -1 where none does. As above."""
    if end <= 0:
        return -1
    stride = np.uint64(stride_of(count))
    w = np.uint64((end - 1) >> 6)
    block = w & ~SEVEN
    words = WHOLE
    word = _meet(bits, sets, w) & (ALL >> np.uint64(63 - ((end - 1) & 63)))
    fresh = True
    while True:
        if alike:
            word &= _below_any(bits, sets, stride, w)
        while word != ZERO:
            bit = highest_bit(word)
            at: int = np.int64(w << SIX) + bit
            work[0] += 1
            if dominates_at(rows, offset + at, others, other):
                return at
            word &= ~(ONE << np.uint64(bit))
        if fresh:
            words = meeting_words(bits, sets, block) & ((ONE << (w & SEVEN)) - ONE)
            work[1] += 1
            fresh = False
        while words == ZERO:
            if block == ZERO:
                return -1
            block -= WORDS
            words = meeting_words(bits, sets, block)
            work[1] += 1
        top = np.uint64(highest_bit(words))
        w = block + top
        words &= ~(ONE << top)
        word = _meet(bits, sets, w)


@njit(cache=True)
def surrounded(bits: np.ndarray, sets: np.ndarray, stride: int, at: int, arrivals: Integers, expiries: Integers,
               offset: int, count: int) -> bool:  # fmt: skip
    """Whether rows on both sides of position `at`, near it, are better in every column by cell; never wrongly True.

    `sets` are those below the row's cells, so that what is in all of them dominates it, whatever the values. When the
    older one lives until the newer one comes, the row never enters. One look at 512 rows settles most rows.
    """
    w = at >> 6
    block = max(0, min(w - (BLOCK >> 1), stride - BLOCK))
    if expiries[offset + (block << 6)] < arrivals[offset + min(count, (block + BLOCK) << 6) - 1]:
        return False
    words = meeting_words(bits, sets, np.uint64(block))
    own = _meet(bits, sets, np.uint64(w))
    inside = np.uint64(w - block)
    bit = np.uint64(at & 63)
    newer = (words >> inside >> ONE) | (own >> bit >> ONE)
    older = (words & ((ONE << inside) - ONE)) | (own & ((ONE << bit) - ONE))
    return bool(newer != ZERO and older != ZERO)


# -- whom a row dominates ----------------------------------------------------------------------------------------------


@njit(cache=True)
def _join(bits: np.ndarray, sets: np.ndarray, w: np.uint64) -> np.uint64:
    word: np.uint64 = bits[sets[0] + w]
    for k in range(1, sets.shape[0]):
        word |= bits[sets[k] + w]
    return word


@njit(cache=True)
def take_dominated(
    bits: np.ndarray,
    sets: np.ndarray,
    open_rows: np.ndarray,
    rows: Floats,
    offset: int,
    others: Floats,
    other: int,
    alike: bool,
    taken: Integers,
    work: Integers,
) -> int:
    """Take those of the open rows of the batch that row `other` dominates; how many, their positions are in `taken`.

    `sets` are the places of the d sets of rows below the row's cells: what is in none of them may be dominated.
    """
    found = 0
    for start in range(0, open_rows.shape[0], BLOCK):
        block = np.uint64(start)
        words = left_words(bits, sets, block, open_rows)
        work[1] += 1
        while words != ZERO:
            w = block + np.uint64(lowest_bit(words))
            words &= words - ONE
            word = open_rows[w] & ~_join(bits, sets, w)
            if alike:
                word &= ~_meet(bits, sets, w + np.uint64(open_rows.shape[0]))
            while word != ZERO:
                bit = lowest_bit(word)
                at = np.int64(w << SIX) + bit
                work[0] += 1
                if dominates_at(others, other, rows, offset + at):
                    taken[found] = at
                    found += 1
                    open_rows[w] &= ~(ONE << np.uint64(bit))
                word &= word - ONE
    return found
