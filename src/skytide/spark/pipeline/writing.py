"""From a query's answer to the pipeline's sinks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skytide.spark.pipeline.document import is_local
from skytide.spark.pipeline.faults import blamed_on
from skytide.spark.pipeline.plan import OUR_SINKS, Pipeline, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from skytide.spark.sinks import Sink


def start_stream(answer: DataFrame, pipeline: Pipeline) -> StreamingQuery:
    """Begin to write a stream of answers; the query runs on by itself."""
    run, sink = pipeline.run, pipeline.sink
    if run.checkpoint is None:
        raise AssertionError("a stream without a checkpoint was refused")
    if sink.format in OUR_SINKS:
        from skytide.spark import write

        query: StreamingQuery = write(
            answer,
            _ours(pipeline, sink, "format"),
            checkpoint=run.checkpoint,
            trigger=run.trigger,
            dead_letters=_side(pipeline, pipeline.dead_letters, "dead_letters"),
            current=_side(pipeline, pipeline.current, "current"),
            name=run.name,
        )
        return query
    with blamed_on(pipeline.document, "sink", "format"):
        writer = answer.writeStream.format(sink.format).options(**sink.options).outputMode("append")
        writer = writer.queryName(run.name).option("checkpointLocation", run.checkpoint)
        return writer.trigger(**trigger_of(run.trigger)).start(sink.path)


def write_rows(answer: DataFrame, pipeline: Pipeline) -> None:
    """Write the answer of a batch job. A local folder that was not there before is removed again if it fails."""
    sink = pipeline.sink
    ours = sink.path is not None and is_local(sink.path) and not Path(sink.path).exists()
    done = False
    try:
        writer = answer.write.format(sink.format).mode(sink.mode).options(**sink.options)
        writer.save(sink.path) if sink.path is not None else writer.save()
        done = True
    finally:
        if ours and not done and sink.path is not None:
            shutil.rmtree(sink.path, ignore_errors=True)


def trigger_of(text: str | None) -> dict[str, Any]:
    """A trigger of the file as Spark's.

    >>> trigger_of("once"), trigger_of("1.5s"), trigger_of(None)
    ({'availableNow': True}, {'processingTime': '1500 milliseconds'}, {'processingTime': '0 milliseconds'})
    """
    from skytide.model import duration_value

    if text == "once":
        return {"availableNow": True}
    milliseconds = 0 if text is None else int(duration_value(text)) // 1_000_000
    return {"processingTime": f"{milliseconds} milliseconds"}


def _side(pipeline: Pipeline, target: Target | None, key: str) -> Sink | None:
    return None if target is None else _ours(pipeline, target, key)


def _ours(pipeline: Pipeline, target: Target, key: str) -> Sink:
    from skytide.spark.sinks import make_sink

    options = dict(target.options)
    if target.path is not None:
        options["path"] = target.path
    with blamed_on(pipeline.document, "sink", key):
        return make_sink(target.format, options)
