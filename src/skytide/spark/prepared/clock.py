"""Times of any kind as numbers that can be added and compared, and back, in Spark's terms.

Timestamps with and without a zone become microseconds since 1970, dates become days, numbers stay numbers. Nothing
here depends on the session's time zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from skytide.errors import InputError, OptionError
from skytide.model import duration_value

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

Ticking = Literal["zoned", "plain", "date", "whole", "real"]
_NANOSECONDS = {"zoned": 1_000, "plain": 1_000, "date": 86_400_000_000_000}
_MICROSECONDS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


@dataclass(frozen=True)
class Clock:
    """How a column tells the time."""

    column: str
    type: DataType
    ticking: Ticking

    def ticks(self, time: Column) -> Column:
        """A time as a number: BIGINT, or DOUBLE where times are numbers with fractions."""
        from pyspark.sql import functions as F  # noqa: N812

        if self.ticking == "zoned":
            return F.unix_micros(time)
        if self.ticking == "plain":
            # unix_micros would read the time in the session's zone, where an hour of a year is missing.
            days = F.unix_date(time.cast("date")).cast("bigint") * _MICROSECONDS["day"]
            hours = F.hour(time).cast("bigint") * _MICROSECONDS["hour"]
            minutes = F.minute(time).cast("bigint") * _MICROSECONDS["minute"]
            seconds = (F.extract(F.lit("SECOND"), time) * _MICROSECONDS["second"]).cast("bigint")
            return days + hours + minutes + seconds
        if self.ticking == "date":
            return F.unix_date(time).cast("bigint")
        return time.cast("bigint" if self.ticking == "whole" else "double")

    def time(self, ticks: Column) -> Column:
        """A number as a time of the column's own type."""
        from pyspark.sql import functions as F  # noqa: N812

        if self.ticking == "zoned":
            return F.timestamp_micros(ticks)
        if self.ticking == "plain":
            seconds = (ticks.cast("decimal(20,0)") / F.lit(1_000_000).cast("decimal(7,0)")).cast("decimal(18,6)")
            start = F.lit("1970-01-01").cast("timestamp_ntz")
            return start + F.make_dt_interval(secs=seconds)
        if self.ticking == "date":
            return F.date_from_unix_date(ticks.cast("int"))
        return ticks.cast(self.type)

    def span(self, value: float | int | str, option: str) -> int | float:
        """A duration in ticks: text like 90s for timestamps and dates, a number where times are numbers.

        Zero is refused: no window and no step is that short.
        """
        number = _number(value)
        scale = _NANOSECONDS.get(self.ticking)
        if scale is None:
            if number is None:
                raise OptionError(
                    f"is not a value of {option}: the times in {self.column!r} are numbers",
                    value=value,
                    remedy="give a number in their unit",
                )
            if self.ticking == "whole" and number != int(number):
                raise OptionError(
                    f"is not a value of {option}: the times in {self.column!r} are whole numbers",
                    value=value,
                    remedy="give a whole number",
                )
            length: int | float = int(number) if self.ticking == "whole" else float(number)
        elif number is not None:
            raise OptionError(f"is a value of {option} without a unit", value=value, remedy="write 90s, 15m, 2h or 1d")
        else:
            whole, rest = divmod(int(duration_value(value)), scale)
            if rest:
                unit = "day" if self.ticking == "date" else "microsecond"
                raise OptionError(
                    f"is not a value of {option}: the times in {self.column!r} are no finer than a {unit}",
                    value=value,
                    remedy=f"give whole {unit}s",
                )
            length = whole
        if not 0 < length < 2**62:
            raise OptionError(f"is not a value of {option}", value=value, remedy="give more than 0, and not so much")
        return length


def clock_of(df: DataFrame, column: str) -> Clock:
    """The clock of a column, or an error where it tells no time."""
    from pyspark.sql import types

    kind = df.schema[column].dataType
    kinds: list[tuple[Any, Ticking]] = [
        (types.TimestampType, "zoned"),
        (types.TimestampNTZType, "plain"),
        (types.DateType, "date"),
        (types.IntegralType, "whole"),
        (types.NumericType, "real"),
    ]
    for known, ticking in kinds:
        if isinstance(kind, known):
            return Clock(column, kind, ticking)
    raise InputError(
        f"the column holds {kind.simpleString()}, not times", column=column, remedy="give timestamps, dates or numbers"
    )


def _number(value: float | int | str) -> int | float | None:
    """A number, also one written as text; None where it is neither."""
    if isinstance(value, int | float):
        return None if isinstance(value, bool) or value != value or abs(value) == float("inf") else value
    for read in (int, float):
        try:
            number = read(value)
        except ValueError:
            continue
        return _number(number)
    return None
