"""`skytide window` against the reference, and what it says to bad input."""

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.cli import app
from skytide.reference.window import window_changes
from tests.cli.command import refused

ROWS = [(1, "a", 30, 4), (2, "b", 20, 6), (4, "c", 25, 7), (9, "d", 40, 3)]
HEADER = "at,offer,price,days\n"
PLAIN = ["--min", "price", "--min", "days", "--id", "offer", "--time", "at", "--duration", "5"]
EXPECTED = ["1,+,a", "2,+,b", "6,-,a", "7,-,b", "7,+,c", "9,-,c", "9,+,d"]


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["window", *arguments], input=stdin)


def lines(result: Result) -> list[str]:
    assert result.exit_code == 0, result.stderr
    header, *rest = result.stdout.splitlines()
    assert header == "time,change,id"
    return rest


@pytest.fixture
def offers(tmp_path: Path) -> str:
    path = tmp_path / "offers.csv"
    path.write_text(HEADER + "".join(",".join(map(str, row)) + "\n" for row in ROWS))
    return str(path)


def test_a_time_window_closes_the_last_instant_at_the_end_of_the_file(offers: str) -> None:
    assert lines(run(offers, *PLAIN)) == EXPECTED


def test_until_lets_time_run_on(offers: str) -> None:
    assert lines(run(offers, *PLAIN, "--until", "13")) == EXPECTED
    assert lines(run(offers, *PLAIN, "--until", "14")) == [*EXPECTED, "14,-,d"]
    assert lines(run(offers, *PLAIN, "--until", "3")) == EXPECTED


def test_standard_input_and_other_formats_give_the_same(offers: str, tmp_path: Path) -> None:
    assert lines(run("-", *PLAIN, stdin=Path(offers).read_text())) == EXPECTED
    at, offer, price, days = zip(*ROWS, strict=True)
    table = pa.table({"at": list(at), "offer": list(offer), "price": list(price), "days": list(days)})
    pq.write_table(table, tmp_path / "offers.parquet")
    assert lines(run(str(tmp_path / "offers.parquet"), *PLAIN)) == EXPECTED
    result = run(offers, *PLAIN, "-o", str(tmp_path / "changes.parquet"))
    assert result.exit_code == 0 and result.stdout == ""
    found = pq.read_table(tmp_path / "changes.parquet").to_pylist()
    assert [f"{row['time']},{row['change']},{row['id']}" for row in found] == EXPECTED


def test_a_count_window_numbers_arrivals_and_rows_from_1(offers: str) -> None:
    found = lines(run(offers, "--min", "price", "--min", "days", "--count", "2"))
    assert found == ["1,+,1", "2,+,2", "3,-,1", "4,-,2", "4,+,3", "4,+,4"]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 3), st.sampled_from("xy")), max_size=12
    ),
    duration=st.integers(1, 6),
    by=st.booleans(),
    method=st.sampled_from(["auto", "lazy", "eager"]),
    index=st.sampled_from(["auto", "list", "rtree"]),
)
def test_any_file_gives_the_reference_stream(
    tmp_path: Path, rows: list[tuple[int, int, int, str]], duration: int, by: bool, method: str, index: str
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    path = tmp_path / "rows.csv"
    path.write_text("t,a,b,g\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    options = ["--min", "a", "--max", "b", "--time", "t", "--duration", str(duration)]
    options += ["--method", method, "--index", index] + (["--by", "g"] if by else [])
    expected = window_changes(
        [(a, -b) for _, a, b, _ in rows],
        [t for t, _, _, _ in rows],
        list(range(1, len(rows) + 1)),
        duration=duration,
        by=[g for _, _, _, g in rows] if by else None,
    )
    assert lines(run(str(path), *options)) == [f"{t},{change},{one}" for t, change, one in expected]


@pytest.mark.parametrize(
    ("first", "second", "gone"),
    [
        ("2024-01-01 00:00:00", "2024-01-01 00:00:20", "2024-01-01 00:00:15"),
        ("2024-01-01T00:00:00", "2024-01-01T00:00:20", "2024-01-01T00:00:15"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:20Z", "2024-01-01T00:00:15Z"),
    ],
)
def test_timestamps_keep_their_form(tmp_path: Path, first: str, second: str, gone: str) -> None:
    path = tmp_path / "stamps.csv"
    path.write_text(f"t,v\n{first},1\n{second},2\n")
    found = lines(run(str(path), "--min", "v", "--time", "t", "--duration", "15s"))
    assert found == [f"{first},+,1", f"{gone},-,1", f"{second},+,2"]
    assert lines(run(str(path), "--min", "v", "--time", "t", "--duration", "15s", "--until", second)) == found


def test_ids_stay_the_text_they_are(tmp_path: Path) -> None:
    path = tmp_path / "ids.csv"
    path.write_text('k,v\n007,1\n"a,b",1\n')
    found = list(csv.reader(io.StringIO(run(str(path), "--min", "v", "--id", "k", "--count", "5").stdout)))
    assert found[1:] == [["1", "+", "007"], ["2", "+", "a,b"]]


def test_rows_out_of_order_need_lateness_and_are_never_silently_dropped(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("t,v\n1,5\n4,6\n2,4\n9,\n")
    options = [str(path), "--min", "v", "--time", "t", "--duration", "9", "--nulls", "drop"]
    result = run(*options)
    assert lines(result) == ["1,+,1"]
    assert result.stderr.count("\n") == 1
    assert "2 row(s) not taken" in result.stderr and "row 3" in result.stderr
    letters = tmp_path / "dead.csv"
    result = run(*options, "--dead-letters", str(letters))
    assert result.stderr == ""
    assert [row.split(",")[1] for row in letters.read_text().splitlines()] == ["row", "3", "4"]
    assert lines(run(*options, "--lateness", "2")) == ["1,+,1", "2,-,1", "2,+,3"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--min", "price"], ["--count", "--duration"]),
        (["--min", "price", "--count", "2", "--duration", "3", "--time", "at"], ["either"]),
        (["--min", "price", "--duration", "3"], ["--time"]),
        (["--min", "price", "--count", "2", "--time", "at"], ["--duration"]),
        (["--min", "price", "--count", "0"], ["--count"]),
        (["--min", "price", "--count", "x"], ["--count"]),
        (["--count", "2"], ["--min"]),
        (["--min", "cost", "--count", "2"], ["offers.csv", "cost", "price"]),
        (["--min", "price", "--count", "2", "--id", "name"], ["offers.csv", "name"]),
        (["--min", "offer", "--count", "2"], ["offers.csv", "row 1", "offer", "'a'"]),
        (["--min", "price", "--time", "offer", "--duration", "3"], ["offers.csv", "times"]),
        (["--min", "price", "--time", "at", "--duration", "3s"], ["plain numbers"]),
        (["--min", "price", "--time", "at", "--duration", "-3"], ["-3"]),
        (["--min", "price", "--time", "at", "--duration", "soon"], ["soon"]),
        (["--min", "price", "--time", "at", "--duration", "3", "--until", "noon"], ["noon"]),
        (["--min", "price", "--time", "at", "--duration", "9", "--id", "twice"], ["row 2", "'k'", "live"]),
        (["--min", "hole", "--count", "2"], ["row 3", "hole", "missing"]),
        (["--min", "price", "--time", "hole", "--duration", "9"], ["row 3", "time"]),
        (["--min", "price", "--count", "2", "-o", "out.xlsx"], ["out.xlsx"]),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(tmp_path: Path, arguments: list[str], parts: list[str]) -> None:
    path = tmp_path / "offers.csv"
    path.write_text("at,offer,price,twice,hole\n1,a,3,k,1\n2,b,2,k,2\n3,c,1,m,\n")
    target = tmp_path / "changes.csv"
    extra = [] if "-o" in arguments else ["-o", str(target)]
    result = run(str(path), *arguments, *extra)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1 and result.stdout == ""
    assert all(part in result.stderr for part in parts), result.stderr
    assert sorted(one.name for one in tmp_path.iterdir()) == ["offers.csv"]


def test_a_file_without_rows_gives_the_header_alone(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("t,v\n")
    for options in (["--count", "2"], ["--time", "t", "--duration", "2"]):
        assert lines(run(str(path), "--min", "v", *options)) == []


def test_the_standard_output_of_a_failed_run_stays_empty(offers: str) -> None:
    result: Any = run(offers, "--min", "offer", "--count", "2")
    assert result.exit_code == 2 and result.stdout == ""


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.time32("s"), pa.time64("us")], ids=str)
def test_lengths_of_time_and_times_of_day_are_no_times(kind: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"t": pa.array([1, 2], kind), "a": [1.0, 2.0]}), path)
    for command in ("window", "verify"):
        line = refused(command, path, "--min", "a", "--time", "t", "--duration", "5s")
        assert "column 't': the column holds" in line and "not times" in line
