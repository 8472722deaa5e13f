"""Lines about micro-batches, out of reports as Spark makes them."""

from __future__ import annotations

from typing import Any

from skytide.spark.pipeline.progress import Tally


def report(number: int, rows: int, **observed: Any) -> dict[str, Any]:
    return {
        "batchId": number,
        "timestamp": "2026-01-01T00:00:10.000Z",
        "numInputRows": rows,
        "durationMs": {"addBatch": 300, "triggerExecution": 500},
        "observedMetrics": observed,
    }


def test_a_micro_batch_is_one_line_with_all_that_is_known_of_it() -> None:
    line = Tally().add(
        report(
            3,
            1000,
            skytide_prune={"input": 1000, "sent": 40},
            skytide_merge={"retained": 55, "changes": 7, "late": 2, "bad": 0},
            skytide_input={"latest": "2026-01-01 00:00:08"},
        )
    )
    assert line == "batch 3: 1000 rows in, 960 pruned, 55 retained, 7 changes, 2 late, 2.5 s behind, 0.50 s"


def test_what_spark_does_not_tell_is_left_out() -> None:
    assert Tally().add(report(0, 5)) == "batch 0: 5 rows in, 0.50 s"
    nothing = {"skytide_merge": {"retained": None, "changes": None}, "skytide_input": {"latest": None}}
    assert Tally().add(report(0, 0, **nothing)) == "batch 0: 0 rows in, 0 retained, 0 changes, 0.50 s"


def test_rows_that_spark_does_not_count_are_not_said_to_be_none() -> None:
    tally = Tally(counted=False)
    assert tally.add(report(0, 0)) == "batch 0: 0.50 s"
    assert tally.summary(1.5, ["changes: out"]) == "1 batch in 1.5 s; changes: out"


def test_a_report_counts_once_and_waiting_counts_never() -> None:
    tally = Tally()
    assert tally.add(report(0, 5, skytide_merge={"changes": 2})) is not None
    assert tally.add(report(0, 5, skytide_merge={"changes": 2})) is None
    idle = report(1, 0) | {"durationMs": {"latestOffset": 1, "triggerExecution": 1}}
    assert tally.add(idle) is None
    assert tally.add(report(1, 7, skytide_merge={"changes": 3, "late": 1})) is not None
    assert (tally.batches, tally.rows, tally.counts) == (2, 12, {"changes": 5, "late": 1})


def test_the_summary_adds_up_and_says_where_the_results_lie() -> None:
    tally = Tally()
    assert tally.summary(0.0, []) == "0 batches, 0 rows in 0.0 s"
    tally.add(report(0, 3000, skytide_merge={"changes": 2, "late": 0, "bad": 1, "retained": 9}))
    assert tally.summary(1.5, ["changes: out", "dead letters: dead"]) == (
        "1 batch, 3000 rows in 1.5 s (2,000 rows/s), 2 changes, 0 late, 1 bad; changes: out, dead letters: dead"
    )
