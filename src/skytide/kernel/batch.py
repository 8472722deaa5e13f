"""The skyline of a matrix at rest, compiled.

Rows are first dropped that a few strong rows dominate (`batch_filter`). What is left is put in Z-order and scanned
against a tree of the skyline found so far (`batch_codes`, `batch_tree`). With several threads each takes a share of the
rows, finds its skyline, and then asks the skylines of the others. One column is a minimum and two are a sort and a
sweep (Kung, Luccio, Preparata: On Finding the Maxima of a Set of Vectors, JACM 1975). A few thousand rows with a small
skyline are scanned in the order of their sums (as SFS does: Chomicki, Godfrey, Gryz, Liang, ICDE 2003); the smallest
inputs, and small runs of a grouped input, are compared pair by pair. All decisions are comparisons of the values as
they are, so infinities, huge values and -0.0 need no care.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from skytide.errors import InputError, OptionError
from skytide.kernel.batch_codes import Codes, Layout, choose_layout, encode, read_order, spread_table
from skytide.kernel.batch_filter import choose_strong, drop_above_stairs, drop_dominated, lay_out, lay_out_stairs
from skytide.kernel.batch_tree import AHEAD, SCREENS, SIZE, TESTS, cross, empty_tree, row_codes, scan
from skytide.kernel.dominance import dominates_at, relation_at
from skytide.model import Booleans, Floats, Integers


@dataclass(frozen=True)
class Tuning:
    """Where one way of working gives way to another. No value changes an answer."""

    pairs: int = 64
    """Up to so many rows are compared pair by pair."""
    sorted: int = 8_192
    patience: int = 8
    """Up to so many are scanned in the order of their sums, as long as that takes few comparisons per row."""
    filtered: int = 20_000
    """From so many rows on, passes with strong rows come first."""
    sample: int = 1024
    """So many rows are looked at to find the strong ones, and the quantiles of the columns."""
    candidates: int = 64
    strong: int = 16
    least_gain: float = 0.01
    """At most so many strong rows of so many candidates, each for at least this share of the rows left."""
    least_share: float = 0.25
    """A pass is made when it would drop at least this share of the rows."""
    lead: float = 0.75
    """The first strong row is tried by itself where it dominates at least this share."""
    shared: int = 200_000
    split: int = 30_000
    """From so many rows on, threads share a pass, and from so many that it leaves, the scan."""


class Work(NamedTuple):
    """A skyline and what it took: rows compared with rows, and codes compared with codes, which is far cheaper."""

    mask: Booleans
    tests: int
    screens: int


def skyline_mask(
    values: Floats, *, offsets: Integers | None = None, threads: int | None = None, tuning: Tuning | None = None
) -> Booleans:
    """Which rows of an (n, d) matrix no other row dominates; with offsets, within each run offsets[i]:offsets[i+1].

    Smaller is better, there is no NaN, and the matrix is never changed. Equal rows do not dominate each other.
    `threads` is the most that may work, by default two. Memory is linear in n; the time is about n log n where the
    skyline is small, and never more than of the order of n times the skyline's size.

    >>> import numpy as np
    >>> skyline_mask(np.array([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]])).tolist()
    [True, True, False, True]
    >>> skyline_mask(np.array([[2.0], [1.0], [3.0]]), offsets=np.array([0, 2, 3])).tolist()
    [False, True, True]
    """
    return skyline_work(values, offsets=offsets, threads=threads, tuning=tuning).mask


def skyline_work(
    values: Floats, *, offsets: Integers | None = None, threads: int | None = None, tuning: Tuning | None = None
) -> Work:
    """The same mask with the number of comparisons made, which does not depend on the machine.

    >>> import numpy as np
    >>> skyline_work(np.array([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]]), threads=1).tests > 0
    True
    """
    matrix = _check_matrix(values)
    tuning = tuning or Tuning()
    workers = _check_threads(threads)
    counts = np.zeros(3, dtype=np.int64)
    mask = np.empty(len(matrix), dtype=np.bool_)
    if offsets is None:
        _one(matrix, workers, tuning, mask, counts)
    else:
        bounds = _check_offsets(offsets, len(matrix))
        small_runs(matrix, bounds, tuning.pairs, mask, counts)
        for run in np.flatnonzero(np.diff(bounds) > tuning.pairs):
            start, stop = bounds[run], bounds[run + 1]
            _one(matrix[start:stop], workers, tuning, mask[start:stop], counts)
    return Work(mask, int(counts[TESTS]), int(counts[SCREENS]))


# -- what is asked for -------------------------------------------------------------------------------------------------


def _check_matrix(values: Floats) -> Floats:
    matrix = np.ascontiguousarray(values, dtype=np.float64).view()
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError("is not the shape of a matrix of rows", value=np.shape(values), remedy="give (n, d), d >= 1")
    return _frozen(matrix)


def _frozen(matrix: Floats) -> Floats:
    """The matrix, not writeable: numba compiles for such arrays apart, and data from Arrow is often of this kind."""
    matrix.flags.writeable = False
    return matrix


def _check_threads(threads: int | None) -> int:
    if threads is None:
        return min(2, os.cpu_count() or 1)
    if threads < 1:
        raise OptionError("is not a number of threads", value=threads, remedy="give 1 or more, or nothing")
    return int(threads)


def _check_offsets(offsets: Integers, rows: int) -> Integers:
    bounds = np.ascontiguousarray(offsets, dtype=np.int64)
    if bounds.ndim != 1 or not len(bounds) or bounds[0] != 0 or bounds[-1] != rows or (np.diff(bounds) < 0).any():
        raise InputError(f"offsets do not divide {rows} rows", value=offsets, remedy="give them sorted, from 0 to n")
    return bounds


# -- one skyline -------------------------------------------------------------------------------------------------------


def _one(values: Floats, threads: int, tuning: Tuning, mask: Booleans, counts: Integers) -> None:
    n, d = values.shape
    if n <= tuning.pairs:
        small_runs(values, np.array([0, n]), n, mask, counts)
        return
    if d == 1:
        np.equal(values[:, 0], values.min(), out=mask)
        counts[TESTS] += n
        return
    if d > 2 and n <= tuning.sorted and _by_sums(values, tuning.patience, mask, counts):
        return
    left, rows = _filter(values, threads, tuning, counts)
    if d == 2:
        inside = np.zeros(len(left), dtype=np.bool_)
        sweep_two(left, np.argsort(left[:, 0]), inside)
        counts[TESTS] += len(left)
    else:
        inside = _parts(left, threads if len(left) >= tuning.split else 1, tuning, counts)
    if rows is None:
        mask[:] = inside
    else:
        mask[:] = False
        mask[rows] = inside


def _filter(values: Floats, threads: int, tuning: Tuning, counts: Integers) -> tuple[Floats, Integers | None]:
    """What no strong row dominates: these rows, and their positions (None where all are left)."""
    rows: Integers | None = None
    while len(values) >= tuning.filtered:
        size = min(tuning.sample, max(tuning.sample // 2, len(values) // 256))
        sample = values[:: -(-len(values) // size)].copy()
        strong, share, lead = choose_strong(sample, tuning.candidates, tuning.strong, tuning.least_gain)
        if not len(strong) or share < tuning.least_share:
            break
        workers = threads if len(values) >= tuning.shared else 1
        left, kept = _drop(values, sample[strong], lead >= tuning.lead, workers, counts)
        rows = kept if rows is None else rows[kept]
        dropped = 1 - len(left) / len(values)
        values = left
        # The sample promised more: on stairs with many rows on their edges it does so for ever.
        if dropped <= tuning.least_share / 2:
            break
    return values, rows


def _drop(values: Floats, strong: Floats, lead: bool, threads: int, counts: Integers) -> tuple[Floats, Integers]:
    bounds = np.linspace(0, len(values), threads + 1).astype(np.int64)
    room = np.empty(len(values), dtype=np.int64)
    counted = np.zeros((threads, 1), dtype=np.int64)
    stairs = values.shape[1] == 2
    laid_out = lay_out_stairs(strong) if stairs else lay_out(strong)

    def drop(part: int) -> tuple[Floats, Integers]:
        start, stop = bounds[part], bounds[part + 1]
        if stairs:
            size = drop_above_stairs(values, start, stop, laid_out, room[start:stop], counted[part])
        else:
            size = drop_dominated(values, start, stop, laid_out, lead, room[start:stop], counted[part])
        kept = room[start : start + size]
        return values[kept], kept

    parts = _each(drop, range(threads))
    counts[TESTS] += counted.sum()
    if threads == 1:
        left, kept = parts[0]
        return _frozen(left), kept
    return _frozen(np.concatenate([left for left, _ in parts])), np.concatenate([kept for _, kept in parts])


@dataclass
class _Part:
    """A share of the rows, and its skyline in Z-order: one row for all that are equal."""

    places: Integers
    tree: Codes
    kept: Floats
    counts: Integers
    dominated: Booleans

    @property
    def size(self) -> int:
        return int(self.counts[SIZE])


def _parts(values: Floats, threads: int, tuning: Tuning, counts: Integers) -> Booleans:
    layout = choose_layout(values, tuning.sample)
    # Every thread takes each so-manieth row, since neighbours in the input may be alike.
    parts = _each(lambda part: _scan(values, part, threads, layout), range(threads))
    if threads > 1:
        _each(lambda part: _ask_others(parts, part, layout), range(threads))
    inside = np.empty(len(values), dtype=np.bool_)
    for first, part in enumerate(parts):
        inside[first::threads] = part.places >= 0 if threads == 1 else np.append(~part.dominated, False)[part.places]
        counts += part.counts
    return inside


def _scan(values: Floats, first: int, step: int, layout: Layout) -> _Part:
    size = -(-(len(values) - first) // step)
    codes, keys = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.uint64)
    spread = spread_table(layout.bits, len(layout.columns))
    shift = size.bit_length()
    columns, width, bits, steps, guards, thresholds = layout
    encode(values, first, step, columns, thresholds, bits, steps, width, spread, codes, keys, shift)
    keys.sort()
    order = np.empty(size, dtype=np.int64)
    read_order(values, first, step, keys, shift, order)
    tree = empty_tree(size, guards)
    kept = np.empty((size, values.shape[1]))
    places = np.empty(size, dtype=np.int64)
    counts = np.zeros(3, dtype=np.int64)
    batch, words = np.empty((AHEAD + 1, values.shape[1])), np.empty(AHEAD + 1, dtype=np.uint64)
    scan(values, first, step, order, codes, guards, width, tree, kept, batch, words, places, counts)
    return _Part(places, tree, kept, counts, np.zeros(counts[SIZE], dtype=np.bool_))


def _ask_others(parts: Sequence[_Part], mine: int, layout: Layout) -> None:
    part = parts[mine]
    counts = np.zeros(3, dtype=np.int64)
    codes = row_codes(part.tree, len(part.kept))
    for other in parts:
        if other is not part:
            counts[SIZE] = other.size
            cross(part.kept, codes, part.size, layout.guards, other.tree, other.kept, part.dominated, counts)
    part.counts[:SIZE] += counts[:SIZE]


def _each(work: Callable[[int], Any], parts: Sequence[int]) -> list[Any]:
    """Do the work for every part, each in a thread of its own; compiled code and numpy's sort run side by side."""
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(len(parts) - 1) as pool:
        others = [pool.submit(work, part) for part in parts[1:]]
        return [work(parts[0]), *(other.result() for other in others)]


def _by_sums(values: Floats, patience: int, mask: Booleans, counts: Integers) -> bool:
    """The skyline of few rows, if it is small: in the order of their sums, what dominates a row comes before it.

    Sums are rounded, but a row that dominates another never has the larger one. Where there are infinities they say too
    little.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        sums = values.sum(axis=1)
    if not np.isfinite(sums).all():
        return False
    n, d = values.shape
    # What the other way takes before it does anything.
    most = 16_000 + patience * n
    kept, places = np.empty((min(n, 1024), d)), np.empty(min(n, 1024), np.int64)
    return bool(scan_sorted(values, np.argsort(sums), sums, kept, places, most, mask, counts))


@njit(cache=True, nogil=True, _nrt=False)
def scan_sorted(
    values: Floats,
    order: Integers,
    sums: Floats,
    kept: Floats,
    places: Integers,
    most: int,
    mask: Booleans,
    counts: Integers,
) -> bool:
    """Compare rows in the order of their sums with the skyline so far; False where that takes too long.

    Of rows with one sum one may still dominate another that came before it. O(rows * skyline * d).
    """
    d = values.shape[1]
    size = tests = 0
    for i in range(order.shape[0]):
        mask[order[i]] = False
    for i in range(order.shape[0]):
        row = order[i]
        dominated = False
        for j in range(size):
            tests += 1
            if dominates_at(kept, j, values, row):
                dominated = True
                break
        if dominated:
            continue
        at = size - 1
        while at >= 0 and sums[places[at]] == sums[row]:
            if dominates_at(values, row, kept, at):
                mask[places[at]] = False
                size -= 1
                places[at] = places[size]
                for k in range(d):
                    kept[at, k] = kept[size, k]
            at -= 1
        if size == kept.shape[0] or tests > most:
            counts[0] += tests
            return False
        mask[row] = True
        places[size] = row
        for k in range(d):
            kept[size, k] = values[row, k]
        size += 1
    counts[0] += tests
    return True


@njit(cache=True, nogil=True)
def sweep_two(values: Floats, rows: Integers, mask: Booleans) -> None:
    """The skyline of two columns; `rows` are in the order of the first. O(rows)."""
    lowest = np.inf
    start = 0
    n = rows.shape[0]
    while start < n:
        first = values[rows[start], 0]
        least = values[rows[start], 1]
        stop = start + 1
        while stop < n and values[rows[stop], 0] == first:
            least = min(least, values[rows[stop], 1])
            stop += 1
        # Infinity beats nothing, but the first value of all is good whatever it is.
        if start == 0 or least < lowest:
            lowest = least
            for i in range(start, stop):
                mask[rows[i]] = values[rows[i], 1] == least
        start = stop


@njit(cache=True, nogil=True)
def small_runs(values: Floats, offsets: Integers, most: int, mask: Booleans, counts: Integers) -> None:
    """The skyline of every run of at most so many rows, pair by pair. O(sum of squares), and O(1) for longer runs."""
    tests = 0
    for run in range(offsets.shape[0] - 1):
        start, stop = offsets[run], offsets[run + 1]
        if stop - start > most:
            continue
        for i in range(start, stop):
            mask[i] = True
        for i in range(start, stop):
            if not mask[i]:
                continue
            for j in range(i + 1, stop):
                if mask[j]:
                    tests += 1
                    order = relation_at(values, i, values, j)
                    if order < 0:
                        mask[j] = False
                    elif order > 0:
                        mask[i] = False
                        break
    counts[0] += tests
