"""`kind = "frequent"`: the changes of who is in most of the last skylines of objects under updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skytide.spark.pipeline.fields import NUMBER, WHOLE, Field, Options
from skytide.spark.pipeline.kinds import PREFERENCE, Context, Kind, preference_of
from skytide.spark.pipeline.kinds.snapshots import UPDATES, asked, check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_theta(given: Any) -> None:
    """An error where it is not a share of snapshots."""
    from skytide.monitors.frequent.pairs import Pair

    Pair.of(given, 1)


def _build(df: DataFrame, options: Options, context: Context) -> DataFrame:
    from skytide.spark.streaming.snapshots.operator import frequent

    return frequent(df, preference_of(options), theta=options["theta"], over=options["over"], **asked(options))


KIND = Kind(
    name="frequent",
    about="the changes of who is in a share of the last skylines: time, change, id, the columns of the last update",
    fields=(
        *PREFERENCE,
        *UPDATES,
        Field("theta", NUMBER, "the share of the snapshots, above 0, up to 1", required=True, check=check_theta),
        Field("over", WHOLE, "of how many snapshots", required=True, least=1),
    ),
    check=check,
    build=_build,
    streams=True,
    changes=True,
)
