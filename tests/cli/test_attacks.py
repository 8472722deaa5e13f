"""What odd files and odd options may try on the command line: the exact answer, or one line that names the place."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.command import refused, run


def _file(folder: Path, content: str, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


TIMES = ("--min", "v", "--time", "t")


@pytest.mark.parametrize("length", ["inf", "1e400", "nan", "-1", "0", "5x", "-5s"])
def test_lengths_of_windows_that_are_none_are_refused(length: str, tmp_path: Path) -> None:
    data = _file(tmp_path, "t,v\n1,5\n2,4\n")
    assert "is not a" in refused("window", data, *TIMES, "--duration", length)
    if length != "0":
        assert "is not a" in refused("window", data, *TIMES, "--duration", "2", f"--lateness={length}")


def test_a_length_beyond_all_numbers_keeps_the_times_as_they_are_written(tmp_path: Path) -> None:
    data = _file(tmp_path, "t,v\n1,5\n2,6\n")
    assert run("window", data, *TIMES, "--duration", "1" + "0" * 33).stdout == "time,change,id\n1,+,1\n"
    assert run("window", data, "--min", "v", "--count", "9" * 30).stdout == "time,change,id\n1,+,1\n"


@pytest.mark.parametrize(
    ("first", "until", "end"),
    [
        ("2024-03-10", "2024-03-15", "2024-03-11"),
        ("2024-03-10T00:00:00+01:00", "2024-03-15T00:00:00+0100", "2024-03-10T23:00:00Z"),
        ("2024-03-10T00:00:00Z", "2024-03-15T00:00:00Z", "2024-03-11T00:00:00Z"),
        ("2024-03-10 00:00:00.000000001", "2024-03-15 00:00:00.000000001", "2024-03-11 00:00:00.000000001"),
    ],
)
def test_until_is_written_as_the_times_of_the_rows(first: str, until: str, end: str, tmp_path: Path) -> None:
    data = _file(tmp_path, f"t,v\n{first},5\n")
    lines = run("window", data, *TIMES, "--duration", "1d", "--until", until).stdout.splitlines()
    assert len(lines) == 3 and lines[2] == f"{end},-,1"


@pytest.mark.parametrize(
    ("first", "length", "until"),
    [
        ("1", "2", "nan"),
        ("1", "2", "inf"),
        ("1", "2", "1.5"),
        ("1", "2", "1e300"),
        ("1", "2", "2024-01-01"),
        ("1.5", "2", "1e999"),
        ("2024-03-10T00:00:00Z", "1d", "2024-03-15"),
        ("2024-03-10T00:00:00", "1d", "2024-03-15T00:00:00Z"),
        ("2024-03-10T00:00:00", "1d", "5"),
    ],
)
def test_an_until_of_another_kind_is_refused_before_any_output(
    first: str, length: str, until: str, tmp_path: Path
) -> None:
    data = _file(tmp_path, f"t,v\n{first},5\n")
    assert repr(until) in refused("window", data, *TIMES, "--duration", length, "--until", until)


def test_dates_in_give_dates_out_unless_the_window_cuts_days(tmp_path: Path) -> None:
    data = _file(tmp_path, "t,v\n2024-03-10,5\n2024-03-11,4\n")
    assert run("window", data, *TIMES, "--duration", "1d").stdout.splitlines()[1:] == [
        "2024-03-10,+,1",
        "2024-03-11,-,1",
        "2024-03-11,+,2",
    ]
    assert run("window", data, *TIMES, "--duration", "12h").stdout.splitlines()[2] == "2024-03-10 12:00:00,-,1"
    out = tmp_path / "out.parquet"
    run("window", data, *TIMES, "--duration", "1d", "-o", out)
    assert str(pq.read_table(out).schema.field("time").type) == "date32[day]"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("t,v\n1.5,5\nabc,4\n", ["row 2", "column 't'", "'abc' is not a time"]),
        ("t,v\n2024-01-01,5\n7,4\n", ["column 't'", "several kinds"]),
        ("t,v,id\n1,5,a\n2,4,\n", ["row 2", "the id is missing"]),
        ("t,v,id\n1,5,a\n2,4,a\n", ["row 2", "'a' is the id of two rows"]),
    ],
)
def test_a_bad_time_or_id_is_named_by_its_place(content: str, says: list[str], tmp_path: Path) -> None:
    data = _file(tmp_path, content)
    more = ("--id", "id") if "id" in content else ()
    line = refused("window", data, *TIMES, "--duration", "2", *more, "-o", tmp_path / "out.csv")
    assert all(one in line for one in [str(data), *says])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv"]


def test_ids_come_out_as_they_are_however_large_or_odd(tmp_path: Path) -> None:
    large = _file(tmp_path, '{"t":1,"v":5,"id":18446744073709551615}\n{"t":2,"v":5,"id":1}\n', "large.jsonl")
    lines = run("window", large, *TIMES, "--duration", "9", "--id", "id").stdout.splitlines()
    assert lines[1:] == ["1,+,18446744073709551615", "2,+,1"]
    odd = _file(tmp_path, 't,v,id\n1,5,007\n1,5,7\n1,5,"x,""y"\n')
    lines = run("window", odd, *TIMES, "--duration", "9", "--id", "id").stdout.splitlines()
    assert lines[1:] == ["1,+,007", "1,+,7", '1,+,"x,""y"']


def test_the_time_may_be_the_id(tmp_path: Path) -> None:
    data = _file(tmp_path, "t,v\n10,5\n20,5\n")
    lines = run("window", data, *TIMES, "--duration", "99", "--id", "t").stdout.splitlines()
    assert lines[1:] == ["10,+,10", "20,+,20"]


def test_the_output_and_the_dead_letters_are_two_files(tmp_path: Path) -> None:
    data = _file(tmp_path, "v\n1\n")
    out = tmp_path / "out.csv"
    folder = tmp_path / "folder"
    folder.mkdir()
    other = folder / ".." / "out.csv"
    assert "same file" in refused("window", data, "--min", "v", "--count", "2", "-o", out, "--dead-letters", other)
    assert not out.exists()


def test_names_that_look_like_options_byte_order_marks_and_line_ends_are_no_trouble(tmp_path: Path) -> None:
    data = _file(tmp_path, '\ufefft,"pr ice",--min,äö\r\n1,5,2,3\r\n2,4,1,9\r\n')
    assert run("skyline", data, "--min=--min", "--max", "äö").stdout == "t,pr ice,--min,äö\n2,4,1,9\n"
    found = run("window", data, "--min", "pr ice", "--time", "t", "--duration", "2").stdout
    assert found == "time,change,id\n1,+,1\n2,-,1\n2,+,2\n"
