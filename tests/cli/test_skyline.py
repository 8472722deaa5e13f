"""`skytide skyline`: the right rows, whole and in order, from every kind of file, in chunks of any size."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import moocore
import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.batch import skyline
from skytide.cli._engines import local_skyline
from skytide.model import MissingPolicy, Preference
from skytide.streams.files import csv_bytes, open_data, write_table
from tests.cli.command import rows_of, run

CARS = b"""name,price,mpg,city
Ada,20,30,Rome
"Bo, the 2nd",25,40,Oslo
Cy,30,35,Rome
"",20,30,Oslo
,19,10,Oslo
"""


def test_the_rows_of_the_skyline_come_out_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "cars.csv").write_bytes(CARS)
    result = run("skyline", tmp_path / "cars.csv", "--min", "price", "--max", "mpg")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.encode() == CARS.replace(b"Cy,30,35,Rome\n", b"")


def test_by_gives_a_skyline_per_group_in_input_order(tmp_path: Path) -> None:
    (tmp_path / "cars.csv").write_bytes(CARS)
    result = run("skyline", tmp_path / "cars.csv", "--min", "price", "--max", "mpg", "--by", "city")
    assert result.stdout.encode() == CARS


def test_standard_input_is_read_as_csv() -> None:
    assert run("skyline", "-", "--max", "mpg", stdin=CARS).stdout == 'name,price,mpg,city\n"Bo, the 2nd",25,40,Oslo\n'


def test_a_header_without_rows_has_an_empty_skyline(tmp_path: Path) -> None:
    for content in (b"a,b\n", b"a,b", b"a,b\r\n\r\n"):
        result = run("skyline", "-", "--min", "a", stdin=content)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "a,b\n", "")
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "a.parquet")
    assert run("skyline", tmp_path / "a.parquet", "--min", "a").stdout == "a\n"
    assert run("skyline", tmp_path / "a.parquet", "--min", "a", "-o", tmp_path / "b.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "b.parquet").num_rows == 0


@pytest.mark.parametrize(("policy", "kept"), [("drop", ["2,2"]), ("worst", ["1,", "2,2", "nan,1"])])
def test_missing_values_follow_the_policy(policy: str, kept: list[str]) -> None:
    result = run("skyline", "-", "--min", "a", "--min", "b", "--nulls", policy, stdin=b"a,b\n1,\n2,2\nnan,1\n2,NA\n")
    assert result.stdout.splitlines()[1:] == kept


def test_a_number_that_only_later_rows_show_to_be_no_whole_number_is_kept() -> None:
    rows = "".join(f"{2 * n + 10}\n" for n in range(300_000))
    result = run("skyline", "-", "--min", "a", stdin=f"a\n{rows}9.5\n9.50\n".encode())
    assert result.stdout == "a\n9.5\n9.50\n"


def test_times_and_truth_values_in_csv_are_preferences_too() -> None:
    content = b"t,ok\n2020-01-02,true\n2020-01-01 23:00,false\n2020-01-02,false\n"
    assert run("skyline", "-", "--max", "t", stdin=content).stdout.splitlines()[1:] == [
        "2020-01-02,true",
        "2020-01-02,false",
    ]
    assert run("skyline", "-", "--max", "ok", stdin=content).stdout.splitlines()[1:] == ["2020-01-02,true"]


def test_every_format_gives_the_same_rows_in_every_format(tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": pa.array([3, 1, 2, 2**53, 1], pa.int64()),
            "x": [0.1, 2.0, 1.5, -0.0, 2.0],
            "s": ["a,b", None, 'q"', "", "ä"],
            "t": pa.array([0, 1, 2, 3, None], pa.timestamp("us")),
            "b": [True, None, False, True, True],
            "big": pa.array([2**63 - 1, -(2**63), None, 0, 1], pa.int64()),
        }
    )
    expected = table.filter(pa.array([True, True, True, True, True]))
    for name in ("in.csv", "in.parquet", "in.jsonl"):
        write_table(str(tmp_path / name), table)
    for source in ("in.csv", "in.parquet", "in.jsonl"):
        options = ["skyline", str(tmp_path / source), "--min", "n", "--min", "x"]
        assert run(*options).stdout.encode() == csv_bytes(expected)
        for target in ("out.csv", "out.parquet", "out.jsonl"):
            assert run(*options, "-o", tmp_path / target).exit_code == 0
        assert (tmp_path / "out.csv").read_bytes() == csv_bytes(expected)
        found = pq.read_table(tmp_path / "out.parquet")
        if source != "in.jsonl":
            assert found.equals(expected)
        assert [found[name].to_pylist() for name in ("n", "x", "s", "b", "big")] == [
            expected[name].to_pylist() for name in ("n", "x", "s", "b", "big")
        ]
        records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert [record["big"] for record in records] == expected["big"].to_pylist()
        assert records[2]["t"] == "1970-01-01 00:00:00.000002"


def test_a_folder_is_read_in_the_order_of_names_and_foreign_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_bytes(b"a,b\n1,5\n")
    (tmp_path / "a.csv").write_bytes(b"b,a\n5,1\n0,9\n")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "notes.txt").write_text("")
    result = run("skyline", tmp_path, "--min", "a")
    assert result.stdout == "b,a\n5,1\n5,1\n"
    assert result.stderr.count("\n") == 1 and "notes.txt" in result.stderr
    pq.write_table(pa.table({"a": [1, 2], "b": [0.5, 1.0]}), tmp_path / "c.parquet")
    assert [row["b"] for row in rows_of(run("skyline", tmp_path, "--min", "a").stdout)] == ["5.0", "5.0", "0.5"]


def test_the_same_rows_as_moocore_on_data_with_many_ties(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    for d in (2, 3, 5):
        values = random.integers(0, 6, (3000, d)).astype(float)
        names = [f"x{place}" for place in range(d)]
        write_table(
            str(tmp_path / "in.parquet"), pa.table({"id": np.arange(3000)} | dict(zip(names, values.T, strict=True)))
        )
        result = run("skyline", tmp_path / "in.parquet", *(word for name in names for word in ("--min", name)))
        found = [int(row["id"]) for row in rows_of(result.stdout)]
        assert found == np.flatnonzero(moocore.is_nondominated(values, keep_weakly=True)).tolist()


cells = st.one_of(st.integers(0, 3), st.sampled_from([None, float("inf"), float("-inf"), 1.797e308, 5e-324, -0.0, 0.5]))


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(cells, cells, st.sampled_from(["a", "b", None])), max_size=30),
    chunk_rows=st.integers(1, 12),
    policy=st.sampled_from(["drop", "worst"]),
    grouped=st.booleans(),
    extension=st.sampled_from(["csv", "parquet", "jsonl"]),
    cut=st.integers(0, 30),
)
def test_in_chunks_of_any_size_and_in_any_files_the_skyline_is_that_of_the_whole(
    rows: list[tuple[float | None, float | None, str | None]],
    chunk_rows: int,
    policy: MissingPolicy,
    grouped: bool,
    extension: str,
    cut: int,
) -> None:
    preference = Preference(minimize=["x"], maximize=["y"], by=["g"] if grouped else [])
    table = pa.table(
        {
            "row": pa.array(range(len(rows)), pa.int64()),
            "x": pa.array([row[0] for row in rows], pa.float64()),
            "y": pa.array([row[1] for row in rows], pa.float64()),
            "g": pa.array([row[2] for row in rows], pa.string()),
        }
    )
    expected = np.flatnonzero(skyline(table, preference, nulls=policy)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        parts = [table.slice(0, cut), table.slice(cut)]
        if extension == "jsonl":
            parts = [part for part in parts if part.num_rows] or []
        for place, part in enumerate(parts):
            write_table(f"{folder}/{place}.{extension}", part)
        if not parts:
            return
        with open_data(folder) as source:
            found = local_skyline(source, preference, policy, chunk_rows=chunk_rows)
    assert [int(row) for row in found["row"].to_pylist()] == expected


def test_a_picture_is_drawn_in_each_format(tmp_path: Path) -> None:
    run("generate", "anti-correlated", "-n", "500", "-d", "4", "-o", tmp_path / "in.csv")
    minimum = ["--min", "x1", "--min", "x2", "--max", "x3"]
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for kind, start in starts.items():
        for columns in ([], ["--plot-columns", "x4,x1"]):
            path = tmp_path / f"picture.{kind}"
            result = run("skyline", tmp_path / "in.csv", *minimum, "--plot", path, *columns, "-o", tmp_path / "out.csv")
            assert result.exit_code == 0, result.stderr
            assert path.read_bytes().startswith(start)
            path.unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_a_picture_of_nothing_is_drawn_too(tmp_path: Path) -> None:
    result = run("skyline", "-", "--min", "a", "--min", "b", "--plot", tmp_path / "p.png", stdin=b"a,b\n")
    assert result.exit_code == 0
    assert (tmp_path / "p.png").exists()


def test_csv_output_reads_back_as_the_table_it_was(tmp_path: Path) -> None:
    table = pa.table(
        {"i": [1, 2], "f": [1.0, 1e22], "s": ["x", 'a "b"\n,'], "u": pa.array([2**64 - 1, 0], pa.uint64())}
    )
    pq.write_table(table, tmp_path / "in.parquet")
    run("skyline", tmp_path / "in.parquet", "--min", "i", "--max", "f", "-o", tmp_path / "out.csv")
    options = arrow_csv.ConvertOptions(column_types={"u": pa.uint64()})
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    assert arrow_csv.read_csv(tmp_path / "out.csv", convert_options=options, parse_options=parse).equals(table)
