"""The pipelines on real data, where SKYTIDE_DATA says they lie: some of the updates, computed by pandas."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from skytide.spark.prepared import find as pipeline
from skytide.spark.prepared import prepare
from skytide.spark.prepared.files import find_files, read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = os.environ.get("SKYTIDE_DATA", "")
pytestmark = pytest.mark.skipif(
    not FOLDER or not Path(FOLDER).is_dir(), reason="SKYTIDE_DATA names no folder with the real data"
)


def tables(spark: SparkSession, name: str) -> dict[str, DataFrame]:
    return {table: read_table(spark, files, {}) for table, files in find_files(pipeline(name), FOLDER, {}).items()}


def pandas_of(name: str, table: str) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(file) for file in find_files(pipeline(name), FOLDER, {})[table]])


def test_connections_of_the_busiest_host(spark: SparkSession) -> None:
    rows = pandas_of("connections", "connections")
    host = int(rows.remote_host.mode()[0])
    own = rows[rows.remote_host == host].set_index("ts").sort_index()
    expected = own.bytes_resp.fillna(0).rolling("1h").sum()
    frame = tables(spark, "connections")
    found = prepare(spark, "connections", frame).where(f"id = {host}").toPandas().set_index("time")
    at = expected.groupby(level=0).last()
    assert (found.loc[at.index, "bytes_resp"].to_numpy() == at.round().to_numpy()).all()


def test_rates_of_one_player(spark: SparkSession) -> None:
    rows = pandas_of("box-scores", "box scores")
    player = int(rows.player_id.mode()[0])
    own = rows[rows.player_id == player].sort_values("game_time_utc")
    expected = own.pts.astype(float).expanding().mean().to_numpy()
    frame = tables(spark, "box-scores")
    found = prepare(spark, "box-scores", frame).where(f"id = {player}").orderBy("time").toPandas()
    np.testing.assert_allclose(found.pts.to_numpy(), expected, rtol=1e-12)


def test_beta_and_slope_of_some_symbols(spark: SparkSession) -> None:
    rows = pandas_of("prices", "prices")
    closes = rows.assign(symbol=rows.symbol.astype(str), close=rows.close.astype(float)).pivot(
        index="date", columns="symbol", values="close"
    )
    full = closes.columns[closes.notna().all()][:3]
    returns = closes.pct_change(fill_method=None)
    market = returns.mean(axis=1)
    found = prepare(spark, "prices", tables(spark, "prices")).where(f"id IN {tuple(full)}").toPandas()
    for symbol in full:
        own = found[found.id == symbol].sort_values("time")
        last = closes[symbol].to_numpy()[-200:]
        beta = np.cov(returns[symbol].to_numpy()[-200:], market.to_numpy()[-200:], ddof=0)[0, 1]
        beta /= market.to_numpy()[-200:].var()
        slope = np.polyfit(np.arange(200), np.log(last), 1)[0]
        assert len(own) == len(closes) - 200
        np.testing.assert_allclose([own.beta.iloc[-1], own.slope.iloc[-1]], [beta, slope], rtol=1e-9)


def test_vectors_of_one_station(spark: SparkSession) -> None:
    rows = pandas_of("weather", "readings")
    own = rows[rows.station == "A002"].sort_values("ts_utc").ffill().dropna()
    found = prepare(spark, "weather", tables(spark, "weather")).where("site = 'A002'").orderBy("time").toPandas()
    assert set(found.id) == {"GO"}
    np.testing.assert_array_equal(found.rain_mm.to_numpy(), own.rain_mm.to_numpy())


def test_every_rating_counts_at_one_site(spark: SparkSession) -> None:
    rows = pandas_of("ratings", "ratings")
    found = prepare(spark, "ratings", tables(spark, "ratings")).toPandas().sort_values("time")
    assert found.site.between(0, 199).all()
    last = found.groupby(["site", "id"]).last().groupby("id")[["ratings", "rating_sum"]].sum()
    whole = rows.groupby("movie_id").rating.agg(["count", "sum"])
    np.testing.assert_allclose(last.to_numpy(), whole.loc[last.index].to_numpy())
