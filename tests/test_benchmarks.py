"""The benchmarks run, small, and find all answers equal; what they print of time is nobody's business here."""

import json
from pathlib import Path

import pytest
from benchmarks.papers.tao06 import sizes
from benchmarks.peers import batch, snapshots, uncertain, window


def test_the_batch_benchmark_runs_and_its_answers_are_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "batch.json"
    assert batch.main(["--cells", "100000x2-anti-correlated", "--repeats", "1", "--json", str(report)]) == 0
    assert json.loads(report.read_text()) and "all answers are equal" in capsys.readouterr().out


@pytest.mark.parametrize("part", ["flat", "recompute", "operations", "choices", "spikes"])
def test_the_window_benchmark_runs_and_its_answers_are_equal(part: str, tmp_path: Path) -> None:
    report = tmp_path / "window.json"
    arguments = ["--quick", "--parts", part, "--dimensions", "2", "--kinds", "independent", "--json", str(report)]
    assert window.main(arguments) == 0
    assert all(line["equal"] for line in json.loads(report.read_text())["parts"][part])


@pytest.mark.parametrize("part", uncertain.PARTS)
def test_the_benchmark_of_uncertain_rows_runs_and_its_answers_are_equal(part: str, tmp_path: Path) -> None:
    report = tmp_path / "uncertain.json"
    arguments = ["--quick", "--parts", part, "--window", "1500", "--arrivals", "4000", "--json", str(report)]
    assert uncertain.main(arguments) == 0
    lines = json.loads(report.read_text())["parts"][part]
    assert lines and all(line["equal"] for line in lines)


@pytest.mark.parametrize("part", ["synthetic", "cfp", "jumps"])
def test_the_benchmark_of_snapshots_runs_draws_and_finds_all_answers_equal(part: str, tmp_path: Path) -> None:
    report = tmp_path / "snapshots.json"
    assert snapshots.main(["--quick", "--parts", part, "--plots", str(tmp_path), "--json", str(report)]) == 0
    lines = json.loads(report.read_text())["parts"][part]
    assert lines and all(line["equal"] for line in lines)
    assert part == "jumps" or (tmp_path / f"{part}.png").read_bytes().startswith(b"\x89PNG")


def test_the_benchmark_of_snapshots_leaves_out_real_data_that_is_not_there(tmp_path: Path) -> None:
    report = tmp_path / "snapshots.json"
    arguments = ["--quick", "--parts", "nba", "stocks", "--data", str(tmp_path), "--json", str(report)]
    assert snapshots.main(arguments) == 0
    assert json.loads(report.read_text())["parts"] == {"nba": [], "stocks": []}


def test_average_sizes_are_near_the_expected_ones() -> None:
    """Within four standard errors, roughly: the sizes of successive windows are nearly independent."""
    assert abs(sizes.average_size("independent", 2, 400, 60, seed=3) - sizes.expected_size(400, 2)) < 0.8
