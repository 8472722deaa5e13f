"""Connections to what each host did in the last hour: the TCP data of zhang09c (Section 7), from any connection log.

The paper counts the connections of each remote address group in the last 1,000 seconds, by four kinds of service, and
takes a snapshot every 100 seconds: `window="1000s", every="100s", kinds="service=http,ssh,dns"`. Without `every` there
is an update at each instant at which something changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from skytide.errors import OptionError
from skytide.spark.prepared.checks import Holds, known, named, present, take
from skytide.spark.prepared.clock import Clock, clock_of
from skytide.spark.prepared.contract import Input, Option, Pipeline, chosen, names_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

INPUT = "connections"
MILLIONTHS = 1_000_000
"""Numbers with fractions are added as whole millionths: what has left the window leaves no rounding error behind."""
UNSET = "-"
"""The id of connections whose text columns of the group are missing, as Zeek writes it."""


def build(
    spark: SparkSession,
    inputs: Mapping[str, DataFrame],
    *,
    group: str | tuple[str, ...] = ("remote_host",),
    window: str | float = "1h",
    sums: str | tuple[str, ...] = ("bytes_orig", "bytes_resp", "duration_s"),
    every: str | float | None = None,
    kinds: str | None = None,
    empty: str = "zero",
    tail: bool = False,
) -> DataFrame:
    """Updates `time, id, connections, <kinds>, <sums>`: what of each group started in the last `window`.

    A connection counts on [start, start + window). Cost: one shuffle of two events per connection, then a running sum.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    chosen(empty, "empty", ("zero", "null"))
    by, values = names_of(group, "group"), names_of(sums, "sums", reserved=("time", "id", "connections"))
    kind_column, kind_values = _kinds(kinds, values)
    wanted: dict[str, Holds] = {"ts": "time"}
    wanted |= dict.fromkeys(values, "number")
    wanted |= dict.fromkeys(by, "anything")
    if kind_column:
        wanted[kind_column] = "anything"
    rows = present(take(inputs[INPUT], wanted, INPUT), "ts")
    clock = clock_of(rows, "ts")
    length = clock.span(window, "window")
    amounts = {"connections": F.lit(1).cast("bigint")}
    amounts |= _kind_counts(kind_column, kind_values) | {name: _amount(rows, name) for name in values}
    lives = _with_id(rows, by).select(
        F.col("_id").alias("id"),
        clock.ticks(F.col("ts")).alias("_from"),
        *(amount.alias(f"_{place}") for place, amount in enumerate(amounts.values())),
    )
    until = F.col("_from") + length
    moments = F.array(
        F.struct(_grid(F.col("_from"), clock, every).alias("at"), F.lit(1).cast("bigint").alias("sign")),
        F.struct(_grid(until, clock, every).alias("at"), F.lit(-1).cast("bigint").alias("sign")),
    )
    places = range(len(amounts))
    events = lives.withColumn("_moment", F.explode(moments))
    if not tail:
        last = lives.agg(_grid(F.max("_from"), clock, every).alias("_last"))
        events = events.join(F.broadcast(last), F.col("_moment.at") <= F.col("_last"))
    steps = events.groupBy("id", F.col("_moment.at").alias("_at")).agg(
        *(F.sum(F.col("_moment.sign") * F.col(f"_{place}")).alias(f"_{place}") for place in places)
    )
    past = Window.partitionBy("id").orderBy("_at").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    states = steps.select("_at", "id", *(F.sum(f"_{place}").over(past).alias(f"_{place}") for place in places))
    there = F.lit(True) if empty == "zero" else F.col("_0") > 0
    results = (
        F.when(there, F.col(f"_{place}") / MILLIONTHS if _fractional(rows, name) else F.col(f"_{place}")).alias(name)
        for place, name in enumerate(amounts)
    )
    return states.select(clock.time(F.col("_at")).alias("time"), "id", *results)


def _kinds(kinds: str | None, values: list[str]) -> tuple[str | None, list[str]]:
    """The column and the values of `service=http,dns`."""
    if kinds is None:
        return None, []
    column, _, listed = kinds.partition("=")
    if not column.strip() or not listed.strip():
        raise OptionError("is not a value of kinds", value=kinds, remedy="write it like service=http,ssh,dns")
    taken = ("time", "id", "connections", "other", *(name.lower() for name in values))
    return column.strip(), names_of([one.strip() for one in listed.split(",")], "kinds", reserved=taken)


def _kind_counts(column: str | None, values: list[str]) -> dict[str, Column]:
    from pyspark.sql import functions as F  # noqa: N812

    if column is None:
        return {}
    text = F.coalesce(named(column).cast("string"), F.lit(""))
    counts = {value: (text == value).cast("bigint") for value in values}
    return counts | {"other": reduce(and_, (text != value for value in values)).cast("bigint")}


def _fractional(rows: DataFrame, name: str) -> bool:
    from pyspark.sql import types

    return name in rows.columns and not isinstance(rows.schema[name].dataType, types.IntegralType)


def _amount(rows: DataFrame, name: str) -> Column:
    """What a connection adds to a sum, as a whole number: nothing where it is missing."""
    from pyspark.sql import functions as F  # noqa: N812

    value = known(rows, name)
    if _fractional(rows, name):
        value = F.round(value.cast("double") * MILLIONTHS)
    return F.coalesce(value.cast("bigint"), F.lit(0).cast("bigint"))


def _with_id(rows: DataFrame, by: list[str]) -> DataFrame:
    """The rows with their group as `_id`: the column itself, or the texts of several, joined by a slash."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql import types

    if len(by) > 1:
        return rows.withColumn(
            "_id", F.concat_ws("/", *(F.coalesce(named(one).cast("string"), F.lit(UNSET)) for one in by))
        )
    if isinstance(rows.schema[by[0]].dataType, types.StringType):
        return rows.withColumn("_id", F.coalesce(named(by[0]), F.lit(UNSET)))
    return present(rows, by[0]).withColumn("_id", named(by[0]))


def _grid(at: Column, clock: Clock, every: str | float | None) -> Column:
    """The first multiple of `every` that is not before this time."""
    from pyspark.sql import functions as F  # noqa: N812

    if every is None:
        return at
    step = clock.span(every, "every")
    return F.ceil(at / step) * step if clock.ticking == "real" else at + F.pmod(-at, F.lit(step).cast("bigint"))


PIPELINE = Pipeline(
    name="connections",
    title="connections to what each host did in the last hour",
    stands_for="zhang09c's TCP connections",
    build=build,
    inputs=(
        Input(
            INPUT,
            {
                "ts": "when the connection started",
                "remote_host": "the group (--group names other columns)",
                "bytes_orig, bytes_resp, duration_s": "numbers to add up (--sums names others)",
            },
            files="zeek_conn*",
        ),
    ),
    options=(
        Option("group", "names", "Columns whose values together are the id."),
        Option("window", "text", "How long a connection counts from its start."),
        Option("sums", "names", "Columns to add up."),
        Option("every", "text", "Updates at multiples of this only: the state then. Default: at every change."),
        Option("kinds", "text", "COLUMN=VALUE,...: counts by kind, all else in `other`. The paper has four kinds."),
        Option("empty", "choice", "A group without connections: zeros, or NULLs, which take it out.", ("zero", "null")),
        Option("tail", "flag", "Go on after the last start, until every connection has left the window."),
    ),
    output={
        "time": "when a connection of the group starts or leaves the window",
        "id": "the group; the texts of several columns are joined by a slash",
        "connections": "how many of the group started in (time - window, time]",
        "<kind> ..., other": "with --kinds: how many of them are of each kind",
        "bytes_orig, bytes_resp, duration_s": "their sums over those connections",
    },
    rules="One update per group and time. A missing number adds nothing, the connection counts all the same; numbers "
    f"with fractions are added as whole millionths. A missing text in the group is {UNSET!r}. Updates end with the "
    "last start.",
)
