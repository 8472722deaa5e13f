"""The generators as one endless table whose row at a position is always the same: what the source `skytide` gives.

The kinds are those of `skytide generate`, with the same columns and the same values for the same seed. Rows in the unit
cube (independent, correlated, anti-correlated, uncertain) are found at any position at once. Rows of spikes, walk,
jitter and fragments follow from those before them: a process keeps its place, and one that has none, after a restart,
runs through the stream from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skytide.errors import OptionError
from skytide.model import Floats, Integers
from skytide.streams import KINDS as PLAIN
from skytide.streams import fragments, generate, jitter, probabilities, random_walk, spike_times
from skytide.streams.generators import BLOCK, assemble, block_source, source_key

SEQUENTIAL = ("spikes", "walk", "jitter", "fragments")
KINDS = (*PLAIN, "spikes", "uncertain", "walk", "jitter", "fragments")
TIMESTAMP = pa.timestamp("us", "UTC")
_ENDLESS = 2**62
_MOST_TIME = 2**63


class Run(NamedTuple):
    """Rows that a sequential kind gives at once: their times, and what else does not follow from the position alone."""

    times: Integers | Floats
    ids: Integers | None = None
    sites: Integers | None = None
    values: Floats | None = None


@dataclass(frozen=True)
class Rows:
    """A stream of generated rows.

    `time` is `number`, `timestamp` (`time_start` and `time_step` are then microseconds, the first since 1970) or
    `none`; `rows_per_time` rows of the unit cube share one time. The other settings are those of `skytide generate`.

    >>> rows = Rows("independent", dimensions=2)
    >>> rows.schema().names
    ['id', 'time', 'x1', 'x2']
    >>> [batch.num_rows for batch in rows.batches(10, 40_000)]
    [16374, 16384, 7232]
    """

    kind: str
    dimensions: int = 2
    seed: int = 0
    deviation: float | None = None
    base: str = "independent"
    objects: int = 1000
    sites: int = 10
    probabilities: str = "uniform"
    mean: float = 0.5
    groups: int | None = None
    time: str = "number"
    time_start: int = 0
    time_step: int = 1
    rows_per_time: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError("is not a kind of rows", value=self.kind, remedy=f"use one of {', '.join(KINDS)}")
        if self.rows_per_time > 1 and self.sequential:
            raise OptionError(
                f"{self.kind} rows have times of their own", remedy="leave out how many rows share one time"
            )
        if self.time_step < 0:
            raise OptionError("is a step back in time", value=self.time_step, remedy="give 0 or more")
        self._plain(0, 0)

    @property
    def sequential(self) -> bool:
        """Whether rows follow from those before them, so that parts of the stream are not made independently."""
        return self.kind in SEQUENTIAL

    def schema(self) -> pa.Schema:
        """The columns: id, time, the site of fragments, x1 to xd, the probability of uncertain rows, the group."""
        number = pa.float64() if self.kind == "spikes" else pa.int64()
        fields = [("id", pa.int64())]
        if self.time != "none":
            fields.append(("time", TIMESTAMP if self.time == "timestamp" else number))
        if self.kind == "fragments":
            fields.append(("site", pa.int64()))
        fields += [(f"x{place + 1}", pa.float64()) for place in range(self.dimensions)]
        if self.kind == "uncertain":
            fields.append(("prob", pa.float64()))
        if self.groups is not None:
            fields.append(("group", pa.string()))
        return pa.schema(fields)

    def batches(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The rows at positions first ... last, counted from 0, in batches of at most a block. Memory for one run."""
        if self.sequential:
            for position, run in _joined(_replayed(self, first, last)):
                yield self._batch(position, position + len(run.times), run)
            return
        for position, end in _blocks(first, last):
            yield self._batch(position, end, Run(np.arange(position, end) // self.rows_per_time))

    def _batch(self, first: int, last: int, run: Run) -> pa.RecordBatch:
        values = self._plain(first, last) if run.values is None else run.values
        columns: list[Any] = [np.arange(first + 1, last + 1) if run.ids is None else run.ids + 1]
        if self.time != "none":
            columns.append(self._times(run.times))
        if run.sites is not None:
            columns.append(run.sites + 1)
        columns += [values[:, place] for place in range(self.dimensions)]
        if self.kind == "uncertain":
            columns.append(
                probabilities(last - first, self.seed, distribution=self.probabilities, mean=self.mean, start=first)
            )
        if self.groups is not None:
            columns.append(self._groups(first, last, self.groups))
        schema = self.schema()
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _plain(self, first: int, last: int) -> Floats:
        kind = self.kind if self.kind in PLAIN else self.base
        return generate(kind, last - first, self.dimensions, self.seed, deviation=self.deviation, start=first)

    def _times(self, times: Integers | Floats) -> Any:
        if self.kind == "spikes" and self.time == "number":
            return self.time_start + self.time_step * times
        latest = self.time_start + self.time_step * int(times[-1]) if len(times) else 0
        if not -_MOST_TIME <= latest < _MOST_TIME:
            raise OptionError("is beyond the last time there is", value=latest, remedy="use a smaller timeStep")
        ticks = np.rint(times * self.time_step).astype(np.int64) if self.kind == "spikes" else times * self.time_step
        return ticks + self.time_start

    def _groups(self, first: int, last: int, groups: int) -> pa.Array:
        entropy = source_key(self.seed, f"groups/{groups}")
        drawn = assemble(
            last - first,
            first,
            lambda block: block_source(entropy, block).random(BLOCK) * groups,
            np.empty(last - first),
        )
        names, places = np.unique(drawn.astype(np.int64), return_inverse=True)
        return pa.array([f"g{name + 1}" for name in names.tolist()], pa.string()).take(pa.array(places))

    def runs(self) -> Iterator[Run]:
        """The stream of a sequential kind from its beginning."""
        if self.kind == "spikes":
            return (Run(spike_times(1, self.seed, start=period)) for period in range(_ENDLESS))
        if self.kind == "fragments":
            parts = fragments(
                self.base,
                self.objects,
                self.sites,
                self.dimensions,
                _ENDLESS,
                self.seed,
                deviation=self.deviation,
            )
            return (Run(part.times, part.ids, part.sites, part.values) for part in parts)
        if self.kind == "walk":
            updates = random_walk(self.objects, self.dimensions, _ENDLESS, self.seed)
        else:
            updates = jitter(self.base, self.objects, self.dimensions, _ENDLESS, self.seed, deviation=self.deviation)
        return (Run(one.times, one.ids, None, one.values) for one in updates)


def split(first: int, last: int, parts: int) -> list[tuple[int, int]]:
    """Positions first ... last in at most so many parts, cut between blocks where parts are long enough for it.

    >>> split(0, 10, 3), split(5, 5, 3), split(0, 100_000, 2)
    ([(0, 4), (4, 8), (8, 10)], [], [(0, 65536), (65536, 100000)])
    """
    size = -(-(last - first) // parts)
    if size >= 2 * BLOCK:
        size = -(-size // BLOCK) * BLOCK
    found = []
    while first < last:
        end = first + size
        if size >= 2 * BLOCK:
            end -= end % BLOCK
        found.append((first, min(last, end)))
        first = end
    return found


def _blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    while first < last:
        end = min(last, first - first % BLOCK + BLOCK)
        yield first, end
        first = end


def _part(run: Run, first: int, last: int) -> Run:
    return Run(*(None if column is None else column[first:last] for column in run))  # type: ignore[arg-type]


def _joined(runs: Iterator[tuple[int, Run]]) -> Iterator[tuple[int, Run]]:
    """Consecutive runs as runs of about a block: a walk's are short, and an Arrow batch for each would be slow."""
    waiting: list[Run] = []
    first = rows = 0
    for begin, run in runs:
        for start in range(0, len(run.times), BLOCK):
            part = _part(run, start, start + BLOCK)
            if not waiting:
                first = begin + start
            waiting.append(part)
            rows += len(part.times)
            if rows >= BLOCK:
                yield first, _together(waiting)
                waiting, rows = [], 0
    if waiting:
        yield first, _together(waiting)


def _together(runs: list[Run]) -> Run:
    columns = zip(*runs, strict=True)
    return Run(*(None if column[0] is None else np.concatenate(column) for column in columns))  # type: ignore[arg-type]


# -- sequential kinds --------------------------------------------------------------------------------------------------


class _Place:
    """How far a process has run through a stream: the run it is at, and the position of its first row."""

    def __init__(self, rows: Rows) -> None:
        self.later = rows.runs()
        self.first = 0
        self.run = next(self.later)

    def step(self) -> None:
        self.first += len(self.run.times)
        self.run = next(self.later)


_places: dict[Rows, _Place] = {}
_MOST_PLACES = 4


def _replayed(rows: Rows, first: int, last: int) -> Iterator[tuple[int, Run]]:
    """The runs of positions first ... last, each with the position of its first row."""
    # Taken out while in use: whoever comes in between finds none and starts a place of its own.
    place = _places.pop(rows, None)
    if place is None or place.first > first:
        place = _Place(rows)
    while place.first < last:
        if place.first + len(place.run.times) > first:
            before = max(0, first - place.first)
            yield place.first + before, _part(place.run, before, last - place.first)
        if place.first + len(place.run.times) >= last:
            break
        place.step()
    while len(_places) >= _MOST_PLACES:
        _places.pop(next(iter(_places)))
    _places[rows] = place
