"""Vector tests over the lanes of one tree node: the few instructions that every search repeats.

A node holds up to `LANES` entries; one coordinate of all of them lies side by side. The functions here compare such a
run with a number and give one bit per lane. They are written as vector code because a compiler does not turn a loop
over entries into it, and a branch per entry costs more than all comparisons together. LLVM maps the vectors to whatever
the machine has. All of them read `LANES` numbers from `offset` on; unused lanes are masked by the caller, or hold NaN,
which no comparison here accepts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
"""Entries of a node: one coordinate of a full node is two cache lines."""

_WIDE = ir.IntType(64)

_LEAN = {"cache": True, "_nrt": False, "error_model": "numpy"}
lean = njit(**_LEAN)
"""Compiles a function that makes no array. Arrays that it is handed stay uncounted: with a dozen of them in a tree,
counting references up and down around every call costs more than the call."""
part = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_LEAN)
"""The same for a function that only compiled ones call: most of the time to compile a short one goes into the wrapper
that unpacks Python's arguments."""


def _splat(builder: Any, value: Any) -> Any:
    vector = ir.VectorType(value.type, LANES)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        single, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    )


def _load(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    element = context.get_value_type(array_type.dtype)
    place = builder.gep(data, [offset], source_etype=element)
    vector = ir.VectorType(element, LANES)
    return builder.load(builder.bitcast(place, vector.as_pointer()), align=8, typ=vector)


def _bits(builder: Any, flags: Any) -> Any:
    return builder.zext(builder.bitcast(flags, ir.IntType(LANES)), _WIDE)


def _comparison(operator: str, element: Any) -> Callable[..., Any]:
    """A function (array, offset, number) that gives bit i when array[offset + i] stands so to the number."""

    def typed(typing: Any, array: Any, offset: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = _load(context, builder, signature.args[0], arguments[0], arguments[1])
            number = _splat(builder, arguments[2])
            compare = builder.fcmp_ordered if element is types.float64 else builder.icmp_signed
            return _bits(builder, compare(operator, lanes, number))

        return types.int64(array, types.int64, element), generate

    return intrinsic(typed)  # type: ignore[no-any-return]


lanes_le = _comparison("<=", types.float64)
lanes_lt = _comparison("<", types.float64)
lanes_ge = _comparison(">=", types.float64)
lanes_eq = _comparison("==", types.float64)
keys_gt = _comparison(">", types.int64)
keys_eq = _comparison("==", types.int64)


def _reduction(operator: str, element: Any) -> Callable[..., Any]:
    """A function (array, offset, used) that folds the first `used` lanes (at least one) to the smallest or largest."""

    def typed(typing: Any, array: Any, offset: Any, used: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = _load(context, builder, signature.args[0], arguments[0], arguments[1])
            small = ir.IntType(32)
            numbers = ir.Constant(ir.VectorType(small, LANES), list(range(LANES)))
            used = builder.icmp_signed("<", numbers, _splat(builder, builder.trunc(arguments[2], small)))
            first = builder.extract_element(lanes, ir.Constant(small, 0))
            lanes = builder.select(used, lanes, _splat(builder, first))
            compare = builder.fcmp_ordered if element is types.float64 else builder.icmp_signed
            width = LANES
            while width > 1:
                width //= 2
                order = [(i + width) % LANES for i in range(LANES)]
                moved = builder.shuffle_vector(lanes, lanes, ir.Constant(ir.VectorType(small, LANES), order))
                lanes = builder.select(compare(operator, moved, lanes), moved, lanes)
            return builder.extract_element(lanes, ir.Constant(small, 0))

        return element(array, types.int64, types.int64), generate

    return intrinsic(typed)  # type: ignore[no-any-return]


lanes_min = _reduction("<", types.float64)
lanes_max = _reduction(">", types.float64)
keys_max = _reduction(">", types.int64)


@intrinsic
def lanes_grow(
    typing: Any, lo: Any, hi: Any, offset: Any, x: Any, weight: Any, share: Any, most: Any, costs: Any
) -> Any:
    """Add to costs[:LANES] what each box [lo, hi] pays for x: weight * (growth + share * extent), `most` at most."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        low = _load(context, builder, signature.args[0], arguments[0], arguments[2])
        high = _load(context, builder, signature.args[1], arguments[1], arguments[2])
        x, weight, share, most = (_splat(builder, number) for number in arguments[3:7])
        zero = ir.Constant(low.type, [0.0] * LANES)

        def rise(upper: Any, lower: Any) -> Any:
            # Only where the one lies above the other: the difference of two infinities is no number.
            return builder.select(builder.fcmp_ordered(">", upper, lower), builder.fsub(upper, lower), zero)

        growth = builder.fadd(rise(x, high), rise(low, x))
        price = builder.fmul(weight, builder.fadd(growth, builder.fmul(share, rise(high, low))))
        price = builder.select(builder.fcmp_ordered("<", price, most), price, most)
        data = context.make_array(signature.args[7])(context, builder, arguments[7]).data
        place = builder.bitcast(data, low.type.as_pointer())
        total = builder.fadd(builder.load(place, align=8, typ=low.type), price)
        builder.store(total, place, align=8)
        return context.get_dummy_value()

    number = types.float64
    return types.none(lo, hi, types.int64, number, number, number, number, costs), generate


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    """The number of the lowest bit that is set; the bits must not be zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.int64), generate


@intrinsic
def count_bits(typing: Any, bits: Any) -> Any:
    """How many bits are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


@intrinsic
def highest_bit(typing: Any, bits: Any) -> Any:
    """The number of the highest bit that is set; the bits must not be zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zeros = builder.ctlz(arguments[0], cgutils.true_bit)
        return builder.sub(ir.Constant(_WIDE, 63), zeros)

    return types.int64(types.int64), generate


# No early exit in the two loops below: a branch that cannot be foretold costs more than all d comparisons.


@part
def lanes_weakly_better(columns: np.ndarray, base: int, stride: int, q: np.ndarray) -> int:
    """Bits of the lanes at or below q in every coordinate; coordinate k starts at base + k * stride."""
    bits = lanes_le(columns, base, q[0])
    for k in range(1, q.size):
        bits &= lanes_le(columns, base + k * stride, q[k])
    return int(bits)


@part
def lanes_weakly_worse(columns: np.ndarray, base: int, stride: int, q: np.ndarray) -> int:
    """Bits of the lanes at or above q in every coordinate; coordinate k starts at base + k * stride."""
    bits = lanes_ge(columns, base, q[0])
    for k in range(1, q.size):
        bits &= lanes_ge(columns, base + k * stride, q[k])
    return int(bits)
