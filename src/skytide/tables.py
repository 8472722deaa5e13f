"""From the tables people have (numpy, Arrow, pandas, polars, mappings of columns) to the matrix that the kernel takes.

The kernel takes float64, smaller is better, nothing missing. What cannot be said exactly in float64 is refused, never
rounded: an order that depends on rounding would be a wrong answer without a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skytide.errors import InputError
from skytide.missing import SEAM, make_room
from skytide.model import Booleans, Column, Floats, Integers, MissingPolicy, Preference, check_missing_policy

EXACT = 2**53
"""Whole numbers up to this magnitude are float64 values, each its own."""

Table = Any
"""A numpy matrix, an Arrow table or batch, anything with the Arrow C stream interface, a mapping of columns."""


@dataclass(frozen=True)
class Oriented:
    """The preference columns of a table, ready for the kernel.

    `values` has one row per row that competes, in input order, smaller is better in every column. `rows` holds their
    positions in the input where the policy `drop` left rows out, and None where all compete.
    """

    values: Floats
    rows: Integers | None


def open_table(data: Table) -> pa.Table | npt.NDArray[Any]:
    """The data as an Arrow table, or as a matrix where it is a bare array; nothing is copied that Arrow can share."""
    if isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise InputError(
                f"an array of {data.ndim} dimension(s) is not a table",
                remedy="give one row per object: shape (n, d)",
            )
        return data
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, Mapping):
        return _table_of({str(name): _as_arrow(column, str(name)) for name, column in data.items()})
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return pa.table(data)
    if isinstance(data, list | tuple):
        try:
            matrix = np.asarray(data, dtype=object if not len(data) else None)
        except ValueError:
            raise InputError("the rows of the list differ in length", remedy="give rows of one length") from None
        if matrix.ndim == 2:
            return matrix
    raise InputError(
        f"a {type(data).__name__} is not a table",
        remedy="give a numpy matrix, an Arrow, pandas or polars table, or a mapping of columns",
    )


def _as_arrow(column: Any, name: str) -> Any:
    try:
        return column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as reason:
        raise InputError(
            f"the values are not a column ({reason})", column=name, remedy="use one kind of value"
        ) from None


def _table_of(columns: dict[str, Any]) -> pa.Table:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns differ in length: {lengths}", remedy="give columns of one length")
    return pa.table(columns)


def as_array(column: Any, *, exact: bool = False) -> npt.NDArray[Any]:
    """A single column of any library, or a list, as an array; timestamps with a zone become UTC, dates timestamps.

    Whole numbers with missing values become floats with NaN, as in Arrow; where they are not exact in float64 this is
    an error if `exact` is asked for.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        return column
    if isinstance(column, list) and column and all(isinstance(one, np.datetime64) for one in column):
        return np.array(column)  # Arrow takes all units but days
    try:
        found = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _objects(column)
    if exact and pa.types.is_integer(found.type) and found.null_count:
        _check_whole(pc.drop_null(found).to_numpy(zero_copy_only=False), None)
    if pa.types.is_date(found.type):
        found = found.cast(pa.timestamp("s"))
    if pa.types.is_null(found.type):
        return np.full(len(found), np.nan)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return np.asarray(found.to_numpy(zero_copy_only=False))


def _objects(column: Any) -> npt.NDArray[Any]:
    return np.fromiter(column, dtype=object)  # element by element: a list of lists is not a matrix here


def row_count(table: pa.Table | npt.NDArray[Any]) -> int:
    """How many rows an opened table has."""
    return int(table.shape[0])


def oriented(data: Table, preference: Preference, nulls: MissingPolicy = "error") -> Oriented:
    """The preference columns as the kernel wants them, under the missing-value policy. The input is never changed.

    A float64 matrix whose columns are all minimised, in order, is passed on without a copy.

    >>> import numpy as np
    >>> table = {"price": [3.0, 1.0, None], "mpg": [20, 30, 40]}
    >>> found = oriented(table, Preference(minimize=["price"], maximize=["mpg"]), nulls="drop")
    >>> found.values.tolist(), found.rows.tolist()
    ([[3.0, -20.0], [1.0, -30.0]], [0, 1])
    """
    check_missing_policy(nulls)
    table = open_table(data)
    values, missing = _matrix(table, preference)
    if missing is None:
        return Oriented(values if nulls != "worst" else make_room(values), None)
    bad = missing.any(axis=1)
    if nulls == "error":
        row = int(np.argmax(bad))
        column = preference.names[int(np.argmax(missing[row]))]
        raise InputError(
            "the value is missing (NULL or NaN)",
            row=row + 1,
            column=column,
            remedy="choose the policy drop or worst for missing values, or fill them in",
        )
    if nulls == "drop":
        kept = np.flatnonzero(~bad)
        return Oriented(values[kept], kept)
    values = make_room(values)
    values[missing] = np.inf
    return Oriented(values, None)


def partly(data: Table, preference: Preference) -> Floats:
    """The preference columns, oriented, NaN where a value is missing, whatever the policy. A copy or the input itself.

    >>> partly({"price": [3.0, None], "mpg": [20, 30]}, Preference(minimize=["price"], maximize=["mpg"])).tolist()
    [[3.0, -20.0], [nan, -30.0]]
    """
    return _matrix(open_table(data), preference)[0]


def restored(values: Floats, preference: Preference, nulls: MissingPolicy = "error") -> Floats:
    """Oriented values as they came in; NaN where the policy `worst` stood in for a missing value."""
    if nulls == "worst":
        with np.errstate(all="ignore"):
            moved = np.where(values > SEAM, np.nextafter(values, np.inf), values)
        values = np.where(np.isposinf(values), np.nan, moved)
    return values * preference.signs


def _matrix(table: pa.Table | npt.NDArray[Any], preference: Preference) -> tuple[Floats, Booleans | None]:
    """The oriented values, NaN where missing, and the mask of what is missing (None where nothing is)."""
    names = preference.names
    if (
        isinstance(table, np.ndarray)
        and table.dtype == np.float64
        and not isinstance(table, np.ma.MaskedArray)
        and table.flags.c_contiguous
        and names == tuple(range(table.shape[1]))
        and not preference.maximize
    ):
        values = table
    else:
        values = np.empty((row_count(table), len(names)), dtype=np.float64)
        for position, (name, sign) in enumerate(zip(names, preference.signs, strict=True)):
            column = numbers(table, name)
            np.multiply(column, sign, out=values[:, position])
    # One pass without a temporary of the matrix's size: a sum is NaN where a value is, or where infinities meet.
    with np.errstate(invalid="ignore", over="ignore"):
        total = values.sum()
    if not np.isnan(total):
        return values, None
    missing = np.isnan(values)
    return values, missing if missing.any() else None


def numbers(data: Table, name: Column) -> Floats:
    """One column as float64, NaN where it is missing; an error where it is not numbers or not exact in float64."""
    table = open_table(data)
    if isinstance(table, np.ndarray):
        return _array_numbers(_array_column(table, name), name)
    return _arrow_numbers(column_of(table, name), name)


def column_of(table: pa.Table, name: Column) -> pa.ChunkedArray:
    """A column of an Arrow table by name, or by position; an error that lists the columns where there is none."""
    found = [position for position, known in enumerate(table.column_names) if known == name]
    if isinstance(name, int) and not found and 0 <= name < table.num_columns:
        return table.column(name)
    if not found:
        known = ", ".join(table.column_names[:12]) + (", ..." if table.num_columns > 12 else "")
        raise InputError("there is no such column", column=name, remedy=f"choose one of: {known}")
    if len(found) > 1:
        raise InputError("there are several columns of this name", column=name, remedy="rename them")
    return table.column(found[0])


def _array_column(matrix: npt.NDArray[Any], name: Column) -> npt.NDArray[Any]:
    if not isinstance(name, int):
        raise InputError(
            "a bare array has no column names",
            column=name,
            remedy="use positions, or a table with named columns",
        )
    if not 0 <= name < matrix.shape[1]:
        raise InputError(
            f"the array has {matrix.shape[1]} column(s)",
            column=name,
            remedy="use a position it has, counted from 0",
        )
    return matrix[:, name]


def _array_numbers(column: npt.NDArray[Any], name: Column) -> Floats:
    if isinstance(column, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(column), np.nan, _array_numbers(np.asarray(column.data), name))
    if column.dtype == np.float64:
        return column
    if column.dtype.kind == "b" or (column.dtype.kind == "f" and column.dtype.itemsize < 8):
        return column.astype(np.float64)
    if column.dtype.kind in "iu":
        _check_whole(column, name)
        return column.astype(np.float64)
    try:
        return _arrow_numbers(pa.chunked_array([pa.array(column)]), name)
    except pa.ArrowException:
        raise InputError(
            f"values of type {column.dtype} are not numbers", column=name, remedy="convert the column"
        ) from None


def _arrow_numbers(column: pa.ChunkedArray, name: Column) -> Floats:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _arrow_numbers(column.cast(kind.value_type), name)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_integer(kind):
        if kind.bit_width == 64:
            _check_whole(pc.drop_null(column).to_numpy(), name)
    elif pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return _arrow_numbers(_microseconds(column, name), name)
    elif pa.types.is_date(kind):
        return _arrow_numbers(column.cast(pa.date32()).cast(pa.int32()), name)
    elif pa.types.is_decimal(kind):
        largest = pc.max(pc.abs(column.cast(pa.float64()))).as_py()
        if largest is not None and largest * 10.0**kind.scale > EXACT:
            raise InputError(
                f"{kind} values of this size are not exact in float64",
                column=name,
                remedy="round or rescale the column",
            )
    elif not (pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        _refuse(column, name)
    if pa.types.is_boolean(kind) or pa.types.is_float16(kind):
        column = column.cast(pa.float32() if pa.types.is_float16(kind) else pa.uint8())
    values: Floats = column.cast(pa.float64()).to_numpy()
    return values


def _check_whole(column: npt.NDArray[Any], name: Column | None) -> None:
    if len(column) and (int(column.max()) > EXACT or int(column.min()) < -EXACT):
        row = int(np.argmax((column > EXACT) | (column.astype(np.int64) < -EXACT)))
        raise InputError(
            "is a whole number beyond 2^53, which is not exact in float64",
            value=int(column[row]),
            column=name,
            remedy="subtract a base or divide by a unit",
        )


def _microseconds(column: pa.ChunkedArray, name: Column) -> pa.ChunkedArray:
    kind = column.type
    whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
    if kind.unit != "ns":
        return whole
    if pc.any(pc.not_equal(pc.multiply(pc.divide(whole, 1000), 1000), whole)).as_py():
        raise InputError(
            "times finer than a microsecond are not exact in float64",
            column=name,
            remedy="round to microseconds",
        )
    return pc.divide(whole, 1000)


def _refuse(column: pa.ChunkedArray, name: Column) -> None:
    """Say why the column is not numbers, with the first value that shows it."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        for row, value in enumerate(column.to_pylist()):
            if value is not None and not _reads_as_number(value):
                raise InputError(
                    "is text, not a number",
                    value=value,
                    row=row + 1,
                    column=name,
                    remedy="clean or leave out the column",
                )
    raise InputError(f"the column holds {kind}, not numbers", column=name, remedy="convert it or leave it out")


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def group_codes(data: Table, by: tuple[Column, ...]) -> tuple[Integers, int]:
    """A number from 0 for each row that says which group it belongs to, and how many groups there are.

    Groups are numbered in the order of their first rows. NULL is a group like any other.
    """
    table = open_table(data)
    codes = np.zeros(row_count(table), dtype=np.int64)
    groups = min(1, len(codes))
    for name in by:
        column = pa.array(_array_column(table, name)) if isinstance(table, np.ndarray) else column_of(table, name)
        if pa.types.is_floating(column.type) and not pa.types.is_float16(column.type):
            column = pc.add(column, pa.scalar(0, column.type))  # -0.0 and 0.0 are one group, as they are one value
        try:
            encoded = pc.dictionary_encode(column, null_encoding="encode")
        except pa.ArrowException:
            raise InputError(
                f"values of type {column.type} cannot name groups", column=name, remedy="use numbers or text"
            ) from None
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.chunk(0)
        inner = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes, groups = _renumber(codes * (int(inner.max(initial=0)) + 1) + inner)
    return codes, groups


def _renumber(codes: Integers) -> tuple[Integers, int]:
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[inverse], len(first)
