"""Prepared pipelines: from raw rows to the updates that the papers' queries read as streams, in Spark's own terms.

| name | from | to |
|---|---|---|
| `connections` | a connection log | what each host did in the last hour (zhang09c's TCP) |
| `box-scores` | box scores | running rates per player (udom14's NBA) |
| `prices` | daily prices | 200-day beta and slope per symbol (udom14's STK) |
| `weather` | hourly readings | the vectors of stations (papa14's WEATHER) |
| `ratings` | ratings | the vectors of sites over which the users are spread (papa14's MOVIES) |

Each is a module with a function `build(spark, inputs, **options)`, DataFrames in and out, and a `PIPELINE` that
describes it; a module more in this folder is a pipeline more. Updates have the columns `time` (of the type that the
input's times have), `site` where vectors are local, `id`, and the values; there is one per time, site and id.
`prepare` is the way in, `write_updates` writes them in order of time. Importing this needs no pyspark.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from skytide.errors import InputError, OptionError
from skytide.spark.faults import need_pyspark
from skytide.spark.prepared.contract import Input, Option, Pipeline, pipeline_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Input", "Option", "Pipeline", "find", "only_changes", "order_of", "pipelines", "prepare", "write_updates"]


def pipelines() -> dict[str, Pipeline]:
    """All pipelines by name.

    >>> list(pipelines())
    ['box-scores', 'connections', 'prices', 'ratings', 'weather']
    """
    modules = (importlib.import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__))
    found = [pipeline for module in modules if (pipeline := pipeline_of(module)) is not None]
    return {pipeline.name: pipeline for pipeline in sorted(found, key=lambda one: one.name)}


def find(name: str) -> Pipeline:
    """The pipeline of this name, or an error that lists those there are."""
    known = pipelines()
    if name not in known:
        raise OptionError("is not a pipeline", value=name, remedy=f"choose one of: {', '.join(known)}")
    return known[name]


def prepare(
    spark: SparkSession,
    name: str,
    inputs: Mapping[str, DataFrame] | DataFrame,
    *,
    changes: bool = False,
    **options: Any,
) -> DataFrame:
    """The updates of a pipeline, in no particular order; `changes`: without those that change nothing.

    `inputs` are the DataFrames by name (`find(name).inputs` says which), or the only one. Nothing runs before an action
    does, and what it complains about is one line inside `skytide.spark.plain_errors()`.

    ```python
    updates = prepare(spark, "box-scores", spark.read.parquet("box"), per="36", over="season")
    write_updates(updates, "updates")
    ```
    """
    need_pyspark()
    pipeline = find(name)
    pipeline.check_options(options)
    tables = inputs if isinstance(inputs, Mapping) else {pipeline.inputs[0].name: inputs}
    for wanted in pipeline.inputs:
        if wanted.name not in tables:
            raise InputError(f"{name} needs the {wanted.name}", remedy=f"give columns {', '.join(wanted.columns)}")
    updates = pipeline.build(spark, tables, **options)
    return only_changes(updates) if changes else updates


def order_of(updates: DataFrame) -> list[str]:
    """The columns that updates are ordered by: no two have the same values in them."""
    return [name for name in ("time", "site", "id") if name in updates.columns]


def only_changes(updates: DataFrame) -> DataFrame:
    """The updates that differ from the one before of the same site and id. One shuffle by site and id."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    from skytide.spark.prepared.checks import named

    key = [name for name in order_of(updates) if name != "time"]
    values = F.struct(*(named(name) for name in updates.columns if name not in ("time", *key)))
    before = Window.partitionBy(*key).orderBy("time")
    first = F.row_number().over(before) == 1
    moved = reduce(or_, [first, ~F.lag(values).over(before).eqNullSafe(values)])
    return updates.withColumn("_moved", moved).where("_moved").drop("_moved")


def write_updates(updates: DataFrame, folder: str, *, files: int = 1, overwrite: bool = False) -> None:
    """Write updates as Parquet, ordered by time, site and id over all files: read by name, they come in time order.

    One file is the quickest up to some tens of millions of rows; one task sorts it. With more `files` each holds one
    range of times; Spark looks at the updates first to find the ranges, so they are kept on disk meanwhile.
    """
    from pyspark import StorageLevel

    if files < 1:
        raise OptionError("is not a number of files", value=files, remedy="give 1 or more")
    order = order_of(updates)
    mode = "overwrite" if overwrite else "errorifexists"
    if files == 1:
        updates.repartition(1).sortWithinPartitions(*order).write.mode(mode).parquet(folder)
        return
    kept = updates.persist(StorageLevel.DISK_ONLY)
    try:
        kept.repartitionByRange(files, *order).sortWithinPartitions(*order).write.mode(mode).parquet(folder)
    finally:
        kept.unpersist()
