"""The columns of a DataFrame that a query asks for: found, and of types that can be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skytide.errors import InputError
from skytide.model import Column, Preference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def resolve(df: DataFrame, preference: Preference, *, streams: bool = False) -> Preference:
    """The preference with column names for positions; an error where a column is missing or cannot be compared."""
    if df.isStreaming and not streams:
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


def check_arrow(df: DataFrame) -> None:
    """An error where a column has a type that does not pass through Python."""
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
