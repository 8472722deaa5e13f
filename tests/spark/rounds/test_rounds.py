"""Rounds without Spark: tasks in this process, rows and messages as bytes all the way, against `Monitored`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.errors import StateError
from skytide.protocols.filtering.methods import METHODS
from skytide.spark.rounds import engine, tasks
from skytide.spark.rounds.batch import run_batch
from skytide.spark.rounds.engine import Hands
from skytide.spark.rounds.record import Record, Records, checked
from skytide.spark.rounds.tasks import Result, Task, Worker
from skytide.spark.rounds.traffic import Traffic
from tests.spark.rounds.moves import COLUMNS, TYPES, Bench, Case, expected, in_batches, listed, monitored, moves


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    tasks._kept.clear()
    yield
    tasks._kept.clear()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_micro_batches_give_the_changes_of_the_simulation(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    case = Case(
        method=data.draw(st.sampled_from(METHODS)),
        grouped=data.draw(st.booleans()),
        pair=data.draw(st.sampled_from([None, ("0.5", 6), ("0.3", 20)])),
        epsilon=0.9,
        delta=0.5,
        step=data.draw(st.sampled_from([0.0, 0.01, 0.2])),
        seed=data.draw(st.integers(0, 10_000)),
        buckets=data.draw(st.integers(1, 4)),
        clients=20,
        timestamps=18,
    )
    table = moves(case)
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=4)))
    whole = data.draw(st.booleans())
    found, record, _ = in_batches(case, table, cuts, tmp_path_factory.mktemp("rounds"), whole=whole)
    truth, cost = monitored(case, table, whole=whole)
    assert found == [tuple(change) for change in truth]
    assert record.timestamps == cost["timestamps"] and record.total.changes == len(found)


@pytest.mark.parametrize("method", METHODS)
def test_the_messages_are_those_of_the_simulation(method: str, tmp_path: Path) -> None:
    case = Case(method, pair=("0.5", 20), epsilon=0.9, delta=0.5, timestamps=60)
    table = moves(case)
    *_, last = in_batches(case, table, [table.num_rows // 2], tmp_path, whole=True)[2]
    _, cost = monitored(case, table, whole=True)
    total = sum(number for name, number in last.messages.items() if name.startswith("up."))
    assert total == cost["uplink"] + cost["initial"]["uplink"]
    assert last.messages.get("up.failure", 0) == cost["failures"]
    assert last.messages.get("up.answer", 0) == cost["probes"]


def rows_of(*rows: tuple[Any, ...]) -> pa.Table:
    columns = zip(zip(*rows, strict=True), TYPES, strict=True)
    return pa.table([pa.array(column, kind) for column, kind in columns], COLUMNS)


def test_timestamps_in_which_nobody_speaks_take_no_job(tmp_path: Path) -> None:
    first = [(0, f"n{one}", one / 10, one / 10, "g") for one in range(8)]
    shaken = [(1, f"n{one}", one / 10 + 0.01, one / 10, "g") for one in range(8)]
    quiet = [(time, f"n{one}", one / 10, one / 10, "g") for time in range(2, 300) for one in range(8)]
    case = Case("filter", buckets=2)
    found, record, _ = in_batches(case, rows_of(*first, *shaken, *quiet), [], tmp_path, whole=True)
    assert record.timestamps == 300 and len(found) == 8
    assert record.total.jobs <= 8
    assert record.total.rows == 2400 and record.total.reached <= 40


class Forgetful(Bench):
    """Workers that lose all memory now and then, and tasks that are done twice."""

    def hands(self, worker: Worker) -> Hands:
        do, rng = super().hands(worker), np.random.default_rng(3)

        def badly(given: Sequence[Task]) -> Sequence[Result]:
            if rng.random() < 0.4:
                tasks._kept.clear()
            if rng.random() < 0.4:
                do(given)
            return do(given)

        return badly


@pytest.mark.parametrize("method", ["auto", "hybrid"])
def test_lost_workers_and_repeated_tasks_change_nothing(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LONG_LOG", 500)  # bytes: state is stored in the middle, too
    case = Case(method, grouped=True, pair=("0.4", 20), epsilon=0.9, delta=0.5, timestamps=40)
    table = moves(case)
    outcome, _ = run_batch(Forgetful(table), case.rules(), str(tmp_path), Record({}), 0, whole=True, letters=True)
    assert listed(outcome.changes) == expected(case, table, whole=True)


def test_who_is_told_nothing_is_not_asked_again(tmp_path: Path) -> None:
    case = Case("filter", buckets=4, clients=40, timestamps=30, step=0.01)
    bench = Bench(moves(case))
    run_batch(bench, case.rules(), str(tmp_path), Record({}), 0, whole=True, letters=False)
    looks = [job for job in bench.jobs[1:-1] if job[0].until > job[0].after]
    assert any(len(job) < 4 for job in looks)


def test_rows_that_are_late_or_bad_are_given_back(tmp_path: Path) -> None:
    rules = Case("filter").rules()
    good = rows_of((0, "x", 1.0, 1.0, "g"), (5, "y", 0.5, 2.0, "g"), (9, "x", 0.1, 3.0, "g"))
    odd = rows_of(
        (3, "z", 1.0, 1.0, "g"), (10, "z", None, 1.0, "g"), (11, None, 1.0, 1.0, "g"), (12, "w", 0.0, 9.0, "g")
    )
    _, record = run_batch(Bench(good), rules, str(tmp_path), Record({}), 0, whole=False, letters=True)
    outcome, record = run_batch(Bench(odd), rules, str(tmp_path), record, 1, whole=False, letters=True)
    assert outcome.letters is not None
    assert outcome.letters.column_names == ["kind", "time", "id", "t", "who", "a", "b", "g"]
    assert [(row["kind"], row["time"], row["id"]) for row in outcome.letters.to_pylist()] == [
        ("late", 3, "z"),
        ("bad", 10, "z"),
        ("bad", 11, None),
    ]
    assert (outcome.traffic.late, outcome.traffic.bad, outcome.traffic.rows) == (1, 2, 1)
    assert listed(outcome.changes) == [(9, "-", "y"), (9, "+", "x")]
    counted, _ = run_batch(Bench(odd), rules, str(tmp_path), record, 2, whole=False, letters=False)
    assert counted.letters is None and (counted.traffic.late, counted.traffic.bad) == (1, 2)


def test_a_task_all_of_whose_rows_are_bad_gives_them_back(tmp_path: Path) -> None:
    rules = Case("filter").rules()
    odd = rows_of((10, "z", None, 1.0, "g"), (11, None, 1.0, 1.0, "g"))
    outcome, record = run_batch(Bench(odd), rules, str(tmp_path), Record({}), 0, whole=False, letters=True)
    assert outcome.letters is not None and outcome.letters.column("kind").to_pylist() == ["bad", "bad"]
    assert (outcome.traffic.rows, outcome.traffic.bad) == (0, 2)
    good = rows_of((12, "x", 1.0, 1.0, "g"))
    outcome, _ = run_batch(Bench(good), rules, str(tmp_path), record, 1, whole=True, letters=True)
    assert listed(outcome.changes) == [(12, "+", "x")]


def test_of_several_rows_of_a_client_at_one_time_the_largest_counts(tmp_path: Path) -> None:
    table = rows_of(
        (0, "x", 1.0, 1.0, "g"), (0, "x", None, None, "g"), (0, "x", 3.0, 0.0, "g"), (0, "y", 2.0, 0.5, "g")
    )
    for seed, cut in ((1, []), (2, [1]), (3, [2]), (4, [1, 2, 3])):
        found, _, _ = in_batches(Case("naive", seed=seed), table, cut, tmp_path, whole=True)
        assert found == [(0, "+", "y")]


# -- records -----------------------------------------------------------------------------------------------------------


def test_a_record_that_is_committed_replaces_all_before_it(tmp_path: Path) -> None:
    records = Records(str(tmp_path))
    assert records.last() is None
    for name in ("state-a", "rows-a", "state-b", "left-over"):
        (tmp_path / name).write_bytes(b"x")
    records.commit(Record({"k": 1}, 0, ("state-a",), ("rows-a",), total=Traffic(rows=3), coordinator=b"abc"))
    records.commit(Record({"k": 1}, 1, ("state-a", None), (None, "rows-a"), coordinator=b"de"))
    last = records.last()
    assert last is not None and (last.batch, last.coordinator, last.states) == (1, b"de", ("state-a", None))
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["record-0000000000000000001.skytide", "rows-a", "state-a"]


def test_state_of_another_query_or_place_in_the_stream_is_refused() -> None:
    record = Record({"method": "filter", "over": 5}, batch=4)
    assert checked(record, 5, {"method": "filter", "over": 5}) is record
    assert checked(record, 4, {"method": "filter", "over": 5}) is record
    with pytest.raises(StateError, match="a query with method 'filter', not 'naive'"):
        checked(record, 5, {"method": "naive", "over": 5})
    for batch in (3, 6):
        with pytest.raises(StateError, match=f"micro-batch {batch} does not follow"):
            checked(record, batch, {"method": "filter", "over": 5})
    with pytest.raises(StateError, match="the clients' state before micro-batch 3 is gone"):
        checked(None, 3, {})


def test_damaged_state_is_refused(tmp_path: Path) -> None:
    case = Case("auto")
    table = moves(case)
    _, record, _ = in_batches(case, table, [], tmp_path)
    with pytest.raises(StateError, match="damaged"):
        Record.from_bytes(record.to_bytes()[:-1] + b"?")
    name = next(name for name in record.states if name is not None)
    whole = (tmp_path / name).read_bytes()
    tasks._kept.clear()
    for damaged in (whole[:-1] + b"?", whole[:100], b""):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(StateError):
            run_batch(Bench(table), case.rules(), str(tmp_path), record, 1, whole=True, letters=False)
    (tmp_path / name).unlink()
    with pytest.raises(StateError, match=f"the file {name} of the checkpoint is missing"):
        run_batch(Bench(table), case.rules(), str(tmp_path), record, 1, whole=True, letters=False)


def test_traffic_adds_up_and_is_said_in_a_line() -> None:
    one = Traffic(timestamps=1, rows=10, row_bytes=280, reached=3, reached_bytes=90)
    assert Traffic.of((one + one).counts()) == dataclasses.replace(
        one, timestamps=2, rows=20, row_bytes=560, reached=6, reached_bytes=180
    )
    assert (one + one).described() == "6 of 20 rows (180 B of 560 B) to the driver"
