"""The figures of the papers: all of them run, small, on Spark; answers are checked, results are kept and told."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.papers import command, drawing, registry, report, runner
from benchmarks.papers.papa14 import series as fragments
from benchmarks.papers.registry import Claim, Figure, Found, Panel, Place, Row, Task
from benchmarks.papers.tao06 import experiments
from benchmarks.papers.zhang09c import experiments as filtering
from benchmarks.papers.zhang09c import series as filtered
from click.testing import CliRunner

from skytide.cli import app
from skytide.errors import OptionError
from skytide.spark import local_session
from tests.spark.small import SMALL_JVM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = {"seed": 1}
RESULTS = Path(__file__).parent.parent / "docs" / "evidence" / "papers"
FIGURES = registry.figures()


@pytest.fixture(scope="module", autouse=True)
def spark() -> Iterator[SparkSession]:
    """One session for all of them."""
    before = dict(os.environ)
    session = local_session("local[2]", **SMALL_JVM)
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all figures were run, without any real data."""
    folder = tmp_path_factory.mktemp("papers")
    nothing = tmp_path_factory.mktemp("data")
    arguments = ["--size", "smoke", "--jobs", "1", "--out", str(folder), "--data", str(nothing)]
    assert command.main(arguments) == 0
    return folder


def test_every_figure_and_table_of_the_papers_is_there() -> None:
    found = {(one.paper, one.kind, one.number) for one in FIGURES}
    expected = {("tao06", "figure", number) for number in range(12, 22)} | {
        ("tao06", "table", 2),
        ("tao06", "table", 3),
    }
    expected |= {("zhang09p", "figure", number) for number in range(4, 13)}
    expected |= {("udom14", "figure", number) for number in (4, 5, 6)}
    expected |= {("zhang09c", "figure", number) for number in range(9, 20)}
    expected |= {("papa14", "figure", number) for number in (5, 6, 7)}
    assert expected == found and len(found) == len(FIGURES)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda one: one.key)
def test_a_figure_is_drawn_told_and_right_or_says_what_it_needs(smoke: Path, figure: Figure) -> None:
    page = (smoke / "report.html").read_text()
    section = page[page.index(f"id='{figure.key}'") :].partition("</section>")[0]
    assert figure.title.partition("(")[0] in section
    for needs in (figure.needs, *(names for _, names in figure.also)):
        assert all(name in section for name in needs)
    assert ("Left out: " in section) == bool(figure.needs or any(names for _, names in figure.also))
    if not figure.tasks("smoke", 1, None):
        return
    assert "WRONG" not in section and "error" not in section.lower().replace("error rate", "")
    assert f"### {report.name(figure)}\n" in (smoke / "index.md").read_text()
    picture = (smoke / f"{figure.key}.svg").read_text()
    assert picture.startswith("<svg") and "</svg>" in picture
    assert picture.strip() in page
    for claim in figure.claims:
        assert "too little was measured" not in section, claim.says


def test_all_rows_are_right_and_say_where_they_come_from(smoke: Path) -> None:
    table = pq.read_table(smoke / "results.parquet")
    assert table["equal"].to_pylist() == [True] * len(table)
    shown = {key for keys in table["figures"].to_pylist() for key in keys}
    assert shown == {one.key for one in FIGURES if one.tasks("smoke", 1, None)}
    for name in ("paper", "experiment", "size", "seed", "parameters", "seconds", "machine"):
        assert table[name].null_count == 0, name
    assert "numba" in table["machine"][0].as_py()
    assert all(isinstance(json.loads(text), dict) for text in set(table["parameters"].to_pylist()))


def test_the_page_asks_nobody_and_runs_nothing(smoke: Path) -> None:
    page = (smoke / "report.html").read_text()
    assert "<script" not in page and "@import" not in page
    addresses = re.findall(r"(?:https?:)?//[a-z][^\s\"'<>)]*", page)
    assert {one for one in addresses if not one.startswith("http://www.w3.org/")} == set()


def test_what_has_ended_is_not_run_again(
    smoke: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("nothing is left to run")

    monkeypatch.setattr(command, "run_all", never)
    monkeypatch.setattr(report, "write", lambda *_: [])
    assert command.main(["tao06", "--figure", "12", "--size", "smoke", "--out", str(smoke)]) == 0
    assert "all answers are equal" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="nothing is left"):
        command.main(["tao06", "--figure", "12", "--size", "smoke", "--out", str(smoke), "--again"])


def test_the_results_among_the_documents_hold_every_figure_and_are_right() -> None:
    table = pq.read_table(RESULTS / "results.parquet", columns=["figures", "equal", "size", "error"])
    assert {key for keys in table["figures"].to_pylist() for key in keys} == {one.key for one in FIGURES}
    assert set(table["equal"].to_pylist()) == {True} and set(table["size"].to_pylist()) == {"laptop"}
    assert table["error"].null_count == len(table)
    document = (RESULTS / "index.md").read_text(encoding="utf-8")
    for one in FIGURES:
        assert f"### {report.name(one)}\n" in document and (RESULTS / f"{one.key}.svg").exists()


def claimed(ours: Callable[[registry.Rows], Found], why: str = "") -> report.Result:
    """A figure with one statement, all runs there."""
    figure = dataclasses.replace(figure_of(2), claims=(Claim("y grows", ours, why),))
    outcome: runner.Outcome = {
        "experiment": "a.b.c:d",
        "parameters": {},
        "rows": [{"x": 2, "y": 1.0, "method": "a", "equal": True}],
        "error": None,
        "seconds": 0.0,
    }
    return report.Result(figure, [outcome], 1)


def test_what_does_not_hold_is_told_with_its_reason_or_that_there_is_none(tmp_path: Path) -> None:
    for why, told in (("y is flat", "does not hold: y is flat"), ("", f"does not hold: {report.UNKNOWN}")):
        result = claimed(lambda rows: Found("1 row", False), why)
        report.write(tmp_path, [result], "laptop", 1)
        assert told in (tmp_path / "report.html").read_text() and told in (tmp_path / "index.md").read_text()
        assert any(told in line for line in report.summary([result])) == (not why)


def test_a_rule_that_fails_is_an_error_unless_nothing_was_measured_or_runs_are_missing() -> None:
    def absent(rows: registry.Rows) -> Found:
        return Found(str(rows[0]["z"]), True)

    result = claimed(absent)
    with pytest.raises(KeyError):
        list(result.claims())
    result.wanted = 2
    assert [found for _, found in result.claims()] == [report.TOO_LITTLE]
    result = claimed(lambda rows: Found(str(registry.mean(rows, "z")), True))
    assert [found for _, found in result.claims()] == [report.TOO_LITTLE]


def test_every_statement_that_the_kept_results_do_not_bear_out_has_a_reason() -> None:
    assert report.UNKNOWN not in (RESULTS / "index.md").read_text(encoding="utf-8")


def test_full_has_the_papers_own_sizes() -> None:
    full = {one.key: [task.parameters for task in one.tasks("full", 1, None)] for one in FIGURES}
    assert {one["windows"] for one in full["tao06-figure-12"]} == {500}
    assert {one["periods"] for one in full["tao06-figure-21"]} == {600}
    for number in range(4, 12):
        assert {one["n"] for one in full[f"zhang09p-figure-{number}"]} == {2_000_000}
    assert {one["run"] for one in full["udom14-figure-5"]} == set(range(3))
    assert {one["T"] for one in full["udom14-figure-5"] if one["varied"] == "T"} == {1_000, 5_000, 10_000, 50_000}
    assert {one["records"] for one in full["zhang09c-figure-12"]} == {2_500, 5_000, 10_000, 20_000}
    assert {one["run"] for one in full["zhang09c-figure-13"]} == set(range(3))
    assert {one["run"] for one in full["papa14-figure-5"]} == set(range(40))
    assert {one["sites"] for one in full["papa14-figure-7"]} == {1_000}


def test_figures_that_are_compared_with_others_run_no_task_twice() -> None:
    for figure in FIGURES:
        keys = [task.key for task in figure.tasks("laptop", 1, RESULTS)]
        assert len(keys) == len(set(keys)), figure.key


def test_sites_with_a_part_of_the_objects_keep_to_it() -> None:
    series = fragments.synthetic("independent", 30, 6, ("a", "b"), change=0.1, seed=1, part=0.5)
    first, *later = series.blocks()
    cells = set(zip(first.sites.tolist(), first.objects.tolist(), strict=True))
    assert len(cells) < 0.75 * 6 * 30 and {one for _, one in cells} == set(range(30))
    for block in later:
        assert set(zip(block.sites.tolist(), block.objects.tolist(), strict=True)) <= cells


def test_records_at_the_edge_of_a_threshold_are_counted_over_full_windows() -> None:
    truth = [np.array([0]), np.array([0, 1]), np.array([0]), np.array([1])]
    stream = filtered.Series(3, 2, 4, "", None, 0, None, truth)
    # Windows of two: frequencies (1, 0.5, 0), (1, 0.5, 0) and (0.5, 0.5, 0).
    found = filtering.at_the_edge(stream, 2, 0.5)
    assert found == {"frequent": 2.0, "at the edge": 1.33}


def test_a_table_is_picked_by_its_number() -> None:
    chosen = command.options(["tao06", "--table", "3", "--figure", "12"])
    assert [one.key for one in command.picked(chosen, FIGURES)] == ["tao06-table-3", "tao06-figure-12"]
    with pytest.raises(OptionError, match="12 is not a table of tao06; there are: 2, 3"):
        command.picked(command.options(["tao06", "--table", "12"]), FIGURES)


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def odd(parameters: Row, place: Place) -> list[Row]:
    """An experiment that fails for odd numbers, and is wrong at 4."""
    if parameters["x"] % 2:
        raise OptionError("is odd", value=parameters["x"])
    return [{"method": "halves", "y": parameters["x"] / 2, "equal": parameters["x"] != 4}]


def figure_of(*xs: int, experiment: str = "benchmarks.papers.odd:odd") -> Figure:
    claim = Claim("y grows", lambda rows: Found(f"{len(rows)} rows", len(rows) > 1))
    panels = (Panel("", "x", "y"),)
    return Figure("tao06", "figure", 99, "Numbers", experiment, lambda _: [{"x": x} for x in xs], panels, ("y",),
                  (claim,), by=("x",))  # fmt: skip


def outcomes_of(figure: Figure, monkeypatch: pytest.MonkeyPatch) -> list[runner.Outcome]:
    with monkeypatch.context() as patched:
        patched.setattr(importlib, "import_module", lambda name: sys.modules[__name__])
        return [runner.measured(task, Place(None)) for task in figure.tasks("smoke", 1, None)]


def test_a_task_that_fails_is_told_and_loses_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    figure = figure_of(1, 2, 6)
    result = report.Result(figure, outcomes_of(figure, monkeypatch), 3)
    assert [row["y"] for row in result.rows] == [1.0, 3.0]
    assert [one["error"] for one in result.failed] == ["OptionError: 1 is odd"]
    report.write(tmp_path, [result], "laptop", 1)
    page = (tmp_path / "report.html").read_text()
    assert "1 is odd" in page and "<td class='yes'>holds</td>" in page and "1 runs ended with an error" in page
    assert any("1 is odd" in line for line in report.summary([result]))
    assert pq.read_table(tmp_path / "results.parquet")["error"].to_pylist().count(None) == 2


def test_answers_that_are_wrong_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    figure = figure_of(2, 4)
    result = report.Result(figure, outcomes_of(figure, monkeypatch), 2)
    assert result.wrong == 1
    report.write(tmp_path, [result], "laptop", 1)
    assert "WRONG" in (tmp_path / "report.html").read_text() and "WRONG" in (tmp_path / "index.md").read_text()
    assert report.summary([result])[-1] == "answers differ in tao06 figure 99"


def test_tasks_that_fail_on_spark_are_told_beside_those_that_do_not(spark: SparkSession) -> None:
    lost = Task("benchmarks.papers.tao06.experiments:nowhere", {"x": 1})
    fine = Task(
        "benchmarks.papers.tao06.experiments:table", {"kind": "independent", "d": 2, "W": 4, "windows": 1} | SEED
    )
    told: list[tuple[Task, runner.Outcome]] = []
    place = Place(None)
    runner.run_all(spark, [lost, fine], place, jobs=1, together=2, ended=lambda *one: told.append(one))
    runner.run_all(spark, [fine], place, jobs=1, together=1, ended=lambda *one: told.append(one))
    assert [task for task, _ in told] == [lost, fine, fine]
    assert "nowhere" in told[0][1]["error"] and "AttributeError" in told[0][1]["trace"]
    assert told[1][1]["rows"] == told[2][1]["rows"] and told[1][1]["rows"][0]["equal"]


def test_a_job_that_is_lost_is_told_by_its_last_cause() -> None:
    problem = RuntimeError("An error occurred\nCaused by: org.apache.Gone: no worker\n\tat somewhere")
    assert runner._lost(Task("a.b.c:d", {}), problem)["error"] == "Caused by: org.apache.Gone: no worker"


def test_a_failed_task_is_not_kept_as_ended(tmp_path: Path) -> None:
    kept, task = runner.Kept(tmp_path), Task("benchmarks.papers.tao06.experiments:table", {"x": 1})
    assert kept.get(task) is None
    kept.put(task, {"error": "no luck", "rows": []})
    assert kept.get(task) is None
    kept.put(task, {"error": None, "rows": [{"equal": True}]})
    assert kept.get(task) == {"error": None, "rows": [{"equal": True}]}


def test_engines_that_disagree_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"kind": "independent", "d": 2, "W": 4, "windows": 2, "seed": 1}
    assert all(row["equal"] for row in experiments.amortized(parameters, Place(None)))
    monkeypatch.setattr(experiments, "skyline_mask", lambda live: np.ones(len(live), bool))
    assert not any(row["equal"] for row in experiments.amortized(parameters, Place(None)))


def test_unknown_figures_are_refused_with_those_there_are() -> None:
    with pytest.raises(OptionError, match="7 is not a figure of tao06; there are: 12, 13"):
        command.main(["tao06", "--figure", "7"])
    with pytest.raises(SystemExit):
        command.main(["--figure", "7"])


def test_the_command_lists_what_there_is() -> None:
    told = CliRunner().invoke(app, ["bench", "papers", "tao06", "--list"])
    assert told.exit_code == 0, told.output
    assert "tao06 --figure 12: Amortized cost versus W" in told.output
    assert "papers" in CliRunner().invoke(app, ["bench"]).output.split()


def test_rows_with_the_same_place_are_averaged_and_nothing_is_left_out_of_a_logarithmic_scale() -> None:
    figure = Figure("tao06", "figure", 99, "", "a:b", lambda _: [], (Panel("", "x", "y", log="y"),), ("y",), by=("x",))
    rows: list[Row] = [{"x": x, "y": y, "method": "a", "equal": True} for x, y in ((1, 0), (2, 2), (2, 4))]
    assert drawing.svg(figure, rows) == drawing.svg(figure, [rows[0], {**rows[1], "y": 3.0}])
    assert drawing.svg(figure, rows) == drawing.svg(figure, [{**rows[0], "y": -1}, *rows[1:]])
    assert "</svg>" in drawing.svg(figure, rows[:1])
    outcome: runner.Outcome = {"experiment": "a.b.c:d", "parameters": {}, "rows": rows, "error": None, "seconds": 0.0}
    assert report.Result(figure, [outcome], 1).table() == (["x", "y"], [[1, 0.0], [2, 3.0]])
