"""`skytide.spark.write`: a change stream to its sinks, each micro-batch once.

A micro-batch is collected and sorted on the driver (a change stream is small beside the stream it comes from), so that
what a sink gets is the same, in the same order, whenever a micro-batch is done again after a crash. Sinks are
idempotent by the number of the micro-batch; then nothing is lost and nothing is doubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.errors import OptionError, StateError
from skytide.model import duration_value
from skytide.spark.faults import need_pyspark
from skytide.spark.sinks.keys import mark_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from skytide.spark.rounds.operator import Rounds
    from skytide.spark.sinks import Sink


class Current(Protocol):
    """Where the answer as of the last micro-batch is kept."""

    def read(self) -> tuple[int, pa.Table] | None:
        """The last micro-batch and the answer after it, or None."""
        ...

    def write(self, batch: int, rows: pa.Table) -> None:
        """Replace the answer."""
        ...

    def last(self) -> int | None:
        """The last micro-batch that is there."""
        ...


def write(
    changes: DataFrame | Rounds,
    sink: Sink | None = None,
    *,
    checkpoint: str,
    dead_letters: Sink | None = None,
    current: Current | None = None,
    trigger: str | None = None,
    name: str | None = None,
) -> StreamingQuery:
    """Start writing what `window` and others give: changes to the sink, bad rows to the dead letters, and the answer.

    `current` keeps the answer as of the last micro-batch as a table. `trigger` is `once` (process what is there, then
    end), an interval such as `5s`, or nothing (as fast as it goes). Late and bad rows without a sink for dead letters
    are counted in the query's progress only. Sinks that hold micro-batches of another checkpoint are refused.

    ```python
    query = skytide.spark.write(changes, ParquetSink("changes"), checkpoint="checkpoint", trigger="once")
    query.awaitTermination()
    ```
    """
    need_pyspark()
    from skytide.spark.rounds.operator import Rounds

    if isinstance(changes, Rounds):
        return changes.write(
            sink, checkpoint=checkpoint, dead_letters=dead_letters, current=current, trigger=trigger, name=name
        )
    if not changes.isStreaming:
        raise OptionError("a table is not a stream", remedy="write it with df.write")
    targets = {"sink": sink, "dead_letters": dead_letters, "current": current}
    check_fresh(checkpoint, {role: target for role, target in targets.items() if target is not None})
    by = _columns_of_groups(changes)

    def batch_writer(batch: DataFrame, number: int) -> None:
        write_batch(number, batch.toArrow(), sink, dead_letters, current, by)

    return start(changes.writeStream.foreachBatch(batch_writer), checkpoint, trigger, name)


def start(writer: DataStreamWriter, checkpoint: str, trigger: str | None, name: str | None) -> StreamingQuery:
    """Start a query over a stream."""
    writer = writer.option("checkpointLocation", checkpoint)
    if name is not None:
        writer = writer.queryName(name)
    options = trigger_options(trigger)
    return (writer.trigger(**options) if options else writer).start()


def trigger_options(trigger: str | None) -> dict[str, Any]:
    """What Spark's `trigger` takes for `once`, an interval, or nothing.

    >>> trigger_options("once"), trigger_options("1.5s"), trigger_options(None)
    ({'availableNow': True}, {'processingTime': '1500 milliseconds'}, {})
    """
    if trigger is None:
        return {}
    if trigger == "once":
        return {"availableNow": True}
    milliseconds, rest = divmod(int(duration_value(trigger)) if isinstance(trigger, str) else -1, 10**6)
    if rest or milliseconds < 0:
        raise OptionError("is not a trigger", value=trigger, remedy="use once, or an interval like 500ms, 5s, 1m")
    return {"processingTime": f"{milliseconds} milliseconds"}


def write_batch(
    number: int,
    rows: pa.Table,
    sink: Sink | None,
    dead_letters: Sink | None,
    current: Current | None,
    by: Sequence[str],
) -> None:
    """Bring one micro-batch to its sinks; doing it again changes nothing."""
    rows = in_order(rows, by)
    changed = pc.equal(rows.column("kind"), "change")
    letters = rows.filter(pc.invert(changed)).drop_columns(["change"])
    deliver(number, rows.filter(changed).drop_columns(["kind"]), letters, sink, dead_letters, current, by)


def deliver(
    number: int,
    changes: pa.Table,
    letters: pa.Table | None,
    sink: Sink | None,
    dead_letters: Sink | None,
    current: Current | None,
    by: Sequence[str],
) -> None:
    """Bring the changes of a micro-batch and the rows that were not taken, both in order, to their sinks."""
    changes = mark_groups(changes, by)
    if dead_letters is not None and letters is not None:
        dead_letters.write(number, letters)
    if sink is not None:
        sink.write(number, changes)
    if current is not None:
        known = current.read()
        if known is None or known[0] < number:
            before = None if known is None else known[1]
            current.write(number, after(before, changes, by))


def in_order(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """Rows in the order of the change stream: time, `-` before `+`, id as text, then the group."""
    signs = np.where(pc.equal(rows.column("change"), "-").fill_null(False).to_numpy(), 0, 1)
    keys = {"time": rows.column("time"), "sign": pa.array(signs), "id": rows.column("id").cast(pa.string())}
    keys |= {f"by{position}": rows.column(name) for position, name in enumerate(by)}
    keys = {name: column for name, column in keys.items() if not pa.types.is_null(column.type)}
    order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return rows.take(order)


def after(before: pa.Table | None, changes: pa.Table, by: Sequence[str]) -> pa.Table:
    """The answer after changes, which are in order: who entered last and has not left; `time` is when it entered."""
    changes = changes.combine_chunks()
    entered = changes.drop_columns(["change"])
    signs = np.where(pc.equal(changes.column("change"), "+").to_numpy(), 1, -1)
    if before is not None and before.num_rows:
        entered = pa.concat_tables([before.cast(entered.schema), entered])
        signs = np.concatenate([np.ones(before.num_rows, np.int64), signs])
    if not entered.num_rows:
        return entered
    same = identities(entered, ["id", *by])
    last = np.zeros(int(same.max()) + 1, np.int64)
    last[same] = np.arange(len(same))
    return entered.take(pa.array(np.sort(last[signs[last] > 0])))


def identities(table: pa.Table, columns: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A number per row, the same for rows that are equal in these columns."""
    from skytide.tables import group_codes

    return group_codes(table, tuple(columns))[0]


def _columns_of_groups(changes: DataFrame) -> list[str]:
    """The `by` columns of a change stream: `window` marks them."""
    return [field.name for field in changes.schema if field.metadata.get("skytide") == "by"]


def check_fresh(checkpoint: str, targets: dict[str, Any]) -> None:
    """Refuse to mix the micro-batches of two checkpoints: a new one starts to count from 0 again."""
    if _has_run(checkpoint):
        return
    for role, target in targets.items():
        if (last := target.last()) is not None:
            raise StateError(
                f"the {role} holds micro-batch {last} already, and the checkpoint is new",
                remedy="give the checkpoint that belongs to it, or another place for the results",
            )


def _has_run(checkpoint: str) -> bool:
    """Whether the checkpoint belongs to a query that has begun; unknown ones are taken to have."""
    from pyarrow import ArrowException, fs

    from skytide.spark.streaming.watermark import address

    try:
        system, path = fs.FileSystem.from_uri(address(checkpoint))
        found = system.get_file_info(f"{path}/metadata").type
    except (OSError, ValueError, ArrowException):
        return True
    return bool(found != fs.FileType.NotFound)
