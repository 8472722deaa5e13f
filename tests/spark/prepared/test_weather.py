"""Vectors of stations, against looking back through each station's own readings."""

from __future__ import annotations

import datetime
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

SCHEMA = pa.schema(
    [("ts_utc", pa.timestamp("ms")), ("station", pa.string()), ("temp_c", pa.float32()), ("rain", pa.int16())]
)
STATIONS = pa.schema([("station", pa.string()), ("uf", pa.string()), ("lat", pa.float64()), ("alt_m", pa.float64())])
LISTED = [
    {"station": "A1", "uf": "SP", "lat": -23.5, "alt_m": 399.0},
    {"station": "A2", "uf": "SP", "lat": -20.0, "alt_m": 400.0},
    {"station": "A3", "uf": "AM", "lat": 0.0, "alt_m": 900.0},
]
HOMES: dict[str, Row] = {
    "uf": {"A1": "SP", "A2": "SP", "A3": "AM"},
    "region": {"A1": "SE", "A2": "SE", "A3": "N"},
    "zone": {"A1": "-25 low", "A2": "-20 middle", "A3": "0 high"},
    "alt_m": {"A1": 399.0, "A2": 400.0, "A3": 900.0},
}
READINGS = st.lists(
    st.fixed_dictionaries(
        {
            "hour": st.integers(0, 15),
            "station": st.sampled_from(["A1", "A2", "A3"]),
            "temp_c": st.sampled_from([None, math.nan, -0.5, 0.0, 21.25]),
            "rain": st.one_of(st.none(), st.integers(0, 3)),
        }
    ),
    min_size=12,
    max_size=40,
    unique_by=lambda reading: (reading["hour"], reading["station"]),
)
START = datetime.datetime(2020, 12, 31, 20)


def rows_of(readings: list[Row]) -> list[Row]:
    return [{"ts_utc": START + datetime.timedelta(hours=reading["hour"]), **reading} for reading in readings]


def there(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def by_definition(rows: list[Row], home: str, missing: str, age: int | None) -> list[Row]:
    found = []
    for row in sorted(rows, key=lambda one: (one["ts_utc"], one["station"])):
        vector: Row = {}
        for name in ("temp_c", "rain"):
            value = row[name] if there(row[name]) else None
            if missing == "last":
                past = [one for one in rows if one["station"] == row["station"] and one["hour"] <= row["hour"]]
                seen = [one for one in past if there(one[name])]
                latest = max(seen, key=lambda one: one["hour"], default=None)
                value = latest[name] if latest and (age is None or row["hour"] - latest["hour"] <= age) else None
            vector[name] = value
        if missing == "keep" or None not in vector.values():
            found.append({"time": row["ts_utc"], "site": row["station"], "id": HOMES[home][row["station"]], **vector})
    return found


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    readings=READINGS,
    home=st.sampled_from(sorted(HOMES)),
    missing=st.sampled_from(["last", "drop", "keep"]),
    age=st.sampled_from([None, 1, 5]),
)
def test_a_vector_holds_the_last_known_values_of_the_station(
    spark: SparkSession, readings: list[Row], home: str, missing: str, age: int | None
) -> None:
    rows = rows_of(readings)
    tables = {"readings": (rows, SCHEMA), "stations": ([*LISTED, LISTED[0]], STATIONS)}
    found = updates(
        spark,
        "weather",
        tables,
        values=("temp_c", "rain"),
        object=home,
        missing=missing,
        age=None if age is None else f"{age}h",
    )
    same(found, by_definition(rows, home, missing, age))


@pytest.mark.parametrize(
    ("stations", "object_", "words"),
    [
        (LISTED[1:], "uf", "station A1 is not among the stations"),
        ([{**LISTED[0], "uf": "??"}], "region", "station A1 is not among the stations, or has no region"),
        ([*LISTED, {**LISTED[0], "uf": "RJ"}], "uf", "station A1 is listed twice"),
        (LISTED, "county", "'county'"),
    ],
)
def test_a_station_without_a_home_is_named(spark: SparkSession, stations: list[Row], object_: str, words: str) -> None:
    rows = rows_of([{"hour": 1, "station": "A1", "temp_c": 1.0}])
    tables = {"readings": (rows, SCHEMA), "stations": (stations, STATIONS)}
    with pytest.raises(InputError) as caught:
        updates(spark, "weather", tables, values="temp_c", object=object_)
    assert words in str(caught.value)


def test_two_readings_of_one_hour_that_differ_are_an_error_and_so_are_odd_options(spark: SparkSession) -> None:
    rows = rows_of([{"hour": 1, "station": "A1", "temp_c": 1.0}, {"hour": 1, "station": "A1", "temp_c": 2.0}])
    tables = {"readings": (rows, SCHEMA), "stations": (LISTED, STATIONS)}
    with pytest.raises(InputError, match="station = A1"):
        updates(spark, "weather", tables, values="temp_c")
    with pytest.raises(InputError, match="needs the stations"):
        updates(spark, "weather", {"readings": (rows, SCHEMA)}, values="temp_c")
    with pytest.raises(OptionError, match="missing"):
        updates(spark, "weather", tables, values="temp_c", missing="guess")
    with pytest.raises(OptionError, match="unit"):
        updates(spark, "weather", tables, values="temp_c", age="5")
