"""Hourly weather to the vectors of stations: the WEATHER data of papa14 (Section V-D).

There an object is a country and its sites are the sensors in it. Ours is a state (`uf`) or a region with its stations;
the paper's skyline is that of low average temperature and dew point (`values="temp_c,dew_point_c"`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING

from skytide.spark.prepared.checks import Holds, complete, known, named, once, present, refusal, take
from skytide.spark.prepared.clock import clock_of
from skytide.spark.prepared.contract import Input, Option, Pipeline, chosen, names_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

READINGS, STATIONS = "readings", "stations"
REGIONS = {
    "N": "AC AM AP PA RO RR TO",
    "NE": "AL BA CE MA PB PE PI RN SE",
    "CO": "DF GO MS MT",
    "SE": "ES MG RJ SP",
    "S": "PR RS SC",
}
"""The states in each of Brazil's five regions."""
BAND_DEGREES = 5
LOW_METRES, HIGH_METRES = 400, 900


def build(
    spark: SparkSession,
    inputs: Mapping[str, DataFrame],
    *,
    values: str | tuple[str, ...] = ("temp_c", "dew_point_c", "rh_pct", "wind_ms", "rain_mm"),
    object: str = "uf",
    missing: str = "last",
    age: str | float | None = None,
) -> DataFrame:
    """Updates `time, site, id, <values>`: each reading as the new local vector of the station's object there.

    Cost: one shuffle by station; the stations are sent to every task.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    chosen(missing, "missing", ("last", "drop", "keep"))
    names = names_of(values, "values", reserved=("time", "site", "id", "station", "ts_utc"))
    wanted: dict[str, Holds] = {"ts_utc": "time", "station": "anything"}
    rows = take(inputs[READINGS], wanted | dict.fromkeys(names, "number"), READINGS)
    clock = clock_of(rows, "ts_utc")
    rows = once(present(rows, "ts_utc", "station"), "station", "ts_utc")
    past = Window.partitionBy("station").orderBy("ts_utc").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    now = clock.ticks(F.col("ts_utc"))
    oldest = now - clock.span(age, "age") if age is not None else None

    def value_of(name: str) -> Column:
        value = known(rows, name)
        if missing != "last":
            return value
        seen = F.last(F.when(value.isNotNull(), F.struct(now.alias("at"), value.alias("value"))), True).over(past)
        return seen["value"] if oldest is None else F.when(seen["at"] >= oldest, seen["value"])

    filled = rows.select("ts_utc", "station", *(value_of(name).alias(name) for name in names))
    if missing != "keep":
        filled = complete(filled, *names)
    homes = _homes(inputs[STATIONS], object)
    unknown = refusal("station ", F.col("station"), f" is not among the stations, or has no {object} there; add it")
    joined = filled.join(F.broadcast(homes), "station", "left")
    return joined.select(
        F.col("ts_utc").alias("time"),
        F.col("station").alias("site"),
        F.coalesce(F.col("_home"), unknown.cast(homes.schema["_home"].dataType)).alias("id"),
        *(named(name) for name in names),
    )


def _homes(stations: DataFrame, object: str) -> DataFrame:
    """Which object each station belongs to: `station, _home`, one row per station."""
    from pyspark.sql import functions as F  # noqa: N812

    if object in stations.columns:
        rows = take(stations, {"station": "anything", object: "anything"}, STATIONS).withColumn("_home", named(object))
    elif object == "region":
        rows = take(stations, {"station": "anything", "uf": "anything"}, STATIONS)
        pairs = {state: region for region, states in REGIONS.items() for state in states.split()}
        regions = F.create_map(*(F.lit(text) for text in chain.from_iterable(pairs.items())))
        rows = rows.withColumn("_home", F.try_element_at(regions, F.col("uf")))
    elif object == "zone":
        rows = take(stations, {"station": "anything", "lat": "number", "alt_m": "number"}, STATIONS)
        south = (F.floor(F.col("lat") / BAND_DEGREES) * BAND_DEGREES).cast("string")
        height = (
            F.when(F.col("alt_m") < LOW_METRES, "low").when(F.col("alt_m") < HIGH_METRES, "middle").otherwise("high")
        )
        rows = rows.withColumn("_home", F.when(F.col("alt_m").isNotNull(), F.concat(south, F.lit(" "), height)))
    else:
        rows = take(stations, {"station": "anything", object: "anything"}, STATIONS)
    once_each = rows.groupBy("station").agg(F.min("_home").alias("_home"), F.max("_home").alias("_other"))
    twice = refusal("station ", F.col("station"), f" is listed twice, with different {object}; leave one out")
    home = F.when(F.col("_home") != F.col("_other"), twice.cast(once_each.schema["_home"].dataType))
    return once_each.select("station", home.otherwise(F.col("_home")).alias("_home"))


PIPELINE = Pipeline(
    name="weather",
    title="hourly weather to the vectors of stations",
    stands_for="papa14's WEATHER",
    build=build,
    inputs=(
        Input(
            READINGS,
            {
                "ts_utc": "when",
                "station": "where",
                "temp_c, dew_point_c, rh_pct, wind_ms, rain_mm": "the values (--values names others)",
            },
            files="inmet_brazil_hourly*",
        ),
        Input(
            STATIONS,
            {"station": "which", "uf": "the object (--object names another column)", "lat, alt_m": "for --object zone"},
            files="inmet_stations*",
        ),
    ),
    options=(
        Option("values", "names", "The columns of the vector."),
        Option("object", "text", "A column of the stations; or region (Brazil's five); or zone (latitude and height)."),
        Option(
            "missing",
            "choice",
            "A missing value: the station's last known one, a reason to leave the row out, or NULL.",
            ("last", "drop", "keep"),
        ),
        Option("age", "text", "How old a last known value may be. Default: any age."),
    ),
    output={
        "time": "when",
        "site": "the station",
        "id": "the object the station belongs to",
        "temp_c, dew_point_c, rh_pct, wind_ms, rain_mm": "the station's vector",
    },
    rules="One update per station and time with a reading. A missing value is the station's last known one; before a "
    "station has known all values (or when one is older than --age) it gives no update. A zone is "
    f"{BAND_DEGREES} degrees of latitude and low (below {LOW_METRES} m), middle or high (from {HIGH_METRES} m). The "
    "same row twice counts once; two different ones are an error, and so is a station that is not listed.",
    remedy="choose fewer --values: a station that never reports one of them gives no update",
)
