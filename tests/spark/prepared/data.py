"""Small files of every kind that the pipelines read, the same each time."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILES = {
    "connections": "zeek_conn_1.parquet",
    "box-scores": "nba_player_box_1.parquet",
    "prices": "us_stocks_ohlcv_1.parquet",
    "weather": "inmet_brazil_hourly_1.parquet",
    "ratings": "ml_latest_small_1.parquet",
}
OPTIONS = {
    "connections": ["--window", "20m"],
    "box-scores": ["--per", "36"],
    "prices": ["--days", "10"],
    "weather": ["--age", "12h"],
    "ratings": ["--sites", "5"],
}
BEST = {
    "connections": ["--max", "connections", "--max", "bytes_resp"],
    "box-scores": ["--max", "pts", "--max", "reb", "--max", "ast"],
    "prices": ["--min", "beta", "--max", "slope"],
    "weather": ["--min", "temp_c", "--min", "dew_point_c"],
    "ratings": ["--max", "average", "--max", "ratings"],
}
START = np.datetime64("2021-03-01T00:00:00", "ms")


def write_data(folder: Path) -> None:
    """A file per pipeline, called as the real ones, and the stations."""
    random = np.random.default_rng(7)
    count = 300
    minutes = np.sort(random.integers(0, 600, count)).astype("timedelta64[m]")
    tables: dict[str, dict[str, Any]] = {
        "connections": {
            "ts": START + minutes,
            "remote_host": random.integers(0, 9, count),
            "bytes_orig": random.integers(0, 1000, count),
            "bytes_resp": random.integers(0, 1000, count),
            "duration_s": random.random(count),
        },
        "box-scores": {
            "game_time_utc": np.repeat(START + np.arange(30).astype("timedelta64[D]"), 10),
            "player_id": np.tile(np.arange(10), 30),
            "min": random.integers(1, 48, count),
            **{name: random.integers(0, 30, count) for name in ("pts", "reb", "ast", "stl", "blk")},
        },
        "prices": {
            "date": np.repeat(START.astype("datetime64[D]") + np.arange(30), 10),
            "symbol": [f"S{number % 10}" for number in range(count)],
            "close": np.exp(random.normal(3, 0.1, count)),
        },
        "weather": {
            "ts_utc": np.repeat(START + np.arange(60).astype("timedelta64[h]"), 5),
            "station": [f"A{number % 5}" for number in range(count)],
            **{
                name: pa.array(random.normal(20, 5, count), mask=random.random(count) < 0.2)
                for name in ("temp_c", "dew_point_c", "rh_pct", "wind_ms", "rain_mm")
            },
        },
        "ratings": {
            "ts": START + minutes,
            "user_id": random.integers(0, 40, count),
            "movie_id": random.integers(0, 12, count),
            "rating": random.integers(1, 11, count) / 2,
        },
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / FILES[name])
    stations = {"station": [f"A{number}" for number in range(5)], "uf": ["SP", "SP", "AM", "RS", "RS"]}
    pq.write_table(pa.table(stations), folder / "inmet_stations.parquet")


def last_states(updates: pa.Table) -> pa.Table:
    """The last row of each id; where vectors are local, the mean over its sites of the last rows."""
    frame = updates.to_pandas()
    key = [name for name in ("site", "id") if name in frame.columns]
    last = frame.groupby(key, as_index=False).last().drop(columns="time")
    if "site" in key:
        last = last.drop(columns="site").groupby("id", as_index=False).mean()
    return pa.Table.from_pandas(last, preserve_index=False)


def in_order(updates: pa.Table) -> bool:
    """Whether updates are ordered by time, site and id, with no two alike."""
    names = [name for name in ("time", "site", "id") if name in updates.column_names]
    rows: list[tuple[Any, ...]] = list(zip(*(updates.column(name).to_pylist() for name in names), strict=True))
    return all(one < other for one, other in itertools.pairwise(rows)) and isinstance(
        rows[0][0], datetime.date | int | float
    )
