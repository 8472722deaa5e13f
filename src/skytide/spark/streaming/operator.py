"""`skytide.spark.window` and `uncertain`: the changes of a sliding-window skyline, as a DataFrame.

On a stream the plan is: prune (parallel) -> watermark over ticks -> merge (state per bucket of groups) -> unpack. On a
batch table it is the same without a watermark: all instants up to the last one are closed when all rows are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skytide.errors import OptionError, WindowError
from skytide.model import MissingPolicy, Preference, Window
from skytide.monitors.sliding.clock import HIGHEST, LOWEST
from skytide.spark.faults import need_pyspark
from skytide.spark.session import check_session
from skytide.spark.streaming.asked import plan
from skytide.spark.streaming.query import BUCKET, Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    Mapper = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

PRUNED = "skytide_prune"
"""The observed metrics of a micro-batch: `input` rows read and `sent` rows that reached the merge."""
MERGED = "skytide_merge"
"""And `retained` rows held, `changes`, `late` and `bad` rows that came out."""
_OWN = ("kind", "time", "change")
_GROUPING = {"skytide": "by"}
"""How `write` knows the columns that split the answer: a row may be in it once for each of their values."""
LAST = HIGHEST - 1
"""An instant after all others."""


def window(
    stream: DataFrame,
    preference: Preference,
    *,
    time: str,
    id: str,
    duration: float | int | str | None = None,
    count: int | None = None,
    lateness: float | int | str = 0,
    nulls: MissingPolicy = "drop",
    emit: str = "changes",
    checkpoint: str | None = None,
    until: Any = None,
    parts: int = 8,
) -> DataFrame:
    """The exact changes of the skyline of a sliding window over a stream, or over a whole table in the order of time.

    `time` and `id` name columns; times are whole numbers, real numbers or timestamps. A row lives for `duration`, or
    until `count` more rows of its group have come; a count window ranks rows by time and id, and the time of its
    changes is the rank. Rows may come out of order by `lateness`. An instant is closed when a later row plus the
    lateness has been seen in an earlier micro-batch; its changes come out then. A table closes its last instant too,
    and time runs on to `until` if given.

    Columns out: `kind` (`change`; `late` or `bad` for a row that was not taken), `time`, `change` (`+` or `-`), `id`,
    the `by` columns, the row's other columns; one that is called kind, time or change becomes `row_kind` and so on.
    With `emit="net"` a micro-batch gives only the difference between its first and its last instant.

    `checkpoint` is where the query's checkpoint will lie. With it, tasks learn the watermark and drop rows where they
    lie, which is what makes large streams fast; without it all rows travel to the merge, and the changes are the same.
    `parts` is into how many buckets the groups are put, each of them one state. It must stay the same, as everything
    else that is asked for must, except `emit`, while a checkpoint is used: anything else is refused.

    ```python
    changes = skytide.spark.window(flights, Preference(minimize=["delay"], by=["origin"]), time="ts", id="flight",
                                   duration="2h", lateness="5m", checkpoint="checkpoint")
    ```
    """
    need_pyspark()
    query = plan(
        stream,
        preference,
        Window(count=count, duration=duration, lateness=lateness),
        time=time,
        id=id,
        nulls=nulls,
        emit=emit,
        parts=parts,
    )
    return answer(stream, query, checkpoint, until)


def uncertain(
    stream: DataFrame,
    preference: Preference,
    *,
    probability: str,
    thresholds: float | Sequence[float],
    time: str,
    id: str,
    duration: float | int | str | None = None,
    count: int | None = None,
    lateness: float | int | str = 0,
    nulls: MissingPolicy = "drop",
    emit: str = "changes",
    checkpoint: str | None = None,
    until: Any = None,
    parts: int = 8,
) -> DataFrame:
    """The exact changes of who is in the skyline with at least a threshold's probability, per threshold.

    As `window`, for rows that exist with the probability in the column `probability`; columns out as there, and
    `threshold` after `id`. The same changes as `skytide.UncertainWindow` gives on the same rows. A probability that is
    missing or not between 0 and 1 makes a row bad.

    ```python
    changes = skytide.spark.uncertain(reports, preference, probability="confidence", thresholds=[0.3, 0.8], time="ts",
                                      id="report", duration="1h", checkpoint="checkpoint")
    ```
    """
    need_pyspark()
    from skytide.monitors.uncertain.window import thresholds_of

    query = plan(
        stream,
        preference,
        Window(count=count, duration=duration, lateness=lateness),
        time=time,
        id=id,
        nulls=nulls,
        emit=emit,
        parts=parts,
        probability=probability,
        thresholds=thresholds_of(thresholds),
    )
    return answer(stream, query, checkpoint, until)


# -- the plan ----------------------------------------------------------------------------------------------------------


def answer(stream: DataFrame, query: Query, checkpoint: str | None = None, until: Any = None) -> DataFrame:
    """The changes that a query gives on a stream or a table."""
    inner = _inner(stream, query)
    if stream.isStreaming:
        if until is not None:
            raise OptionError("a stream has no end", value=until, remedy="leave `until` out")
        return _outer(_streaming(inner, query, checkpoint), query)
    return _outer(_whole(inner, query, _until(until, query)), query)


def _until(until: Any, query: Query) -> int | None:
    if until is None:
        return None
    if query.counted:
        raise WindowError("a count window moves with its rows alone", value=until, remedy="leave `until` out")
    clock = query.clock.keys
    return int(clock.keys(clock.prepare([until]))[0])


def _inner(df: DataFrame, query: Query) -> DataFrame:
    """The rows under inner names, with the bucket of their group where there are groups.

    A column costs as much on its way to Python whether it says something or not.
    """
    from pyspark.sql import functions

    inner = df.toDF(*query.columns)
    by = [str(name) for name in query.preference.by]
    if not by:
        return inner
    return inner.withColumn(BUCKET, functions.pmod(functions.xxhash64(*by), functions.lit(query.parts)).cast("int"))


def _streaming(inner: DataFrame, query: Query, checkpoint: str | None) -> DataFrame:
    from pyspark.sql import functions

    from skytide.spark.streaming.processor import MERGED as MERGED_COLUMNS
    from skytide.spark.streaming.processor import Merging
    from skytide.spark.streaming.prune import PACKED
    from skytide.spark.streaming.watermark import address

    check_session(inner.sparkSession, state=True)
    place = address(checkpoint) if query.prunes and checkpoint is not None else None
    pruned = inner.mapInArrow(_pruner(query, place), PACKED).observe(
        PRUNED, functions.sum("input").alias("input"), functions.sum("sent").alias("sent")
    )
    # Spark drops what it thinks late wherever it sees the watermarked column, so the merge does not see it.
    pruned = pruned.withWatermark("tick", "0 seconds").select("bucket", "packed")
    merged = pruned.groupBy("bucket").transformWithState(
        Merging(query), outputStructType=MERGED_COLUMNS, outputMode="Append", timeMode="EventTime"
    )
    numbers = ("retained", "changes", "late", "bad")
    merged = merged.observe(MERGED, *(functions.sum(name).alias(name) for name in numbers))
    return merged.select("packed").mapInArrow(_unpack, _unpacked_schema(inner, query))


def _whole(inner: DataFrame, query: Query, until: int | None) -> DataFrame:
    from skytide.spark.streaming.prune import PACKED

    packed = inner.mapInArrow(_batch_pruner(query), f"{PACKED}, latest BIGINT")
    return packed.repartitionById(query.parts, "bucket").mapInArrow(
        _batch_merger(query, until), _unpacked_schema(inner, query)
    )


def _unpacked_schema(inner: DataFrame, query: Query) -> StructType:
    from pyspark.sql import types

    own = [inner.schema[name] for name in query.columns]
    kind = inner.schema[query.time].dataType
    time: DataType = {"whole": types.LongType(), "real": types.DoubleType()}.get(query.kind, kind)
    if query.counted:
        time = types.LongType()
    elif isinstance(kind, types.DateType):
        time = types.TimestampNTZType()
    fields = [
        types.StructField("kind", types.StringType(), False),
        types.StructField("time", time, True),
        types.StructField("change", types.StringType(), True),
    ]
    if query.thresholds:
        fields.append(types.StructField("threshold", types.DoubleType(), True))
    kinds = {name: types.DoubleType() for name in query.recast}
    fields += [types.StructField(field.name, kinds.get(field.name, field.dataType), True) for field in own]
    return types.StructType(fields)


def _outer(df: DataFrame, query: Query) -> DataFrame:
    """The columns under the user's names, in the promised order."""
    labels = dict(query.labels)
    by = [str(name) for name in query.preference.by]
    columns = [df[name] for name in _OWN] + [df[query.id].alias("id")]
    if query.thresholds:
        columns.append(df["threshold"].alias("threshold", metadata=_GROUPING))
    taken = set(by)
    columns += [df[name].alias(outer_name(labels[name]), metadata=_GROUPING) for name in by]
    if labels[query.id] == "id":
        taken.add(query.id)
    columns += [df[name].alias(outer_name(labels[name])) for name in query.columns if name not in taken]
    return df.select(*columns)


def outer_name(name: str) -> str:
    """The name that a column of the rows has in the changes: some names are taken."""
    return f"row_{name}" if name in (*_OWN, "id", "threshold") else name


# -- in the tasks ------------------------------------------------------------------------------------------------------


def _pruner(query: Query, checkpoint: str | None) -> Mapper:
    def prune_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from skytide.spark.streaming.prune import Pruning
        from skytide.spark.streaming.watermark import closed_instant

        yield from Pruning(query, closed_instant(checkpoint, query.clock)).run(batches)

    return prune_task


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for piece in batch.column("packed"):
            if piece.as_buffer().size:
                yield from pa.ipc.open_stream(piece.as_buffer()).read_all().to_batches(max_chunksize=10_000)


def _batch_pruner(query: Query) -> Mapper:
    def prune_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from skytide.spark.streaming.prune import Pruning, packed_row

        task = Pruning(query, LOWEST if query.prunes else None)
        for batch in task.run(batches):
            yield batch.append_column("latest", pa.array([LOWEST], pa.int64()))
        latest = LAST if query.counted else task.latest
        # Every bucket must know the last instant of all rows, also of those that other buckets hold.
        for bucket in range(query.parts):
            yield packed_row(bucket, None, 0, 0, 0).append_column("latest", pa.array([latest], pa.int64()))

    return prune_task


def _batch_merger(query: Query, until: int | None) -> Mapper:
    def merge_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from skytide.spark.streaming.packing import unpacked
        from skytide.spark.streaming.processor import output_table

        latest, pieces = LOWEST, []
        for batch in batches:
            latest = max(latest, *batch.column("latest").to_pylist())
            pieces += [piece.as_buffer() for piece in batch.column("packed") if piece.is_valid]
        table = unpacked(pieces)
        if table is None:
            return
        merge = query.state()
        _, rejected = merge.take(table)
        for part in (merge.close(latest if until is None else max(until, latest)), rejected):
            if len(part):
                yield from output_table(part, query).to_batches(max_chunksize=10_000)

    return merge_task
