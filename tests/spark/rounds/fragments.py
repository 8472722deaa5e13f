"""Objects in fragments as tables, and what the reference makes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skytide.expressions import parse
from skytide.model import MissingPolicy, Preference
from skytide.reference.functional import expression, fragment_changes
from skytide.spark.rounds.fragments import FragmentQuery, functions_of
from skytide.spark.rounds.sites import FragmentRules
from tests.protocols.fragmented.scenarios import Row, Scenario
from tests.spark.rounds.moves import Change

NAMES = ("t", "at", "who")


@dataclass(frozen=True)
class Fragments:
    """A method over local vectors."""

    minimize: tuple[str, ...]
    maximize: tuple[str, ...] = ()
    method: str = "auto"
    nulls: MissingPolicy = "drop"
    buckets: int = 3

    @property
    def preference(self) -> Preference:
        return Preference(self.minimize, self.maximize)

    @property
    def columns(self) -> tuple[str, ...]:
        return functions_of(self.preference).columns

    def rules(self) -> FragmentRules:
        functions = functions_of(self.preference)
        names = (*NAMES, *functions.columns)
        used = [f"c{place}" for place in range(len(NAMES), len(names))]
        query = FragmentQuery(
            preference=Preference(minimize=used),
            time="c0",
            site="c1",
            id="c2",
            kind="whole",
            lateness=0,
            nulls=self.nulls,
            emit="changes",
            parts=1,
            labels=tuple((f"c{place}", name) for place, name in enumerate(names)),
            types=("bigint", "string", "string", *(["double"] * len(used))),
            op="set",
            method=self.method,
            minimize=functions.minimize,
            maximize=functions.maximize,
        )
        return FragmentRules(query, self.buckets)

    def table(self, times: Sequence[int], rows: Sequence[Row]) -> pa.Table:
        """Updates as a table; of several of one cell and time only the last is there, since tables have no order."""
        last = {(time, row.site, row.one): row for time, row in zip(times, rows, strict=True)}
        kept = [(key[0], f"s{row.site}", f"n{row.one}", *self._values(row)) for key, row in sorted(last.items())]
        kinds = (pa.int64(), pa.string(), pa.string(), *[pa.float64()] * len(self.columns))
        arrays = [pa.array(column, kind) for column, kind in zip(zip(*kept, strict=True), kinds, strict=True)]
        return pa.table(arrays, [*NAMES, *self.columns])

    def _values(self, row: Row) -> list[float | None]:
        found = [math.nan] * len(self.columns) if row.values is None else row.values
        return [None if math.isnan(value) else value for value in found]

    def expected(self, table: pa.Table, *, whole: bool) -> list[Change]:
        """What the definition says; without the last time where that is not over."""
        functions = functions_of(self.preference)
        times, sites, ids = (table.column(name).to_pylist() for name in NAMES)
        found = fragment_changes(
            times,
            sites,
            ids,
            table.select(self.columns).to_pylist(),
            [expression(parse(text)) for text in (*functions.minimize, *functions.maximize)],
            signs=[int(sign) for sign in functions.signs],
            nulls=self.nulls,
            close_last=whole,
        )
        return [tuple(change) for change in found]


def timed(scenario: Scenario, method: str, buckets: int, pace: int, seed: int) -> tuple[Fragments, pa.Table]:
    """A scenario as a table whose times have `pace` updates on average."""
    case = Fragments(scenario.minimize, scenario.maximize, method, scenario.nulls, buckets)
    steps = np.random.default_rng(seed).random(len(scenario.updates)) < 1 / pace
    times = [0] * len(scenario.start) + (1 + np.cumsum(steps)).tolist()
    return case, case.table(times, [*scenario.start, *scenario.updates])


def joining(seed: int) -> tuple[list[int], list[Row]]:
    """Times and rows of objects that come to sites all together, somewhere else than they were, and go together."""
    source = np.random.default_rng(seed)
    objects, sites = (int(source.integers(2, 6)) for _ in range(2))
    home, scale = source.uniform(1, 2, (objects, 2)), source.choice([0.01, 0.1, 0.4])
    times, rows, here = list[int](), list[Row](), set[tuple[int, int]]()

    def put(time: int, site: int, one: int, reach: float | None) -> None:
        values = None if reach is None else home[one] * (1 + scale * source.uniform(-reach, reach, 2))
        (here.discard if values is None else here.add)((site, one))
        times.append(time)
        rows.append(Row(site, one, None if values is None else tuple(values.tolist()), 1.0))

    for one in range(objects):
        put(0, 0, one, 0.0)
    for time in range(1, 25):
        chance, site = source.random(), int(source.integers(sites))
        if chance < 0.45:
            goes = chance > 0.3 and len({place for place, _ in here}) > 1
            for one in range(objects):
                put(time, site, one, None if goes else 2.0)
        else:
            for at, one in source.permutation(sorted(here))[: source.integers(1, 4)].tolist():
                put(time, at, one, 1.0)
    return times, rows


def drifting(objects: int, sites: int, times: int, seed: int, *, step: float = 0.01) -> pa.Table:
    """Every object at every site, then walks of a quarter of the cells at each time."""
    source = np.random.default_rng(seed)
    local = np.repeat(source.random((objects, 2))[:, None], sites, axis=1)
    rows = [(0, f"s{site}", f"n{one}", *local[one, site]) for one in range(objects) for site in range(sites)]
    for time in range(1, times):
        for cell in source.permutation(objects * sites)[: objects * sites // 4].tolist():
            one, site = divmod(cell, sites)
            local[one, site] *= source.uniform(1 - step, 1 + step, 2)
            rows.append((time, f"s{site}", f"n{one}", *local[one, site]))
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], [*NAMES, "a", "b"])
