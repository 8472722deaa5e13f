"""A row as one 64-bit word: the code that lets one subtraction compare all columns of two rows.

Each column is cut into levels at quantiles of a sample. A row's code holds its levels side by side, one field per
column, the top bit of each field a guard that is 0. Where row a is at least as good as row b everywhere, its levels
are at most those of b, so subtracting code a from code b with its guards set leaves every guard standing. The converse
fails only within a level, and whole rows are compared there. Sixteen codes are tested at once.

The same levels with their bits interleaved give the row's Z-address (Lee, Zheng, Li, Lee: Approaching the Skyline in Z
Order, VLDB 2007), an order in which what dominates a row never follows it. Rows with equal addresses are ordered column
by column. Where we differ: the addresses come from quantiles, not from the bits of integer coordinates, so the scale
and the skew of a column do not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from skytide.kernel.dominance import precedes_at
from skytide.model import Floats, Integers

Codes = npt.NDArray[np.uint64]

LANES = 16
"""How many codes one test compares."""
_MOST_COLUMNS = 32
"""Columns in a code at most: a field is two bits wide there, and the further columns are left to the rows."""
_FINE_ROWS = 1 << 16
"""From so many rows on, fields of twelve bits pay, where there is room for them."""


class Layout(NamedTuple):
    """How the levels of some columns lie in a code."""

    columns: Integers
    width: int
    bits: int
    steps: int
    guards: np.uint64
    thresholds: Floats
    """For every column the quantiles that cut it into 16^steps levels, as a search tree of sixteen-fold nodes."""


def choose_layout(values: Floats, sampled: int) -> Layout:
    """Fields and thresholds from a sample of the rows. O(sample log sample).

    Columns that are constant in the sample tell little and take no field.
    """
    n = len(values)
    fine = n >= _FINE_ROWS
    sample = values[:: -(-n // (4 * sampled if fine else sampled))]
    told = np.flatnonzero((sample != sample[0]).any(axis=0))[:_MOST_COLUMNS]
    columns = told if len(told) else np.zeros(1, dtype=np.int64)
    width = 64 // len(columns)
    bits = min(width - 1, 12 if fine and len(columns) <= 4 else 8)
    steps = 3 if bits > 8 else 2
    guards = sum(1 << (field * width + width - 1) for field in range(len(columns)))
    levels = LANES**steps
    quantiles = np.sort(sample[:, columns].T, axis=1)[:, np.arange(levels) * len(sample) // levels]
    nodes = []
    for step in range(steps):
        # A node holds the fifteen quantiles between its sixteen children, and infinity, which is below nothing.
        edges = quantiles[:, :: levels // LANES ** (step + 1)].reshape(len(columns), -1, LANES)
        nodes.append(
            np.append(edges[:, :, 1:], np.full((*edges.shape[:2], 1), np.inf), axis=2).reshape(len(columns), -1)
        )
    return Layout(columns, width, bits, steps, np.uint64(guards), np.concatenate(nodes, axis=1).reshape(-1))


def spread_table(bits: int, columns: int) -> Codes:
    """For every level its bits with a stride of `columns`: the part of a Z-address that one column gives."""
    levels = np.arange(1 << bits, dtype=np.uint64)
    table = np.zeros(1 << bits, dtype=np.uint64)
    for bit in range(bits):
        table |= ((levels >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * columns)
    return table


@njit(cache=True, nogil=True, _nrt=False)
def encode(
    values: Floats,
    first: int,
    step: int,
    columns: Integers,
    thresholds: Floats,
    bits: int,
    steps: int,
    width: int,
    spread: Codes,
    codes: Codes,
    keys: Codes,
    shift: int,
) -> None:
    """The codes and the sort keys of the rows first, first + step, ... O(rows * columns * steps).

    A key is as much of the Z-address as fits above `shift` bits, and below it the row's number: sorting plain words is
    far faster than sorting positions by them. Dropping the last bits of an address keeps its order safe.
    """
    fields = columns.shape[0]
    size = thresholds.shape[0] // fields
    surplus = 4 * steps - bits
    dropped = max(0, bits * fields + shift - 64)
    for i in range(codes.shape[0]):
        row = first + i * step
        code = np.uint64(0)
        address = np.uint64(0)
        for field in range(fields):
            value = values[row, columns[field]]
            node = field * size
            level = count_below(thresholds, node, value)
            level = level * LANES + count_below(thresholds, node + LANES + level * LANES, value)
            if steps == 3:
                level = level * LANES + count_below(thresholds, node + LANES + LANES**2 + level * LANES, value)
            level >>= surplus
            code |= np.uint64(level) << np.uint64(field * width)
            address |= spread[level] << np.uint64(fields - 1 - field)
        codes[i] = code
        keys[i] = ((address >> np.uint64(dropped)) << np.uint64(shift)) | np.uint64(i)


@njit(cache=True, nogil=True, _nrt=False)
def read_order(values: Floats, first: int, step: int, keys: Codes, shift: int, order: Integers) -> None:
    """The rows' numbers from the sorted keys, those with equal addresses in the order of their values.

    So equal rows are neighbours. O(ties * log ties) comparisons, by heapsort, so that no input is quadratic.
    """
    n = keys.shape[0]
    numbers = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    for i in range(n):
        order[i] = keys[i] & numbers
    start = 0
    while start < n:
        stop = start + 1
        address = keys[start] >> np.uint64(shift)
        in_order = True
        while stop < n and keys[stop] >> np.uint64(shift) == address:
            if precedes_at(values, first + order[stop] * step, values, first + order[stop - 1] * step):
                in_order = False
            stop += 1
        if not in_order:
            size = stop - start
            for root in range(size // 2 - 1, -1, -1):
                _sift(values, first, step, order, start, root, size)
            for last in range(size - 1, 0, -1):
                order[start], order[start + last] = order[start + last], order[start]
                _sift(values, first, step, order, start, 0, last)
        start = stop


@njit(cache=True, _nrt=False)
def _sift(values: Floats, first: int, step: int, order: Integers, base: int, root: int, size: int) -> None:
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        left, right = order[base + child], order[base + min(child + 1, size - 1)]
        if precedes_at(values, first + left * step, values, first + right * step):
            child += 1
        if not precedes_at(values, first + order[base + root] * step, values, first + order[base + child] * step):
            return
        order[base + root], order[base + child] = order[base + child], order[base + root]
        root = child


# -- words -------------------------------------------------------------------------------------------------------------


@njit(cache=True, forceinline=True, _nrt=False)
def lower_corner(a: np.uint64, b: np.uint64, guards: np.uint64, width: int) -> np.uint64:
    """Field by field the smaller level of two codes."""
    above = ((a | guards) - b) & guards
    fields = above - (above >> np.uint64(width - 1))
    return (b & fields) | (a & ~fields)


# numba has no vector types, and its loops do not yield one bit per lane; the few instructions below are written in
# LLVM's own vectors, which every target has (wide registers where there are some, pairs of narrow ones elsewhere).


def _load(context: Any, builder: Any, array_type: Any, array: Any, start: Any, vector: Any, align: int) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    pointer = builder.gep(data, [start])
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=align)


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    single = builder.insert_element(
        ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value, ir.IntType(32)(0)
    )
    return builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))


@intrinsic
def codes_at_most(typingctx: Any, codes: Any, start: Any, guarded: Any, guards: Any) -> Any:
    """Bit i says that codes[start + i] is at most the code whose guards are set in `guarded`, in every field."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, first, word, mask = args
        vector = ir.VectorType(ir.IntType(64), LANES)
        loaded = _load(context, builder, signature.args[0], array, first, vector, 8)
        guard = _splat(builder, mask, LANES)
        left = builder.and_(builder.sub(_splat(builder, word, LANES), loaded), guard)
        bits = builder.bitcast(builder.icmp_unsigned("==", left, guard), ir.IntType(LANES))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(codes, types.int64, types.uint64, types.uint64), generate


@intrinsic
def lanes_at_most(typingctx: Any, values: Any, start: Any, value: Any) -> Any:
    """Bit i says that values[start + i] <= value, for eight float64 values."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, first, single = args
        vector = ir.VectorType(ir.DoubleType(), 8)
        loaded = _load(context, builder, signature.args[0], array, first, vector, 8)
        bits = builder.bitcast(builder.fcmp_ordered("<=", loaded, _splat(builder, single, 8)), ir.IntType(8))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(values, types.int64, types.float64), generate


@intrinsic
def count_below(typingctx: Any, values: Any, start: Any, value: Any) -> Any:
    """How many of the sixteen float64 values from `start` on are less than the value."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, first, single = args
        vector = ir.VectorType(ir.DoubleType(), LANES)
        loaded = _load(context, builder, signature.args[0], array, first, vector, 8)
        bits = builder.bitcast(builder.fcmp_ordered("<", loaded, _splat(builder, single, LANES)), ir.IntType(LANES))
        return builder.ctpop(builder.zext(bits, ir.IntType(64)))

    return types.int64(values, types.int64, types.float64), generate


@intrinsic
def lowest_bit(typingctx: Any, word: Any) -> Any:
    """The position of the lowest bit that is set; the word is not 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.uint64), generate


@intrinsic
def count_bits(typingctx: Any, word: Any) -> Any:
    """How many bits of the word are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate
