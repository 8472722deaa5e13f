"""The benchmark of objects in fragments runs, small, draws, and its streams and its ledger are what they should be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers.papa14 import figures, series
from benchmarks.papers.papa14.runs import World, line, played
from benchmarks.peers import fragmented

PICTURES = {"correlation": "along", "types": "varied"}


@pytest.mark.parametrize("part", ["correlation", "types", "tuning", "quiet", "definition"])
def test_a_part_runs_draws_and_finds_all_answers_right(part: str, tmp_path: Path) -> None:
    report, table = tmp_path / "fragmented.json", tmp_path / "fragmented.md"
    arguments = ["--quick", "--parts", part, "--plots", str(tmp_path), "--json", str(report), "--markdown", str(table)]
    assert fragmented.main(arguments) == 0
    lines = json.loads(report.read_text())["parts"][part]
    assert lines and all(line["equal"] for line in lines)
    assert "all answers are equal" in table.read_text()
    if part in PICTURES:
        assert (tmp_path / f"fragmented-{PICTURES[part]}.png").read_bytes().startswith(b"\x89PNG")
        assert figures.main([str(report), str(tmp_path / "again")]) == 0


def test_real_data_are_left_out_where_there_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fragmented.main(["--quick", "--parts", "weather", "movies", "--data", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "the part weather is left out" in told and "the part movies is left out" in told


@pytest.mark.parametrize("functions", [("a", "b"), ("a", "var(b)"), ("a", "distance(b, c, d, e)")])
def test_central_sends_just_what_is_counted_for_it(functions: tuple[str, ...]) -> None:
    stream = series.synthetic("independent", 9, 4, functions, change=0.1, seed=3, updates=300)
    found = line(played(stream, "central", wire=True), stream)
    assert found["messages"] == found["bytes"] == found["late messages"] == 1.0
    assert found["central"] == found["sent"] == 300 and found["equal"]


def test_an_update_that_changes_nothing_costs_central_nothing() -> None:
    stream = series.synthetic("independent", 3, 2, ("a", "b"), change=0.1, seed=3, updates=4)
    world, (start, moved) = World(stream), stream.blocks()
    assert world.take(start) == (0, 6)
    assert world.take(start) == (0, 0)
    assert world.take(moved) == (4, 0)


def test_readings_fill_in_what_is_missing_from_the_past() -> None:
    nan = np.nan
    hours, stations = np.array([0, 0, 1, 1, 2, 2]), np.array([1, 0, 0, 1, 1, 0])
    values = np.array([[nan, 1.0], [5.0, 6.0], [nan, 7.0], [2.0, nan], [3.0, nan], [4.0, 4.0]])
    found = series.readings(hours, stations, values, np.array([0, 1]), 2)
    told = [(block.sites.tolist(), block.objects.tolist(), block.values.tolist()) for block in found.blocks()]
    assert told == [
        ([0], [0], [[5.0, 6.0]]),
        ([0, 1], [0, 1], [[5.0, 7.0], [2.0, 1.0]]),
        ([0, 1], [0, 1], [[4.0, 4.0], [3.0, 1.0]]),
    ]
    assert found.updates == 4
    for method in ("pivot", "auto"):
        run = line(played(found, method), found)
        assert run["equal"] and run["central"] == 4


def test_ratings_are_summed_and_counted_at_each_site() -> None:
    rng = np.random.default_rng(5)
    sites, movies, ratings = rng.integers(0, 3, 60), rng.integers(0, 4, 60), rng.integers(1, 11, 60) / 2
    found = series.rated(sites, movies, ratings, 3)
    start, *rest = found.blocks()
    assert len(start.sites) == 12 and not start.values.any()
    values = np.concatenate([block.values for block in rest])
    for row in range(60):
        mine = (sites[: row + 1] == sites[row]) & (movies[: row + 1] == movies[row])
        assert values[row].tolist() == [ratings[: row + 1][mine].sum(), mine.sum()]
    for method in ("pivot", "direct", "auto"):
        assert played(found, method).equal
