"""From the times and columns that monitors and sinks have to what JSON can say.

Times become numbers: themselves, or milliseconds since 1970 (UTC). Values become numbers, text, None where missing, and
the words Infinity and -Infinity, for which JSON has no numbers.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from skytide.model import Floats

Clock = Literal["number", "time"]
Value = float | int | str | None
_NO_TIME = -(2**63)
"""What numpy has for a moment that is missing."""


def moments(times: Any) -> tuple[Floats, Clock]:
    """Times as numbers, and whether they are moments of a calendar; not a number where missing. O(times).

    >>> moments(np.array(["2024-01-01T00:00:01"], "datetime64[s]"))
    (array([1.7040672e+12]), 'time')
    >>> moments([3, 4.5])
    (array([3. , 4.5]), 'number')
    """
    if isinstance(times, pa.ChunkedArray):
        times = times.combine_chunks()
    if isinstance(times, pa.Array):
        if pa.types.is_date(times.type):
            times = times.cast(pa.timestamp("ms"))
        if pa.types.is_timestamp(times.type):
            # Arrow has the moments in UTC, whatever zone they are shown in.
            counted = times.cast(pa.int64()).fill_null(_NO_TIME).to_numpy(zero_copy_only=False)
            times = counted.view(f"datetime64[{times.type.unit}]")
        else:
            times = times.to_pylist()
    given = list(times) if not isinstance(times, np.ndarray) else times
    if isinstance(given, list) and given and isinstance(given[0], dt.date):
        given = [_in_utc(one) for one in given]
    array = np.asarray(given)
    if array.dtype.kind != "M":
        return array.astype(np.float64), "number"
    whole = array.astype("datetime64[ms]")
    unit = np.datetime_data(array.dtype)[0]
    found = whole.astype(np.float64)
    if unit in ("us", "ns"):
        found += (array - whole).astype(np.float64) / (1e3 if unit == "us" else 1e6)
    return np.where(np.isnat(array), math.nan, found), "time"


def _in_utc(moment: dt.date) -> np.datetime64:
    if isinstance(moment, dt.datetime) and moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    return np.datetime64(moment, "us")


def moment_text(time: float, clock: Clock) -> str:
    """A time as people write it.

    >>> moment_text(1704067201500.0, "time"), moment_text(7.0, "number")
    ('2024-01-01 00:00:01.500', '7')
    """
    if clock == "number" or not math.isfinite(time):
        return f"{int(time)}" if math.isfinite(time) and time == int(time) else f"{time:g}"
    return str(np.datetime64(round(time), "ms")).replace("T", " ").removesuffix(".000")


def column_values(column: Any) -> list[Value]:
    """A column as JSON has it. O(rows).

    >>> column_values(pa.array([1.0, None, float("inf"), float("nan")]))
    [1.0, None, 'Infinity', None]
    >>> column_values(pa.array(["a", None]))
    ['a', None]
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return list(column.to_pylist())
    if pa.types.is_floating(kind):
        return [plain(one) for one in column.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if one is None else float(one) for one in column.to_pylist()]
    return [None if one is None else str(one) for one in column.to_pylist()]


def plain(number: float | None) -> Value:
    """A number as JSON has it."""
    if number is None or math.isfinite(number):
        return number
    return None if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def number_of(value: Value) -> float:
    """The number that a value stands for, of a date its microseconds; not a number where it is missing or other text.

    >>> number_of("Infinity"), number_of("1970-01-01 00:00:01"), number_of("1970-01-01 01:00:00+01:00"), number_of("a")
    (inf, 1000000.0, 0.0, nan)
    """
    if value is None or not isinstance(value, str):
        return math.nan if value is None else float(value)
    try:
        return float(value)
    except ValueError:
        pass
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        return math.nan
    return float(_in_utc(moment).astype(np.int64))


def value_text(value: Value) -> str:
    """A value in full, so that a limit that is named is the limit.

    >>> value_text(0.1 + 0.2), value_text(25.0), value_text(1234567890123456), value_text(1e300), value_text("Infinity")
    ('0.30000000000000004', '25', '1234567890123456', '1e+300', 'Infinity')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return str(value)


def texts(ids: Any) -> list[str]:
    """Ids as text. O(ids)."""
    if isinstance(ids, pa.Array | pa.ChunkedArray):
        ids = ids.to_pylist()
    plain_ids: Sequence[Any] = ids.tolist() if isinstance(ids, np.ndarray) else ids
    return [str(one) for one in plain_ids]
