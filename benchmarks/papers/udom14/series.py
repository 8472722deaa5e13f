"""The update series of udom14's Section 6.1 as arrays: its random walk, NBA box scores, daily prices, and jumps.

The real series are what `skytide prepare box-scores` and `skytide prepare prices` define, computed here without Spark.
Every series is a list of snapshots as the engines take them (oriented: smaller is better), with the ids and times that
a user would give beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skytide.errors import InputError
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.snapshots.engine import Updates
from skytide.streams.walks import random_walk, together

STILL = 1e-20
"""A market whose returns vary less than this does not move, as in `skytide.spark.prepared.prices`."""
MIN_GAMES = 31
Column = npt.NDArray[Any]


class Series(NamedTuple):
    """Snapshots of updates, and how a user would see them."""

    updates: Updates
    names: Column
    """The id of each slot, rising."""
    moments: Column
    """The time of each snapshot, rising."""
    signs: Floats
    """1 for columns that are minimised, -1 for those that are maximised."""

    @property
    def objects(self) -> int:
        """How many objects there are, at the end."""
        return len(self.names)

    @property
    def dimensions(self) -> int:
        """How many columns there are."""
        return len(self.signs)


def walk(objects: int, d: int, snapshots: int, seed: int, *, share: float = 0.025, step: float = 0.5) -> Series:
    """The paper's synthetic data: all objects in snapshot 0, then so many snapshots of steps. `share` is its p."""
    found = together(random_walk(objects, d, snapshots + 1, seed, share=share, step=step), d)
    return _series(found.times, found.ids, found.values, np.arange(objects), np.arange(snapshots + 1), np.ones(d))


def jumps(objects: int, d: int, snapshots: int, seed: int, *, share: float) -> Series:
    """Objects that go anywhere: in every snapshot this share of them gets a new place in the cube."""
    source = np.random.default_rng((seed, objects, d))
    moving = source.random((snapshots, objects)) < share
    times, ids = np.nonzero(np.concatenate((np.ones((1, objects), bool), moving)))
    values = source.random((len(ids), d)) * 100
    return _series(times, ids, values, np.arange(objects), np.arange(snapshots + 1), np.ones(d))


def nba(folder: Path, *, by_game: bool = True) -> Series:
    """Points and rebounds per minute and field goals made per attempt, over the career, of players with 31 games.

    A snapshot per game, as in the paper, or per starting time, as the prepared updates have it: games that start at
    the same time are then one.
    """
    columns = ["game_time_utc", "game_id", "player_id", "min", "pts", "reb", "fgm", "fga"]
    table = pa.concat_tables([pq.read_table(file, columns=columns) for file in _files(folder, "nba_player_box*")])
    table = table.filter(pc.is_valid(table["min"]))
    times, games, players = (table[name].to_numpy() for name in columns[:3])
    order = np.lexsort((players, games, times))
    table, times, games, players = table.take(order), times[order], games[order], players[order]
    if len(np.unique(np.rec.fromarrays((players, times)))) < len(players):
        raise InputError("a player has two rows of one time", file=str(folder), remedy="leave one of them out")
    names, slots, counts = np.unique(players, return_inverse=True, return_counts=True)
    kept = counts[slots] >= MIN_GAMES
    rates = np.stack([_rate(table, slots, *pair) for pair in (("pts", "min"), ("reb", "min"), ("fgm", "fga"))], axis=1)
    # As in the prepared updates: one comes out once all its rates are defined.
    kept &= np.isfinite(rates).all(axis=1)
    starts = np.unique(np.rec.fromarrays((times, games)) if by_game else times)
    places = np.searchsorted(starts, np.rec.fromarrays((times, games)) if by_game else times)[kept]
    shown = np.unique(places)
    moments = np.arange(len(starts))[shown] if by_game else starts[shown]
    numbers = np.unique(slots[kept])
    fresh = np.searchsorted(numbers, slots[kept])
    return _series(np.searchsorted(shown, places), fresh, rates[kept], names[numbers], moments, -np.ones(3))


def _rate(table: pa.Table, slots: Integers, above: str, below: str) -> Floats:
    """The sum above over the sum below, of the games so far in which both are known; NaN where that is 0/0."""
    both = pc.and_(pc.is_valid(table[above]), pc.is_valid(table[below])).to_numpy(zero_copy_only=False)
    total, share = (
        _running(np.where(both, pc.fill_null(table[name], 0).to_numpy(), 0).astype(np.int64), slots)
        for name in (above, below)
    )
    rates: Floats = np.full(len(slots), np.nan)
    np.divide(total, share, out=rates, where=share != 0)
    return rates


def _running(values: Integers, slots: Integers) -> Integers:
    """Running sums per slot, of rows in order of time."""
    order = np.argsort(slots, kind="stable")
    sums = np.cumsum(values[order])
    begins = np.flatnonzero(np.diff(slots[order], prepend=-1))
    before = np.concatenate(([0], sums[begins[1:] - 1]))
    found = np.empty(len(values), np.int64)
    found[order] = sums - np.repeat(before, np.diff(np.append(begins, len(values))))
    return found


def stocks(folder: Path, *, decimals: int | None = 2, days: int = 200) -> Series:
    """Beta against the equal-weighted index and the slope of the close, over so many days; only changes."""
    columns = ["date", "symbol", "close"]
    tables = [pq.read_table(file, columns=columns) for file in _files(folder, "us_stocks_ohlcv*")]
    table = pa.concat_tables([one.set_column(1, "symbol", one["symbol"].cast(pa.string())) for one in tables])
    close = table["close"].to_numpy().astype(float)
    usable = np.isfinite(close) & (close > 0)
    dates, rows = np.unique(table["date"].to_numpy()[usable], return_inverse=True)
    symbols, columns_of = np.unique(table["symbol"].to_numpy()[usable].astype(str), return_inverse=True)
    closes = np.full((len(dates), len(symbols)), np.nan)
    closes[rows, columns_of] = close[usable]
    market = _market(closes)
    # Symbols by number, each with its days in order.
    parts = [_beta_and_slope(closes[:, one], market, days, decimals) for one in range(len(symbols))]
    slots = np.repeat(np.arange(len(symbols)), [len(places) for places, _ in parts])
    places = np.concatenate([places for places, _ in parts])
    values = np.concatenate([values for _, values in parts])
    order = np.lexsort((slots, places))
    numbers, shown = np.unique(slots), np.unique(places)
    times, ids = np.searchsorted(shown, places[order]), np.searchsorted(numbers, slots[order])
    return _series(times, ids, values[order], symbols[numbers], dates[shown].astype("M8[s]"), np.array([1.0, -1.0]))


def _market(closes: Floats) -> tuple[Floats, Floats]:
    """Per day the index's return and the logarithm of its level: the mean over those that traded the day before too."""
    gains = np.zeros(len(closes))
    for day in range(1, len(closes)):
        returns = closes[day] / closes[day - 1] - 1
        # In order of size and one by one, so that it is the prepared updates' index to the last bit.
        returns = np.sort(returns[np.isfinite(returns)])
        gains[day] = np.cumsum(returns)[-1] / len(returns) if len(returns) else 0.0
    return gains, np.cumsum(np.log1p(gains))


def _beta_and_slope(
    closes: Floats, market: tuple[Floats, Floats], days: int, decimals: int | None
) -> tuple[Integers, Floats]:
    """The days and values of a symbol's updates."""
    traded = np.flatnonzero(np.isfinite(closes))
    if len(traded) <= days:
        return traded[:0], np.zeros((0, 2))
    gains, level = market
    price = closes[traded]
    own = price[1:] / price[:-1] - 1
    index = np.where(np.diff(traded) == 1, gains[traded[1:]], np.expm1(np.diff(level[traded])))
    xx, xy = _sums(index, own, days)
    _, height = _sums(np.arange(len(price), dtype=float), price, days)
    moves = xx > STILL * days
    slope = height[1:] / (days * (days**2 - 1) / 12)
    values = np.stack((xy[moves] / xx[moves], slope[moves]), axis=1)
    if decimals is not None:
        values = _half_up(values, decimals)
    changed = np.concatenate(([True], (values[1:] != values[:-1]).any(axis=1)))[: len(values)]
    return traded[days:][moves][changed], values[changed]


def _sums(x: Floats, y: Floats, days: int) -> tuple[Floats, Floats]:
    """Over each run of so many: the sums of (x - mean)^2 and (x - mean)(y - mean)."""
    windows = np.lib.stride_tricks.sliding_window_view
    apart = windows(x, days) - windows(x, days).mean(axis=1, keepdims=True)
    beside = windows(y, days) - windows(y, days).mean(axis=1, keepdims=True)
    return np.einsum("ij,ij->i", apart, apart), np.einsum("ij,ij->i", apart, beside)


def _half_up(values: Floats, decimals: int) -> Floats:
    """Rounded as Spark does, halves away from zero; no negative zero."""
    scale = 10.0**decimals
    return np.copysign(np.floor(np.abs(values) * scale + 0.5) / scale, values) + 0.0


def moving(series: Series) -> float:
    """The share of the objects that are there which move in a snapshot; arrivals are left out."""
    slots, cuts = series.updates.slots, series.updates.cuts
    first = np.zeros(len(slots), bool)
    first[np.unique(slots, return_index=True)[1]] = True
    come = np.add.reduceat(first, cuts[:-1])
    before = np.cumsum(come) - come
    old = before > 0
    return float(np.mean((np.diff(cuts) - come)[old] / before[old]))


def _series(times: Integers, slots: Integers, values: Floats, names: Column, moments: Column, signs: Floats) -> Series:
    cuts = np.searchsorted(times, np.arange(len(moments) + 1)).astype(np.int64)
    gone: npt.NDArray[np.uint8] = np.zeros(len(slots), np.uint8)
    updates = Updates(slots.astype(np.int64), np.ascontiguousarray(values * signs), gone, cuts)
    return Series(updates, names, moments, signs)


def _files(folder: Path, pattern: str) -> list[Path]:
    found = sorted(folder.glob(pattern + ".parquet"))
    if not found:
        raise InputError("there are no such files", file=str(folder / pattern), remedy="name another folder (--data)")
    return found


def present(folder: Path) -> Booleans:
    """Whether the NBA and the stock data are there."""
    return np.array([any(folder.glob(pattern)) for pattern in ("nba_player_box*.parquet", "us_stocks_ohlcv*.parquet")])


def beginning(series: Series, snapshots: int) -> Series:
    """The first snapshots of a series, with the objects that come in them."""
    updates = series.updates.part(0, min(snapshots, series.updates.snapshots))
    numbers, slots = np.unique(updates.slots, return_inverse=True)
    moments = series.moments[: updates.snapshots]
    return series._replace(updates=updates._replace(slots=slots), names=series.names[numbers], moments=moments)
