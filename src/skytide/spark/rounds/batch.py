"""One micro-batch, or a whole table: rows to their buckets, the timestamps that are over, the state after them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from skytide.model import Changes
from skytide.spark.rounds.engine import Engine, Hands, Place
from skytide.spark.rounds.intake import Gathered, Intake
from skytide.spark.rounds.protocol import Rules, Run
from skytide.spark.rounds.record import Record
from skytide.spark.rounds.tasks import RESULT_DDL, Result, Task, Worker, results_of, task_rows
from skytide.spark.rounds.traffic import Traffic
from skytide.spark.streaming.operator import outer_name
from skytide.spark.streaming.query import Query
from skytide.spark.streaming.write import in_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASK_DDL = (
    "bucket INT, state STRING, rows STRING, since BIGINT, start BIGINT, times ARRAY<BIGINT>, told ARRAY<BINARY>, "
    "fresh BIGINT, after BIGINT, until BIGINT, store BOOLEAN"
)


@dataclass(frozen=True)
class Outcome:
    """What came of rows: the changes, the rows that were not taken, and what it took."""

    changes: pa.Table
    """`time`, `change` (`+` or `-`), `id`, in the order of the change stream."""
    letters: pa.Table | None
    """Late and bad rows, if they were wanted: `kind`, `time`, `id`, the row's other columns."""
    traffic: Traffic
    messages: dict[str, int]
    """Messages from the first timestamp on, by way and kind, such as `up.failure`."""


class Ground(Protocol):
    """Where rows lie and tasks are done."""

    def gather(self, intake: Intake) -> Gathered:
        """Bring the rows to their buckets."""
        ...

    def hands(self, worker: Worker) -> Hands:
        """Who does tasks."""
        ...

    def kind(self, column: str) -> pa.DataType:
        """The type of a column of the rows, by its inner name."""
        ...


def run_batch(
    ground: Ground, rules: Rules, folder: str, before: Record, batch: int, *, whole: bool, letters: bool
) -> tuple[Outcome, Record]:
    """Run the timestamps that a micro-batch completes; of a whole table, the last one too. Nothing is committed."""
    query, count = rules.query, rules.buckets
    states, waiting = (list(given) or [None] * count for given in (before.states, before.rows))
    found = ground.gather(Intake(rules, folder, before.closed, tuple(waiting), letters))
    latest = max([before.latest, *found.keys[-1:].tolist()])
    closed = before.closed
    if len(found.keys):
        closed = max(closed, latest if whole else query.clock.keys.closed_by(latest))
    coordinator = rules.coordinator(before.coordinator)
    counted = coordinator.counts()
    shared = coordinator.prepare(found.surveys)
    run = Run(before.timestamps, found.keys[found.keys <= closed], shared)
    names = [found.names.get(number, waiting[number]) for number in range(count)]
    places = [Place(state, name) for state, name in zip(states, names, strict=True)]
    engine = Engine(coordinator, places, run, ground.hands(Worker(rules, folder, uuid.uuid4().hex, run)))
    parts = [changes for _, changes in engine.timestamps()]
    if len(run.keys):
        engine.store()
    changes = changes_table(Changes.concatenate(parts), run, query, ground)
    passed, messages = engine.passed, coordinator.counts()
    traffic = Traffic(
        timestamps=len(run.keys),
        jobs=passed.jobs + 1,
        rows=found.taken,
        row_bytes=found.taken * rules.row_bytes,
        reached=_added("up.", counted, messages),
        reached_bytes=passed.up + found.size,
        sent=_added("down.", counted, messages),
        sent_bytes=passed.down,
        changes=changes.num_rows,
        late=found.late,
        bad=found.bad,
    )
    record = before.after(
        batch,
        traffic,
        states=tuple(place.state for place in places),
        rows=tuple(names),
        latest=latest,
        closed=closed,
        timestamps=run.end,
        messages=messages,
        coordinator=coordinator.to_bytes(),
    )
    rejected = letters_table(found.letters, query, ground) if letters else None
    return Outcome(changes, rejected, traffic, messages), record


def _added(way: str, before: dict[str, int], after: dict[str, int]) -> int:
    return sum(number - before.get(name, 0) for name, number in after.items() if name.startswith(way))


class SparkGround:
    """Rows of a DataFrame, tasks in Spark jobs."""

    def __init__(self, rows: DataFrame, query: Query) -> None:
        self._rows = rows
        self._kinds = dict(zip(query.columns, (field.dataType for field in rows.schema), strict=True))

    def gather(self, intake: Intake) -> Gathered:
        """Bring the rows to their buckets, in a job with a shuffle."""
        return intake.gather(self._rows)

    def hands(self, worker: Worker) -> Hands:
        """Does tasks in a job without a shuffle: Spark spreads a small table over as many tasks as there are cores."""
        spark = self._rows.sparkSession

        def do(tasks: Sequence[Task]) -> list[Result]:
            frame = spark.createDataFrame(task_rows(tasks), TASK_DDL)
            return results_of(frame.mapInArrow(worker.tasks, RESULT_DDL).toArrow())

        return do

    def kind(self, column: str) -> pa.DataType:
        """The type of a column as Spark gives it to Arrow."""
        from pyspark.sql.pandas.types import to_arrow_type

        zone = self._rows.sparkSession.conf.get("spark.sql.session.timeZone")
        return to_arrow_type(self._kinds[column], timezone=zone)


# -- tables ------------------------------------------------------------------------------------------------------------


def changes_table(changes: Changes, run: Run, query: Query, ground: Ground) -> pa.Table:
    """Changes, whose times are numbers of timestamps, as columns of the rows' types."""
    keys = run.keys[np.asarray(changes.times, np.int64) - run.first]
    times = query.clock.keys.times(keys) if query.kind == "real" else keys
    return pa.table(
        {
            "time": pa.array(times).cast(query.time_type(ground.kind(query.time))),
            "change": pa.array(changes.symbols.tolist(), pa.string()),
            "id": pa.array(changes.ids.tolist(), ground.kind(query.id)),
        }
    )


def letters_table(letters: pa.Table | None, query: Query, ground: Ground) -> pa.Table:
    """Rows that were not taken, if any, under the user's names, in order."""
    if letters is None:
        own = [(name, ground.kind(name)) for name in query.columns]
        time = query.time_type(ground.kind(query.time))
        letters = pa.schema([("kind", pa.string()), ("time", time), ("change", pa.string()), *own]).empty_table()
    labels: dict[str, Any] = dict(query.labels)
    columns = {"kind": letters.column("kind"), "time": letters.column("time"), "change": letters.column("change")}
    columns["id"] = letters.column(query.id)
    for name in query.columns:
        if not (name == query.id and labels[name] == "id"):
            columns[outer_name(labels[name])] = letters.column(name)
    return in_order(pa.table(columns), ()).drop_columns(["change"])
