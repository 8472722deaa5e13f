"""Bad input: one line on standard error that says where, exit status 2, and no output file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import refused, run

GOOD = b"id,price,mpg,brand\n1,20,30,a\n2,25,40,b\n"

# What the file holds, the options beside it, and what the line must say.
BAD_CSV: dict[str, tuple[bytes, list[str], list[str]]] = {
    "empty file": (b"", ["--min", "price"], ["data.csv", "empty"]),
    "only a byte order mark": (b"\xef\xbb\xbf", ["--min", "price"], ["data.csv"]),
    "unknown column": (GOOD, ["--min", "prize"], ["data.csv", "'prize'", "price"]),
    "unknown by column": (GOOD, ["--min", "price", "--by", "city"], ["data.csv", "'city'"]),
    "no preference": (GOOD, [], ["--min", "--max"]),
    "only by": (GOOD, ["--by", "brand"], ["--min", "--max"]),
    "both ways": (GOOD, ["--min", "price", "--max", "price"], ["'price'"]),
    "by a preference": (GOOD, ["--min", "price", "--by", "price"], ["'price'"]),
    "twice the same": (GOOD, ["--min", "price", "--min", "price"], ["'price'"]),
    "text as preference": (GOOD, ["--min", "brand"], ["data.csv", "row 1", "'brand'", "'a'"]),
    "text in a later row": (b"a,b\n1,2\n3,4\n5,x5\n", ["--min", "b"], ["data.csv", "row 3", "'b'", "'x5'"]),
    "missing value": (b"a,b\n1,2\n3,\n", ["--min", "b"], ["data.csv", "row 2", "'b'", "missing"]),
    "NaN": (b"a,b\n1,2\n3,nan\n", ["--min", "b"], ["data.csv", "row 2", "'b'", "missing"]),
    "first of two missing": (b"a,b\n1,\n,1\n", ["--min", "a", "--min", "b"], ["row 1", "'b'"]),
    "short row": (b"a,b\n1,2\n3\n5,6\n", ["--min", "a"], ["data.csv", "row 2", "1 value", "2 column"]),
    "long row": (b"a,b\n1,2\n3,4\n5,6,7\n", ["--min", "a"], ["data.csv", "row 3", "3 value"]),
    "not UTF-8": (b"a,b\n1,x\n2,\xff\xfe\n", ["--min", "a"], ["data.csv", "row 2", "'b'", "UTF-8"]),
    "header not UTF-8": (b"a,\xff\n1,2\n", ["--min", "a"], ["data.csv", "UTF-8"]),
    "open quote": (b'a,b\n1,x\n2,"y\n3,z\n4,w\n', ["--min", "a"], ["data.csv", "row 2", "quote"]),
    "open quote in the header": (b'a,"b\n1,2\n', ["--min", "a"], ["data.csv", "quote"]),
    "duplicate columns": (b"a,b,a\n1,2,3\n", ["--min", "b"], ["data.csv", "'a'"]),
    "inexact number": (b"a\n1\n9007199254740993\n", ["--min", "a"], ["row 2", "'a'", "9007199254740993"]),
    "number beyond float64": (b"a\n1\n1e999\n", ["--min", "a"], ["row 2", "'a'", "1e999"]),
    "times, then a word": (b"a\n2020-01-01\nsoon\n", ["--max", "a"], ["row 2", "'a'", "'soon'"]),
    "unknown policy": (GOOD, ["--min", "price", "--nulls", "ignore"], ["--nulls", "ignore"]),
    "unknown engine": (GOOD, ["--min", "price", "--engine", "magic"], ["--engine", "magic"]),
    "unknown option": (GOOD, ["--min", "price", "--sort"], ["--sort"]),
    "option without value": (GOOD, ["--min"], ["skytide skyline"]),
    "plot of one column": (GOOD, ["--min", "price", "--plot", "p.png"], ["two or three"]),
    "plot of no column": (
        GOOD,
        ["--min", "price", "--max", "mpg", "--plot", "p.png", "--plot-columns", "price,hue"],
        ["'hue'"],
    ),
    "plot extension": (GOOD, ["--min", "price", "--max", "mpg", "--plot", "p.gif"], ["p.gif", ".png"]),
    "plot folder": (GOOD, ["--min", "price", "--max", "mpg", "--plot", "none/p.png"], ["none/p.png"]),
    "plot columns without plot": (GOOD, ["--min", "price", "--plot-columns", "price,mpg"], ["--plot"]),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_csv_is_refused_in_one_line_and_leaves_no_file(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, options, says = BAD_CSV[case]
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_bytes(content)
    line = refused("skyline", "data.csv", *options, "-o", "out.csv")
    for word in says:
        assert word in line
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize("case", [name for name, (content, _, _) in BAD_CSV.items() if content != GOOD])
def test_bad_csv_on_standard_input_is_refused_alike(case: str) -> None:
    content, options, says = BAD_CSV[case]
    line = refused("skyline", "-", *options, stdin=content)
    for word in says:
        assert ("standard input" if word == "data.csv" else word) in line


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", ["empty"]),
        (b'{"a": 1}\n{"a": 2\n', ["row 2", "JSON"]),
        (b'{"a": 1}\n[2]\n', ["row 2", "object"]),
        (b'{"a": 1}\n{"a": "\xff"}\n', ["row 2", "UTF-8"]),
        (b'{"a": 1}\n\n{"a": "x"}\n', ["row 2", "'a'", "'x'"]),
        (b'{"a": "x"}\n', ["row 1", "'a'", "'x'"]),
        (b'{"a": 1}\n{"a": null}\n', ["row 2", "'a'", "missing"]),
        (b'{"a": 1}\n{"b": 1}\n', ["row 2", "'a'", "missing"]),
        (b'{"a": 1}\n{"a": [1]}\n', ["row 2", "'a'", "[1]"]),
        (b'{"a": 1.5}\n{"a": 9007199254740993}\n', ["row 2", "'a'", "9007199254740993"]),
        (b'{"b": 1}\n', ["'a'", "no such column"]),
    ],
)
def test_bad_json_lines_are_refused_in_one_line(content: bytes, says: list[str], tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_bytes(content)
    line = refused("skyline", tmp_path / "data.jsonl", "--min", "a", "-o", tmp_path / "out.csv")
    for word in ["data.jsonl", *says]:
        assert word in line
    assert not (tmp_path / "out.csv").exists()


def test_bad_parquet_is_refused_in_one_line(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"a": list(range(1000)), "s": ["x"] * 1000}), whole)
    content = whole.read_bytes()
    for name, part in {"cut": content[:-100], "empty": b"", "other": b"a,b\n1,2\n"}.items():
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(part)
        line = refused("skyline", path, "--min", "a", "-o", tmp_path / "out.parquet")
        assert f"{name}.parquet" in line
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(content[:4] + b"\xff" * 400 + content[404:])
    assert "damaged.parquet" in refused("skyline", damaged, "--min", "a")
    assert "row 1" in refused("skyline", whole, "--min", "s")
    assert not (tmp_path / "out.parquet").exists()


def test_missing_values_in_parquet_are_named_by_file_and_row_also_in_a_folder(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "part-1.parquet")
    pq.write_table(pa.table({"a": [1.0, 2.0, None]}), tmp_path / "part-2.parquet")
    line = refused("skyline", tmp_path, "--min", "a")
    for word in ("part-2.parquet", "row 3", "'a'"):
        assert word in line


def test_files_that_are_not_there_or_not_known_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data.xlsx").write_bytes(GOOD)
    (tmp_path / "empty").mkdir()
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "readme.txt").write_text("nothing")
    for name in ("none.csv", "data.xlsx", "empty", "others"):
        assert name in refused("skyline", tmp_path / name, "--min", "price")


def test_a_folder_of_files_with_different_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_bytes(b"a,b\n1,2\n")
    (tmp_path / "2.csv").write_bytes(b"a,c\n1,2\n")
    line = refused("skyline", tmp_path, "--min", "a")
    assert "2.csv" in line and "different columns" in line
    (tmp_path / "2.csv").unlink()
    pq.write_table(pa.table({"a": ["x"], "b": [1]}), tmp_path / "2.parquet")
    line = refused("skyline", tmp_path, "--min", "b")
    assert "2.parquet" in line and "'a'" in line


@pytest.mark.parametrize("name", ["out.txt", "out", "none/out.csv", "folder.csv"])
def test_an_output_file_that_cannot_be_written_is_refused_before_any_work(name: str, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(GOOD)
    (tmp_path / "folder.csv").mkdir()
    for command in (["skyline", tmp_path / "data.csv", "--min", "price"], ["generate", "independent", "-n", "3"]):
        assert name in refused(*command, "-o", tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "folder.csv"]


def test_an_existing_output_file_survives_a_run_that_fails(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(b"a\n1\nx\n")
    (tmp_path / "out.csv").write_text("before")
    refused("skyline", tmp_path / "data.csv", "--min", "a", "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "before"


def test_usage_errors_of_every_command_are_one_line() -> None:
    refused("no-such-command")
    refused("--no-such-option")
    refused("skyline")
    for name in run("--help").stdout.split("Commands:")[1].split("\n"):
        if name.strip():
            assert refused(name.split()[0], "--no-such-option")


def test_a_missing_id_column_and_an_unknown_row_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(GOOD + b"2,26,39,b\n")
    options = ["--min", "price", "--max", "mpg"]
    assert "'key'" in refused("explain", path, *options, "--row", "1", "--id", "key")
    for row in ("0", "4", "-1", "x", "1.0"):
        assert repr(row) in refused("explain", path, *options, "--row", row)
    assert "'7'" in refused("explain", path, *options, "--row", "7", "--id", "id")
    assert "rows 2 and 3" in refused("explain", path, *options, "--row", "2", "--id", "id")
    (tmp_path / "none.csv").write_bytes(b"price,mpg\n")
    assert "none.csv" in refused("explain", tmp_path / "none.csv", *options, "--row", "1")
    (tmp_path / "gap.csv").write_bytes(b"price,mpg\n1,\n2,3\n")
    assert "row 1" in refused("explain", tmp_path / "gap.csv", *options, "--row", "1", "--nulls", "drop")


def test_bad_numbers_for_generators_are_refused() -> None:
    for options in (
        ["sideways", "-n", "3"],
        ["independent"],
        ["independent", "-n", "-1"],
        ["independent", "-n", "3", "-d", "0"],
        ["independent", "-n", "3", "--deviation", "0.1"],
        ["anti-correlated", "-n", "3", "--deviation", "7"],
        ["anti-correlated", "-n", "3", "-d", "99"],
        ["uncertain", "-n", "3", "--mean", "2", "--probabilities", "normal"],
    ):
        refused("generate", *options)
