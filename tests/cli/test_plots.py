"""--plot: what is drawn is the last answer and how it came to be; every command draws in every format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from skytide.plots import Scene
from tests.cli.command import refused, rows_of, run
from tests.cli.test_reports import steps, timed
from tests.cli.watched import CASES, answers, write_csv

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
ROWS = [(at, "abcd"[at % 4], "gh"[at % 2], at * 7 % 11, at * 5 % 9, "st"[at % 2]) for at in range(60)]


class Drawn:
    """The last scene that would have been drawn."""

    scene: Scene

    def draw(self, scene: Scene, path: Any = None) -> None:
        self.scene = scene


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Drawn:
    monkeypatch.chdir(tmp_path)
    found = Drawn()
    monkeypatch.setattr("skytide.cli._picture.picture", found.draw)
    return found


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=steps)
def test_the_picture_is_of_the_last_answer_and_of_its_sizes(
    name: str, drawn: Drawn, tmp_path: Path, rows: list[tuple[Any, ...]]
) -> None:
    case, rows = CASES[name], timed(rows)
    if name in ("added", "fragments"):
        rows = [(*row[:3], *(min(max(value, -9.0), 9.0) for value in row[3:5]), row[5]) for row in rows]
    data = write_csv(tmp_path / "in.csv", rows)
    plain = run(case.name, data, *case.options)
    watched = run(case.name, data, *case.options, "--plot", tmp_path / "out.png")
    assert watched.exit_code == 0, watched.stderr
    assert watched.stdout_bytes == plain.stdout_bytes
    expected, scene = answers(rows_of(plain.stdout)), drawn.scene
    last = list(expected.values())[-1] if expected else set()
    if case.name in ("monitor", "fragments"):
        assert scene.ledger is not None and not scene.sizes
    else:
        found = next(iter(scene.sizes.values()))
        assert dict(zip(found.times.tolist(), found.sizes.tolist(), strict=True)) == {
            time: len(members) for time, members in expected.items()
        }
    if name == "frequent":
        assert scene.stays is not None
        assert {stay.id for stay in scene.stays if stay.left is None} == last
    elif name == "objects":
        assert {one for one, _ in scene.ranking if one != "nobody"} == last
    elif case.name == "window":
        assert scene.answer is not None
        assert _sorted(scene.answer.inside) == _sorted([rows[int(one) - 1][3:5] for one in last])
    else:
        assert scene.answer is not None and len(scene.answer.inside) == len(last)
    if case.by and scene.answer is not None:
        assert scene.answer.groups is not None and set(scene.answer.groups) <= {"g", "h"}


def _sorted(rows: Any) -> list[list[float]]:
    return sorted([float(one) + 0.0 for one in row] for row in rows)


@pytest.mark.parametrize("name", ["tardy", "groups", "uncertain", "objects", "frequent", "monitor", "fragments"])
def test_every_command_draws_a_file_and_nothing_else(name: str, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "in.csv", ROWS if name != "tardy" else [])
    kind = sorted(STARTS)[len(name) % 3]
    path = tmp_path / f"out.{kind}"
    result = run(CASES[name].name, data, *CASES[name].options, "--plot", path)
    assert result.exit_code == 0, result.stderr
    assert path.read_bytes().startswith(STARTS[kind])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in.csv", f"out.{kind}"]


def test_a_window_draws_only_rows_that_live(drawn: Drawn, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "in.csv", ROWS)
    run("window", data, *CASES["count"].options, "--plot", "x.png")
    assert drawn.scene.answer is not None
    assert _sorted(drawn.scene.answer.rest.rows) == _sorted([row[3:5] for row in ROWS[-4:]])
    run("window", data, *CASES["duration"].options, "--plot", "x.png", "--until", "60")
    assert _sorted(drawn.scene.answer.rest.rows) == _sorted([row[3:5] for row in ROWS[-2:]])


def test_three_columns_stand_side_by_side_unless_they_are_chosen(drawn: Drawn, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "in.csv", ROWS)
    options = ["--min", "x", "--max", "y", "--min", "t", "--count", "9", "--plot", "x.svg"]
    run("window", data, *options)
    assert drawn.scene.parallel and drawn.scene.answer is not None and drawn.scene.answer.columns == ("x", "t", "y")
    whole = drawn.scene.answer.inside
    run("window", data, *options, "--plot-columns", "y,x")
    assert not drawn.scene.parallel and drawn.scene.answer.columns == ("y", "x")
    assert np.array_equal(drawn.scene.answer.inside, whole[:, [2, 0]])


def test_probabilities_colour_the_answer(drawn: Drawn, tmp_path: Path) -> None:
    data, case = write_csv(tmp_path / "in.csv", ROWS), CASES["uncertain"]
    run("uncertain", data, *case.options, "--plot", "x.png")
    final = [float(row["probability"]) for row in case.changes(data, "--final")]
    assert drawn.scene.answer is not None and drawn.scene.answer.probabilities is not None
    assert drawn.scene.answer.probabilities.tolist() == pytest.approx(final)
    assert list(drawn.scene.sizes) == ["at least 0.2", "at least 0.5"]


def test_an_explanation_is_drawn(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "in.csv", ROWS)
    for columns in (["--min", "x", "--max", "y"], ["--min", "x"], ["--min", "x", "--max", "y", "--min", "t"]):
        for row in ("2", "12"):
            plain = run("explain", data, *columns, "--row", row)
            path = tmp_path / "why.svg"
            assert run("explain", data, *columns, "--row", row, "--plot", path).stdout == plain.stdout
            text = path.read_text()
            inside = "is in the skyline" in plain.stdout
            assert (f"Row {row} is in the skyline" if inside else f"row {row}") in text
            assert inside or "the smallest change" in text


@pytest.mark.parametrize(("kind", "dimensions"), [("independent", 1), ("walk", 2), ("uncertain", 3), ("fragments", 5)])
def test_generated_rows_are_drawn(kind: str, dimensions: int, tmp_path: Path) -> None:
    plain = run("generate", kind, "-n", "60", "-d", str(dimensions))
    result = run("generate", kind, "-n", "60", "-d", str(dimensions), "--plot", tmp_path / "out.svg")
    assert result.stdout == plain.stdout
    assert f"60 {kind} rows" in (tmp_path / "out.svg").read_text()
    assert run("generate", kind, "-n", "0", "--plot", tmp_path / "none.png").exit_code == 0


@pytest.mark.parametrize("command", ["window", "snapshots", "explain", "monitor", "generate"])
def test_a_picture_that_cannot_be_drawn_is_refused_before_the_work(command: str, tmp_path: Path) -> None:
    options = {"window": ["--count", "3"], "explain": ["--row", "1"]}.get(command, ["--id", "id", "--time", "t"])
    call: list[str | Path] = [command, tmp_path / "missing.csv", "--min", "x", "--min", "y", *options]
    if command == "generate":
        call = ["generate", "walk", "-n", "5", "-o", tmp_path / "out.csv"]
    for plot, words in {"x.gif": ".png", "none/x.png": "folder", "": "plot"}.items():
        told = refused(*call, "--plot", tmp_path / plot)
        assert words in told and "missing.csv" not in told
    assert list(tmp_path.iterdir()) == []


def test_columns_to_draw_are_columns_of_the_preference(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "in.csv", ROWS)
    for columns, words in {"x,p": "'p'", "x": "two or three", "x,x": "two or three"}.items():
        told = refused(
            "window", data, "--min", "x", "--max", "y", "--count", "3", "--plot", "x.png", "--plot-columns", columns
        )
        assert words in told
    assert "--plot FILE" in refused("window", data, "--min", "x", "--count", "3", "--plot-columns", "x,y")


def test_without_matplotlib_it_is_said_before_the_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for command in ("window", "skyline"):
        more = ["--count", "3"] if command == "window" else []
        told = refused(command, tmp_path / "no.csv", "--min", "x", "--min", "y", *more, "--plot", tmp_path / "x.png")
        assert "skytide[plot]" in told


@pytest.mark.parametrize("extension", ["png", "svg", "pdf"])
def test_names_with_dollars_are_no_formulas(extension: str, tmp_path: Path) -> None:
    data, plot = tmp_path / "in.csv", tmp_path / f"plot.{extension}"
    data.write_text("id,t,$x_1^{$,<b>$y$</b>,g\n$a_$,1,1,2,$g_{$\n$b^$,2,2,3,$h$\n")
    options = ("--min", "$x_1^{$", "--max", "<b>$y$</b>", "--by", "g")
    for command, more in (("skyline", ()), ("snapshots", ("--id", "id", "--time", "t"))):
        result = run(command, data, *options, *more, "--plot", plot)
        assert result.exit_code == 0, result.stderr
        assert plot.stat().st_size > 1000
        plot.unlink()


@pytest.mark.parametrize("option", ["--plot", "--report"])
def test_an_empty_name_is_refused(option: str, tmp_path: Path) -> None:
    data = tmp_path / "in.csv"
    data.write_text("x,y\n1,2\n")
    assert "an empty name is no file" in refused("skyline", data, "--min", "x", "--max", "y", option, "")
