"""`kind = "monitor"`: the changes of the skyline of clients of whom the driver hears only what matters."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from skytide.protocols.filtering.methods import METHODS
from skytide.protocols.filtering.schedule import sampling_rate
from skytide.spark.pipeline.fields import NUMBER, TEXT, WHOLE, Field, Options, Refuse
from skytide.spark.pipeline.kinds import PREFERENCE, Context, Kind, preference_of
from skytide.spark.pipeline.kinds.frequent import check_theta
from skytide.spark.pipeline.kinds.snapshots import UPDATES
from skytide.spark.pipeline.kinds.snapshots import check as check_updates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from skytide.spark.rounds.operator import Rounds


_SOME = [(Fraction(1), 1)]
"""A question: any will do to check the numbers beside it."""


def _check_epsilon(given: Any) -> None:
    sampling_rate(_SOME, epsilon=given, delta=0.5)


def _check_delta(given: Any) -> None:
    sampling_rate(_SOME, epsilon=0.5, delta=given)


MONITOR = (
    *(field for field in UPDATES if field.name in ("time", "order", "nulls", "lateness")),
    Field("id", TEXT, "the column that names clients", required=True, columns=True),
    Field("method", TEXT, "who tells what, and when", choices=METHODS),
    Field("theta", NUMBER, "the share of the timestamps, above 0, up to 1", check=check_theta),
    Field("over", WHOLE, "of how many timestamps", least=1),
    Field("epsilon", NUMBER, "sampling: how far theta may be missed", check=_check_epsilon),
    Field("delta", NUMBER, "sampling: how often it may be", check=_check_delta),
    Field("seed", WHOLE, "of the sampled timestamps", least=0),
    Field("buckets", WHOLE, "into how many shares clients are put, each worked on by one task at a time", least=1),
)


MOST_BUCKETS = 10_000


def check_most(options: Options, refuse: Refuse, **most: int) -> None:
    """A complaint at the first key whose number is larger than what is allowed."""
    for key, number in most.items():
        if options.get(key, 0) > number:
            raise refuse(key, "is too large", value=options[key], remedy=f"give at most {number}")


def _check(options: Options, refuse: Refuse) -> None:
    check_updates(options, refuse)
    for one, other in (("theta", "over"), ("over", "theta")):
        if one in options and other not in options:
            raise refuse(one, f"goes together with {other}", remedy=f"give {other}, too, or leave both out")
    check_most(options, refuse, seed=2**64 - 1, buckets=MOST_BUCKETS)


def _build(df: DataFrame, options: Options, context: Context) -> Rounds:
    from skytide.spark.rounds.operator import monitor

    given = {field.name: options[field.name] for field in MONITOR if field.name in options}
    return monitor(df, preference_of(options), **given)


KIND = Kind(
    name="monitor",
    about="the changes of the skyline of clients that say little: time, change, id",
    fields=(*PREFERENCE, *MONITOR),
    check=_check,
    build=_build,
    streams=True,
    changes=True,
    rounds=True,
)
