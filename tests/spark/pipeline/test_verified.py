"""`skytide verify run`: right pipelines pass, a wrong one is caught, and the user's folders stay as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from skytide.cli._verify import pipelines, runs
from tests.cli.command import refused, run
from tests.spark.pipeline.files import pipeline_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
[source]
format = "csv"
path = "in"
stream = {stream}
schema = "id STRING, t INT, a DOUBLE, b DOUBLE, g STRING, p DOUBLE, site STRING"
[query]
{query}
[sink]
format = "parquet"
path = "out"
[run]
trigger = "once"
checkpoint = "checkpoint"
"""
PLAIN = 'min = ["a"]\nmax = ["b"]\n'
NAMED = f'{PLAIN}id = "id"\ntime = "t"\n'
QUERIES = {
    "skyline": f'kind = "skyline"\n{PLAIN}by = "g"',
    "window": f'kind = "window"\n{NAMED}by = "g"\nduration = 4\nuntil = 40',
    "count": f'kind = "window"\n{NAMED}count = 7',
    "uncertain": f'kind = "uncertain"\n{NAMED}duration = 4\nprob = "p"\nthreshold = [0.2, 0.5]',
    "frequent": f'kind = "frequent"\n{NAMED}by = "g"\nop = "add"\ntheta = 0.5\nover = 3',
    "monitor": f'kind = "monitor"\n{NAMED}method = "hybrid"\ntheta = 0.5\nover = 9\nepsilon = 0.9\ndelta = 0.9',
    "fragments": 'kind = "fragments"\nmin = ["a"]\nmax = ["norm(a, b)"]\nid = "id"\ntime = "t"\nsite = "site"',
}


def folder_of(tmp_path: Path, query: str, stream: bool = False) -> Path:
    path = pipeline_file(tmp_path, FILE.format(query=query, stream=str(stream).lower()))
    lines = [
        f"r{row % 13},{row // 3},{row * 7 % 5},{row * 5 % 4},{'xy'[row % 13 % 2]},0.{1 + row % 9},s{row % 13 % 3}"
        for row in range(80)
    ]
    lines += ["r0,30,,1,x,0.5,s0"] if "fragments" not in query and "skyline" not in query else []
    (tmp_path / "in" / "rows.csv").write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", QUERIES)
def test_a_table_through_every_kind_of_query_agrees(name: str, spark: SparkSession, tmp_path: Path) -> None:
    path = folder_of(tmp_path, QUERIES[name])
    before = sorted(tmp_path.rglob("*"))
    result = run("verify", "run", path, "--json")
    assert result.exit_code == 0, result.stdout + result.stderr
    (told,) = json.loads(result.stdout)["runs"]
    assert told["result"] == "agrees" and told["instants_checked"] == told["instants"] > 0
    assert sorted(tmp_path.rglob("*")) == before


def test_a_stream_agrees_as_far_as_it_is_closed(spark: SparkSession, tmp_path: Path) -> None:
    path = folder_of(tmp_path, QUERIES["window"].replace("\nuntil = 40", ""), stream=True)
    result = run("verify", "run", path)
    assert result.exit_code == 0 and "window  changes" in result.stdout, result.stdout + result.stderr


def test_a_pipeline_that_is_wrong_is_caught(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(table: pa.Table, unit: Any) -> Any:
        return runs.stream_of(table.slice(0, table.num_rows - 1), unit)

    monkeypatch.setattr(pipelines, "stream_of", wrong)
    result = run("verify", "run", folder_of(tmp_path, QUERIES["window"]))
    assert result.exit_code == 1 and "the answer is another one (time " in result.stdout


def test_what_cannot_be_compared_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = folder_of(tmp_path, QUERIES["count"] + '\nby = "g"')
    assert "cannot be compared with `by`" in refused("verify", "run", path)
    path = folder_of(tmp_path, QUERIES["window"] + '\nemit = "net"')
    assert "instant by instant" in refused("verify", "run", path)
    path = folder_of(tmp_path, f'kind = "snapshots"\n{NAMED}op = "g"')
    assert "is a column of operations" in refused("verify", "run", path)
    assert "-o is for commands over DATA" in refused("verify", "run", path, "-o", tmp_path / "rows.csv")
    text = path.read_text().replace('format = "csv"\npath = "in"', 'format = "rate"')
    path.write_text(text)
    assert "is not a source of files" in refused("verify", "run", path)
    assert "one pipeline" in refused("verify", "run")


def test_rows_that_live_together_with_one_id_are_refused_and_names_in_groups_are_kept_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    query = f'kind = "window"\n{NAMED}by = "g"\nduration = 4'
    path = folder_of(tmp_path, query)
    (tmp_path / "in" / "rows.csv").write_text("x,1,1,1,g,1,s\nx,3,2,2,g,1,s\n")
    assert "two rows that live at the same time" in refused("verify", "run", path)
    (tmp_path / "in" / "rows.csv").write_text("a/b,1,1,1,c,1,s\na,1,1,1,b/c,1,s\nd,2,0,2,c,1,s\n")
    result = run("verify", "run", path)
    assert result.exit_code == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("letters", "words"),
    [(["bad"], "1 row(s) were left out"), (["late"] * 90, "90 row(s) are said to be late"), (["late"], "not run")],
)
def test_rows_that_were_not_taken_are_counted(
    letters: list[str], words: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder_of(tmp_path, QUERIES["uncertain"])
    (tmp_path / "in" / "rows.csv").write_text("x,1,1,1,g,1,s\ny,3,2,2,g,1,s\n")
    monkeypatch.setattr(pipelines, "_letters", lambda folder: letters)
    result = run("verify", "run", path)
    assert result.exit_code == (0 if words == "not run" else 1) and words in result.stdout
