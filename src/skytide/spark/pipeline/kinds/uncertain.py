"""`kind = "uncertain"`: the changes of who is in the skyline with at least a threshold's probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skytide.spark.pipeline.fields import NUMBERS, TEXT, Field, Options
from skytide.spark.pipeline.kinds import PREFERENCE, Context, Kind, preference_of
from skytide.spark.pipeline.kinds.window import WINDOW, asked, check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _check_thresholds(given: tuple[float, ...]) -> None:
    from skytide.monitors.uncertain.window import thresholds_of

    thresholds_of(given)


def _build(df: DataFrame, options: Options, context: Context) -> DataFrame:
    from skytide.spark.streaming.operator import uncertain

    return uncertain(
        df,
        preference_of(options),
        probability=options["prob"],
        thresholds=options["threshold"],
        **asked(options, context),
    )


KIND = Kind(
    name="uncertain",
    about="the changes of who is in the skyline with a probability: time, change, id, threshold, the row's columns",
    fields=(
        *PREFERENCE,
        *WINDOW,
        Field("prob", TEXT, "the column with the rows' probabilities", required=True, columns=True),
        Field("threshold", NUMBERS, "probabilities from which on a row is in", required=True, check=_check_thresholds),
    ),
    check=check,
    build=_build,
    streams=True,
    changes=True,
)
