"""The series of the snapshots benchmark against plain computations, and what it makes of answers that differ."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.papers.udom14 import replay, series
from benchmarks.peers import snapshots
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.errors import InputError
from tests.spark.prepared.test_prices import DAYS, SCHEMA, by_definition, rows_of

Row = dict[str, int]
EPOCH = datetime.datetime(1970, 1, 1)
STATS = ("min", "pts", "reb", "fgm", "fga")


def seen(one: series.Series) -> list[tuple[Any, Any, list[float]]]:
    """The updates of a series as a user would write them: time, id, values."""
    times = np.repeat(one.moments, np.diff(one.updates.cuts))
    values = (one.updates.rows * one.signs).tolist()
    return list(zip(times.tolist(), one.names[one.updates.slots].tolist(), values, strict=True))


def box_scores(folder: Path, seed: int) -> list[Row]:
    """Box scores of 90 games, two at a time, of 5 players, one rarely there; in order of time, game and player."""
    source = np.random.default_rng(seed)
    rows: dict[tuple[int, int], Row] = {}
    for game in range(90):
        for player in np.flatnonzero(source.random(5) < [0.7, 0.6, 0.6, 0.6, 0.1]).tolist():
            made = {name: int(source.integers(0, 4)) for name in STATS}
            row = {"game_time_utc": game - game % 2, "game_id": 89 - game, "player_id": player, **made}
            rows.setdefault((row["game_time_utc"], player), row)
    columns: dict[str, Any] = {name: [row[name] for row in rows.values()] for name in next(iter(rows.values()))}
    columns["game_time_utc"] = pa.array(columns["game_time_utc"], pa.timestamp("ms"))
    pq.write_table(pa.table(columns), folder / "nba_player_box_1.parquet")
    return sorted(rows.values(), key=lambda row: (row["game_time_utc"], row["game_id"], row["player_id"]))


def rates(rows: list[Row]) -> list[tuple[Row, list[float]]]:
    """Each row with the player's running rates, once they are defined."""
    sums: dict[int, Row] = {}
    found = []
    for row in rows:
        mine = sums.setdefault(row["player_id"], dict.fromkeys(STATS, 0))
        for name in STATS:
            mine[name] += row[name]
        if mine["min"] and mine["fga"]:
            found.append((row, [mine["pts"] / mine["min"], mine["reb"] / mine["min"], mine["fgm"] / mine["fga"]]))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_the_nba_series_holds_running_rates_of_players_with_more_than_30_games(tmp_path: Path, seed: int) -> None:
    rows = box_scores(tmp_path, seed)
    regulars = [player for player in range(5) if sum(row["player_id"] == player for row in rows) > 30]
    expected = [(row, values) for row, values in rates(rows) if row["player_id"] in regulars]
    by_game, by_start = series.nba(tmp_path), series.nba(tmp_path, by_game=False)
    assert 0 < len(regulars) < 5
    assert [update[1:] for update in seen(by_game)] == [(row["player_id"], values) for row, values in expected]
    games = [(row["game_time_utc"], row["game_id"]) for row, _ in expected]
    assert by_game.updates.snapshots == len(set(games)) > by_start.updates.snapshots
    moments = [EPOCH + datetime.timedelta(milliseconds=row["game_time_utc"]) for row, _ in expected]
    found = [(time, row["player_id"], values) for time, (row, values) in zip(moments, expected, strict=True)]
    assert sorted(seen(by_start)) == sorted(found)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(days=DAYS, length=st.integers(2, 6))
def test_the_stocks_series_holds_the_beta_and_slope_that_change(
    tmp_path: Path, days: list[dict[str, float | None]], length: int
) -> None:
    rows = rows_of(days) or rows_of([{"A": 1.0}])
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), tmp_path / "us_stocks_ohlcv_1.parquet")
    expected = {(row["time"], row["id"]): (row["beta"], row["slope"]) for row in by_definition(rows, length, False)}
    made = series.stocks(tmp_path, decimals=None, days=length)
    found = {(time.date(), symbol): values for time, symbol, values in seen(made)}
    assert set(found) <= set(expected)
    last: dict[str, tuple[float, ...]] = {}
    for (day, symbol), values in expected.items():
        told = found.get((day, symbol), last.get(symbol))
        assert told == pytest.approx(values, rel=1e-9, abs=1e-9)
        last[symbol] = tuple(told or ())


def test_decimals_are_rounded_with_halves_away_from_zero_and_without_a_negative_zero() -> None:
    rounded = series._half_up(np.array([0.125, -0.125, -0.001, 2.0, 0.12]), 2)
    assert rounded.tolist() == [0.13, -0.13, 0.0, 2.0, 0.12]
    assert not np.signbit(rounded[2])


def test_the_share_of_moving_objects_leaves_arrivals_out() -> None:
    slots = np.array([0, 1, 0, 2, 0, 1, 2])
    one = series._series(
        np.array([0, 0, 1, 1, 2, 2, 2]), slots, np.ones((7, 1)), np.arange(3), np.arange(3), np.ones(1)
    )
    assert series.moving(one) == pytest.approx((1 / 2 + 3 / 3) / 2)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nba_player_box"):
        series.nba(tmp_path)


def test_every_way_to_differ_is_found() -> None:
    one = series.walk(60, 2, 20, 1, share=0.5, step=20.0)
    whole = np.arange(one.updates.snapshots)
    _, skylines = replay.ask_moocore(one.updates, whole)
    answer = replay.extend(one).answer
    assert replay.agrees(one, answer, whole, skylines)
    assert answer.shape[1] > 60
    for lost in range(answer.shape[1]):
        assert not replay.agrees(one, np.delete(answer, lost, axis=1), whole, skylines)


def test_a_run_whose_answers_differ_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "agrees", lambda *_: False)
    assert snapshots.main(["--quick", "--parts", "synthetic", "--vary", "N"]) == 1
