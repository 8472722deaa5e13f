"""What the pipelines demand of their rows: the columns, their types, values that must be there, rows that come once.

A complaint about a value can only come when Spark looks at it. It then carries the text of a Skytide error, which
`skytide.spark.plain_errors` finds in Spark's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Literal

from skytide.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Holds = Literal["time", "number", "anything"]


def take(df: DataFrame, wanted: Mapping[str, Holds], of: str) -> DataFrame:
    """The columns asked for, by these names and in this order; an error where one is missing or of another type."""
    from pyspark.sql import functions as F  # noqa: N812

    if df.isStreaming:
        raise InputError(f"the {of} are a stream, and updates are prepared from rows at rest", remedy="read a batch")
    positions = {name: _position(df, name, holds, of) for name, holds in wanted.items()}
    # By position: names with dots or of unlike case mean something to Spark.
    plain = df.toDF(*(f"_{position}" for position in range(len(df.columns))))
    return plain.select(*(F.col(f"_{position}").alias(name) for name, position in positions.items()))


def _position(df: DataFrame, name: str, holds: Holds, of: str) -> int:
    from pyspark.sql import types

    found = [position for position, known in enumerate(df.columns) if known == name]
    if not found:
        known = ", ".join(df.columns[:12]) + (", ..." if len(df.columns) > 12 else "")
        raise InputError(
            f"the {of} have no such column", column=name, remedy=f"rename one of: {known} (--column {name}=...)"
        )
    if len(found) > 1:
        raise InputError(f"the {of} have several columns of this name", column=name, remedy="rename them")
    kind = df.schema[found[0]].dataType
    fits = {
        "time": isinstance(kind, types.NumericType | types.TimestampType | types.TimestampNTZType | types.DateType),
        "number": isinstance(kind, types.NumericType),
        "anything": isinstance(kind, types.AtomicType) and not isinstance(kind, types.VariantType),
    }
    if not fits[holds]:
        what = {"time": "times", "number": "numbers", "anything": "plain values"}[holds]
        raise InputError(
            f"the column holds {kind.simpleString()}, not {what}", column=name, remedy="convert it, or name another"
        )
    return found[0]


def named(column: str) -> Column:
    """The column of this very name, dots and marks included."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.col("`" + column.replace("`", "``") + "`")


def refusal(*message: Column | str) -> Column:
    """An expression that stops the run, when it is evaluated, with the message as a Skytide error."""
    from pyspark.sql import functions as F  # noqa: N812

    parts = [
        F.lit(part) if isinstance(part, str) else F.coalesce(part.cast("string"), F.lit("NULL")) for part in message
    ]
    return F.raise_error(F.concat(F.lit("\nskytide.errors.InputError: "), *parts, F.lit("\n")))


def known(df: DataFrame, column: str) -> Column:
    """The column's value, or NULL where it is missing: NULL, NaN or infinite."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql import types

    value = named(column)
    if not isinstance(df.schema[column].dataType, types.FloatType | types.DoubleType):
        return value
    # Of all that is no number the difference from itself is not zero.
    return F.when(value - value == 0, value)


def present(df: DataFrame, *columns: str) -> DataFrame:
    """The same rows, which stop the run where one of these columns has no value."""
    from pyspark.sql import functions as F  # noqa: N812

    for column in columns:
        value = known(df, column)
        missing = refusal(f"column {column!r}: the value is missing; fill it in, or leave the row out")
        df = df.withColumn(column, F.when(value.isNull(), missing.cast(df.schema[column].dataType)).otherwise(value))
    return df


def once(df: DataFrame, key: str, time: str) -> DataFrame:
    """One row per key and time: a row that is there twice counts once, two rows that differ stop the run.

    It needs the rows of a key together and in order, as whatever comes next with the same window does.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    window = Window.partitionBy(key).orderBy(time)
    rest = F.struct(*(named(name) for name in df.columns))
    again = F.lag(time).over(window).eqNullSafe(F.col(time))
    differs = ~F.lag(rest).over(window).eqNullSafe(rest)
    words = ("there are two different rows with ", f"{key} = ", F.col(key), f" and {time} = ", F.col(time))
    complaint = refusal(*words, "; leave one of them out").cast("boolean")
    marked = df.withColumn("_again", F.when(again & differs, complaint).otherwise(again))
    return marked.where(~F.col("_again")).drop("_again")


def complete(df: DataFrame, *columns: str) -> DataFrame:
    """The rows in which all these columns have a value that is a number."""
    from pyspark.sql import functions as F  # noqa: N812

    return df.where(~reduce(or_, (known(df, column).isNull() for column in columns), F.lit(False)))
