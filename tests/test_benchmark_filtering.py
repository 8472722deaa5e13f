"""The benchmark of the filtering protocol runs, small, draws, and its streams are what they are said to be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers.zhang09c import figures, series
from benchmarks.papers.zhang09c.runs import Query, played
from benchmarks.peers import filtering

from skytide.reference.batch import skyline

PICTURES = {"dimensions": "messages", "epsilon": "quality"}


@pytest.mark.parametrize("part", ["dimensions", "cardinality", "epsilon", "boundaries", "quiet"])
def test_a_part_runs_draws_and_finds_all_answers_right(part: str, tmp_path: Path) -> None:
    report, table = tmp_path / "filtering.json", tmp_path / "filtering.md"
    arguments = ["--quick", "--parts", part, "--plots", str(tmp_path), "--json", str(report), "--markdown", str(table)]
    assert filtering.main(arguments) == 0
    lines = json.loads(report.read_text())["parts"][part]
    assert lines and all(line["equal"] for line in lines)
    assert "all answers are equal" in table.read_text()
    if part in PICTURES:
        assert (tmp_path / f"filtering-{PICTURES[part]}.png").read_bytes().startswith(b"\x89PNG")


def test_connections_are_left_out_where_there_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert filtering.main(["--quick", "--parts", "tcp", "--data", str(tmp_path)]) == 0
    assert "left out" in capsys.readouterr().out


def test_connections_are_counted_as_the_paper_does() -> None:
    rng, many, second = np.random.default_rng(1), 4, series.MICROSECONDS
    starts = np.sort(rng.integers(0, 4_000 * second, 60))
    starts[5] = 700 * second  # on the grid
    hosts, kinds = rng.integers(0, many, 60), rng.integers(0, 4, 60)
    found = series.counted(starts, hosts, kinds, many)
    first = -(-int(starts.min()) // (100 * second)) * 100
    state = np.zeros((many, 4))
    for at, (step, truth) in enumerate(zip(found.steps or [], found.truth, strict=True)):
        state[step.clients] = step.points
        now = (first + 100 * at) * second
        living = (starts <= now) & (now < starts + 1_000 * second)
        expected = [[int((living & (hosts == host) & (kinds == kind)).sum()) for kind in range(4)] for host in range(4)]
        assert (-state).tolist() == expected
        assert truth.tolist() == skyline([tuple(row) for row in state.tolist()])
    assert found.timestamps == len(found.truth) > 30
    run = played(found, "filter", Query(over=5))
    assert run.equal and run.recall == run.precision == 1.0


def test_reports_of_several_runs_are_drawn_together(tmp_path: Path) -> None:
    line = {"varied": "epsilon", "value": 0.1, "method": "sampling", "up": 0.5, "down": 0.0, "total": 0.5}
    line |= {"CPU, ms": 1.0, "recall": 1.0, "precision": 0.9}
    exact = line | {"varied": "-", "value": "-", "method": "filter"}
    for name, lines in (("a", [exact, line]), ("b", [])):
        (tmp_path / f"{name}.json").write_text(json.dumps({"parts": {"tcp" if lines else "theta": lines}}))
    assert figures.main([str(tmp_path / "a.json"), str(tmp_path / "b.json"), str(tmp_path)]) == 0
    assert {file.name for file in tmp_path.glob("*.png")} == {
        "filtering-connections.png",
        "filtering-connections-quality.png",
    }
