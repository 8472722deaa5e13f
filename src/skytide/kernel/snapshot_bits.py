"""The first row in bitmaps over cells (`eager_bits`) that is nowhere worse than another: it dominates it, or equals it.

Who looks for dominators alone compares every row with every row where many are equal. An equal row ends the search as
well: what dominates the one dominates the other.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.dominance import weakly_dominates_at
from skytide.kernel.eager_bits import ALL, ONE, SEVEN, SIX, WHOLE, WORDS, ZERO
from skytide.kernel.eager_words import lowest_bit, meeting_words
from skytide.model import Floats, Integers


@njit(cache=True, _nrt=False)
def first_no_worse(
    bits: np.ndarray,
    sets: np.ndarray,
    rows: Floats,
    count: int,
    begin: int,
    others: Floats,
    other: int,
    itself: int,
    work: Integers,
) -> int:
    """The first row of `count`, from position `begin` on, that is nowhere worse than row `other` of `others`, or -1.

    The row at position `itself` is passed over. `sets` are the places of the d sets that hold the rows whose cells are
    not above. O(d count / 512) and one comparison of values per bit that is left; the work counts both.
    """
    if begin >= count:
        return -1
    end = np.uint64((count + 63) >> 6)
    w = np.uint64(begin >> 6)
    block = w & ~SEVEN
    word = _meet(bits, sets, w) & (ALL << np.uint64(begin & 63))
    # The first word is looked at by itself: most searches end there.
    words = ZERO
    later = (WHOLE << (w & SEVEN) << ONE) & WHOLE
    while True:
        while word != ZERO:
            at: int = np.int64(w << SIX) + lowest_bit(word)
            work[0] += 1
            if at != itself and weakly_dominates_at(rows, at, others, other):
                return at
            word &= word - ONE
        while words == ZERO:
            if later == ZERO:
                block += WORDS
                later = WHOLE
            if block >= end:
                return -1
            words = meeting_words(bits, sets, block) & later
            work[1] += 1
            later = ZERO
        w = block + np.uint64(lowest_bit(words))
        words &= words - ONE
        word = _meet(bits, sets, w)


@njit(cache=True, forceinline=True, _nrt=False)
def _meet(bits: np.ndarray, sets: np.ndarray, w: np.uint64) -> np.uint64:
    word: np.uint64 = bits[sets[0] + w]
    for k in range(1, sets.shape[0]):
        word &= bits[sets[k] + w]
    return word
