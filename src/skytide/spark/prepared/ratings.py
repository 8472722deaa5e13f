"""Ratings to the vectors of sites: the MOVIES data of papa14 (Section V-D), users spread over 200 sites at random.

The paper ranks movies by average rating and number of ratings over the whole network. A mean of means is not the mean
of all ratings, so a site's vector holds sum and count as well: `rating_sum / ratings` of the averaged vectors is right.
With `start` every site begins with (0, 0) for every movie, as the paper's count over all sites needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from skytide.spark.prepared.checks import known, present, take
from skytide.spark.prepared.contract import Input, Option, Pipeline, whole

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

INPUT = "ratings"
HEX_DIGITS = 15
"""So many digits of the hash fit into a BIGINT."""


def build(
    spark: SparkSession,
    inputs: Mapping[str, DataFrame],
    *,
    sites: int = 200,
    seed: int = 0,
    start: bool = False,
) -> DataFrame:
    """Updates `time, site, id, average, ratings, rating_sum`: each movie's vector at a site after its ratings there.

    Cost: a shuffle by user and movie, and one by site and movie; `start` adds sites x movies rows.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    whole(sites, "sites", 1)
    whole(seed, "seed", 0)
    rows = take(inputs[INPUT], {"ts": "time", "user_id": "anything", "movie_id": "anything", "rating": "number"}, INPUT)
    rows = present(rows.where(known(rows, "rating").isNotNull()), "ts", "user_id", "movie_id")
    rating = F.col("rating").cast("double")
    before = F.lag(rating).over(Window.partitionBy("user_id", "movie_id").orderBy("ts", "rating"))
    steps = rows.select(
        F.col("ts").alias("time"),
        site_of(F.col("user_id"), sites, seed).alias("site"),
        F.col("movie_id").alias("id"),
        (rating - F.coalesce(before, F.lit(0.0))).alias("_more"),
        before.isNull().cast("bigint").alias("_new"),
    )
    # Summed in order of size, so that the same data always give the same sums to the last bit.
    together = F.aggregate(F.array_sort(F.collect_list("_more")), F.lit(0.0), lambda sum_, one: sum_ + one)
    instants = steps.groupBy("time", "site", "id").agg(together.alias("_more"), F.sum("_new").alias("_new"))
    past = Window.partitionBy("site", "id").orderBy("time").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    sums = instants.select(
        "time", "site", "id", F.sum("_new").over(past).alias("ratings"), F.sum("_more").over(past).alias("rating_sum")
    )
    average = (F.col("rating_sum") / F.col("ratings")).alias("average")
    updates = sums.select("time", "site", "id", average, "ratings", "rating_sum")
    return updates.unionByName(_zeros(rows, updates, sites)) if start else updates


def site_of(user: Column, sites: int, seed: int) -> Column:
    """The site of a user, from 0 on: by the first digits of an MD5, so that any language finds the same."""
    from pyspark.sql import functions as F  # noqa: N812

    digest = F.md5(F.concat(F.lit(f"{seed}:"), user.cast("string")))
    number = F.conv(F.substring(digest, 1, HEX_DIGITS), 16, 10).cast("bigint")
    return F.pmod(number, F.lit(sites)).cast("int")


def _zeros(rows: DataFrame, updates: DataFrame, sites: int) -> DataFrame:
    """A vector of zeros for every site and movie at the first time, but where there is a rating at that time."""
    from pyspark.sql import functions as F  # noqa: N812

    everywhere = rows.select(F.col("movie_id").alias("id")).distinct()
    everywhere = everywhere.withColumn("site", F.explode(F.sequence(F.lit(0), F.lit(sites - 1))))
    first = rows.agg(F.min("ts").alias("time"))
    zeros = everywhere.crossJoin(F.broadcast(first)).join(updates, ["time", "site", "id"], "left_anti")
    return zeros.select(
        "time",
        "site",
        "id",
        F.lit(0.0).alias("average"),
        F.lit(0).cast("bigint").alias("ratings"),
        F.lit(0.0).alias("rating_sum"),
    )


PIPELINE = Pipeline(
    name="ratings",
    title="ratings to the vectors of sites over which the users are spread",
    stands_for="papa14's MOVIES",
    build=build,
    inputs=(
        Input(
            INPUT,
            {"ts": "when", "user_id": "who rated", "movie_id": "what", "rating": "how good it is"},
            files="ml_latest_small_[0-9]*[0-9].*",
        ),
    ),
    options=(
        Option("sites", "whole", "Over how many sites the users are spread."),
        Option("seed", "whole", "Another seed, another spread."),
        Option("start", "flag", "Begin with a vector of zeros for every site and movie, at the first time."),
    ),
    output={
        "time": "when",
        "site": "the user's site, from 0 on",
        "id": "the movie",
        "average": "rating_sum / ratings; 0 in a vector of zeros",
        "ratings": "users of the site who have rated the movie so far",
        "rating_sum": "the sum of their ratings",
    },
    rules="One update per time, site and movie. The site is the number in the first 15 hexadecimal digits of "
    "md5('SEED:USER'), modulo the number of sites. A row without a rating is none. A user's later rating of the same "
    "movie takes the place of the earlier; of several at one time the highest counts last.",
)
