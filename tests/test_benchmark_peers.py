"""The benchmark of all peers runs, small, and finds all answers equal, those of equal rows too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.peers import peers
from benchmarks.peers._runners import NAMES, ON_SPARK, Absent, Peer, everybody
from benchmarks.peers.batch import Shape

from skytide.model import Floats

IN_MEMORY = [name for name in NAMES if name not in ON_SPARK]
GRID = np.floor(np.random.default_rng(5).random((300, 3)) * 3)


@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_peer_gives_the_same_answer_where_rows_are_equal(name: str, tmp_path: Path) -> None:
    with everybody(tmp_path) as named:
        try:
            peer = named(name)
        except Absent as reason:
            pytest.skip(str(reason))
    for rows in (GRID, np.concatenate([GRID, GRID]), np.zeros((40, 3))):
        assert peer.theirs(rows)[1] == peer.ours(rows)[1]


def test_the_peers_in_memory_run_and_their_answers_are_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "peers.json"
    arguments = ["--size", "smoke", "--repeats", "1", "--only", *IN_MEMORY, "--json", str(report)]
    assert peers.main(arguments) == 0
    found = json.loads(report.read_text())
    assert len(found["lines"]) == 2 * (len(IN_MEMORY) - len(found["left out"]))
    assert all(line["equal"] and line["compared"] for line in found["lines"])
    assert "All answers are equal" in capsys.readouterr().out


def _peer(cost: float, answer: int) -> Peer:
    def theirs(rows: Floats) -> tuple[float, object]:
        return cost * len(rows) ** 2, [answer]

    return Peer("one", "skyline", theirs, lambda rows: (1e-6 * len(rows), [7]))


def test_a_peer_that_is_too_slow_is_estimated_from_the_part_that_it_was_compared_on() -> None:
    shape = Shape(64_000, 2, "independent")
    line = peers.compare(_peer(1e-6, 7), shape, peers.rows_of(shape, 1), budget=10.0, repeats=2)
    assert line.estimated and line.equal and line.compared < shape.rows
    assert line.theirs == pytest.approx(1e-6 * shape.rows**2)
    assert "~" in peers.text(line)
    quick = peers.compare(_peer(1e-12, 7), shape, peers.rows_of(shape, 1), budget=10.0, repeats=2)
    assert not quick.estimated and quick.compared == shape.rows


def test_an_answer_that_differs_is_told() -> None:
    shape = Shape(2_000, 2, "independent")
    line = peers.compare(_peer(1e-12, 8), shape, peers.rows_of(shape, 1), budget=10.0, repeats=1)
    assert not line.equal and "NO" in peers.text(line)
    assert peers.summary([line])[-1] == "- ANSWERS DIFFER: one on 2000x2-independent"


def test_a_peer_that_is_not_there_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.peers.window_parts.FLAT_SCAN", Path("not-there.cpp"))
    notes: list[str] = []
    shape = Shape(1_000, 2, "independent")
    assert list(peers.measure([shape], ["flat-scan"], 1.0, 1, 1, notes.append)) == []
    assert notes == ["flat-scan is left out: its source or g++ is missing"]


def test_a_peer_that_fails_is_told_and_does_not_take_the_others_along(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = peers.compare

    def failing(peer: Peer, *rest: Any) -> peers.Line:
        if peer.name == "pymoo":
            raise MemoryError("too many rows")
        return right(peer, *rest)

    monkeypatch.setattr(peers, "compare", failing)
    report = tmp_path / "peers.json"
    arguments = ["--size", "smoke", "--repeats", "1", "--only", "pymoo", "moocore", "--json", str(report)]
    assert peers.main(arguments) == 1
    found = json.loads(report.read_text())
    assert {line["peer"] for line in found["lines"]} == {"moocore"}
    (note,) = found["left out"]
    assert note.startswith("pymoo failed on ") and note.endswith("MemoryError: too many rows")
