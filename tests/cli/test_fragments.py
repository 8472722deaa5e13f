"""`skytide fragments` against the reference, its ledger, and what it says to bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.cli.fragments import METHODS
from skytide.expressions import parse
from skytide.protocols.fragmented import methods
from skytide.reference.functional import expression, fragment_changes
from tests.cli.command import reasons, refused, run
from tests.cli.test_monitor import lines

ROWS = ["1,r1,x,1,4", "1,r2,x,3,4", "1,r1,y,3,5", "2,r2,x,9,4", "3,r2,x,,", "4,r2,y,-5,0"]
PLAIN = ["--min", "a", "--site", "router", "--id", "who", "--time", "day"]
EXPECTED = ["1,+,x", "2,-,x", "2,+,y", "3,-,y", "3,+,x", "4,-,x", "4,+,y"]


@pytest.fixture
def moves(tmp_path: Path) -> Path:
    path = tmp_path / "moves.csv"
    path.write_text("day,router,who,a,b c\n" + "\n".join(ROWS) + "\n")
    return path


def test_the_command_knows_all_methods() -> None:
    assert METHODS == methods.METHODS


@pytest.mark.parametrize("method", METHODS)
def test_sites_come_and_go_and_means_decide(moves: Path, method: str) -> None:
    assert lines(run("fragments", moves, *PLAIN, "--method", method)) == EXPECTED


def test_the_ledger_is_written_and_adds_up(moves: Path, tmp_path: Path) -> None:
    file = tmp_path / "cost.json"
    assert lines(run("fragments", moves, *PLAIN, "--method", "central", "--cost", file)) == EXPECTED
    cost = json.loads(file.read_text())
    assert (cost["uplink"], cost["downlink"], cost["messages"]) == (3, 0, 3)
    assert cost["kinds"]["up"] == {"join": 1, "leave": 1, "update": 1}
    assert cost["bytes_up"] > 0 and cost["bytes_down"] == 0
    assert cost["initial"]["uplink"] == 2 and cost["updates"] == 3


CELL = st.sampled_from(["", "0", "1", "2", "3"])
LINES = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("stu"), st.sampled_from("pqrs"), CELL, CELL, st.sampled_from("uv")),
    min_size=1,
    max_size=25,
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=LINES,
    method=st.sampled_from(METHODS),
    nulls=st.sampled_from(["drop", "worst"]),
    by=st.booleans(),
    texts=st.sampled_from([("a", "`b c`"), ("norm(a, `b c`)", "a - `b c`"), ("var(a)", "b c"), ("a / `b c`", "a")]),
)
def test_any_file_gives_the_reference_stream(
    tmp_path: Path,
    rows: list[tuple[int, str, str, str, str, str]],
    method: str,
    nulls: str,
    by: bool,
    texts: tuple[str, str],
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    path = tmp_path / "rows.csv"
    path.write_text("t,site,id,a,b c,g\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    options = ["--min", texts[0], "--max", texts[1], "--site", "site", "--id", "id", "--time", "t"]
    options += ["--method", method, "--nulls", nulls, *(["--by", "g"] if by else [])]
    vectors = [{"a": float(row[3] or "nan"), "b c": float(row[4] or "nan")} for row in rows]
    columns = list(vectors[0])
    expected = fragment_changes(
        [row[0] for row in rows],
        [row[1] for row in rows],
        [row[2] for row in rows],
        vectors,
        [expression(parse(text, columns)) for text in texts],
        signs=[1, -1],
        nulls=nulls,
        by=[row[5] for row in rows] if by else None,
    )
    found = lines(run("fragments", path, *options))
    assert found == [f"{time},{change},{one}" for time, change, one in expected]


def test_timestamps_and_whole_numbers_come_out_as_they_went_in(tmp_path: Path) -> None:
    path = tmp_path / "moves.csv"
    path.write_text("day,site,who,a\n2024-01-31,1,1,5\n2024-02-01,1,2,4\n")
    found = lines(run("fragments", path, "--min", "a", "--site", "site", "--id", "who", "--time", "day"))
    assert found == ["2024-01-31,+,1", "2024-02-01,-,1", "2024-02-01,+,2"]


def test_a_column_may_have_several_roles(tmp_path: Path) -> None:
    path = tmp_path / "moves.csv"
    path.write_text("day,n\n1,5\n2,4\n")
    found = lines(run("fragments", path, "--min", "n", "--site", "n", "--id", "n", "--time", "day"))
    assert found == ["1,+,5", "2,-,5", "2,+,4"]


def test_results_go_to_a_file_and_rows_that_are_not_taken_are_listed(moves: Path, tmp_path: Path) -> None:
    moves.write_text(moves.read_text() + "2,r1,w,0,0\n5,r1,x,,5\n")
    letters, output = tmp_path / "letters.csv", tmp_path / "changes.jsonl"
    options = ["--max", "`b c`", "--nulls", "drop", "--dead-letters", letters, "-o", output]
    result = run("fragments", moves, *PLAIN, *map(str, options))
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    assert json.loads(output.read_text().splitlines()[0]) == {"time": 1, "change": "+", "id": "x"}
    assert reasons(letters) == [("7", "its timestamp is over"), ("8", "some values are missing, but not all")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "best"], ["best"]),
        (["--max", "nothing"], ["'nothing'", "not a column"]),
        (["--max", "var(b)"], ["'b'", "not a column", "character 5"]),
        (["--max", "sqrt(a"], ["closing bracket"]),
        (["--max", "open('x')"], ["open"]),
        (["--max", "a; a"], ["';'"]),
        (["--max", "1 + 2"], ["no column"]),
        (["--max", "a / 0"], ["divides by 0"]),
        (["--max", "a"], ["more than once"]),
        (["--max", "`b c"], ["backtick"]),
        (["--by", "a"], ["'a'"]),
        (["--by", "nothing"], ["no such column", "nothing"]),
        (["--max", "who"], ["row 1", "'who'", "not a number"]),
        (["--max", "1 / (a - 2)"], ["moves.csv", "'x'", "time 1", "no value"]),
        (["--cost", "cost.txt"], ["cost.txt", ".json"]),
        (["--cost", "nowhere/cost.json"], ["nowhere/cost.json", "folder does not exist"]),
    ],
)
def test_what_makes_no_sense_is_refused(moves: Path, options: list[str], words: list[str]) -> None:
    said = refused("fragments", moves, *PLAIN, *options)
    assert [word for word in words if word not in said] == []


def test_without_an_expression_or_a_site_there_is_no_query(moves: Path) -> None:
    assert "--min or --max" in refused("fragments", moves, *PLAIN[2:])
    assert "--site" in refused("fragments", moves, *PLAIN[:2], *PLAIN[4:])


def bad(moves: Path, row: str, *options: Any) -> str:
    moves.write_text(moves.read_text() + row + "\n")
    return refused("fragments", moves, *PLAIN, "--max", "`b c`", *options)


def test_a_bad_row_names_its_place(moves: Path) -> None:
    said = bad(moves, "5,r1,x,,5")
    assert [word for word in ("moves.csv", "row 7", "column 'a'") if word not in said] == []


def test_a_row_without_a_site_names_its_place(moves: Path) -> None:
    said = bad(moves, "5,,x,1,5")
    assert [word for word in ("moves.csv", "row 7", "the site is missing") if word not in said] == []


def test_what_has_no_value_at_the_last_instant_is_told_in_words_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "moves.csv"
    path.write_text("day,router,who,a\n1,r1,x,0\n")
    result = run("fragments", path, *PLAIN[2:], "--min", "1 / a", "--nulls", "error")
    assert result.exit_code == 2 and result.stderr.startswith(f"skytide: {path}: 'x' is an object")
    assert "choose --nulls drop or worst" in result.stderr
