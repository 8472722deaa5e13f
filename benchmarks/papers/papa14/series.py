"""The streams of papa14's Section V: objects that drift at all sites, weather stations of states, ratings of movies.

The paper's synthetic streams are those of `skytide.streams.fragments`. It draws about five updates for each object at
each site in all its experiments, however many of either there are; so do these. WEATHER and MOVIES are not to be had in
the paper's form. Ours are the hourly readings of Brazil's stations in 2020, with states for countries, and the 100,004
ratings of ml-latest-small, with their users at random on 200 sites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from skytide.errors import InputError
from skytide.model import Floats, Integers, MissingPolicy
from skytide.protocols.fragmented.functions import Functions
from skytide.streams.fragments import fragments

PER_CELL = 5
"""Updates for each object at each site."""
WEATHER, STATIONS, MOVIES = (
    "inmet_brazil_hourly*.parquet",
    "inmet_stations*.parquet",
    "ml_latest_small_[0-9]*[0-9].parquet",
)
HOUR = np.timedelta64(1, "h")
MOVIE_BLOCK = 1_000


class Block(NamedTuple):
    """New local vectors of objects at sites, one after the other."""

    sites: Integers
    objects: Integers
    values: Floats


class Series(NamedTuple):
    """A query and a stream, which can be replayed: first what is there at the beginning, then the updates in blocks."""

    minimize: tuple[str, ...]
    maximize: tuple[str, ...]
    nulls: MissingPolicy
    sites: int
    objects: int
    updates: int
    blocks: Callable[[], Iterator[Block]]

    @property
    def functions(self) -> Functions:
        """The query."""
        return Functions(self.minimize, self.maximize)


def synthetic(
    kind: str,
    objects: int,
    sites: int,
    minimize: tuple[str, ...],
    *,
    change: float,
    seed: int,
    updates: int = 0,
    spread: float = 0.0,
    part: float = 1.0,
) -> Series:
    """The paper's synthetic data; `change` is its maxRC, columns are named a, b, c and so on.

    With `spread`, sites do not begin at the object's vector but up to so much of it away. With a `part`, each site has
    that part of the objects, drawn at random; every object has a site.
    """
    functions = Functions(minimize)
    d = len(functions.columns)
    # The generator's columns in the order in which the query names them: which is which makes no difference.
    many = updates or PER_CELL * objects * sites
    if part < 1:
        drawn = np.random.default_rng((seed, objects))
        here = drawn.random((sites, objects)) < part
        here[drawn.integers(0, sites, objects), np.arange(objects)] = True

    def blocks() -> Iterator[Block]:
        away = np.random.default_rng((seed, sites)).uniform(1 - spread, 1 + spread, (sites, objects, d))
        for run in fragments(kind, objects, sites, d, many, seed, max_change=change):
            values = run.values * away[run.sites, run.ids] if spread else run.values
            if part < 1:
                own = here[run.sites, run.ids]
                yield Block(run.sites[own], run.ids[own], values[own])
            else:
                yield Block(run.sites, run.ids, values)

    return Series(minimize, (), "error", sites, objects, round(many * part), blocks)


def found_in(folder: Path, *patterns: str) -> bool:
    """Whether there are files of all these names."""
    return all(any(folder.glob(pattern)) for pattern in patterns)


def _column(folder: Path, pattern: str, *names: str) -> tuple[Any, ...]:
    files = sorted(folder.glob(pattern))
    if not files:
        raise InputError("there is no such file", file=str(folder / pattern), remedy="name another folder")
    table = pq.read_table(files, columns=list(names))
    return tuple(table[name].to_numpy() for name in names)


def weather(folder: Path, days: int | None = None) -> Series:
    """The stand-in for WEATHER: the states with the lowest mean temperature and dew point; `days` ends it early."""
    times, places, *columns = _column(folder, WEATHER, "ts_utc", "station", "temp_c", "dew_point_c")
    names, homes = _column(folder, STATIONS, "station", "uf")
    states, numbers = np.unique(homes.astype(str), return_inverse=True)
    home = dict(zip(names.astype(str).tolist(), numbers.tolist(), strict=True))
    stations, sites = np.unique(np.asarray(places).astype(str), return_inverse=True)
    objects = np.array([home[name] for name in stations.tolist()])
    values = np.stack([np.asarray(column, np.float64) for column in columns], axis=1)
    hours = ((times - times.min()) // HOUR).astype(np.int64)
    if days is not None:
        early = hours < 24 * days
        hours, sites, values = hours[early], sites[early], values[early]
    return readings(hours, sites, values, objects, len(states))


def readings(hours: Integers, sites: Integers, values: Floats, objects: Integers, states: int) -> Series:
    """Readings in order of time; a missing value is the station's last known one, and none before all are known."""
    order = np.lexsort((sites, hours))
    hours, sites, values = hours[order], sites[order], values[order]
    known = _last_known(sites, values)
    whole = np.isfinite(known).all(axis=1)
    hours, sites, known = hours[whole], sites[whole], known[whole]
    cuts = np.searchsorted(hours, np.arange(hours[0], hours[-1] + 2))
    pieces = [slice(start, stop) for start, stop in pairwise(cuts.tolist())]
    later = len(hours) - (pieces[0].stop - pieces[0].start)

    def blocks() -> Iterator[Block]:
        for piece in pieces:
            yield Block(sites[piece], objects[sites[piece]], known[piece])

    return Series(("temp_c", "dew_point_c"), (), "error", len(objects), states, later, blocks)


def _last_known(sites: Integers, values: Floats) -> Floats:
    """Values with those that are missing filled in from the same site's past."""
    order = np.argsort(sites, kind="stable")
    first = np.diff(sites[order], prepend=-1) != 0
    found = np.empty_like(values)
    for j in range(values.shape[1]):
        column = values[order, j]
        usable = np.where(np.isfinite(column) | first, np.arange(len(column)), 0)
        found[order, j] = column[np.maximum.accumulate(usable)]
    return found


def movies(folder: Path, seed: int, sites: int, most: int | None = None, sample: float = 0.0) -> Series:
    """The stand-in for MOVIES: the movies with the best mean rating and the most ratings; `most` ends it early.

    A `sample` of the ratings is there at the beginning, as in the paper, which does not say how large it is.
    """
    times, users, titles, ratings = _column(folder, MOVIES, "ts", "user_id", "movie_id", "rating")
    order = np.lexsort((titles, users, times))[:most]
    _, users = np.unique(users[order], return_inverse=True)
    _, titles = np.unique(titles[order], return_inverse=True)
    rng = np.random.default_rng((seed, sites))
    homes = rng.integers(0, sites, users.max() + 1)
    late = rng.random(len(order)) >= sample
    turn = np.argsort(late, kind="stable")
    columns = homes[users][turn], titles[turn], np.asarray(ratings[order], np.float64)[turn]
    return rated(*columns, sites, int((~late).sum()))


def rated(sites: Integers, movies: Integers, ratings: Floats, many: int, before: int = 0) -> Series:
    """Ratings at sites one after the other: the sum and the number of a movie's there. All begin at (0, 0), or with so
    many ratings as are `before` the stream.
    """
    titles = int(movies.max()) + 1
    order = np.lexsort((np.arange(len(sites)), movies, sites))
    cells = (sites * titles + movies)[order]
    first = np.flatnonzero(np.diff(cells, prepend=-1))
    runs = np.diff(first, append=len(cells))
    totals = np.cumsum(ratings[order])  # ratings are multiples of a half: sums are exact
    values = np.empty((len(sites), 2))
    values[order, 0] = totals - np.repeat(totals[first] - ratings[order][first], runs)
    values[order, 1] = np.arange(len(cells)) - np.repeat(first, runs) + 1.0

    def blocks() -> Iterator[Block]:
        everywhere, begun = np.arange(many * titles), np.zeros((many * titles, 2))
        begun[(sites * titles + movies)[:before]] = values[:before]  # of several of one cell the last counts
        yield Block(everywhere // titles, everywhere % titles, begun)
        for start in range(before, len(sites), MOVIE_BLOCK):
            piece = slice(start, start + MOVIE_BLOCK)
            yield Block(sites[piece], movies[piece], values[piece])

    maximize = ("rating_sum / ratings", "ratings")
    return Series((), maximize, "drop", many, titles, len(sites) - before, blocks)
