"""Updates of objects as Spark sees them, and what must come of them: by the reference, row by row."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from skytide.model import Preference
from skytide.monitors.sliding.clock import LOWEST
from skytide.reference.batch import skyline, worst_for_missing
from skytide.reference.frequent import frequent_answers
from skytide.reference.snapshots import OPERATIONS, apply, missing, oriented
from skytide.reference.window import differences
from skytide.spark.streaming.snapshots.query import UpdateQuery
from tests.spark.streaming.simulated import Simulation

INFINITY = float("inf")
CELLS = st.one_of(st.integers(-2, 3).map(float), st.sampled_from([INFINITY, -INFINITY, -0.0, 1.797e308, 5e-324]))


class Update(NamedTuple):
    """One row; the tag tells it from all others."""

    time: int
    one: int
    group: str
    values: tuple[float | None, ...]
    op: str
    order: int | None
    tag: int


Batches = list[list[list[Update]]]


@st.composite
def updates(draw: st.DrawFn) -> tuple[Batches, int]:
    """Updates in micro-batches of partitions, and the number of values. Few objects and times, so that many meet."""
    dimensions = draw(st.integers(1, 3))
    n = draw(st.integers(1, 30))
    drift = draw(st.integers(0, 3))
    cell = st.one_of(CELLS, CELLS, CELLS, st.sampled_from([None, float("nan")]))
    none = st.just((None,) * dimensions)
    values = st.one_of(st.tuples(*[CELLS] * dimensions), st.tuples(*[cell] * dimensions), none)
    batches: Batches = [[[]]]
    for tag in range(n):
        row = Update(
            tag * drift // 2 + draw(st.integers(-2, 2)),
            draw(st.integers(0, 4)),
            draw(st.sampled_from("xyz")),
            draw(values),
            draw(st.sampled_from([*OPERATIONS])),
            draw(st.sampled_from([0, 1, 2, None])),
            tag,
        )
        step = draw(st.sampled_from(["same", "same", "same", "partition", "batch"]))
        if step == "partition":
            batches[-1].append([])
        elif step == "batch":
            batches.append([[]])
        draw(st.sampled_from(batches[-1])).append(row)
    return batches, dimensions


def update_query(
    dimensions: int,
    *,
    op: str = "set",
    order: bool = False,
    by: bool = False,
    lateness: int = 0,
    nulls: Any = "drop",
    emit: str = "changes",
    method: str = "auto",
    frequent: tuple[Fraction, int] | None = None,
    parts: int = 1,
) -> UpdateQuery:
    """A query over the columns of `table`, the first value minimised and the others maximised; `op` may be `column`."""
    values = [f"x{k}" for k in range(dimensions)]
    columns = ["at", "one", "g", *values, "op", "order", "tag"]
    return UpdateQuery(
        preference=Preference(minimize=values[:1], maximize=values[1:], by=["g"] if by else []),
        time="at",
        id="one",
        kind="whole",
        lateness=lateness,
        nulls=nulls,
        emit=emit,
        parts=parts,
        labels=tuple((name, name) for name in columns),
        types=tuple("some" for _ in columns),
        op="" if op == "column" else op,
        op_column="op" if op == "column" else None,
        order="order" if order else None,
        method=method,
        frequent=frequent,
    )


def table(rows: list[Update], dimensions: int) -> pa.Table:
    return pa.table(
        {
            "at": pa.array([row.time for row in rows], pa.int64()),
            "one": pa.array([row.one for row in rows], pa.int64()),
            "g": pa.array([row.group for row in rows], pa.string()),
            **{f"x{k}": pa.array([row.values[k] for row in rows], pa.float64()) for k in range(dimensions)},
            "op": pa.array([row.op for row in rows], pa.string()),
            "order": pa.array([row.order for row in rows], pa.int32()),
            "tag": pa.array([[row.tag] for row in rows], pa.list_(pa.int64())),
        }
    )


# -- what must come of them --------------------------------------------------------------------------------------------


class Truth:
    """The changes up to a time, the tags of bad rows, and at any change the object's last row and values."""

    def __init__(self, query: UpdateQuery, taken: list[Update], closed: int) -> None:
        self.query = query
        self.changes: list[tuple[Any, ...]] = []
        self.bad: list[int] = []
        for group in sorted({row.group for row in taken}) if query.preference.by else [None]:
            mine = [row for row in taken if row.time <= closed and group in (None, row.group)]
            answers = self._group(mine)
            if query.frequent is not None:
                answers = frequent_answers(answers, *query.frequent)
            self.changes += [
                (change.time, change.change, change.id, *self._shown(change.time, change.id))
                for change in differences(answers)
            ]
        self.changes.sort(key=repr)
        self.bad.sort()

    def _group(self, rows: list[Update]) -> list[tuple[int, set[int]]]:
        objects: dict[int, Any] = {}
        signs = [1, *[-1] * (self.query.preference.dimensions - 1)]
        answers = []
        self._states: dict[int, list[tuple[int, int, Any]]] = {}
        for time in sorted({row.time for row in rows}):
            seen = False
            for row in sorted((row for row in rows if row.time == time), key=self._turn):
                op = self.query.op or row.op
                if not apply(objects, row.one, row.values, op, self.query.nulls):
                    self.bad.append(row.tag)
                    continue
                seen = True
                self._states.setdefault(row.one, []).append((time, row.tag, objects.get(row.one)))
            if seen:
                values = worst_for_missing([oriented(own, signs) for own in objects.values()])
                names = list(objects)
                answers.append((time, {names[place] for place in skyline(values)}))
        return answers

    def _turn(self, row: Update) -> Any:
        """Rows of one object at one time: by order, where asked for, then by all values; missing ones first."""

        def key(value: Any) -> Any:
            return (0, value is None) if value is None or value != value else (1, value)

        first = (key(row.order),) if self.query.order else ()
        return (row.one, *first, row.group, *map(key, row.values), row.op, key(row.order), repr([row.tag]))

    def _shown(self, time: int, one: int) -> tuple[Any, ...]:
        _, tag, values = [state for state in self._states[one] if state[0] <= time][-1]
        if not self.query.recast:
            return ([tag],)
        return ([tag], None if values is None or missing(values[0]) else values[0])


def found(simulation: Simulation) -> list[tuple[Any, ...]]:
    return sorted((out[1:] for out in simulation.out if out[0] == "change"), key=repr)


def tags(simulation: Simulation, kind: str) -> list[int]:
    return sorted(out[4][0] for out in simulation.out if out[0] == kind)


def simulated(query: UpdateQuery) -> Simulation:
    return Simulation(query, shown=["tag", *query.recast[:1]])


def usable(query: UpdateQuery, row: Update) -> bool:
    """Whether a row can be used as it is: all values or none, or some where the policy takes that."""
    gaps = [missing(value) for value in row.values]
    return query.nulls == "worst" or all(gaps) or not any(gaps)


def played(
    simulation: Simulation, batches: Batches, dimensions: int, restarts: set[int]
) -> tuple[list[Update], list[int], list[int]]:
    """Run the micro-batches and the last one without data: rows in time, and the tags of those late and unusable."""
    query = simulation.query
    assert isinstance(query, UpdateQuery)
    clock = query.clock.keys
    taken, late, bad, latest = [], [], [], LOWEST
    for number, partitions in enumerate(batches):
        if number in restarts:
            simulation.restart()
        rows = [row for partition in partitions for row in partition]
        simulation.batch([table(partition, dimensions) for partition in partitions])
        closed = simulation.closed
        assert closed == (LOWEST if latest == LOWEST else clock.closed_by(latest)), "each row closes what it should"
        good = [row for row in rows if usable(query, row)]
        latest = max([latest, *(row.time for row in good)])
        taken += [row for row in good if row.time > closed]
        late += [row.tag for row in good if row.time <= closed]
        bad += [row.tag for row in rows if not usable(query, row)]
    simulation.idle()
    return taken, sorted(late), bad
