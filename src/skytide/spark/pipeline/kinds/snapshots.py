"""`kind = "snapshots"`: the changes of the skyline of objects whose values change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skytide.errors import SkytideError
from skytide.model import Window
from skytide.monitors.snapshots.choice import METHODS
from skytide.spark.pipeline.fields import TEXT, Field, Options, Refuse
from skytide.spark.pipeline.kinds import PREFERENCE, Context, Kind, check_preference, preference_of
from skytide.spark.pipeline.kinds.window import WINDOW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UPDATES = (
    *(field for field in WINDOW if field.name not in ("id", "duration", "count", "until")),
    Field("id", TEXT, "the column that names objects", required=True, columns=True),
    Field("op", TEXT, "what an update does: set, add, multiply or average, or the column that says it"),
    Field("order", TEXT, "the column that orders updates of one object at one time", columns=True),
    Field("method", TEXT, "how skylines are kept", choices=METHODS),
)
"""The keys of every query over updates."""


def check(options: Options, refuse: Refuse) -> None:
    """A complaint at the key that makes the query impossible."""
    check_preference(options, refuse)
    if "lateness" in options:
        try:
            Window(count=1, lateness=options["lateness"])
        except SkytideError as problem:
            raise refuse("lateness", problem.reason, value=problem.value, remedy=problem.remedy) from None


def asked(options: Options) -> dict[str, Any]:
    """What those keys mean to the functions of `skytide.spark`."""
    return {field.name: options[field.name] for field in UPDATES if field.name in options}


def _build(df: DataFrame, options: Options, context: Context) -> DataFrame:
    from skytide.spark.streaming.snapshots.operator import snapshots

    return snapshots(df, preference_of(options), **asked(options))


KIND = Kind(
    name="snapshots",
    about="the changes of the skyline of objects under updates: time, change, id, the columns of the last update",
    fields=(*PREFERENCE, *UPDATES),
    check=check,
    build=_build,
    streams=True,
    changes=True,
)
