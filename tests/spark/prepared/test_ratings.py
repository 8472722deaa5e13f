"""Vectors of sites, against keeping every user's rating in a dictionary."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError
from tests.spark.prepared.tables import Row, same, updates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("ts", pa.float64()), ("user_id", pa.int32()), ("movie_id", pa.string()), ("rating", pa.float32())])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 9).map(float),
            "user_id": st.integers(-1, 7),
            "movie_id": st.sampled_from(["x", "y"]),
            "rating": st.sampled_from([0.5, 1.0, 3.5, 5.0, None, math.nan]),
        }
    ),
    min_size=10,
    max_size=50,
)


def site_of(user: int, sites: int, seed: int) -> int:
    return int(hashlib.md5(f"{seed}:{user}".encode(), usedforsecurity=False).hexdigest()[:15], 16) % sites


def by_definition(rows: list[Row], sites: int, seed: int, start: bool) -> list[Row]:
    rated = [row for row in rows if row["rating"] is not None and not math.isnan(row["rating"])]
    times = sorted({row["ts"] for row in rated})
    movies = sorted({row["movie_id"] for row in rated})
    now: dict[tuple[int, str], float] = {}
    found = []
    for at in times:
        touched = set()
        for row in sorted((row for row in rated if row["ts"] == at), key=lambda one: one["rating"]):
            now[row["user_id"], row["movie_id"]] = row["rating"]
            touched.add((site_of(row["user_id"], sites, seed), row["movie_id"]))
        everywhere = {(site, movie) for site in range(sites) for movie in movies} if start and at == times[0] else set()
        for site, movie in sorted(touched | everywhere):
            here = [
                rating for (user, which), rating in now.items() if which == movie and site_of(user, sites, seed) == site
            ]
            average = sum(here) / len(here) if here else 0.0
            vector = {"average": average, "ratings": len(here), "rating_sum": float(sum(here))}
            found.append({"time": at, "site": site, "id": movie, **vector})
    return found


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, sites=st.integers(1, 4), seed=st.integers(0, 3), start=st.booleans())
def test_a_vector_is_that_of_the_users_of_the_site_so_far(
    spark: SparkSession, rows: list[Row], sites: int, seed: int, start: bool
) -> None:
    found = updates(spark, "ratings", {"ratings": (rows, SCHEMA)}, sites=sites, seed=seed, start=start)
    same(found, by_definition(rows, sites, seed, start))


def test_users_are_spread_evenly_and_anew_with_another_seed(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    from skytide.spark.prepared.ratings import site_of as spread

    users = spark.range(20_000).select(spread(F.col("id"), 20, 0).alias("a"), spread(F.col("id"), 20, 1).alias("b"))
    sizes = [row["count"] for row in users.groupBy("a").count().collect()]
    # Each site has 1,000 on average with a deviation of 31; six of them are once in 10^8.
    assert len(sizes) == 20 and max(abs(size - 1000) for size in sizes) < 186
    assert users.where("a = b").count() < 1186


def test_ratings_without_a_user_and_odd_options_are_refused(spark: SparkSession) -> None:
    row = {"ts": 1.0, "user_id": None, "movie_id": "x", "rating": 1.0}
    with pytest.raises(InputError, match="'user_id'"):
        updates(spark, "ratings", {"ratings": ([row], SCHEMA)})
    with pytest.raises(OptionError, match="sites"):
        updates(spark, "ratings", {"ratings": ([row], SCHEMA)}, sites=0)
