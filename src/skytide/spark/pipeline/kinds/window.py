"""`kind = "window"`: the changes of the skyline of a sliding window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skytide.errors import SkytideError
from skytide.model import Window, duration_value
from skytide.spark.pipeline.fields import LENGTH, MOMENT, TEXT, WHOLE, Field, Options, Refuse
from skytide.spark.pipeline.kinds import NULLS, PREFERENCE, Context, Kind, check_preference, preference_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check(options: Options, refuse: Refuse) -> None:
    """A complaint at the key that makes the window impossible."""
    check_preference(options, refuse)
    if "count" in options and "duration" in options:
        raise refuse("count", "a window has one length", remedy="give either count or duration")
    if "count" not in options and "duration" not in options:
        raise refuse("duration", "a window needs a length", remedy="give either duration, such as 2h, or count")
    lengths = {key: options[key] for key in ("count", "duration", "lateness") if key in options}
    try:
        Window(**lengths)
    except SkytideError as problem:
        key = next((key for key, value in lengths.items() if value == problem.value), "duration")
        raise refuse(key, problem.reason, value=problem.value, remedy=problem.remedy) from None


WINDOW = (
    Field("id", TEXT, "the column that names rows", required=True, columns=True),
    Field("time", TEXT, "the column with the rows' times", required=True, columns=True),
    Field("duration", LENGTH, "how long a row lives", check=duration_value),
    Field("count", WHOLE, "a row lives until so many more have come", least=1),
    Field("lateness", LENGTH, "how far rows may come out of order", check=duration_value),
    Field("until", MOMENT, "time runs on to this after the last row of a batch"),
    NULLS,
    Field("parts", WHOLE, "how many shares the groups are put into, each with a state of its own", least=1),
    Field("emit", TEXT, "all changes, or one difference per micro-batch", choices=("changes", "net")),
)
"""The keys of every query over a window."""


def asked(options: Options, context: Context) -> dict[str, Any]:
    """What those keys mean to the functions of `skytide.spark`."""
    given = {field.name: options[field.name] for field in WINDOW if field.name in options}
    return {**given, "checkpoint": context.checkpoint}


def _build(df: DataFrame, options: Options, context: Context) -> DataFrame:
    from skytide.spark.streaming.operator import window

    return window(df, preference_of(options), **asked(options, context))


KIND = Kind(
    name="window",
    about="the changes of the skyline of a sliding window: time, change, id, the row's columns",
    fields=(*PREFERENCE, *WINDOW),
    check=check,
    build=_build,
    streams=True,
    changes=True,
)
