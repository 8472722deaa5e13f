"""`kind = "skyline"`: the rows of a table that no other row dominates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skytide.spark.pipeline.fields import WHOLE, Field, Options
from skytide.spark.pipeline.kinds import NULLS, PREFERENCE, Context, Kind, check_preference, preference_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _build(df: DataFrame, options: Options, context: Context) -> DataFrame:
    from skytide.spark.batch import skyline

    return skyline(df, preference_of(options), nulls=options.get("nulls", "error"), parts=options.get("parts"))


KIND = Kind(
    name="skyline",
    about="the rows that no other row dominates, all columns",
    fields=(*PREFERENCE, NULLS, Field("parts", WHOLE, "how many tasks share the merge", least=1)),
    check=check_preference,
    build=_build,
    streams=False,
    changes=False,
)
