"""What the benchmark of scale makes of its lines: slopes, costs, and a cluster on paper."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.peers import scale
from benchmarks.scale.job import written
from benchmarks.scale.masters import MASTERS, FailedError
from benchmarks.scale.paper import STAGES, Costs, Plan, beside, fewest, next_bottleneck, pages

COSTS = Costs(
    source=1e-7,
    prune=2e-7,
    merge=5e-6,
    batch=0.5,
    task=0.002,
    change=2e-6,
    left=(20.0, 0.3),
    changed=0.1,
    row_bytes=40.0,
    seen=(5_000.0, 125_000.0),
)


def lines(size: str = "laptop") -> list[dict[str, Any]]:
    """Lines as a machine would give them whose costs are those above, exactly."""
    found = []
    for master in MASTERS:
        for case in scale.cases_of(size, master):
            one = {"master": master, **asdict(case), "tasks": case.partitions, "equal": True, "skyline": 50}
            if not case.batch:
                source, both = case.rows * COSTS.source / 2, case.rows * (COSTS.source + COSTS.prune) / 2
                one |= {"source s": 0.2 + source, "prune s": 0.3 + both, "skyline s": 0.5 + both, "reach": 80}
            else:
                idle = COSTS.batch + COSTS.task * case.tasks / 2
                sent = COSTS.sent(case.batch, case.tasks) if case.pruned else case.batch
                work = case.batch * (COSTS.source + COSTS.prune * case.pruned) / 2 + sent * COSTS.merge
                seconds = idle if case.part == "idle" else idle + work
                one |= {"batch s": seconds, "rows/s": case.batch / seconds, "reach": sent, "retained": 9}
                one |= {"per million": sent * 1e6 / case.batch, "changes": sent * COSTS.changed}
            found.append(one)
    return found


def test_costs_that_made_the_lines_are_found_in_them() -> None:
    found = scale.costs_of(lines())
    for name in ("source", "prune", "merge", "batch", "task", "changed"):
        assert getattr(found, name) == pytest.approx(getattr(COSTS, name), rel=0.01), name
    assert found.left == pytest.approx(COSTS.left, rel=0.01) and found.seen == COSTS.seen
    assert 0 < found.change < 1e-3 and 0 < found.compare < 1e-4 and 40 <= found.row_bytes < 50


def test_the_report_has_every_master_every_slope_and_the_paper() -> None:
    said = "\n".join(scale.report(lines()))
    assert all(f"| {master} |" in said for master in MASTERS)
    assert all(f"- {part}, independent" in said for part in scale.PARTS)
    assert "executors for 1,000,000 rows/s" in said and "next: with 100 executors" in said
    assert "with the power +0" in said


@pytest.mark.parametrize("failing", [MASTERS[0], MASTERS[-1]])
def test_a_master_that_fails_is_told_and_the_others_are_measured(
    failing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(master: str, cases: Any, seed: int) -> Any:
        own = [one for one in lines("smoke") if one["master"] == master]
        for one in own[: 1 if master == failing else None]:
            yield {name: value for name, value in one.items() if name != "master"}
        if master == failing:
            raise FailedError(f"the job on {master} ended with 1")

    monkeypatch.setattr(scale, "measured", measured)
    assert scale.main(["--size", "smoke"]) == 1
    said = capsys.readouterr().out
    assert said.endswith(f"all answers are equal\nFAILED: the job on {failing} ended with 1\n")
    assert all(f"| {master} |" in said for master in MASTERS)
    assert ("### On paper" in said) is (failing != MASTERS[0])


def test_the_model_beside_the_lines_that_it_is_made_of_is_right_and_says_where_it_does_not_apply() -> None:
    streams = [one for one in lines() if one["batch"]]
    _, _, *shown = beside(replace(COSTS, change=0.0), streams, 3, 2)
    assert len(shown) == len(streams)
    for one, text in zip(streams, shown, strict=True):
        *_, ratio, remark = (cell.strip() for cell in text.strip("|").split("|"))
        assert ratio == "1.00" or one["groups"] > 1
        short, other = one["length"] < one["batch"], one["dimensions"] != 3
        assert (remark == "applies") == (not short and not other and one["groups"] <= 1)
        assert ("shorter" in remark) == short


def test_what_is_left_beyond_the_rows_that_were_measured_is_marked() -> None:
    near = [line for line in pages(replace(COSTS, seen=(0.0, math.inf))) if line.startswith("| ")]
    far = [line for line in pages(replace(COSTS, seen=(1.0, 2.0))) if line.startswith("| ")]
    assert not any("*" in line for line in near) and all("*" in line for line in far[1:])


def test_no_more_than_the_interval_is_promised() -> None:
    for interval in (1.0, 10.0):
        for keys in (1, 8):
            plan = Plan(100, interval, keys)
            most = plan.fastest(COSTS)
            assert sum(plan.stages(COSTS, most).values()) == pytest.approx(interval)
            assert plan.keeps_up(COSTS, most * 0.99) and not plan.keeps_up(COSTS, most * 1.01)


def test_the_fewest_executors_keep_up_and_one_less_does_not() -> None:
    found = fewest(COSTS, 1e7, 10.0)
    assert found is not None and found > 1
    assert Plan(found, 10.0).keeps_up(COSTS, 1e7) and not Plan(found - 1, 10.0).keeps_up(COSTS, 1e7)
    assert fewest(replace(COSTS, batch=11.0), 1e6, 10.0) is None


def test_what_is_dear_is_what_limits() -> None:
    for name, dear in (
        ("merge", replace(COSTS, merge=1e-3)),
        ("driver", replace(COSTS, batch=6.0)),
        ("prune", replace(COSTS, prune=1e-4)),
        ("source", replace(COSTS, source=1e-4)),
    ):
        plan = Plan(100, 10.0)
        assert plan.bottleneck(dear, plan.fastest(dear)) == name
        assert f"{name} takes the most" in next_bottleneck(dear)


def test_a_micro_batch_that_is_too_long_without_rows_is_told() -> None:
    slow = replace(COSTS, batch=1.5)
    assert Plan(10, 1.0).fastest(slow) == 0.0
    table = pages(slow)
    assert any("none does" in line for line in table) and all(stage in table[2] for stage in STAGES)
    assert "without rows" in next_bottleneck(slow, interval=1.0)


def test_more_never_reaches_the_merge_than_there_is() -> None:
    assert replace(COSTS, left=(5.0, 1.0)).sent(1000.0, 10) == 1000.0
    assert math.isclose(COSTS.sent(1000.0, 10), 10 * 20.0 * 100**0.3)


def test_a_change_that_is_written_twice_is_there_twice(tmp_path: Path) -> None:
    changes = pa.table({"time": [1, 2], "change": ["+", "-"], "id": [5, 5]})
    pq.write_table(changes, tmp_path / "0.parquet")
    pq.write_table(changes.slice(1), tmp_path / "1.parquet")
    assert written(tmp_path) == Counter({(1, "+", 5): 1, (2, "-", 5): 2})
