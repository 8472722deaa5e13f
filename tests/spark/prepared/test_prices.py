"""Beta and slope, against exact rational arithmetic over each window by itself."""

from __future__ import annotations

import datetime
import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError
from tests.spark.prepared.tables import Row, same, updates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("date", pa.date32()), ("symbol", pa.string()), ("close", pa.float64())])
PRICES = st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 0.0, -1.0, None, math.nan, math.inf])
# A day may lack a symbol altogether, or all of them.
DAYS = st.lists(st.dictionaries(st.sampled_from("ABC"), PRICES), min_size=14, max_size=30)
NOTHING = Fraction(0)
START = datetime.date(2008, 2, 27)


def rows_of(days: list[dict[str, float | None]]) -> list[Row]:
    return [
        {"date": START + datetime.timedelta(number), "symbol": symbol, "close": close}
        for number, day in enumerate(days)
        for symbol, close in sorted(day.items())
    ]


def slope(xs: list[Fraction], ys: list[Fraction]) -> Fraction | None:
    middle, height = sum(xs, NOTHING) / len(xs), sum(ys, NOTHING) / len(ys)
    below = sum(((x - middle) * (x - middle) for x in xs), NOTHING)
    above = sum(((x - middle) * (y - height) for x, y in zip(xs, ys, strict=True)), NOTHING)
    return above / below if below else None


def by_definition(rows: list[Row], days: int, logarithm: bool) -> list[Row]:
    prices: dict[str, dict[datetime.date, Fraction]] = {}
    for row in rows:
        if row["close"] is not None and math.isfinite(row["close"]) and row["close"] > 0:
            prices.setdefault(row["symbol"], {})[row["date"]] = Fraction(row["close"])
    calendar = sorted({day for own in prices.values() for day in own})
    level = {day: Fraction(1) for day in calendar[:1]}
    for before, day in itertools.pairwise(calendar):
        gains = [own[day] / own[before] - 1 for own in prices.values() if day in own and before in own]
        level[day] = level[before] * (1 + (sum(gains, NOTHING) / len(gains) if gains else 0))
    found = []
    for symbol, own in prices.items():
        traded = sorted(own)
        for end in range(days, len(traded)):
            window = traded[end - days : end + 1]
            pairs = list(itertools.pairwise(window))
            returns = [own[day] / own[before] - 1 for before, day in pairs]
            beta = slope([level[day] / level[before] - 1 for before, day in pairs], returns)
            heights = [Fraction(math.log(own[day])) if logarithm else own[day] for day in window[1:]]
            trend = slope([Fraction(place) for place in range(days)], heights)
            if beta is not None and trend is not None:
                found.append({"time": traded[end], "id": symbol, "beta": float(beta), "slope": float(trend)})
    return sorted(found, key=lambda update: (update["time"], update["id"]))


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(days=DAYS, length=st.integers(2, 6), logarithm=st.booleans())
def test_beta_and_slope_are_those_of_the_window_alone(
    spark: SparkSession, days: list[dict[str, float | None]], length: int, logarithm: bool
) -> None:
    rows = rows_of(days) or [{"date": START, "symbol": "A", "close": 1.0}]
    price = "log" if logarithm else "close"
    found = updates(spark, "prices", {"prices": (rows, SCHEMA)}, days=length, price=price)
    same(found, by_definition(rows, length, logarithm))


def test_a_wild_day_leaves_nothing_behind_when_it_has_left_the_window(spark: SparkSession) -> None:
    days: list[dict[str, float | None]] = [
        {"A": 1e9 + number % 5, "B": 1e-9 * (1 + (number * number % 7) / 100)} for number in range(30)
    ]
    days[3] = {"A": 1e-300, "B": 1e300}
    rows = rows_of(days)
    found = updates(spark, "prices", {"prices": (rows, SCHEMA)}, days=5, price="close")
    # The returns of the fourth and the fifth day are wild; the window of the tenth is the first without them.
    calm = START + datetime.timedelta(9)
    expected = [row for row in by_definition(rows, 5, False) if row["time"] >= calm]
    assert len(expected) == 42
    same([row for row in found if row["time"] >= calm], expected, tolerance=1e-6)


def test_symbols_that_move_as_one_have_beta_one(spark: SparkSession) -> None:
    levels = [1.0, 1.5, 1.25, 2.0, 1.75, 3.0]
    rows = rows_of([{"A": level, "B": 1000 * level} for level in levels])
    found = updates(spark, "prices", {"prices": (rows, SCHEMA)}, days=3, decimals=6)
    assert {row["beta"] for row in found} == {1.0} and len(found) == 6


def test_two_prices_of_one_day_and_a_price_without_a_symbol_are_errors(spark: SparkSession) -> None:
    row = {"date": START, "symbol": "A", "close": 1.0}
    with pytest.raises(InputError, match="symbol = A and date = 2008-02-27"):
        updates(spark, "prices", {"prices": ([row, {**row, "close": 2.0}], SCHEMA)}, days=2)
    with pytest.raises(InputError, match="'symbol'"):
        updates(spark, "prices", {"prices": ([{**row, "symbol": None}], SCHEMA)}, days=2)
    with pytest.raises(OptionError, match="days"):
        updates(spark, "prices", {"prices": ([row], SCHEMA)}, days=1)
