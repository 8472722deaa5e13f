"""Running rates of players, against adding up all their games anew after each."""

from __future__ import annotations

import datetime
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

SCHEMA = pa.schema(
    [
        ("game_time_utc", pa.timestamp("ms")),
        ("season", pa.int16()),
        ("season_type", pa.int8()),
        ("player_id", pa.int32()),
        ("min", pa.float32()),
        ("pts", pa.int16()),
        ("a.b", pa.float64()),
    ]
)
GAME = st.fixed_dictionaries(
    {
        "day": st.integers(0, 14),
        "player_id": st.integers(1, 3),
        "season_type": st.sampled_from([2, 2, 3]),
        "min": st.sampled_from([0.0, 0.0, 12.0, 36.5, None, math.nan]),
        "pts": st.one_of(st.none(), st.integers(0, 9), st.just(32767)),
        "a.b": st.sampled_from([0.0, 1.0, 2.5, None, math.nan]),
    }
)
GAMES = st.lists(GAME, min_size=15, max_size=45, unique_by=lambda game: (game["day"], game["player_id"]))
START = datetime.datetime(1999, 12, 30, 23, 59, 59, 999000)


def rows_of(games: list[Row]) -> list[Row]:
    return [
        {"game_time_utc": START + datetime.timedelta(days=game["day"]), "season": 2000 + game["day"] // 5, **game}
        for game in games
    ]


def there(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def ratio(games: list[Row], above: str, below: str | None, scale: float = 1) -> float | None:
    both = [game for game in games if there(game[above]) and (below is None or there(game[below]))]
    total = sum((Fraction(game[above]) for game in both), Fraction(0))
    share = sum((Fraction(game[below]) if below else Fraction(1) for game in both), Fraction(0))
    return float(Fraction(scale) * total / share) if share else None


def by_definition(rows: list[Row], minutes: float | None, over: str, least: int, types: tuple[str, ...]) -> list[Row]:
    played = [row for row in rows if there(row["min"]) and (not types or str(row["season_type"]) in types)]
    found = []
    for row in sorted(played, key=lambda one: (one["game_time_utc"], one["player_id"])):
        career = [one for one in played if one["player_id"] == row["player_id"]]
        if len(career) < least:
            continue
        past = [one for one in career if one["game_time_utc"] <= row["game_time_utc"]]
        if over == "season":
            past = [one for one in past if one["season"] == row["season"]]
        update = {"time": row["game_time_utc"], "id": row["player_id"]}
        update |= {"season": row["season"]} if over == "season" else {}
        update |= {"games": len(past), "minutes": float(sum(one["min"] for one in past))}
        rates = {"pts": ratio(past, "pts", "min" if minutes else None, minutes or 1)}
        rates |= {"a.b": ratio(past, "a.b", "min" if minutes else None, minutes or 1)}
        rates |= {"pts_per_a.b": ratio(past, "pts", "a.b")}
        if None not in rates.values():
            found.append(update | rates)
    return found


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    games=GAMES,
    minutes=st.sampled_from([None, 1.0, 36.0]),
    over=st.sampled_from(["career", "season"]),
    least=st.integers(1, 5),
    types=st.sampled_from([(), ("2",), ("2", "3")]),
)
def test_rates_are_those_of_all_games_so_far(
    spark: SparkSession, games: list[Row], minutes: float | None, over: str, least: int, types: tuple[str, ...]
) -> None:
    rows = rows_of(games)
    found = updates(
        spark,
        "box-scores",
        {"box scores": (rows, SCHEMA)},
        stats=("pts", "a.b", "pts/a.b"),
        per="game" if minutes is None else str(minutes),
        over=over,
        min_games=least,
        season_types=types,
    )
    same(found, by_definition(rows, minutes, over, least, types))


def test_the_same_row_twice_counts_once_and_two_that_differ_are_an_error(spark: SparkSession) -> None:
    game = {"day": 1, "player_id": 5, "min": 10.0, "pts": 4}
    twice = rows_of([game, game])
    assert updates(spark, "box-scores", {"box scores": (twice, SCHEMA)}, stats="pts")[0]["games"] == 1
    twice[1]["pts"] = 5
    with pytest.raises(InputError, match=r"player_id = 5 and game_time_utc = 1999-12-31 23:59:59\.999"):
        updates(spark, "box-scores", {"box scores": (twice, SCHEMA)}, stats="pts")


@pytest.mark.parametrize(
    "options",
    [
        {"per": "half"},
        {"per": -1},
        {"over": "week"},
        {"min_games": 0},
        {"stats": ()},
        {"stats": "pts/"},
        {"stats": "id"},
    ],
)
def test_options_that_mean_nothing_are_refused(spark: SparkSession, options: Row) -> None:
    rows = rows_of([{"day": 1, "player_id": 5, "min": 10.0, "pts": 4}])
    with pytest.raises(OptionError):
        updates(spark, "box-scores", {"box scores": (rows, SCHEMA)}, **({"stats": "pts"} | options))
