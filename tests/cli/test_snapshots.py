"""`skytide snapshots` against the reference, and what it says to bad input."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.reference.frequent import frequent_changes
from skytide.reference.snapshots import snapshot_answers, snapshot_changes
from tests.cli.command import refused, rows_of, run

ROWS = ["1,x,1,4", "1,y,2,2", "1,z,3,3", "2,y,9,9", "2,x,,", "3,y,0,0"]
PLAIN = ["--min", "a", "--min", "b", "--id", "who", "--time", "day"]
EXPECTED = ["1,+,x", "1,+,y", "2,-,x", "2,-,y", "2,+,z", "3,-,z", "3,+,y"]


@pytest.fixture
def updates(tmp_path: Path) -> Path:
    path = tmp_path / "updates.csv"
    path.write_text("day,who,a,b\n" + "\n".join(ROWS) + "\n")
    return path


def lines(result: Any) -> list[str]:
    assert result.exit_code == 0, result.stderr
    first, *rest = result.stdout.splitlines()
    assert first == "time,change,id"
    return list(rest)


def test_objects_move_go_and_return(updates: Path) -> None:
    assert lines(run("snapshots", updates, *PLAIN)) == EXPECTED
    assert lines(run("snapshots", "-", *PLAIN, stdin=updates.read_bytes())) == EXPECTED
    assert lines(run("snapshots", updates, *PLAIN, "--method", "recompute")) == EXPECTED


def test_frequent_skylines_come_out_instead(updates: Path) -> None:
    assert lines(run("snapshots", updates, *PLAIN, "--frequent", "1", "--over", "1")) == EXPECTED
    half = lines(run("snapshots", updates, *PLAIN, "--frequent", "0.5", "--over", "2"))
    assert half == ["1,+,x", "1,+,y", "2,+,z", "3,-,x"]


def test_the_history_of_stays_is_written(updates: Path, tmp_path: Path) -> None:
    history = tmp_path / "stays.parquet"
    assert lines(run("snapshots", updates, *PLAIN, "--history", history)) == EXPECTED
    stays = {(row["id"], row["entered"], row["left"]) for row in pq.read_table(history).to_pylist()}
    assert stays == {("x", 1, 2), ("y", 1, 2), ("z", 2, 3), ("y", 3, None)}


def test_timestamps_come_out_as_they_went_in(tmp_path: Path) -> None:
    path = tmp_path / "updates.csv"
    path.write_text("day,who,a\n2024-01-31,1,5\n2024-02-01,2,4\n")
    found = lines(run("snapshots", path, "--min", "a", "--id", "who", "--time", "day"))
    assert found == ["2024-01-31,+,1", "2024-02-01,-,1", "2024-02-01,+,2"]


def test_other_formats_come_out(updates: Path, tmp_path: Path) -> None:
    assert run("snapshots", updates, *PLAIN, "-o", tmp_path / "changes.jsonl").exit_code == 0
    found = [json.loads(line) for line in (tmp_path / "changes.jsonl").read_text().splitlines()]
    assert [f"{one['time']},{one['change']},{one['id']}" for one in found] == EXPECTED


def test_rows_that_are_not_taken_are_listed(updates: Path, tmp_path: Path) -> None:
    updates.write_text(updates.read_text() + "2,w,0,0\n4,z,,5\n")
    letters = tmp_path / "letters.csv"
    assert lines(run("snapshots", updates, *PLAIN, "--nulls", "drop", "--dead-letters", letters)) == EXPECTED
    found = rows_of(letters.read_text())
    assert [(row["row"], row["reason"].split(";")[0]) for row in found] == [
        ("7", "its snapshot is over"),
        ("8", "some values are missing, but not all"),
    ]
    assert lines(run("snapshots", updates, *PLAIN, "--nulls", "drop", "--lateness", "5")) != EXPECTED


CELL = st.sampled_from(["", "0", "1", "2", "3"])
LINES = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("pqrs"), CELL, CELL, st.sampled_from("uv")), min_size=1, max_size=25
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=LINES,
    op=st.sampled_from(["set", "add", "multiply", "average"]),
    method=st.sampled_from(["auto", "mbr", "recompute"]),
    nulls=st.sampled_from(["drop", "worst"]),
    by=st.booleans(),
    frequent=st.sampled_from([None, ("0.5", 3), ("0.07", 100), ("1", 2)]),
)
def test_any_file_gives_the_reference_stream(
    tmp_path: Path,
    rows: list[tuple[int, str, str, str, str]],
    op: str,
    method: str,
    nulls: str,
    by: bool,
    frequent: tuple[str, int] | None,
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    path = tmp_path / "rows.csv"
    path.write_text("t,id,a,b,g\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    options = ["--min", "a", "--max", "b", "--id", "id", "--time", "t", "--op", op, "--method", method]
    options += ["--nulls", nulls, "--cfp", "2", *(["--by", "g"] if by else [])]
    if frequent is not None:
        options += ["--frequent", frequent[0], "--over", str(frequent[1])]
    values = [tuple(float(cell) if cell else None for cell in row[2:4]) for row in rows]
    arguments: dict[str, Any] = {"operation": op, "signs": [1, -1], "nulls": nulls}
    arguments["by"] = [row[4] for row in rows] if by else None
    times, ids = [row[0] for row in rows], [row[1] for row in rows]
    if frequent is None:
        expected = snapshot_changes(times, ids, values, **arguments)
    else:
        expected = frequent_changes(snapshot_answers(times, ids, values, **arguments), *frequent)
    found = lines(run("snapshots", path, *options))
    assert found == [f"{time},{change},{one}" for time, change, one in expected]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--frequent", "0.5"], ["--frequent and --over go together"]),
        (["--over", "5"], ["--frequent and --over go together"]),
        (["--frequent", "1.5", "--over", "5"], ["1.5"]),
        (["--frequent", "many", "--over", "5"], ["many"]),
        (["--max", "nothing"], ["nothing", "no such column"]),
        (["--lateness", "5m"], ["5m", "plain numbers"]),
        (["--history", "stays.txt"], ["stays.txt"]),
    ],
)
def test_what_makes_no_sense_is_refused(updates: Path, options: list[str], words: list[str]) -> None:
    said = refused("snapshots", updates, *PLAIN, *options)
    assert [word for word in words if word not in said] == []


def test_a_row_with_half_its_values_names_its_place(updates: Path) -> None:
    updates.write_text(updates.read_text() + "4,z,,5\n")
    said = refused("snapshots", updates, *PLAIN)
    assert [word for word in ("updates.csv", "row 7", "column 'a'") if word not in said] == []


@pytest.mark.parametrize("frequent", [[], ["--frequent", "0.5", "--over", "2"]])
def test_updates_whose_result_is_not_a_number_go_to_the_dead_letters(tmp_path: Path, frequent: list[str]) -> None:
    path, dead = tmp_path / "updates.csv", tmp_path / "dead.csv"
    # The last of them shows when time runs on, after all rows.
    path.write_text("day,who,a,b\n1,x,inf,1\n2,x,-inf,1\n2,y,1,1\n2,y,,1\n3,x,1,1\n4,x,-inf,2\n")
    call = ["snapshots", str(path), *PLAIN, "--op", "add", *frequent, "--nulls", "drop"]
    result = run(*call, "--dead-letters", dead)
    assert result.stderr == ""
    reason = "the update of x at {}: the result is not a number (as inf - inf)"
    assert dead.read_text().splitlines() == [
        "file,row,reason",
        f'{path},4,"some values are missing, but not all"',
        f"{path},,{reason.format(2)}",
        f"{path},,{reason.format(4)}",
    ]
    if not frequent:
        assert lines(result) == ["1,+,x", "2,-,x", "2,+,y"]
    assert "3 row(s) not taken, the first: " in run(*call).stderr
    path.write_text("day,who,a,b\n1,x,inf,1\n2,x,-inf,1\n")
    assert f"the first: {path}: {reason.format(2)}; --dead" in run(*call).stderr
    assert "not a number" not in run(*call[:-1], "worst").stderr


def test_one_file_is_not_written_twice(updates: Path, tmp_path: Path) -> None:
    same = tmp_path / "out.parquet"
    assert "name the same file" in refused("snapshots", updates, *PLAIN, "-o", same, "--history", same)
