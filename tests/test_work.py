"""The guard of work: every algorithm does exactly what is written down, on any machine, and answers right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.peers import work
from benchmarks.work import data, record
from benchmarks.work.runs import Run, all_runs

ROOT = Path(__file__).parents[1]
LISTED = "import json; from benchmarks.work.record import measured; print(json.dumps(measured()))"


def test_every_algorithm_does_what_is_written_down() -> None:
    found = record.differences(record.recorded(), record.measured())
    assert not found, record.explained(found)


def test_what_is_written_down_does_not_hang_on_hashes_or_threads() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "NUMBA_NUM_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, "-c", LISTED], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    found = record.differences(record.recorded(), json.loads(told.stdout))
    assert not found, record.explained(found)


@pytest.mark.parametrize("family", sorted({name.partition(":")[0] for name in all_runs()}))
def test_the_answers_that_are_written_down_are_those_of_the_definition(family: str) -> None:
    mine = {name: one for name, one in record.recorded().items() if name.partition(":")[0] == family}
    assert mine and record.wrong_answers(mine) == []


def test_all_algorithms_have_a_run() -> None:
    names = " ".join(all_runs())
    for word in (
        "skyline",
        "lazy list",
        "lazy rtree",
        "eager list",
        "eager rtree",
        "tree, msky",
        "scan, qsky",
        "objects",
    ):
        assert word in names
    for word in ("mbr", "frequent", "filter", "sampling", "hybrid", "pivot", "direct", "spark", "network"):
        assert word in names


# -- the record --------------------------------------------------------------------------------------------------------


def made(tests: int, answer: str = "right") -> dict[str, Run]:
    return {"one: run": Run(lambda: ({"tests": tests, "kept": 3}, [(answer,)]), lambda: [("right",)])}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record of its own."""
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(record.recorded, "__defaults__", (tmp_path,))
    monkeypatch.setattr(record.accept, "__defaults__", (tmp_path, "2026-01-31"))
    return tmp_path


def run_work(monkeypatch: pytest.MonkeyPatch, runs: dict[str, Run], *arguments: str) -> int:
    monkeypatch.setattr(record, "all_runs", lambda: runs)
    return work.main(list(arguments))


def test_more_work_is_refused_until_a_reason_is_given(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_work(monkeypatch, made(100), "--accept", "the first") == 0
    assert run_work(monkeypatch, made(100)) == 0
    capsys.readouterr()
    assert run_work(monkeypatch, made(125)) == 1
    said = capsys.readouterr().out
    assert "one: run: tests grew from 100 to 125 (+25.0 %)" in said and 'skytide bench work --accept "why"' in said
    assert "kept" not in said
    assert run_work(monkeypatch, made(125), "--accept", "a better\nanswer") == 0
    assert run_work(monkeypatch, made(125)) == 0
    text = (folder / "CHANGES.md").read_text()
    assert "## 2026-01-31: the first\n\n- one: run is new\n" in text
    assert "## 2026-01-31: a better answer\n\n- one: run: tests grew from 100 to 125 (+25.0 %)\n" in text


def test_less_work_asks_to_be_written_down_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_work(monkeypatch, made(100), "--accept", "the first")
    assert run_work(monkeypatch, made(80)) == 1
    assert "one: run: tests fell from 100 to 80 (-20.0 %)" in capsys.readouterr().out


def test_a_wrong_answer_is_never_written_down(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_work(monkeypatch, made(100, "wrong"), "--accept", "a try") == 1
    assert "not those of the definition: one: run" in capsys.readouterr().out
    assert not (folder / "work.json").exists()
    run_work(monkeypatch, made(100), "--accept", "the first")
    assert run_work(monkeypatch, made(100, "wrong")) == 1
    assert "one: run: answer is another one" in capsys.readouterr().out


def test_a_reason_is_needed_and_runs_that_come_and_go_are_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run_work(monkeypatch, made(1), "--accept", " ")
    run_work(monkeypatch, made(1), "--accept", "the first")
    other: dict[str, Any] = {"another": replace(made(1)["one: run"])}
    assert run_work(monkeypatch, other, "--show", "other") == 1
    said = capsys.readouterr().out
    assert (
        "another\n  kept: 3\n  tests: 1" in said
        and "one: run: tests is gone" in said
        and "another: tests is new: 1" in said
    )


def test_the_inputs_are_the_same_on_every_machine() -> None:
    assert (data.uniform(7, 4) * 2**20).astype(int).tolist() == [871830, 773947, 882300, 292316]
    assert record.digest([tuple(row) for row in data.opposed(3, 50, 3).tolist()]) == "1b3c89774c122cea"
