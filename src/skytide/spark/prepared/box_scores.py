"""Box scores to running rates per player: the NBA data of udom14 (Section 6.1).

The paper rates points and rebounds per minute and field goals made per attempt, over the career, of players with more
than 30 games: `per="1", stats="pts,reb,fgm/fga", min_games=31`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from skytide.errors import OptionError
from skytide.spark.prepared.checks import Holds, complete, known, named, once, present, take
from skytide.spark.prepared.contract import Input, Option, Pipeline, chosen, names_of, whole

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession, WindowSpec

INPUT = "box scores"


def build(
    spark: SparkSession,
    inputs: Mapping[str, DataFrame],
    *,
    stats: str | tuple[str, ...] = ("pts", "reb", "ast", "stl", "blk"),
    per: str | float = "game",
    over: str = "career",
    min_games: int = 1,
    season_types: str | tuple[str, ...] = (),
) -> DataFrame:
    """Updates `time, id, [season,] games, minutes, <stats>`: each player's rates after each game.

    Cost: one shuffle by player, then running sums.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    chosen(over, "over", ("career", "season"))
    whole(min_games, "min_games", 1)
    rates = _rates(stats)
    minutes = _minutes(per)
    used = list(dict.fromkeys(name for pair in rates.values() for name in pair if name))
    wanted: dict[str, Holds] = {"game_time_utc": "time", "player_id": "anything", "min": "number"}
    wanted |= dict.fromkeys(used, "number")
    if over == "season":
        wanted["season"] = "anything"
    if season_types:
        wanted["season_type"] = "anything"
    rows = take(inputs[INPUT], wanted, INPUT)
    if season_types:
        listed = names_of(season_types, "season_types")
        rows = rows.where(F.col("season_type").cast("string").isin(listed)).drop("season_type")
    rows = rows.where(known(rows, "min").isNotNull())
    rows = once(present(rows, "game_time_utc", "player_id"), "player_id", "game_time_utc")
    if min_games > 1:
        everything = Window.partitionBy("player_id")
        rows = rows.withColumn("_all", F.count("*").over(everything)).where(F.col("_all") >= min_games)
    keys = ["player_id", "season"] if over == "season" else ["player_id"]
    past = Window.partitionBy(*keys).orderBy("game_time_utc").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    updates = rows.select(
        F.col("game_time_utc").alias("time"),
        F.col("player_id").alias("id"),
        *(["season"] if over == "season" else []),
        F.count("*").over(past).alias("games"),
        F.sum("min").over(past).alias("minutes"),
        *(_rate(rows, pair, minutes, past).alias(name) for name, pair in rates.items()),
    )
    return complete(updates, *rates)


def _rates(stats: str | tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """The columns out with what they are made of: a column, or one divided by another."""
    reserved = ("time", "id", "season", "games", "minutes")
    rates = {}
    for name in names_of(stats, "stats"):
        above, stroke, below = (part.strip() for part in name.partition("/"))
        if stroke and not (above and below):
            raise OptionError("is not a value of stats", value=name, remedy="write a ratio like fgm/fga")
        rates[f"{above}_per_{below}" if stroke else name] = (above, below)
    names_of(list(rates), "stats", reserved=reserved)
    return rates


def _minutes(per: str | float) -> float | None:
    """The minutes that a rate is for; None: it is for a game."""
    if per == "game":
        return None
    try:
        minutes = float(per)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < float("inf"):
        raise OptionError("is not a value of per", value=per, remedy="write game, or a number of minutes like 36")
    return minutes


def _rate(rows: DataFrame, pair: tuple[str, str], minutes: float | None, past: WindowSpec) -> Column:
    """The sum above divided by the sum below, over the games so far in which both are known."""
    from pyspark.sql import functions as F  # noqa: N812

    above = known(rows, pair[0])
    below = known(rows, pair[1]) if pair[1] else (F.lit(1) if minutes is None else named("min"))
    both = above.isNotNull() & below.isNotNull()
    total, share = F.sum(F.when(both, above)).over(past), F.sum(F.when(both, below)).over(past)
    scale = 1.0 if minutes is None or pair[1] else minutes
    return F.when(share != 0, total.cast("double") * scale / share.cast("double"))


PIPELINE = Pipeline(
    name="box-scores",
    title="box scores to running rates per player",
    stands_for="udom14's NBA",
    build=build,
    inputs=(
        Input(
            INPUT,
            {
                "game_time_utc": "when the game started",
                "player_id": "who",
                "min": "minutes played; missing: not played",
                "pts, reb, ast, stl, blk": "what is rated (--stats names others)",
                "season": "with --over season",
                "season_type": "with --season-types",
            },
            files="nba_player_box*",
        ),
    ),
    options=(
        Option("stats", "names", "Columns to rate; a/b rates one by the other, as fgm/fga."),
        Option("per", "text", "`game`, or a number of minutes, as 36."),
        Option("over", "choice", "How far back a rate looks.", ("career", "season")),
        Option("min_games", "whole", "Only players with so many games in DATA."),
        Option("season_types", "names", "Only games of these types (2 regular, 3 playoffs, 5 play-in)."),
    ),
    output={
        "time": "the game's time",
        "id": "the player",
        "season": "with --over season",
        "games, minutes": "how many so far, this one included",
        "pts, reb, ast, stl, blk": "sum so far / games, or minutes wanted * sum so far / minutes so far",
        "<a>_per_<b>": "for a/b: sum of a so far / sum of b so far",
    },
    rules="One update per player and game played. A missing number leaves that game out of that rate alone. An update "
    "comes out once all its rates are defined. The same row twice counts once; two different ones are an error.",
    remedy="give games with minutes, or fewer --min-games",
)
