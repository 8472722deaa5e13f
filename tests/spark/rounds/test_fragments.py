"""Objects in fragments in rounds, without Spark: rows and messages as bytes all the way, against the definition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.errors import InputError, StateError
from skytide.protocols.fragmented.methods import METHODS
from skytide.spark.rounds import tasks
from skytide.spark.rounds.protocol import Run
from skytide.spark.rounds.record import Record
from tests.protocols.fragmented.scenarios import Scenario, scenarios, walk
from tests.spark.rounds.fragments import Fragments, drifting, joining, timed
from tests.spark.rounds.moves import in_batches


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    tasks._kept.clear()
    yield
    tasks._kept.clear()


def check(case: Fragments, table: pa.Table, cuts: list[int], folder: Path, *, whole: bool) -> Record:
    """The changes are the definition's, and so is the error where a function has no value."""
    try:
        truth = case.expected(table, whole=whole)
    except InputError:
        with pytest.raises(InputError, match=r"'n\d+' is an object of which a function has no value"):
            in_batches(case, table, cuts, folder, whole=True)
        return Record({})
    found, record, _ = in_batches(case, table, cuts, folder, whole=whole)
    assert found == truth
    assert record.total.changes == len(truth) and record.total.rows == table.num_rows
    return record


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenario=scenarios(), data=st.data())
def test_any_micro_batches_give_the_changes_of_the_definition(
    scenario: Scenario, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    method, buckets = data.draw(st.sampled_from(METHODS)), data.draw(st.integers(1, 5))
    case, table = timed(scenario, method, buckets, data.draw(st.sampled_from([1, 3])), data.draw(st.integers(0, 9)))
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=3)))
    check(case, table, cuts, tmp_path_factory.mktemp("rounds"), whole=data.draw(st.booleans()))


@pytest.mark.parametrize("method", METHODS)
def test_long_walks_give_the_changes_of_the_definition(method: str, tmp_path: Path) -> None:
    for seed in range(4):
        case, table = timed(walk(seed, 60), method, 1 + seed % 5, 1 + seed % 4, seed)
        cuts = np.random.default_rng(seed).integers(0, table.num_rows, seed % 3)
        check(case, table, sorted(cuts.tolist()), tmp_path / str(seed), whole=seed % 2 == 0)


@pytest.mark.parametrize("method", ["pivot", "direct"])
def test_objects_that_come_to_a_site_together_are_watched_there(method: str, tmp_path: Path) -> None:
    for seed in (8, 9, 18, 24, 52):
        case = Fragments(("a", "b"), method=method, buckets=2 + seed % 4)
        check(case, case.table(*joining(seed)), [], tmp_path / str(seed), whole=True)


def test_what_stays_in_its_zone_does_not_reach_the_driver_and_takes_no_job(tmp_path: Path) -> None:
    table = drifting(20, 10, 60, seed=3, step=0.002)
    for method, share in (("central", 1.0), ("pivot", 0.3), ("direct", 0.3)):
        case = Fragments(("a", "b"), method=method, buckets=4)
        record = check(case, table, [], tmp_path / method, whole=True)
        total, start = record.total, 200
        assert total.rows == 200 + 59 * 50 == table.num_rows
        if method == "central":
            assert total.reached == total.rows
        else:
            assert total.reached - start < share * (total.rows - start)
            assert total.jobs < 2 * 60
        assert total.row_bytes == total.rows * (4 + 2 * 8)
        assert {name.partition(".")[0] for name in record.messages} == {"up"} | ({"down"} if share < 1 else set())


def test_objects_keep_their_numbers_when_buckets_are_stored_and_restored(tmp_path: Path) -> None:
    case = Fragments(("a",), ("b",), method="auto", buckets=3)
    table = drifting(8, 6, 12, seed=5, step=0.3)
    record = check(case, table, [*range(20, table.num_rows, 25)], tmp_path, whole=True)
    assert record.timestamps == 12
    name = next(name for name in record.states if name is not None)
    whole = (tmp_path / name).read_bytes()
    bucket = record.states.index(name)
    rules = case.rules()
    again = rules.bucket(bucket, whole, None, Run(12, np.zeros(0, np.int64)))
    assert again.to_bytes() == whole
    for damaged in (whole[:-1], whole[:60], b""):
        with pytest.raises(StateError):
            rules.bucket(bucket, damaged, None, Run(12, np.zeros(0, np.int64)))
    with pytest.raises(StateError):
        rules.coordinator(record.to_bytes())


def test_rows_without_site_id_time_or_some_values_are_given_back(tmp_path: Path) -> None:
    case = Fragments(("norm(a, b)",))
    rows: list[tuple[Any, ...]] = [
        (0, "s", "x", 3.0, 4.0),
        (0, None, "y", 0.0, 0.0),
        (0, "s", None, 0.0, 0.0),
        (0, "s", "z", None, 1.0),
    ]
    rows += [(1, "s", "w", None, None), (1, "r", "x", 0.0, 0.0), (2, "s", "x", None, None), (None, "s", "x", 1.0, 1.0)]
    kinds = (pa.int64(), pa.string(), pa.string(), pa.float64(), pa.float64())
    arrays = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    table = pa.table(arrays, ["t", "at", "who", "a", "b"])
    found, record, (outcome,) = in_batches(case, table, [], tmp_path, whole=True)
    assert found == [(0, "+", "x")]
    assert (record.total.rows, record.total.bad, record.timestamps) == (4, 4, 3)
    assert outcome.letters is not None
    assert outcome.letters.column_names == ["kind", "time", "id", "t", "at", "who", "a", "b"]
    assert set(outcome.letters.column("kind").to_pylist()) == {"bad"}


def test_of_several_rows_of_a_cell_at_one_time_the_largest_counts(tmp_path: Path) -> None:
    rows = [(0, "s", "x", 1.0), (0, "s", "x", 5.0), (0, "s", "x", None), (0, "r", "x", 1.0), (0, "s", "y", 2.9)]
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], ["t", "at", "who", "a"])
    for number, cuts in enumerate(([], [1], [2, 3], [1, 2, 3, 4])):
        found, _, _ = in_batches(Fragments(("a",), buckets=2), table, cuts, tmp_path / str(number), whole=True)
        assert found == [(0, "+", "y")]
