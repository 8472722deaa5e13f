"""`kind = "window"`: the changes of the skyline of a sliding window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skytide.errors import SkytideError
from skytide.model import Window, duration_value
from skytide.spark.pipeline.fields import LENGTH, MOMENT, TEXT, WHOLE, Field, Options, Refuse
from skytide.spark.pipeline.kinds import NULLS, PREFERENCE, Context, Kind, check_preference, preference_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _check(options: Options, refuse: Refuse) -> None:
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


def _build(df: DataFrame, options: Options, context: Context) -> DataFrame:
    from skytide.spark.streaming.operator import window

    keys = ("duration", "count", "lateness", "until", "nulls", "parts", "emit")
    given = {key: options[key] for key in keys if key in options}
    return window(
        df,
        preference_of(options),
        time=options["time"],
        id=options["id"],
        checkpoint=context.checkpoint,
        **given,
    )


KIND = Kind(
    name="window",
    about="the changes of the skyline of a sliding window: time, change, id, the row's columns",
    fields=(
        *PREFERENCE,
        Field("id", TEXT, "the column that names rows", required=True, columns=True),
        Field("time", TEXT, "the column with the rows' times", required=True, columns=True),
        Field("duration", LENGTH, "how long a row lives", check=duration_value),
        Field("count", WHOLE, "a row lives until so many more have come", least=1),
        Field("lateness", LENGTH, "how far rows may come out of order", check=duration_value),
        Field("until", MOMENT, "time runs on to this after the last row of a batch"),
        NULLS,
        Field("parts", WHOLE, "how many shares the groups are put into, each with a state of its own", least=1),
        Field("emit", TEXT, "all changes, or one difference per micro-batch", choices=("changes", "net")),
    ),
    check=_check,
    build=_build,
    streams=True,
    changes=True,
)
