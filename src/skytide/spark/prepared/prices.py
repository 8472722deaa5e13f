"""Daily prices to beta and slope per symbol over 200 days: the stock data of udom14 (Section 6.1, STK).

The paper takes the slope of the close price and rounds both to two decimals (`price="close", decimals=2`, and
`changes=True` in `prepare`), which leaves about half of the symbols unmoved on a day. Its market is not said; ours is
the equal-weighted index of all symbols in the data.

Both are least-squares slopes, of sums around running means, so that prices far from zero lose no digits and nothing
drifts from day to day.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from skytide.spark.prepared.checks import complete, known, once, present, take
from skytide.spark.prepared.contract import Input, Option, Pipeline, chosen, whole

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession, WindowSpec

INPUT = "prices"
STILL = 1e-20
"""A market whose returns vary less than this (as a variance) does not move: what it shows is rounding."""


def build(
    spark: SparkSession,
    inputs: Mapping[str, DataFrame],
    *,
    days: int = 200,
    price: str = "log",
    decimals: int | None = None,
) -> DataFrame:
    """Updates `time, id, beta, slope`: one per day and symbol, from its (days + 1)-th trading day on.

    Cost: one shuffle by symbol and a small one by day; a row costs the same whatever `days` is.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    whole(days, "days", 2)
    chosen(price, "price", ("log", "close"))
    if decimals is not None:
        whole(decimals, "decimals", 0)
    rows = take(inputs[INPUT], {"date": "time", "symbol": "anything", "close": "number"}, INPUT)
    rows = present(rows.where(known(rows, "close") > 0), "date", "symbol")
    own = Window.partitionBy("symbol").orderBy("date")
    close = F.col("close").cast("double")
    traded = once(rows, "symbol", "date").select(
        "date",
        "symbol",
        close.alias("close"),
        F.row_number().over(own).alias("_rank"),
        F.lag("date").over(own).alias("_before"),
        (close / F.lag(close).over(own) - 1).alias("_return"),
    )
    spans = traded.join(F.broadcast(market_index(rows, traded)), "date").withColumn(
        "_market",
        # The index itself where the span is one day: the way through logarithms would round it.
        F.when(F.col("_before") == F.col("_market_before"), F.col("_one_day")).otherwise(
            F.expm1(F.col("_level") - F.lag("_level").over(own))
        ),
    )
    height = F.log("close") if price == "log" else F.col("close")
    ready = spans.select("date", "symbol", "_rank", "_return", "_market", height.alias("_height"))
    sums = regressions(ready, days, beta=("_market", "_return"), slope=("_rank", "_height"))
    # The first return comes with the second price, so that many returns with one price more.
    full = sums.where(F.col("_rank") > days).where(F.col("_beta_xx") > STILL * days)
    updates = complete(full, "_beta_xx", "_beta_xy", "_slope_xy").select(
        F.col("date").alias("time"),
        F.col("symbol").alias("id"),
        (F.col("_beta_xy") / F.col("_beta_xx")).alias("beta"),
        (F.col("_slope_xy") / F.col("_slope_xx")).alias("slope"),
    )
    if decimals is not None:
        updates = updates.withColumns({name: F.round(name, decimals) for name in ("beta", "slope")})
    return updates


def market_index(rows: DataFrame, traded: DataFrame) -> DataFrame:
    """Per day of the market: the day before it, its return and the logarithm of the index. One row per day.

    The return is the mean over the symbols that traded on this day and on the market's day before. It is summed in
    order of size, so that the same data always give the same index to the last bit.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    # There are few days; a window without any partition would bring a warning.
    in_time = Window.partitionBy(F.lit(0)).orderBy("date")
    calendar = rows.select("date").distinct().withColumn("_market_before", F.lag("date").over(in_time))
    one_day = traded.join(F.broadcast(calendar), "date").where(F.col("_before") == F.col("_market_before"))
    total = F.aggregate(F.array_sort(F.collect_list("_return")), F.lit(0.0), lambda sum_, one: sum_ + one)
    means = one_day.groupBy("date").agg((total / F.count("_return")).alias("_mean"))
    gain = F.coalesce(F.col("_mean"), F.lit(0.0))
    days = calendar.join(means, "date", "left")
    return days.select(
        "date", "_market_before", gain.alias("_one_day"), F.sum(F.log1p(gain)).over(in_time).alias("_level")
    )


def regressions(rows: DataFrame, days: int, **pairs: tuple[str, str]) -> DataFrame:
    """The rows with `_<name>_xx` and `_<name>_xy`: the centred sums of a pair x, y over the symbol's last `days` rows.

    A window of that many rows is the end of one block of so many and the start of the next. Sums from the start of each
    block and to its end are running ones, and two of them, each around its own mean, are put together by the rule of
    Chan, Golub and LeVeque. So a row costs the same whatever `days` is, nothing is ever subtracted from a sum, and
    nothing of a row stays when it has left the window.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    running = (Window.unboundedPreceding, Window.currentRow)
    block = Window.partitionBy("symbol", "_block")
    since = block.orderBy("_rank").rowsBetween(*running)
    until = block.orderBy(F.col("_rank").desc()).rowsBetween(*running)
    # The order of `since`, with the block in it: Spark then need not sort once more.
    own = Window.partitionBy("symbol").orderBy("_block", "_rank")
    place = F.col("_rank") - 1
    kept = rows.columns
    rows = rows.withColumn("_block", F.floor(place / days))
    rows = rows.withColumns({f"_{name}_end": _sums(x, y, until) for name, (x, y) in pairs.items()})
    rows = rows.withColumns({f"_{name}_start": _sums(x, y, since) for name, (x, y) in pairs.items()})
    rows = rows.withColumns({f"_{name}_end": F.lag(f"_{name}_end", days - 1).over(own) for name in pairs})
    in_start = place % days + 1
    share = in_start * (days - in_start) / days

    def together(name: str, second: str) -> Column:
        """The sum over the rows of both; a window that is one block is that block's end, from its first row on."""
        end, start = F.col(f"_{name}_end"), F.col(f"_{name}_start")
        apart = (start["x"] - end["x"]) * (start[second] - end[second]) * share
        more = F.when(in_start == days, 0.0).otherwise(start[f"x{second}"] + apart)
        return (end[f"x{second}"] + more).alias(f"_{name}_x{second}")

    return rows.select(*kept, *(together(name, second) for name in pairs for second in ("x", "y")))


def _sums(x: str, y: str, window: WindowSpec) -> Column:
    """The means of x and y, and the sums of (x - mean)^2 and (x - mean)(y - mean)."""
    from pyspark.sql import functions as F  # noqa: N812

    a, b = F.col(x).cast("double"), F.col(y).cast("double")
    count = F.count("*").over(window)
    return F.struct(
        F.avg(a).over(window).alias("x"),
        F.avg(b).over(window).alias("y"),
        (F.var_pop(a).over(window) * count).alias("xx"),
        (F.covar_pop(a, b).over(window) * count).alias("xy"),
    )


PIPELINE = Pipeline(
    name="prices",
    title="daily prices to 200-day beta and slope per symbol",
    stands_for="udom14's STK",
    build=build,
    inputs=(
        Input(
            INPUT,
            {"date": "the day", "symbol": "which stock", "close": "its price at the end of the day"},
            files="us_stocks_ohlcv*",
        ),
    ),
    options=(
        Option("days", "whole", "Trading days of the symbol to look back on."),
        Option(
            "price", "choice", "The slope is that of the logarithm of the price, or of the price.", ("log", "close")
        ),
        Option("decimals", "whole", "Round beta and slope to so many decimals. Default: not rounded."),
    ),
    output={
        "time": "the day",
        "id": "the symbol",
        "beta": "covariance(r, m) / variance(m) over the symbol's last DAYS returns; r = close / close before - 1, "
        "m = the index's return over the same span",
        "slope": "least-squares slope of log(close) over the symbol's last DAYS trading days, per trading day",
    },
    rules="The index gains each day the mean return of the symbols that traded on this day and the day before. A day "
    "without a price above zero is no trading day of the symbol; the return after a gap is compared with the index "
    "over the gap. No update where the index stands still. The same row twice counts once; two different ones are an "
    "error.",
    remedy="give more than --days days per symbol, or fewer --days",
)
