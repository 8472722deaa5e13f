"""Random rows after Börzsönyi, Kossmann, Stocker (The Skyline Operator, ICDE 2001), the data of all five papers.

The three kinds are drawn as in their generator: a value v for the whole row, then h_1 ... h_d, and column i becomes
v + h_i - h_(i-1), cyclically, so that what one column wins another loses; rows outside the unit cube are drawn again.
Where we differ: their "normal" numbers are sums of 12 uniform ones, ours are normal; and the deviation of the plane
that anti-correlated rows lie near (theirs is 0.25 / 6 = 0.042) is a parameter. It decides the size of the skyline: of
8,000 rows in 2, 3, 4 columns 33, 270, 1,020 at 0.05, and 240, 4,170, 7,710 at 0.005, where tao06 has 243, 4,186, 7,643.

Rows come in blocks, each with a random source of its own that only the seed and the block's number decide. So the row
at a position is the same however many are asked for, in chunks of any size, and from any position on.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from skytide.errors import OptionError
from skytide.model import Floats

KINDS = ("independent", "correlated", "anti-correlated")
DEVIATION = 0.05
"""How far anti-correlated rows lie from their plane: the standard deviation of a row's mean before any is drawn again.

Rows near the plane leave the cube more often than rows off it, so that 0.05 becomes 0.053 in 4 columns, 0.056 in 8.
"""
BLOCK = 16_384
"""Rows drawn from one random source: few enough to stay in cache, many enough to make its start cheap."""
MOST_ANTI_COLUMNS = 24
"""Each further column of anti-correlated rows drops a fifth of the draws; beyond this, a row takes too many."""


def generate(
    kind: str, n: int, d: int, seed: int = 0, *, deviation: float | None = None, start: int = 0
) -> npt.NDArray[np.float64]:
    """n rows of d values in [0, 1], from position `start` of the stream on. O(n d); 10⁷ rows of 4 take a few seconds.

    `deviation` is for anti-correlated rows only.

    >>> generate("independent", 5, 2, seed=1).shape
    (5, 2)
    >>> bool((generate("correlated", 9, 2)[4:] == generate("correlated", 5, 2, start=4)).all())
    True
    >>> generate("correleted", 5, 2)
    Traceback (most recent call last):
    ...
    skytide.errors.OptionError: 'correleted' is not a kind of rows; use independent, correlated or anti-correlated
    """
    check_whole("a number of rows", n, least=0)
    draw = _drawer(kind, d, deviation)
    entropy = source_key(seed, f"{kind}/{d}/{DEVIATION if deviation is None else float(deviation)}")
    return assemble(n, start, lambda block: draw(block_source(entropy, block)), np.empty((n, d)))


def chunks(
    kind: str, n: int, d: int, seed: int = 0, size: int = 65_536, *, deviation: float | None = None, start: int = 0
) -> Iterator[npt.NDArray[np.float64]]:
    """The rows of `generate`, `size` at a time; the last chunk may be shorter. Memory for one chunk and one block.

    >>> [len(chunk) for chunk in chunks("independent", 10, 3, size=4)]
    [4, 4, 2]
    """
    check_whole("a number of rows", n, least=0)
    check_whole("a chunk size", size, least=1)
    check_whole("a position", start, least=0)
    _drawer(kind, d, deviation)
    return (
        generate(kind, min(size, start + n - at), d, seed, deviation=deviation, start=at)
        for at in range(start, start + n, size)
    )


# -- blocks, for all generators ----------------------------------------------------------------------------------------


def check_whole(what: str, value: int, *, least: int) -> None:
    """An error where the value is not a whole number from `least` on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise OptionError(f"is not {what}", value=value, remedy=f"give a whole number from {least}")


def source_key(seed: int, purpose: str) -> list[int]:
    """What decides a stream's random sources: the seed, and the purpose so that two streams of one seed differ."""
    check_whole("a seed", seed, least=0)
    return [int(seed), zlib.crc32(purpose.encode())]


def block_source(entropy: list[int], block: int) -> np.random.Generator:
    """The random source of one block."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy, spawn_key=(block,))))


def assemble(n: int, start: int, draw: Callable[[int], Floats], out: Floats) -> Floats:
    """The rows start ... start + n of a stream whose blocks `draw` gives, written into `out`."""
    check_whole("a position", start, least=0)
    for block in range(start // BLOCK, -(-(start + n) // BLOCK)):
        first = max(start, block * BLOCK)
        last = min(start + n, (block + 1) * BLOCK)
        out[first - start : last - start] = draw(block)[first - block * BLOCK : last - block * BLOCK]
    return out


# -- the three kinds ---------------------------------------------------------------------------------------------------


def _drawer(kind: str, d: int, deviation: float | None) -> Callable[[np.random.Generator], Floats]:
    """The function that draws one block of this kind, after a check of the parameters."""
    check_whole("a number of columns", d, least=1)
    if kind not in KINDS:
        raise OptionError("is not a kind of rows", value=kind, remedy="use independent, correlated or anti-correlated")
    if deviation is not None and kind != "anti-correlated":
        raise OptionError(f"{kind} rows have no deviation", remedy="leave it out, or draw anti-correlated rows")
    if kind == "independent":
        return lambda source: source.random((BLOCK, d))
    if kind == "correlated":
        return lambda source: _until_full(d, lambda: _correlated(source, d))
    spread = DEVIATION if deviation is None else deviation
    if not 0 <= spread <= 1:
        raise OptionError("is not a deviation of the plane", value=deviation, remedy="give a number from 0 to 1")
    if d > MOST_ANTI_COLUMNS:
        raise OptionError(
            "columns of anti-correlated rows take too long to draw", value=d, remedy=f"use up to {MOST_ANTI_COLUMNS}"
        )
    return lambda source: _until_full(d, lambda: _anti_correlated(source, d, spread))


def _correlated(source: np.random.Generator, d: int) -> Floats:
    level = source.random((BLOCK, d)).mean(axis=1)
    return _spread(level, source.standard_normal((BLOCK, d)) / 6)


def _anti_correlated(source: np.random.Generator, d: int, deviation: float) -> Floats:
    level = source.normal(0.5, deviation, BLOCK)
    return _spread(level, 2 * source.random((BLOCK, d)) - 1)


def _spread(level: Floats, shares: Floats) -> Floats:
    """Rows around their levels, those in the unit cube; shares of -1 to 1 reach from the level to the nearer wall."""
    inside = (level >= 0) & (level <= 1)
    shares *= np.minimum(level, 1 - level)[:, None]
    rows = level[:, None] + shares
    rows[:, 1:] -= shares[:, :-1]
    rows[:, 0] -= shares[:, -1]
    # Column by column: a reduction over rows this short is slow.
    for column in rows.T:
        inside &= (column >= 0) & (column <= 1)
    return rows[inside]


def _until_full(d: int, draw: Callable[[], Floats]) -> Floats:
    block = np.empty((BLOCK, d))
    filled = 0
    while filled < BLOCK:
        rows = draw()[: BLOCK - filled]
        block[filled : filled + len(rows)] = rows
        filled += len(rows)
    return block
