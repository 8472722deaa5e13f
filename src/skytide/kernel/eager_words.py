"""Bits and blocks of eight 64-bit words: what numba does not write as vector instructions by itself."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BLOCK = 8
"""Words taken at once: the width of the widest vector registers."""

_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, BLOCK)


def _load(builder: Any, data: Any, index: Any) -> Any:
    loaded = builder.load(builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer()))
    loaded.align = 8
    return loaded


def _not_zero(builder: Any, vector: Any) -> Any:
    bits = builder.icmp_unsigned("!=", vector, ir.Constant(_VECTOR, [0] * BLOCK))
    return builder.zext(builder.bitcast(bits, ir.IntType(BLOCK)), _WORD)


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _fold(context: Any, builder: Any, signature: Any, arguments: Any, operation: str) -> Any:
    """The blocks of all sets from word w on, joined by the operation, held in a register throughout."""
    bits = _data(context, builder, signature.args[0], arguments[0])
    sets = context.make_array(signature.args[1])(context, builder, arguments[1])
    count = cgutils.unpack_tuple(builder, sets.shape, 1)[0]
    first = builder.add(builder.load(sets.data), arguments[2])
    folded = cgutils.alloca_once_value(builder, _load(builder, bits, first))
    with cgutils.for_range_slice(builder, ir.Constant(_WORD, 1), count, ir.Constant(_WORD, 1), _WORD) as (k, _):
        place = builder.add(builder.load(builder.gep(sets.data, [k])), arguments[2])
        builder.store(getattr(builder, operation)(builder.load(folded), _load(builder, bits, place)), folded)
    return builder.load(folded)


@intrinsic
def meeting_words(typing_context: Any, bits: Any, sets: Any, w: Any) -> Any:
    """Which words of the block from w on have a bit in common in all sets: bit j speaks of word w + j."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _not_zero(builder, _fold(context, builder, signature, arguments, "and_"))

    return types.uint64(bits, sets, w), generate


@intrinsic
def left_words(typing_context: Any, bits: Any, sets: Any, w: Any, chosen: Any) -> Any:
    """Which words of the block from w on have a bit of `chosen` that is in none of the sets."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        joined = _fold(context, builder, signature, arguments, "or_")
        picked = _load(builder, _data(context, builder, signature.args[3], arguments[3]), arguments[2])
        return _not_zero(builder, builder.and_(picked, builder.not_(joined)))

    return types.uint64(bits, sets, w, chosen), generate


_BYTES = ir.VectorType(ir.IntType(8), 64)


def _compare_bytes(context: Any, builder: Any, signature: Any, arguments: Any, relation: str) -> Any:
    codes = context.make_array(signature.args[0])(context, builder, arguments[0])
    query = context.make_array(signature.args[1])(context, builder, arguments[1])
    lines, width = cgutils.unpack_tuple(builder, codes.shape, 2)
    mask = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 2**64 - 1))
    with cgutils.for_range(builder, lines) as loop:
        place = builder.gep(codes.data, [builder.add(builder.mul(loop.index, width), arguments[2])])
        line = builder.load(builder.bitcast(place, _BYTES.as_pointer()))
        line.align = 1
        one = builder.insert_element(
            ir.Constant(_BYTES, ir.Undefined),
            builder.load(builder.gep(query.data, [loop.index])),
            ir.Constant(ir.IntType(32), 0),
        )
        spread = builder.shuffle_vector(
            one, ir.Constant(_BYTES, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        )
        held = builder.bitcast(builder.icmp_unsigned(relation, line, spread), _WORD)
        builder.store(builder.and_(builder.load(mask), held), mask)
    return builder.load(mask)


@intrinsic
def none_above(typing_context: Any, codes: Any, query: Any, at: Any) -> Any:
    """Of 64 columns of a byte matrix from `at` on, those with no byte above the query's: bit j is column at + j."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _compare_bytes(context, builder, signature, arguments, "<=")

    return types.uint64(codes, query, at), generate


@intrinsic
def none_below(typing_context: Any, codes: Any, query: Any, at: Any) -> Any:
    """The same, those with no byte below the query's."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _compare_bytes(context, builder, signature, arguments, ">=")

    return types.uint64(codes, query, at), generate


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """The number of the lowest bit that is set in a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def highest_bit(typing_context: Any, word: Any) -> Any:
    """The number of the highest bit that is set in a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zeros = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(_WORD, 63), zeros)

    return types.int64(types.uint64), generate
