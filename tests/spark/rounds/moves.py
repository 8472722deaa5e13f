"""Random moves of clients, what `Monitored` makes of them, and rounds without Spark: tasks are done in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

import skytide as sk
from skytide.runtime.monitored import Monitored
from skytide.spark.rounds.batch import Outcome, run_batch
from skytide.spark.rounds.engine import Hands
from skytide.spark.rounds.filtering import FilteringRules
from skytide.spark.rounds.intake import GATHERED, Gathered, Intake, gathered
from skytide.spark.rounds.protocol import Rules
from skytide.spark.rounds.query import MonitorQuery
from skytide.spark.rounds.record import Record
from skytide.spark.rounds.tasks import Result, Task, Worker, result_rows, results_of, task_rows
from skytide.spark.streaming.query import BUCKET

COLUMNS = ("t", "who", "a", "b", "g")
TYPES = (pa.int64(), pa.string(), pa.float64(), pa.float64(), pa.string())


@dataclass(frozen=True)
class Case:
    """A method over moves of clients."""

    method: str = "filter"
    grouped: bool = False
    pair: tuple[Any, int] | None = None
    epsilon: float = 0.3
    delta: float = 0.2
    clients: int = 30
    timestamps: int = 25
    step: float = 0.02
    seed: int = 1
    buckets: int = 3

    @property
    def preference(self) -> sk.Preference:
        return sk.Preference(minimize=["a"], maximize=["b"], by=["g"] if self.grouped else [])

    @property
    def options(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta, "seed": self.seed}

    def rules(self, lateness: int = 0) -> FilteringRules:
        names = {name: f"c{place}" for place, name in enumerate(COLUMNS)}
        query = MonitorQuery(
            preference=sk.Preference(minimize=["c2"], maximize=["c3"], by=["c4"] if self.grouped else []),
            time=names["t"],
            id=names["who"],
            kind="whole",
            lateness=lateness,
            nulls="drop",
            emit="changes",
            parts=1,
            labels=tuple((inner, name) for name, inner in names.items()),
            types=("bigint", "string", "double", "double", "string"),
            op="set",
            method=self.method,
            frequent=None if self.pair is None else sk_pair(self.pair),
            **self.options,
        )
        return FilteringRules(query, self.buckets)


def sk_pair(pair: tuple[Any, int]) -> Any:
    from skytide.monitors.frequent.pairs import Pair

    return Pair.of(*pair)


def moves(case: Case) -> pa.Table:
    """Walks with jumps, ties, clients that come, go and come again, and timestamps at which few move."""
    rng = np.random.default_rng(case.seed)
    points = np.round(rng.random((case.clients, 2)), 2)
    rows: list[tuple[Any, ...]] = []
    for time in range(case.timestamps):
        share = rng.choice([0.03, 0.3, 1.0]) if time else 0.8
        for who in np.flatnonzero(rng.random(case.clients) < share).tolist():
            chance, group = rng.random(), f"g{who % 3 if rng.random() < 0.97 else rng.integers(3)}"
            if chance < 0.05:
                rows.append((10 * time, f"n{who}", None, None, group))
                continue
            if chance < 0.1:
                points[who] = rng.choice([0.0, 0.5, 1.0, -np.inf, 1e300], 2)
            points[who] = points[who] + np.round(rng.normal(0, case.step, 2), 2)
            rows.append((10 * time, f"n{who}", *points[who].tolist(), group))
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), TYPES, strict=True)], COLUMNS
    )


Change = tuple[Any, str, Any]


def expected(case: Case, table: pa.Table, *, whole: bool) -> list[Change]:
    """What `skytide monitor` gives; without the last timestamp where that is not over."""
    return [tuple(change) for change in monitored(case, table, whole=whole)[0]]


def monitored(case: Case, table: pa.Table, *, whole: bool) -> tuple[list[Any], dict[str, Any]]:
    pairs = [(1, 1) if case.pair is None else case.pair]
    monitor = Monitored(case.preference, case.method, nulls="drop", pairs=pairs, **case.options)
    times = table.column("t")
    found = list(monitor.extend(table, times=times, ids=table.column("who")))
    if whole:
        found += list(monitor.advance(max(times.to_pylist())))
    return found, monitor.cost()


def listed(changes: pa.Table) -> list[Change]:
    return [tuple(row.values()) for row in changes.to_pylist()]


class Asked(Protocol):
    """What is asked of rows."""

    def rules(self) -> Rules: ...


class Bench:
    """Does in this process what Spark would do, rows and tasks as Arrow all the way."""

    def __init__(self, table: pa.Table, rng: np.random.Generator | None = None) -> None:
        self._table, self._rng = table, rng or np.random.default_rng(1)
        self.jobs: list[list[Task]] = []

    def gather(self, intake: Intake) -> Gathered:
        rules = intake.rules
        owners = self._table.column(dict(rules.query.labels)[rules.owner]).to_pylist()
        buckets = pa.array([sum(map(ord, str(one))) % rules.buckets for one in owners], pa.int32())
        inner = self._table.rename_columns(rules.query.columns).append_column(BUCKET, buckets)
        inner = inner.take(pa.array(self._rng.permutation(inner.num_rows)))  # rows of a DataFrame have no order
        spread = pa.Table.from_batches(intake.sort(iter(inner.to_batches(max_chunksize=50))))
        return gathered(pa.Table.from_batches(intake.gathering(iter(spread.to_batches())), GATHERED))

    def hands(self, worker: Worker) -> Hands:
        def do(tasks: Sequence[Task]) -> list[Result]:
            self.jobs.append(list(tasks))
            given = task_rows(tasks)
            return results_of(pa.Table.from_batches([*worker.tasks(iter(given.to_batches())), result_rows([])]))

        return do

    def kind(self, column: str) -> pa.DataType:
        return self._table.schema.field(int(column[1:])).type


def in_batches(
    case: Asked, table: pa.Table, cuts: Sequence[int], folder: Path, *, whole: bool = False
) -> tuple[list[Change], Record, list[Outcome]]:
    """The changes of a stream whose micro-batches end at these rows."""
    rules = case.rules()
    record, found, outcomes = Record({}), list[Change](), list[Outcome]()
    ends = [*cuts, table.num_rows]
    for number, (start, end) in enumerate(zip([0, *cuts], ends, strict=True)):
        last = whole and number == len(cuts)
        bench = Bench(table.slice(start, end - start), np.random.default_rng(number))
        outcome, record = run_batch(bench, rules, str(folder), record, number, whole=last, letters=True)
        record = Record.from_bytes(record.to_bytes())
        found += listed(outcome.changes)
        outcomes.append(outcome)
    return found, record, outcomes
