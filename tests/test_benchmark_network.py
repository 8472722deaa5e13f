"""The benchmark of the network runs, small, and its answers are checked."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.peers import network


def test_the_load_runs_and_all_answers_are_right(tmp_path: Path) -> None:
    report, table = tmp_path / "network.json", tmp_path / "network.md"
    arguments = [
        "--quick",
        "--parts",
        "load",
        "--protocols",
        "fragmented",
        "--json",
        str(report),
        "--markdown",
        str(table),
    ]
    assert network.main(arguments) == 0
    plain, other = json.loads(report.read_text())["parts"]["load"]
    assert plain["equal"] and other["equal"] and plain["changes seen"] == other["changes seen"] == "6/6"
    assert "all answers are equal" in table.read_text()
