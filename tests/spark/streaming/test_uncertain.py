"""Uncertain rows on Spark: whatever the parts, micro-batches and restarts, the changes are those of the definition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.model import Window
from skytide.reference.batch import dominates
from skytide.spark import uncertain
from tests.spark.streaming.contract import write_batch
from tests.spark.streaming.simulated import Simulation, query_of
from tests.spark.streaming.test_exact import Row, played, runs, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHANCES = [1.0, 0.5, 0.25, 0.9, 1 - 2**-53, 1e-9, 0.0]
THRESHOLDS = (0.5, 0.225)


def chance(row: Row) -> float:
    return CHANCES[(7 * row[1] + len(row[3])) % len(CHANCES)]


def with_chances(rows: list[Row], dimensions: int) -> pa.Table:
    return table(rows, dimensions).append_column("p", pa.array([chance(row) for row in rows], pa.float64()))


def truth(rows: list[Row], lives: dict[int, tuple[int, int]], by: bool, until: int) -> list[tuple[Any, ...]]:
    """The net differences between instants, from the probabilities of what lives at each."""
    found: list[tuple[Any, ...]] = []
    for group in {row[2] for row in rows} if by else {None}:
        mine = [row for row in rows if group is None or row[2] == group]
        points = {row[1]: [row[3][0], *(-value for value in row[3][1:])] for row in mine}
        before: dict[float, set[int]] = {threshold: set() for threshold in THRESHOLDS}
        for at in sorted({time for row in mine for time in lives[row[1]]}):
            if at > until:
                break
            live = [row for row in mine if lives[row[1]][0] <= at < lives[row[1]][1]]
            chances = {
                row[1]: chance(row)
                * np.prod([1 - chance(other) for other in live if dominates(points[other[1]], points[row[1]])])
                for row in live
            }
            for threshold, was in before.items():
                now = {one for one, value in chances.items() if value >= threshold * (1 - 1e-12)}
                found += [(at, "-", one, threshold) for one in was - now] + [
                    (at, "+", one, threshold) for one in now - was
                ]
                before[threshold] = now
    return sorted(found)


@settings(max_examples=200)
@given(runs(), st.integers(1, 12), st.integers(0, 6), st.booleans(), st.booleans(), st.sets(st.integers(0, 8)))
def test_a_time_window_gives_the_changes_of_the_definition(
    run: tuple[list[list[list[Row]]], int],
    duration: int,
    lateness: int,
    by: bool,
    prune: bool,
    restarts: set[int],
) -> None:
    batches, dimensions = run
    window = Window(duration=duration, lateness=lateness)
    query = query_of(dimensions, window=window, by=by, parts=2 if by else 1, thresholds=THRESHOLDS)
    simulation = Simulation(query, prune=prune)
    taken, _ = played(simulation, batches, dimensions, lateness, restarts, with_chances)
    lives = {row[1]: (row[0], row[0] + duration) for row in taken}
    found = sorted(out[1:] for out in simulation.out if out[0] == "change")
    assert found == truth(taken, lives, by, simulation.closed)


@settings(max_examples=60)
@given(runs(), st.integers(1, 6), st.sets(st.integers(0, 8)))
def test_a_count_window_ranks_rows_by_time_and_id(
    run: tuple[list[list[list[Row]]], int], count: int, restarts: set[int]
) -> None:
    batches, dimensions = run
    simulation = Simulation(query_of(dimensions, window=Window(count=count), thresholds=THRESHOLDS))
    taken, _ = played(simulation, batches, dimensions, 0, restarts, with_chances)
    closed = [row for row in sorted(taken, key=lambda row: row[:2]) if row[0] <= simulation.closed]
    lives = {row[1]: (rank, rank + count) for rank, row in enumerate(closed, 1)}
    found = sorted(out[1:] for out in simulation.out if out[0] == "change")
    assert found == truth(closed, lives, False, len(closed))


def test_ranks_go_on_after_a_newest_row_that_never_exists() -> None:
    """Such a row is retained by no engine, but it has a rank: a stored window must know it."""
    found = []
    for restart in (False, True):
        simulation = Simulation(query_of(1, window=Window(count=5), thresholds=(0.5,)))
        for number in range(5):
            rows: list[Row] = [(number * 1000 + i, number * 1000 + i, "x", (float(i % 7),)) for i in range(1000)]
            chances = [0.0 if row[1] % 1000 > 990 else 0.9 for row in rows]
            if restart:
                simulation.restart()
            simulation.batch([table(rows, 1).append_column("p", pa.array(chances))])
        found.append(simulation.out)
        meta = simulation._tester.peekValueState("meta", 0)
        assert meta is not None and meta[3] > 0, "the log has been compacted"
    assert found[0] == found[1] and max(out[1] for out in found[0]) > 3900


def test_most_rows_of_a_large_part_are_dropped_where_they_lie() -> None:
    rng = np.random.default_rng(5)
    n = 20_000
    columns: dict[str, Any] = {"at": np.arange(n), "one": np.arange(n), "g": np.repeat("x", n)}
    columns |= {"x0": rng.random(n), "x1": rng.random(n), "p": rng.random(n)}
    simulation = Simulation(query_of(2, window=Window(duration=10 * n), thresholds=(0.3,)))
    simulation.batch([pa.table(columns)])
    assert 0 < simulation.sent < n / 20


def test_on_spark_it_gives_the_changes_of_an_uncertain_window(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    n = 300
    rows = pa.table(
        {
            "t": np.sort(rng.integers(0, 100, n)),
            "key": [f"r{one}" for one in range(n)],
            "x": rng.integers(0, 9, n).astype(float),
            "y": rng.integers(0, 9, n).astype(float),
            "threshold": rng.random(n),
            "sure": rng.choice([1.0, 0.5, 0.2, 0.9], n),
        }
    )
    for number in range(2):
        write_batch(rows.slice(150 * number, 150), tmp_path / "in", number)
    preference = sk.Preference(minimize=["x", "y"])
    asked: dict[str, Any] = {"probability": "sure", "thresholds": [0.3, 0.8], "time": "t", "id": "key", "duration": 20}
    one = sk.UncertainWindow(preference, duration=20, thresholds=[0.3, 0.8])
    expected = sorted(tuple(change) for change in one.extend(rows, times="t", ids="key", probabilities="sure"))
    schema = "t BIGINT, key STRING, x DOUBLE, y DOUBLE, threshold DOUBLE, sure DOUBLE"
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    changes = uncertain(stream, preference, checkpoint=str(tmp_path / "checkpoint"), **asked)
    query = (
        changes.writeStream.format("memory")
        .queryName("uncertain")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = spark.sql("SELECT time, change, id, threshold FROM uncertain WHERE kind = 'change'").collect()
    assert sorted(tuple(row) for row in found) == expected and len(expected) > 100
    assert changes.columns == [
        "kind",
        "time",
        "change",
        "id",
        "threshold",
        "t",
        "key",
        "x",
        "y",
        "row_threshold",
        "sure",
    ]
    whole = uncertain(spark.createDataFrame(rows.to_pandas()).repartition(4), preference, until=10**6, **asked)
    expected += sorted(tuple(change) for change in one.advance(10**6))
    found = whole.select("time", "change", "id", "threshold").collect()
    assert sorted(tuple(row) for row in found) == sorted(expected)


def test_state_of_uncertain_rows_is_refused_for_certain_ones() -> None:
    simulation = Simulation(query_of(1, window=Window(duration=5), thresholds=(0.5,)))
    simulation.batch([with_chances([(1, 1, "x", (1.0,))], 1)])
    simulation.restart(query_of(1, window=Window(duration=5)))
    with pytest.raises(sk.SkytideError, match="the checkpoint was made with"):
        simulation.batch([table([(2, 2, "x", (1.0,))], 1)])


def test_what_is_no_probability_makes_a_row_bad() -> None:
    simulation = Simulation(query_of(1, window=Window(duration=5), thresholds=(0.5,)))
    rows: list[Row] = [(1, one, "x", (1.0,)) for one in range(5)]
    odd = table(rows, 1).append_column("p", pa.array([0.9, -0.1, 1.1, float("nan"), None]))
    simulation.batch([odd, with_chances([(4, 7, "x", (1.0,))], 1)])
    simulation.idle()
    assert sorted((out[0], out[3]) for out in simulation.out) == [
        *(("bad", one) for one in (1, 2, 3, 4)),
        ("change", 0),
    ]


def test_thresholds_that_are_none_are_refused(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1 AS t, 'n' AS name, 1.0D AS x, 0.5D AS p")
    with pytest.raises(sk.SkytideError, match="are not thresholds"):
        uncertain(rows, sk.Preference(minimize=["x"]), probability="p", thresholds=[0], time="t", id="name", duration=5)
