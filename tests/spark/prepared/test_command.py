"""`skytide prepare` with Spark behind it: what it writes is in order, usable, and in place only when all went well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.cli.command import refused, rows_of, run
from tests.spark.prepared.data import BEST, FILES, OPTIONS, in_order, last_states, write_data

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data [1] {a}*")
    write_data(folder)
    return folder


@pytest.mark.parametrize("name", sorted(FILES))
def test_updates_are_in_order_and_the_last_states_have_a_skyline(
    spark: SparkSession, data: Path, tmp_path: Path, name: str
) -> None:
    done = run("prepare", name, data, "-o", tmp_path / "out", *OPTIONS[name])
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["part-00000.parquet"]
    table = pq.read_table(tmp_path / "out" / "part-00000.parquet")
    assert f"{table.num_rows:,} updates" in done.stderr
    assert in_order(table) and not any(column.null_count for column in table.columns)
    states = last_states(table)
    pq.write_table(states, tmp_path / "states.parquet")
    best = run("skyline", tmp_path / "states.parquet", *BEST[name])
    ids = [row["id"] for row in rows_of(best.stdout)]
    assert 0 < len(ids) <= states.num_rows and len(set(ids)) == len(ids)


def test_more_files_hold_the_same_rows_in_the_same_order(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    for files in (1, 3):
        out = tmp_path / str(files)
        assert run("prepare", "ratings", data, "-o", out, "--sites", "3", "--files", str(files)).exit_code == 0
    parts = sorted((tmp_path / "3").iterdir())
    assert [part.name for part in parts] == [f"part-0000{number}.parquet" for number in range(3)]
    assert sorted(parts, key=lambda part: part.stat().st_mtime) == parts
    together = pa.concat_tables([pq.read_table(part) for part in parts])
    assert together.equals(pq.read_table(tmp_path / "1" / "part-00000.parquet"))


def test_changes_leaves_out_what_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    prices = [
        (day, symbol, 5.0 if symbol == "still" else 1.0 + day % 2) for day in range(12) for symbol in ("A", "still")
    ]
    days, symbols, closes = zip(*prices, strict=True)
    pyarrow.csv.write_csv(pa.table({"date": days, "symbol": symbols, "close": closes}), tmp_path / "prices.csv")
    options: list[str | Path] = ["prepare", "prices", tmp_path / "prices.csv", "--days", "2", "--decimals", "3"]
    assert run(*options, "-o", tmp_path / "all").exit_code == 0
    assert run(*options, "-o", tmp_path / "moved", "--changes").exit_code == 0
    full, moved = (pq.read_table(tmp_path / name / "part-00000.parquet").to_pylist() for name in ("all", "moved"))
    assert [row["time"] for row in full if row["id"] == "A"] == list(range(2, 12))
    assert moved == [row for row in full if row["id"] == "A" or row["time"] == 2] and len(moved) == 11


def test_columns_of_other_names_are_renamed(spark: SparkSession, tmp_path: Path) -> None:
    lines = ['{"when": 1, "rating": "who", "m": 5, "stars": 3.5}', '{"when": 2, "rating": "he", "m": 5, "stars": 1.5}']
    (tmp_path / "r.jsonl").write_text("\n".join(lines))
    names = ["ts=when", "user_id=rating", "movie_id=m", "rating=stars"]
    named = [text for name in names for text in ("--column", name)]
    assert (
        run("prepare", "ratings", tmp_path / "r.jsonl", "-o", tmp_path / "out", "--sites", "1", *named).exit_code == 0
    )
    found = pq.read_table(tmp_path / "out" / "part-00000.parquet").to_pylist()
    assert [(row["time"], row["average"], row["ratings"]) for row in found] == [(1, 3.5, 1), (2, 2.5, 2)]
    line = refused("prepare", "ratings", tmp_path / "r.jsonl", "-o", tmp_path / "no", "--column", "ts=never")
    assert "'never'" in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ts,user_id,movie_id\n1,2,3\n", "'rating'"),
        ("ts,user_id,movie_id,rating\n1,2,3,good\n", "not numbers"),
        ("ts,user_id,movie_id,rating\n", "no rows"),
        ("ts,user_id,movie_id,rating\n1,,3,4\n5,6,7,8\n", "'user_id'"),
        ("ts,user_id,movie_id,rating\n1,2,3,\n1,2,4,\n2,2,3,NaN\n", "no update"),
        ("ts,user_id,movie_id,rating\n1,2,3,4,5\n", "Malformed CSV record: 1,2,3,4,5"),
    ],
)
def test_bad_data_is_one_line_and_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "in.csv").write_text(text)
    assert words in refused("prepare", "ratings", tmp_path / "in.csv", "-o", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_updates_are_replaced_only_where_that_is_asked_for(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "_SUCCESS").touch()
    command: list[str | Path] = ["prepare", "ratings", data, "-o", out]
    assert run(*command, "--files", "2").exit_code == 0
    assert "--overwrite" in refused(*command)
    assert run(*command, "--overwrite").exit_code == 0
    assert [path.name for path in out.iterdir()] == ["part-00000.parquet"]
    own = refused("prepare", "ratings", out, "-o", out, "--overwrite", "--column", "ts=time")
    assert "DATA" in own
    (out / "notes.txt").touch()
    assert "notes.txt" in refused(*command, "--overwrite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
