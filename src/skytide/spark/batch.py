"""The exact skyline of a Spark DataFrame: pruned in parallel, merged in parallel, read once.

First every task keeps the skyline of its own partition, a batch at a time. With `by` columns the survivors are then
shuffled by group and the same is done again. Without them, every survivor goes to one of several parts, and its
preference values, packed, to all of them as a witness: each part compares its own rows with all witnesses. So no task
holds more than a share of the rows, and the source is evaluated once: a source that changes between two readings still
gives the skyline of something that was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.errors import InputError, OptionError, SkytideError
from skytide.model import Booleans, Column, Floats, MissingPolicy, Preference, check_missing_policy
from skytide.spark.faults import need_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Mapper = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

PENDING_ROWS = 1 << 15
"""Rows wait until there are so many, or as many as candidates so far, before they are compared."""
PENDING_BYTES = 64 << 20
"""Or until they take so much memory."""
BATCH_ROWS = 10_000
"""Rows go back to Spark in batches of so many, which is also its own default."""
WITNESS_BYTES = 1 << 20
"""And witnesses in pieces of at most so much, so that no value is too large for a row of Spark's."""
MOST_PARTS = 8
"""Into so many parts the merge goes at most, unless told otherwise: each of them reads all witnesses."""


def skyline(
    df: DataFrame,
    preference: Preference,
    *,
    nulls: MissingPolicy = "error",
    parts: int | None = None,
    carry: bool = True,
) -> DataFrame:
    """The rows of a DataFrame that no other row dominates, all columns kept, in no particular order.

    The schema out is the schema in. Equal rows all stay. `by` columns make one skyline per group. Nothing runs before
    an action does; a complaint about the data (a missing value under the policy `error`, say) comes with it, as one
    clear line inside `skytide.spark.plain_errors()`. `parts` is how many tasks share the merge of a skyline without
    groups. With `carry=False` only the preference and `by` columns pass through Python, and a join brings the others
    back: faster for wide tables and right for columns that Arrow does not know, but the source is read twice and must
    give the same rows both times. A task's memory is that of its candidates, and in the merge of all their values.

    ```python
    best = skytide.spark.skyline(cars, Preference(minimize=["price"], maximize=["mpg"], by=["brand"]))
    ```
    """
    need_pyspark()
    check_missing_policy(nulls)
    if parts is not None and parts < 1:
        raise OptionError("is not a number of parts", value=parts, remedy="give 1 or more, or nothing")
    named = resolve(df, preference)
    if carry:
        return _skyline(df, named, nulls, parts)
    keys = [*named.names, *named.by]
    wanted = _skyline(df.select(*(df[_quoted(name)] for name in keys)), named, nulls, parts).distinct()
    wanted = wanted.toDF(*(f"_skytide_{position}" for position in range(len(keys))))
    same = (df[_quoted(name)].eqNullSafe(wanted[f"_skytide_{position}"]) for position, name in enumerate(keys))
    return df.join(wanted, reduce(and_, same), "left_semi")


def _skyline(df: DataFrame, preference: Preference, nulls: MissingPolicy, parts: int | None) -> DataFrame:
    _check_arrow(df)
    # Spark passes columns to a task by their names, which need not be unique, nor free of dots and marks.
    inner = df.toDF(*(f"c{position}" for position in range(len(df.columns))))
    labels = dict(zip(inner.columns, df.columns, strict=True))
    plain = {known: name for name, known in labels.items()}
    renamed = Preference(*([plain[str(name)] for name in role] for role in _roles(preference)))
    task = _Task(renamed, nulls, labels)
    if preference.by:
        pruned = inner.mapInArrow(task.pruner(), inner.schema)
        return pruned.repartition(*(str(name) for name in renamed.by)).mapInArrow(task.pruner(), df.schema)
    if parts is None:
        parts = min(MOST_PARTS, int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or MOST_PARTS))
    spread = inner.mapInArrow(task.spreader(parts), _spread_schema(inner))
    return spread.repartitionById(parts, "part").mapInArrow(task.merger(), df.schema)


def _roles(preference: Preference) -> tuple[Sequence[Column], ...]:
    return preference.minimize, preference.maximize, preference.by


# -- what is asked for -------------------------------------------------------------------------------------------------


def resolve(df: DataFrame, preference: Preference) -> Preference:
    """The preference with column names for positions; an error where a column is missing or cannot be compared."""
    if df.isStreaming:
        raise InputError("a stream has no last row, so it has no skyline", remedy="use a window over the stream")
    return Preference(
        minimize=[_compared(df, name) for name in preference.minimize],
        maximize=[_compared(df, name) for name in preference.maximize],
        by=[_grouping(df, name) for name in preference.by],
    )


def _compared(df: DataFrame, name: Column) -> str:
    from pyspark.sql import types

    found, kind = _column(df, name)
    numbers = (
        types.NumericType,
        types.BooleanType,
        types.DateType,
        types.TimestampType,
        types.TimestampNTZType,
        types.TimeType,
        types.DayTimeIntervalType,
        types.NullType,
    )
    if not isinstance(kind, numbers):
        raise InputError(
            f"the column holds {kind.simpleString()}, not numbers", column=name, remedy="convert it or leave it out"
        )
    return found


def _grouping(df: DataFrame, name: Column) -> str:
    from pyspark.sql import types

    found, kind = _column(df, name)
    if isinstance(kind, types.StringType) and not kind.isUTF8BinaryCollation():
        raise InputError(
            f"groups are told apart by their exact text, and the column is {kind.simpleString()}",
            column=name,
            remedy="group by lower(...) or another column that is equal where the groups are",
        )
    if not isinstance(kind, types.AtomicType | types.NullType) or isinstance(kind, types.VariantType):
        raise InputError(
            f"rows cannot be grouped by {kind.simpleString()}", column=name, remedy="group by plain columns"
        )
    return found


def _column(df: DataFrame, name: Column) -> tuple[str, Any]:
    names = df.columns
    if isinstance(name, int) and 0 <= name < len(names):
        name = names[name]
    found = [position for position, known in enumerate(names) if known == name]
    if not found:
        known = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise InputError("there is no such column", column=name, remedy=f"choose one of: {known}")
    if len(found) > 1:
        raise InputError("there are several columns of this name", column=name, remedy="rename them")
    return names[found[0]], df.schema[found[0]].dataType


def _check_arrow(df: DataFrame) -> None:
    from pyspark.sql.pandas.types import to_arrow_type

    for field in df.schema:
        try:
            to_arrow_type(field.dataType, timezone="UTC")
        except TypeError:
            raise InputError(
                f"the column holds {field.dataType.simpleString()}, which does not pass through Python",
                column=field.name,
                remedy="leave it out, or use carry=False",
            ) from None


def _quoted(name: Column) -> str:
    return "`" + str(name).replace("`", "``") + "`"


def _spread_schema(df: DataFrame) -> Any:
    from pyspark.sql import types

    return types.StructType(
        [
            types.StructField("part", types.IntegerType(), False),
            types.StructField("witness", types.BooleanType(), False),
            types.StructField("values", types.BinaryType(), False),
            types.StructField("row", df.schema, True),
        ]
    )


# -- in the tasks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """What goes to the workers; `labels` are the names by which the user knows the columns."""

    preference: Preference
    nulls: MissingPolicy
    labels: dict[str, str]

    def survivors(self, batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
        try:
            return survivors_of(batches, self.preference, self.nulls)
        except SkytideError as problem:
            problem.row = None  # rows of a DataFrame have no numbers; this one would be counted within a run
            problem.column = self.labels.get(str(problem.column), problem.column)
            raise

    def pruner(self) -> Mapper:
        def prune(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            survivors = self.survivors(batches)
            if survivors is not None:
                yield from survivors.to_batches(BATCH_ROWS)

        return prune

    def spreader(self, parts: int) -> Mapper:
        def spread(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            survivors = self.survivors(batches)
            if survivors is not None:
                yield from spread_rows(survivors, self.preference, self.nulls, parts)

        return spread

    def merger(self) -> Mapper:
        dimensions = self.preference.dimensions

        def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from merge_part(batches, dimensions)

        return merge


def survivors_of(batches: Iterator[pa.RecordBatch], preference: Preference, nulls: MissingPolicy) -> pa.Table | None:
    """The skyline of the rows of one partition, or None where it has no rows.

    Batches wait until there are as many rows as candidates so far, so that all comparisons together cost about what the
    last one does.
    """
    candidates: pa.Table | None = None
    pending: list[pa.Table] = []
    rows = size = 0
    for batch in batches:
        pending.append(pa.Table.from_batches([batch]))
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= max(PENDING_ROWS, 0 if candidates is None else candidates.num_rows) or size >= PENDING_BYTES:
            candidates = _together(candidates, pending, preference, nulls)
            pending, rows, size = [], 0, 0
    return _together(candidates, pending, preference, nulls) if pending else candidates


def _together(
    candidates: pa.Table | None, pending: list[pa.Table], preference: Preference, nulls: MissingPolicy
) -> pa.Table:
    tables = pending if candidates is None else [candidates, *pending]
    # Few rows of each batch are left: without combining, a long run would end as very many tiny pieces.
    return _best(pa.concat_tables(tables), preference, nulls).combine_chunks()


def _best(table: pa.Table, preference: Preference, nulls: MissingPolicy) -> pa.Table:
    from skytide.batch import skyline

    mask = skyline(table, preference, nulls=nulls, threads=1)
    return table if mask.all() else table.filter(pa.array(mask))


def spread_rows(
    survivors: pa.Table, preference: Preference, nulls: MissingPolicy, parts: int
) -> Iterator[pa.RecordBatch]:
    """One copy of the survivors' values for every part, and each survivor with its values for one part."""
    from skytide.tables import oriented

    if not survivors.num_rows:
        return
    values = oriented(survivors, preference, nulls).values
    kind = pa.struct(list(survivors.schema))
    step = max(1, WITNESS_BYTES // (8 * values.shape[1]))
    for start in range(0, len(values), step):
        piece = values[start : start + step].tobytes()
        copies = pa.array([piece] * parts, pa.binary())
        yield _spread_batch(np.arange(parts), True, copies, pa.nulls(parts, kind))
    start = 0
    for batch in survivors.to_batches(BATCH_ROWS):
        stop = start + batch.num_rows
        rows = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
        yield _spread_batch(np.arange(start, stop) % parts, False, _bytes_of_rows(values[start:stop]), rows)
        start = stop


def _bytes_of_rows(values: Floats) -> pa.Array:
    """Each row of a matrix as the bytes of its numbers, without a Python object per row."""
    width = values.shape[1] * 8
    offsets = np.arange(len(values) + 1, dtype=np.int32) * width
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(np.ascontiguousarray(values).tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def _spread_batch(shares: Any, witness: bool, keys: pa.Array, rows: pa.Array) -> pa.RecordBatch:
    columns = [pa.array(shares, pa.int32()), pa.array(np.full(len(shares), witness)), keys, rows]
    return pa.RecordBatch.from_arrays(columns, ["part", "witness", "values", "row"])


def merge_part(batches: Iterator[pa.RecordBatch], dimensions: int) -> Iterator[pa.RecordBatch]:
    """The rows of one part that none of the witnesses dominates."""
    witnesses: list[Floats] = []
    own: list[pa.RecordBatch] = []
    for batch in batches:
        is_witness = batch.column("witness")
        witnesses.append(_matrix(batch.column("values").filter(is_witness), dimensions))
        rows = batch.filter(pc.invert(is_witness))
        if rows.num_rows:
            own.append(rows)
    if not own:
        return
    inside = undominated(np.concatenate([_matrix(rows.column("values"), dimensions) for rows in own]), witnesses)
    start = 0
    for rows in own:
        stop = start + rows.num_rows
        kept = rows.column("row").filter(pa.array(inside[start:stop]))
        start = stop
        if len(kept):
            fields = [kept.type.field(position) for position in range(kept.type.num_fields)]
            yield pa.RecordBatch.from_arrays(kept.flatten(), schema=pa.schema(fields))


def _matrix(packed: pa.Array, dimensions: int) -> Floats:
    """The numbers of packed values, of one row or many rows each, without a Python object per value."""
    packed = packed.cast(pa.large_binary())
    _, offsets, data = packed.buffers()
    if not len(packed) or data is None:
        return np.empty((0, dimensions))
    bounds = np.frombuffer(offsets, dtype=np.int64)[packed.offset : packed.offset + len(packed) + 1]
    return np.frombuffer(data[bounds[0] : bounds[-1]], dtype=np.float64).reshape(-1, dimensions)


def undominated(values: Floats, witnesses: list[Floats]) -> Booleans:
    """Which rows none of the witnesses dominates; the rows themselves are among the witnesses."""
    from skytide.kernel.batch import skyline_mask

    inside: Booleans = skyline_mask(np.concatenate([values, *witnesses]), threads=1)[: len(values)]
    return inside
