"""--report: the page holds what the change stream says, with the right values, and nothing else comes out otherwise."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.command import refused, rows_of, run
from tests.cli.watched import CASES, answers, at, check, recording_of, write_csv

values = st.one_of(st.integers(0, 3), st.sampled_from([math.inf, -math.inf, 1.797e308, 5e-324, -0.0]))
steps = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("abcd"), st.sampled_from("gh"), values, values, st.sampled_from("st")),
    max_size=25,
)


def timed(rows: list[tuple[Any, ...]], back: int = 0) -> list[tuple[Any, ...]]:
    """Rows whose first part, less `back`, is how much later than the one before they come."""
    now, found = 0, []
    for step, *rest in rows:
        now += step - back
        found.append((now, *rest))
    return found


class Kept:
    """The last recording that would have been written: the page around it is large."""

    last: dict[str, Any]

    def keep(self, board: Any, path: str) -> None:
        self.last = json.loads(json.dumps(board.recording(), allow_nan=False))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kept:
    monkeypatch.chdir(tmp_path)
    found = Kept()
    monkeypatch.setattr("skytide.cli._boards.write_report", found.keep)
    return found


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=steps)
def test_a_report_holds_the_answer_of_every_instant(
    name: str, kept: Kept, tmp_path: Path, rows: list[tuple[Any, ...]]
) -> None:
    case, rows = CASES[name], timed(rows, back=name in ("late", "tardy"))
    if name in ("added", "fragments"):  # no sums of infinities
        rows = [(*row[:3], *(min(max(value, -9.0), 9.0) for value in row[3:5]), row[5]) for row in rows]
    data = write_csv(tmp_path / "in.csv", rows)
    plain = run(case.name, data, *case.options)
    watched = run(case.name, data, *case.options, "--report", tmp_path / "out.html")
    assert watched.exit_code == plain.exit_code == 0, watched.stderr
    assert (watched.stdout_bytes, watched.stderr) == (plain.stdout_bytes, plain.stderr)
    changes = rows_of(plain.stdout)
    recording = kept.last
    check(recording, changes)
    assert recording["state"]["meters"].get("rows", 0) == len(rows)
    if case.name == "window":
        for time, members in answers(changes).items():
            found = at(recording, time)
            assert all(found[one] == list(rows[int(one) - 1][3:5]) for one in members)
    if name in ("snapshots", "placed", "frequent", "monitor", "theta"):
        for time, members in answers(changes).items():
            present = {row[1]: list(row[3:5]) for row in rows if row[0] <= time}
            assert at(recording, time) == {one: present[one] for one in members}


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=steps)
def test_updated_values_are_those_of_the_objects(kept: Kept, tmp_path: Path, rows: list[tuple[Any, ...]]) -> None:
    rows = [(*row[:3], *(min(max(value, -9.0), 9.0) for value in row[3:5]), row[5]) for row in timed(rows)]
    data = write_csv(tmp_path / "in.csv", rows)
    for name in ("added", "fragments"):
        run(CASES[name].name, data, *CASES[name].options, "--report", tmp_path / "out.html")
        for time in answers(CASES[name].changes(data)):
            present: dict[str, Any] = {}
            for when, one, _, x, y, site in rows:
                if when <= time and name == "added":
                    old = present.get(one, (x, y))
                    present[one] = ((old[0] + x) / 2, (old[1] + y) / 2)
                elif when <= time:
                    present.setdefault(one, {})[site] = (x, y)
            for one, found in at(kept.last, time).items():
                told = present[one]
                if name == "fragments":
                    told = [sum(part[place] for part in told.values()) / len(told) for place in (0, 1)]
                assert found == pytest.approx(list(told))


def test_an_id_that_comes_again_has_the_values_of_its_own_time(kept: Kept, tmp_path: Path) -> None:
    data = tmp_path / "in.csv"
    data.write_text("t,id,x\n1,a,5\n3,b,4\n9,a,7\n9.5,c,9\n20,b,1\n")
    result = run("window", data, "--min", "x", "--id", "id", "--time", "t", "--duration", "2", "--report", "x.html")
    check(kept.last, rows_of(result.stdout))
    assert [at(kept.last, time) for time in (1, 4, 9, 20)] == [{"a": [5]}, {"b": [4]}, {"a": [7]}, {"b": [1]}]
    assert kept.last["rest"] == []


def test_deleted_objects_and_expired_rows_are_not_among_the_rest(kept: Kept, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "in.csv", [(1, one, "g", at_, 1, "s") for at_, one in enumerate("abcd")])
    with data.open("a") as file:
        file.write("5,2,c,g,,,s,0.5,0.5\n6,3,d,g,3,1,s,0.5,0.5\n")
    run("snapshots", data, *CASES["snapshots"].options, "--report", "x.html")
    assert sorted(row[0] for row in kept.last["rest"]) == ["b", "d"]
    lines = data.read_text().splitlines()[:5]
    data.write_text("\n".join(lines) + "\n")
    run("window", data, *CASES["duration"].options, "--until", "3", "--report", "x.html")
    assert sorted(row[0] for row in kept.last["rest"]) == ["2", "3", "4"]
    run("window", data, *CASES["duration"].options, "--until", "9", "--report", "x.html")
    assert kept.last["rest"] == kept.last["state"]["rows"] == []
    run("window", data, "--min", "x", "--max", "y", "--count", "2", "--report", "x.html")
    assert [row[0] for row in kept.last["rest"]] == ["4"]


def test_probabilities_are_those_of_the_last_window(kept: Kept, tmp_path: Path) -> None:
    rows = [(at_, "a", "g", at_ * 7 % 5, at_ * 3 % 4, "s") for at_ in range(40)]
    data = write_csv(tmp_path / "in.csv", rows)
    case = CASES["uncertain"]
    run("uncertain", data, *case.options, "--report", "x.html")
    final = {row["id"]: float(row["probability"]) for row in case.changes(data, "--final")}
    assert {row[0]: row[5] for row in kept.last["state"]["rows"]} == pytest.approx(final)
    assert kept.last["state"]["thresholds"] == [0.2, 0.5]


def test_dates_are_times_of_the_page(kept: Kept, tmp_path: Path) -> None:
    data = tmp_path / "in.csv"
    data.write_text("day,id,x\n2024-01-31,a,5\n2024-02-01,b,6\n2024-02-02,b,1\n")
    result = run("snapshots", data, "--min", "x", "--id", "id", "--time", "day", "--report", "x.html")
    check(kept.last, rows_of(result.stdout))
    assert kept.last["state"]["clock"] == "time"
    assert kept.last["sizes"]["time"] == [1706659200000.0, 1706832000000.0]


@pytest.mark.parametrize(("command", "naive"), [("monitor", "naive"), ("fragments", "central")])
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=steps)
def test_sending_everything_is_what_the_plain_method_sends(
    command: str, naive: str, kept: Kept, tmp_path: Path, rows: list[tuple[Any, ...]]
) -> None:
    rows = [(*row[:3], *(min(max(value, -9.0), 9.0) for value in row[3:5]), row[5]) for row in timed(rows)]
    data = write_csv(tmp_path / "in.csv", rows)
    options = [one for one in CASES[command].options if one not in ("--method", "filter")]
    cost = tmp_path / "cost.json"
    run(command, data, *options, "--method", naive, "--cost", cost, "-o", tmp_path / "out.csv")
    run(command, data, *options, "--report", "x.html", "-o", tmp_path / "out.csv")
    told, ledger = json.loads(cost.read_text()), kept.last["state"]["ledger"]
    assert ledger["naive_messages"] == told["messages"]
    if command == "monitor":
        assert ledger["naive_bytes"] == told["bytes_up"] + told["bytes_down"]
    run(command, data, *options, "--cost", cost, "-o", tmp_path / "out.csv")
    told = json.loads(cost.read_text())
    assert (ledger["messages"], ledger["bytes"]) == (told["messages"], told["bytes_up"] + told["bytes_down"])
    found = {(one["way"], one["kind"]): one["messages"] for one in ledger["kinds"] if one["messages"]}
    assert found == {(way, kind): count for way, kinds in told["kinds"].items() for kind, count in kinds.items()}


@pytest.mark.parametrize("extension", ["csv", "parquet", "jsonl"])
def test_files_that_come_out_are_the_same_bytes(extension: str, kept: Kept, tmp_path: Path) -> None:
    rows = [(at_ // 3, "abcdef"[at_ % 6], "g", at_ * 7 % 31, at_ * 5 % 17, "s") for at_ in range(120)]
    data = write_csv(tmp_path / "in.csv", rows)
    for name in ("count", "duration", "uncertain", "snapshots", "monitor", "fragments"):
        outputs = [tmp_path / f"{one}.{extension}" for one in ("plain", "watched")]
        for output, more in zip(outputs, ((), ("--report", "x.html")), strict=True):
            assert run(CASES[name].name, data, *CASES[name].options, "-o", output, *more).exit_code == 0
        assert outputs[0].read_bytes() == outputs[1].read_bytes(), name


def test_rows_that_are_not_taken_are_not_shown(kept: Kept, tmp_path: Path) -> None:
    data = tmp_path / "in.csv"
    data.write_text("t,id,x\n5,a,5\n1,b,4\n6,c,\n7,d,9\n")
    options = ["--min", "x", "--id", "id", "--time", "t", "--duration", "9", "--nulls", "drop"]
    letters = tmp_path / "letters.csv"
    run("window", data, *options, "--dead-letters", letters, "--report", "x.html")
    assert [row["row"] for row in rows_of(letters.read_text())] == ["2", "3"]
    assert [row[0] for row in kept.last["rest"]] == ["d"] and at(kept.last, 7) == {"a": [5]}


@pytest.mark.parametrize("name", ["count", "uncertain", "snapshots", "monitor", "fragments"])
def test_a_report_is_one_file_that_asks_nobody(name: str, tmp_path: Path) -> None:
    rows = [(at_, "abc"[at_ % 3], "g", at_ % 5, at_ % 3, "s") for at_ in range(30)]
    data, report = write_csv(tmp_path / "in.csv", rows), tmp_path / "out.html"
    result = run(CASES[name].name, data, *CASES[name].options, "--report", report)
    assert result.exit_code == 0, result.stderr
    check(recording_of(report), rows_of(result.stdout))
    page = report.read_text(encoding="utf-8")
    assert 'href="assets' not in page and 'src="assets' not in page
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in.csv", "out.html"]


def test_a_skyline_is_reported_with_all_its_columns_and_without_its_rows_among_the_rest(tmp_path: Path) -> None:
    data, report = tmp_path / "cars.csv", tmp_path / "cars.html"
    data.write_text("name,price,mpg,city\nAda,20,30,Rome\nBo,25,40,Oslo\nCy,30,35,Oslo\nDi,20,30,Rome\nEd,99,1,Rome\n")
    plain = run("skyline", data, "--min", "price", "--max", "mpg", "--by", "city")
    watched = run("skyline", data, "--min", "price", "--max", "mpg", "--by", "city", "--report", report)
    assert watched.stdout == plain.stdout
    recording = recording_of(report)
    found = [row[4] for row in recording["state"]["rows"]]
    assert found == [[20, 30, "Rome", "Ada"], [25, 40, "Oslo", "Bo"], [20, 30, "Rome", "Di"]]
    assert sorted(row[4][:3] for row in recording["rest"]) == [[30, 35, "Oslo"], [99, 1, "Rome"]]
    assert recording["state"]["meters"]["rows"] == 5


@pytest.mark.parametrize("command", ["window", "skyline", "snapshots", "monitor"])
def test_a_report_that_cannot_be_written_is_refused_before_the_work(command: str, tmp_path: Path) -> None:
    options = {"window": ["--count", "3"], "skyline": []}.get(command, ["--id", "id", "--time", "t"])
    for report, words in {"x.txt": ".html", "none/x.html": "folder", ".html": "html"}.items():
        # DATA that is not there would be the second complaint.
        told = refused(command, tmp_path / "missing.csv", "--min", "x", *options, "--report", tmp_path / report)
        assert words in told and "missing.csv" not in told


def test_an_error_leaves_neither_report_nor_picture_behind(tmp_path: Path) -> None:
    data = tmp_path / "in.csv"
    data.write_text("x,y\n1,2\nno,3\n")
    for option in ("--report", "--plot"):
        file = tmp_path / ("out.html" if option == "--report" else "out.png")
        assert "'no'" in refused("window", data, "--min", "x", "--min", "y", "--count", "2", option, file)
    assert [one.name for one in tmp_path.iterdir()] == ["in.csv"]
