"""`skytide verify run`: right pipelines pass, a wrong one is caught, and the user's folders stay as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from skytide.cli._verify import pipelines, runs
from skytide.errors import InputError
from skytide.spark.pipeline import running
from skytide.spark.pipeline.faults import RunFailedError
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
    ("kind", "letters", "words"),
    [
        ("uncertain", ["bad"], "1 row(s) were left out"),
        ("frequent", ["bad"], "1 row(s) were left out"),
        ("uncertain", ["late"] * 90, "90 row(s) are said to be late"),
        ("uncertain", ["late"], "not run"),
    ],
)
def test_rows_that_were_not_taken_are_counted(
    kind: str, letters: list[str], words: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder_of(tmp_path, QUERIES[kind])
    (tmp_path / "in" / "rows.csv").write_text("x,1,1,1,g,1,s\ny,3,2,2,g,1,s\n")
    monkeypatch.setattr(pipelines, "_letters", lambda folder: letters)
    result = run("verify", "run", path)
    assert result.exit_code == (0 if words == "not run" else 1) and words in result.stdout


# Each: whether it is a stream, the type of the times, the query, the rows, and how many instants there are to compare.
ODD: dict[str, tuple[bool, str, str, str, int]] = {
    "a stream that closes nothing writes nothing": (
        True,
        "INT",
        f'kind = "uncertain"\n{NAMED}duration = 4\nprob = "p"\nthreshold = 0.5',
        "x,1,1,1,g,1,s",
        0,
    ),
    "rows of a count window have a rank when their instant is closed": (
        True,
        "INT",
        f'kind = "window"\n{NAMED}count = 2',
        "x,1,5,1,g,1,s\ny,2,3,1,g,1,s\nz,3,1,1,g,1,s\nu,,9,1,g,1,s\n,2,0,9,g,1,s",
        2,
    ),
    "times as near to each other as ticks are may be closed or not": (
        True,
        "DOUBLE",
        f'kind = "window"\n{NAMED}duration = 4',
        "x,1000000.0,5,1,g,1,s\ny,1000005.0,3,1,g,1,s\nz,1000005.0000000002,1,1,g,1,s\nu,NaN,0,9,g,1,s\nv,Inf,0,9,g,1,s",
        2,
    ),
    "what makes a row bad is not for the policy to say": (
        False,
        "INT",
        f'kind = "uncertain"\n{NAMED}duration = 4\nprob = "p"\nthreshold = 0.2\nnulls = "worst"',
        "x,1,5,1,g,0.5,s\ny,1,,1,g,0.5,s\nz,1,0,9,g,2,s\nu,1,0,9,g,,s\nv,,0,9,g,1,s\n,1,0,9,g,1,s",
        1,
    ),
    "a group has snapshots of its own, and updates that are left out make none": (
        False,
        "INT",
        f'kind = "frequent"\n{NAMED}by = "g"\nop = "add"\ntheta = 1\nover = 2',
        "x,1,1,1,g,1,s\nx,2,1,1,g,1,s\nx,3,1,1,g,1,s\ny,1,Inf,1,h,1,s\ny,3,-Inf,1,h,1,s\ny,5,1,1,h,1,s",
        4,
    ),
    "of several updates that without an order comes first": (
        False,
        "INT",
        f'kind = "snapshots"\n{NAMED}order = "p"',
        "x,1,5,1,g,1,s\nx,1,1,1,g,,s\nx,1,2,1,g,NaN,s\ny,1,3,1,g,1,s",
        1,
    ),
    "a row without a site is bad": (False, "INT", QUERIES["fragments"], "x,1,5,1,g,1,s\ny,1,1,9,g,1,\n,1,1,9,g,1,s", 1),
    "time runs on to a moment in UTC": (
        False,
        "TIMESTAMP",
        f'kind = "window"\n{NAMED}duration = "1h"\nuntil = 2024-01-01T03:00:00',
        "x,2024-01-01 00:00:00,5,1,g,1,s\ny,2024-01-01 00:30:00,3,1,g,1,s",
        4,
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_rows_are_taken_as_spark_takes_them(name: str, spark: SparkSession, tmp_path: Path) -> None:
    stream, kind, query, rows, instants = ODD[name]
    path = folder_of(tmp_path, query, stream)
    path.write_text(path.read_text().replace("t INT", f"t {kind}"))
    (tmp_path / "in" / "rows.csv").write_text(rows + "\n")
    result = run("verify", "run", path, "--json")
    assert result.exit_code == 0, result.stdout + result.stderr
    (told,) = json.loads(result.stdout)["runs"]
    assert told["result"] == "agrees" and told["instants"] == instants


def failing(error: Exception) -> Callable[..., int]:
    def run(*rest: Any) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("outcome", "status", "words"),
    [
        (lambda *rest: 0, 1, "the answer is another one (time 0); missing: a/x, b/x"),
        (lambda *rest: 130, 130, ""),
        (failing(RunFailedError("no room")), 1, "fails: no room"),
        (failing(InputError("column 'a': the value is missing (NULL or NaN)")), 1, "refuses data that can be used"),
        (failing(InputError("the moon is full")), 2, ""),
    ],
)
def test_a_run_that_tells_nothing_is_wrong_unless_it_was_stopped(
    outcome: Any, status: int, words: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f'kind = "window"\n{NAMED}by = "g"\nduration = 4'
    path = folder_of(tmp_path, query, stream=True)
    (tmp_path / "in" / "rows.csv").write_text("a,0,1,1,x,1,s\nb,0,1,1,x,1,s\nc,5,1,1,x,1,s\n")
    monkeypatch.setattr(pipelines, "run", outcome)
    result = run("verify", "run", path)
    assert result.exit_code == status and words in result.stdout, result.stdout
    assert bool(result.stdout) == (status == 1)


def test_a_run_that_takes_what_its_policy_refuses_is_wrong(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, right = folder_of(tmp_path, QUERIES["skyline"]), running.run
    (tmp_path / "in" / "rows.csv").write_text("x,1,,1,g,1,s\ny,3,2,2,g,1,s\n")
    assert "the value is missing" in refused("verify", "run", path)
    careless = lambda plan, say: right(replace(plan, query={**plan.query, "nulls": "drop"}), say)  # noqa: E731
    monkeypatch.setattr(pipelines, "run", careless)
    result = run("verify", "run", path)
    assert result.exit_code == 1 and "takes data that cannot be used: a value is missing" in result.stdout
