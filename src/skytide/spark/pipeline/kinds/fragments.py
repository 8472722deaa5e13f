"""`kind = "fragments"`: the changes of the skyline of objects whose values are averages over sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skytide.errors import SkytideError
from skytide.expressions import parse
from skytide.protocols.fragmented.methods import METHODS
from skytide.spark.pipeline.fields import TEXT, TEXTS, WHOLE, Field, Options, Refuse
from skytide.spark.pipeline.kinds import Context, Kind, preference_of
from skytide.spark.pipeline.kinds.monitor import MOST_BUCKETS, check_most
from skytide.spark.pipeline.kinds.snapshots import UPDATES
from skytide.spark.pipeline.kinds.snapshots import check as check_updates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from skytide.spark.rounds.operator import Rounds


def _check_texts(texts: Sequence[str]) -> None:
    for text in texts:
        parse(text)


FRAGMENTS = (
    *(field for field in UPDATES if field.name in ("time", "order", "nulls", "lateness")),
    Field("id", TEXT, "the column that names objects", required=True, columns=True),
    Field("site", TEXT, "the column that names sites", required=True, columns=True),
    Field("method", TEXT, "what sites watch, and tell", choices=METHODS),
    Field("buckets", WHOLE, "into how many shares sites are put, each worked on by one task at a time", least=1),
)


def _check(options: Options, refuse: Refuse) -> None:
    from skytide.spark.rounds.fragments import functions_of

    check_updates(options, refuse)
    check_most(options, refuse, buckets=MOST_BUCKETS)
    try:
        functions_of(preference_of(options))
    except SkytideError as problem:
        key = "min" if "min" in options else "max"
        raise refuse(key, problem.reason, value=problem.value, remedy=problem.remedy) from None


def _build(df: DataFrame, options: Options, context: Context) -> Rounds:
    from skytide.spark.rounds.fragments import fragments

    given = {field.name: options[field.name] for field in FRAGMENTS if field.name in options}
    return fragments(df, preference_of(options), **given)


KIND = Kind(
    name="fragments",
    about="the changes of the skyline of objects in fragments over sites: time, change, id",
    fields=(
        Field("min", TEXTS, "expressions where less is better", expressions=True, check=_check_texts),
        Field("max", TEXTS, "expressions where more is better", expressions=True, check=_check_texts),
        *FRAGMENTS,
    ),
    check=_check,
    build=_build,
    streams=True,
    changes=True,
    rounds=True,
)
