"""From a query's answer to the pipeline's sinks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skytide.spark.pipeline.about import About
from skytide.spark.pipeline.document import is_local
from skytide.spark.pipeline.faults import blamed_on
from skytide.spark.pipeline.plan import OUR_SINKS, Pipeline, Target
from skytide.spark.shipping import needs_shipping
from skytide.spark.sinks.feed import FeedSink
from skytide.spark.sinks.keys import mark_groups
from skytide.spark.sinks.together import Together

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from skytide.spark.rounds.operator import Rounds

ONLY_OURS = ("kafka", "feed", "current")
"""Sinks that Spark itself does not have, or not everywhere."""
SPARK_NAMES = {"jsonl": "json"}
"""Formats that Spark calls otherwise."""


def start_stream(answer: DataFrame | Rounds, pipeline: Pipeline) -> StreamingQuery:
    """Begin to write a stream of changes; the query runs on by itself."""
    from skytide.spark.rounds.operator import Rounds
    from skytide.spark.streaming.write import trigger_options, write

    run, sink = pipeline.run, pipeline.sink
    if run.checkpoint is None:
        raise AssertionError("a stream without a checkpoint was refused")
    if sink.format in OUR_SINKS:
        made = {key: _sink(target, pipeline) for key, target in _targets(pipeline).items()}
        sinks = [made[key] for key in ("path", "feed") if key in made]
        with blamed_on(pipeline.document, "run", "checkpoint"):
            return write(
                answer,
                sinks[0] if len(sinks) == 1 else Together(tuple(sinks)),
                dead_letters=made.get("dead_letters"),
                current=made.get("current"),
                checkpoint=run.checkpoint,
                trigger=run.trigger,
                name=run.name,
            )
    if isinstance(answer, Rounds):
        raise AssertionError("rounds to a format of Spark's were refused")
    with blamed_on(pipeline.document, "sink", "format"):
        writer = answer.writeStream.format(sink.format).options(**sink.options).outputMode("append")
        writer = writer.queryName(run.name).option("checkpointLocation", run.checkpoint)
        options = trigger_options(run.trigger)
        return (writer.trigger(**options) if options else writer).start(sink.path)


def write_rows(answer: DataFrame, pipeline: Pipeline) -> None:
    """Write the answer of a batch job, rows of any number in no particular order."""
    with _whole_or_not_at_all([pipeline.sink]):
        _spark_write(answer, pipeline.sink)


def write_changes(answer: DataFrame | Rounds, pipeline: Pipeline) -> list[str]:
    """Write the changes of a batch job, in their order, and what belongs to them; how much there was of what."""
    from skytide.spark.rounds.operator import Rounds
    from skytide.spark.streaming.write import after

    targets = _targets(pipeline)
    by, more = list[str](), list[str]()
    if isinstance(answer, Rounds):
        outcome = answer.run(folder=_rounds_folder(pipeline))
        changes, letters, more = outcome.changes, outcome.letters, [outcome.traffic.described()]
        assert letters is not None, "they are wanted"
    else:
        by = [field.name for field in answer.schema if field.metadata.get("skytide") == "by"]
        changes, letters = _parted(answer, by)
    tables = {"path": changes, "dead_letters": letters, "feed": mark_groups(changes, by)}
    if "current" in targets:
        tables["current"] = after(None, changes, by)
    with _whole_or_not_at_all(list(targets.values())):
        for key, target in targets.items():
            if target.format in ONLY_OURS:
                _sink(target, pipeline).write(0, tables[key])
            else:
                _spark_write(_frame(answer, tables[key]), target)
    kinds = letters.column("kind").to_pylist()
    counts = {"changes": changes.num_rows, "late": kinds.count("late"), "bad": kinds.count("bad")}
    return [f"{count} {name}" for name, count in counts.items()] + more


def _parted(answer: DataFrame, by: list[str]) -> tuple[pa.Table, pa.Table]:
    """Changes, and the rows that were not taken, in order."""
    import pyarrow.compute as pc

    from skytide.spark.streaming.write import in_order

    rows = in_order(answer.toArrow(), by)
    changed = pc.equal(rows.column("kind"), "change")
    return rows.filter(changed).drop_columns(["kind"]), rows.filter(pc.invert(changed)).drop_columns(["change"])


def _rounds_folder(pipeline: Pipeline) -> str | None:
    """Where the state of rounds over a table lies meanwhile; on one machine anywhere."""
    run = pipeline.run
    if run.checkpoint is None and (run.remote is not None or needs_shipping(run.master)):
        raise pipeline.document.problem(
            ("run", "checkpoint"), "the key is missing", remedy="name a folder that all machines see"
        )
    return run.checkpoint


def _targets(pipeline: Pipeline) -> dict[str, Target]:
    """Where things go, by the key of `[sink]` that says so."""
    found = {"path": pipeline.sink, "dead_letters": pipeline.dead_letters, "current": pipeline.current}
    found["feed"] = pipeline.feed
    return {key: target for key, target in found.items() if target is not None}


def _sink(target: Target, pipeline: Pipeline) -> Any:
    """The sink of ours; a live feed says what it is of."""
    sink = target.sink()
    return replace(sink, about=About.of(pipeline).to_json()) if isinstance(sink, FeedSink) else sink


def _frame(answer: DataFrame | Rounds, table: pa.Table) -> DataFrame:
    """A table with the types of the answer's columns, in one piece so that its order stays."""
    from pyspark.sql.types import StructType

    from skytide.spark.rounds.operator import Rounds

    if isinstance(answer, Rounds):
        return answer.rows.sparkSession.createDataFrame(table).coalesce(1)
    schema = StructType([answer.schema[name] for name in table.column_names])
    return answer.sparkSession.createDataFrame(table, schema).coalesce(1)


def _spark_write(df: DataFrame, target: Target) -> None:
    writer = df.write.format(SPARK_NAMES.get(target.format, target.format)).mode(target.mode).options(**target.options)
    writer.save(target.path) if target.path is not None else writer.save()


@contextmanager
def _whole_or_not_at_all(targets: list[Target]) -> Iterator[None]:
    """Local folders that were not there before are removed again if something fails."""
    paths = [Path(target.path) for target in targets if target.path is not None and is_local(target.path)]
    new = [path for path in paths if not path.exists()]
    try:
        yield
    except BaseException:
        for path in new:
            shutil.rmtree(path, ignore_errors=True)
        raise
