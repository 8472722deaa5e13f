"""The streams of zhang09c's Section 7: records that jump about in boxes, and counts of connections per remote host.

The TCP trace of the paper is not to be had; the stand-in is a log of three days, `zeek_conn*`. Hosts take the place of
address groups, the classes of service are http, ssh, dns and all else. As in the paper a snapshot is taken every 100
seconds, and a host has its connections of the last 1,000; all hosts are there from the first snapshot on, most of them
without any connection. More is better, so counts are negated.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from skytide.errors import InputError
from skytide.kernel.batch import skyline_mask
from skytide.model import Floats, Integers
from skytide.streams.generators import generate
from skytide.streams.walks import jitter

SERVICES = ("http", "ssh", "dns")
WINDOW, EVERY = 1_000, 100
MICROSECONDS = 1_000_000
CALM_AND_WILD = (0.001, 0.16)


class Step(NamedTuple):
    """The clients that move in a timestamp, and their new points."""

    clients: Integers
    points: Floats


class Series(NamedTuple):
    """A stream of timestamps, which can be replayed, and the true skyline of each."""

    clients: int
    dimensions: int
    timestamps: int
    name: str
    extent: float | None
    seed: int
    steps: list[Step] | None
    truth: list[Integers]

    def replay(self) -> Iterator[Step]:
        """The timestamps from the first on."""
        if self.steps is not None:
            return iter(self.steps)
        return synthetic_steps(self.name, self.clients, self.dimensions, self.extent, self.timestamps, self.seed)


def synthetic_steps(
    kind: str, clients: int, d: int, extent: float | None, timestamps: int, seed: int
) -> Iterator[Step]:
    """All clients in every timestamp, anywhere in cubes of half extent u around their rows of the generator."""
    centres = generate(kind, clients, d, seed)
    calm, wild = np.log(CALM_AND_WILD)
    logarithms = np.random.default_rng((seed, clients)).uniform(calm, wild, (clients, 1))
    for run in jitter(kind, clients, d, timestamps, seed, extent=1.0 if extent is None else extent):
        points = run.values if extent is not None else centres + (run.values - centres) * np.exp(logarithms)
        yield Step(run.ids, points)


def synthetic(kind: str, clients: int, d: int, extent: float | None, timestamps: int, seed: int) -> Series:
    """The paper's synthetic data; `extent` is its u. Points are made again at each replay, not kept.

    Without an extent every client has its own, from `CALM_AND_WILD`, by their logarithms.
    """
    several = synthetic_steps(kind, clients, d, extent, timestamps, seed)
    truth = [np.flatnonzero(skyline_mask(points)) for _, points in several]
    return Series(clients, d, timestamps, kind, extent, seed, None, truth)


def present(folder: Path) -> bool:
    """Whether the log of connections is there."""
    return any(folder.glob("zeek_conn*.parquet"))


def connections(folder: Path, most: int | None = None) -> Series:
    """The stand-in for the paper's TCP data; `most` ends it after so many snapshots."""
    files = sorted(folder.glob("zeek_conn*.parquet"))
    if not files:
        raise InputError("there is no such file", file=str(folder / "zeek_conn*.parquet"), remedy="name another folder")
    table = pq.read_table(files, columns=["ts", "service", "remote_host"])
    starts = table["ts"].to_numpy().astype("M8[us]").astype(np.int64)
    services = table["service"].to_numpy(zero_copy_only=False).astype(str)
    kinds = np.select([services == one for one in SERVICES], range(len(SERVICES)), len(SERVICES))
    hosts, numbers = np.unique(table["remote_host"].to_numpy(), return_inverse=True)
    return counted(starts, numbers, kinds, len(hosts), most)


def counted(starts: Integers, hosts: Integers, kinds: Integers, many: int, most: int | None = None) -> Series:
    """The series of connections that start at times in microseconds; snapshots are at multiples of `EVERY` seconds."""
    every = EVERY * MICROSECONDS
    come, go = -(-starts // every), -(-(starts + WINDOW * MICROSECONDS) // every)
    first = int(come.min())
    last = int(come.max()) if most is None else min(int(come.max()), first + most - 1)
    times = np.concatenate((come, go)) - first
    signs = np.repeat([1.0, -1.0], len(starts))
    order = np.argsort(times, kind="stable")
    cuts = np.searchsorted(times[order], np.arange(last - first + 2))
    counts = np.zeros((many, len(SERVICES) + 1))
    steps, truth = list[Step](), list[Integers]()
    for start, stop in pairwise(cuts.tolist()):
        events = order[start:stop]
        rows = events % len(starts)
        who = np.unique(hosts[rows])
        before = counts[who]
        np.add.at(counts, (hosts[rows], kinds[rows]), signs[events])
        moved = who[(counts[who] != before).any(axis=1)] if steps else np.arange(many)
        steps.append(Step(moved, 0.0 - counts[moved]))
        truth.append(np.flatnonzero(skyline_mask(0.0 - counts)))
    return Series(many, len(SERVICES) + 1, len(steps), "connections", None, 0, steps, truth)
