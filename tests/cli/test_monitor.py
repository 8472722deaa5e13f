"""`skytide monitor` against the reference, its ledger, and what it says to bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.cli.monitor import METHODS
from skytide.protocols.filtering import methods
from skytide.reference.frequent import frequent_changes
from skytide.reference.snapshots import snapshot_answers, snapshot_changes
from tests.cli.command import reasons, refused, run

ROWS = ["1,x,1,4", "1,y,2,2", "1,z,3,3", "2,y,9,9", "2,x,,", "3,y,0,0"]
PLAIN = ["--min", "a", "--min", "b", "--id", "who", "--time", "day"]
EXPECTED = ["1,+,x", "1,+,y", "2,-,x", "2,-,y", "2,+,z", "3,-,z", "3,+,y"]


@pytest.fixture
def moves(tmp_path: Path) -> Path:
    path = tmp_path / "moves.csv"
    path.write_text("day,who,a,b\n" + "\n".join(ROWS) + "\n")
    return path


def lines(result: Any) -> list[str]:
    assert result.exit_code == 0, result.stderr
    first, *rest = result.stdout.splitlines()
    assert first == "time,change,id"
    return list(rest)


def test_the_command_knows_all_methods() -> None:
    assert METHODS == methods.METHODS


@pytest.mark.parametrize("method", METHODS)
def test_clients_move_go_and_return(moves: Path, method: str) -> None:
    assert lines(run("monitor", moves, *PLAIN, "--method", method)) == EXPECTED
    half = lines(run("monitor", moves, *PLAIN, "--method", method, "--theta", "0.5", "--over", "2"))
    assert half == ["1,+,x", "1,+,y", "2,+,z", "3,-,x"]


def test_the_ledger_is_written_and_adds_up(moves: Path, tmp_path: Path) -> None:
    file = tmp_path / "cost.json"
    assert lines(run("monitor", moves, *PLAIN, "--method", "filter", "--cost", file)) == EXPECTED
    cost = json.loads(file.read_text())
    assert cost["uplink"] == cost["failures"] + cost["probes"] + cost["inserts"] + cost["deletes"] == 3
    assert cost["downlink"] == cost["failures"] + 2 * cost["probes"] + cost["inserts"]
    assert cost["messages"] == cost["uplink"] + cost["downlink"]
    assert cost["bytes_up"] > 0 and cost["bytes_down"] > 0
    assert (cost["recall"], cost["precision"]) == (1.0, 1.0)
    assert cost["initial"]["uplink"] == 3


CELL = st.sampled_from(["", "0", "1", "2", "3"])
LINES = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("pqrs"), CELL, CELL, st.sampled_from("uv")), min_size=1, max_size=25
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=LINES,
    method=st.sampled_from(METHODS),
    nulls=st.sampled_from(["drop", "worst"]),
    by=st.booleans(),
    frequent=st.sampled_from([None, ("0.5", 3), ("0.3", 5), ("1", 2)]),
)
def test_any_file_gives_the_reference_stream(
    tmp_path: Path,
    rows: list[tuple[int, str, str, str, str]],
    method: str,
    nulls: str,
    by: bool,
    frequent: tuple[str, int] | None,
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    path = tmp_path / "rows.csv"
    path.write_text("t,id,a,b,g\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    options = ["--min", "a", "--max", "b", "--id", "id", "--time", "t", "--method", method, "--nulls", nulls]
    options += ["--by", "g"] if by else []
    options += [] if frequent is None else ["--theta", frequent[0], "--over", str(frequent[1])]
    values = [tuple(float(cell) if cell else None for cell in row[2:4]) for row in rows]
    arguments: dict[str, Any] = {"operation": "set", "signs": [1, -1], "nulls": nulls}
    arguments["by"] = [row[4] for row in rows] if by else None
    times, ids = [row[0] for row in rows], [row[1] for row in rows]
    if frequent is None:
        expected = snapshot_changes(times, ids, values, **arguments)
    else:
        expected = frequent_changes(snapshot_answers(times, ids, values, **arguments), *frequent)
    assert lines(run("monitor", path, *options)) == [f"{time},{change},{one}" for time, change, one in expected]


def test_timestamps_come_out_as_they_went_in(tmp_path: Path) -> None:
    path = tmp_path / "moves.csv"
    path.write_text("day,who,a\n2024-01-31,1,5\n2024-02-01,2,4\n")
    found = lines(run("monitor", path, "--min", "a", "--id", "who", "--time", "day", "--method", "filter"))
    assert found == ["2024-01-31,+,1", "2024-02-01,-,1", "2024-02-01,+,2"]


def test_rows_that_are_not_taken_are_listed(moves: Path, tmp_path: Path) -> None:
    moves.write_text(moves.read_text() + "2,w,0,0\n4,z,,5\n")
    letters = tmp_path / "letters.csv"
    options = ["--method", "filter", "--nulls", "drop", "--dead-letters", str(letters)]
    assert lines(run("monitor", moves, *PLAIN, *options)) == EXPECTED
    assert reasons(letters) == [("7", "its timestamp is over"), ("8", "some values are missing, but not all")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "best"], ["best"]),
        (["--method", "filter", "--theta", "0.5"], ["--theta and --over go together"]),
        (["--method", "filter", "--theta", "1.5", "--over", "5"], ["1.5"]),
        (["--method", "sampling", "--epsilon", "0"], ["epsilon"]),
        (["--method", "sampling", "--seed", "-1"], ["-1"]),
        (["--method", "filter", "--cost", "cost.txt"], ["cost.txt", ".json"]),
        (["--method", "filter", "--cost", "nowhere/cost.json"], ["nowhere/cost.json", "folder does not exist"]),
        (["--method", "filter", "--cost", "same.json", "-o", "same.json"], []),
        (["--method", "filter", "--max", "nothing"], ["nothing", "no such column"]),
    ],
)
def test_what_makes_no_sense_is_refused(moves: Path, options: list[str], words: list[str]) -> None:
    said = refused("monitor", moves, *PLAIN, *options)
    assert [word for word in words if word not in said] == []


def test_a_row_with_half_its_values_names_its_place(moves: Path) -> None:
    moves.write_text(moves.read_text() + "4,z,,5\n")
    said = refused("monitor", moves, *PLAIN, "--method", "naive")
    assert [word for word in ("moves.csv", "row 7", "column 'a'") if word not in said] == []
