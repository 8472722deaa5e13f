"""Pipelines on a real Spark: what they write, what they say, and the one line where they cannot run."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import skytide as sk
from skytide.errors import SkytideError, StateError
from skytide.spark.pipeline import Pipeline, PipelineError, RunFailedError, run
from skytide.spark.sinks import CurrentTable
from tests.spark.pipeline.files import BATCH, STREAM, pipeline_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [(1, 3.0, 1.0, "x"), (2, 2.0, 2.0, "x"), (3, 3.0, 2.0, "x"), (4, 1.0, 9.0, "y"), (5, 1.0, 9.0, "y")]


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    lines = [",".join(str(value) for value in row) for row in ROWS]
    (tmp_path / "in" / "rows.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def done(folder: Path, text: str) -> list[str]:
    """What a run said that went well."""
    said: list[str] = []
    assert run(Pipeline.load(pipeline_file(folder, text)), said.append) == 0
    return said


def refused(folder: Path, text: str) -> str:
    """The line that a run was refused with, once Spark had looked at the file; nothing is left behind."""
    path = pipeline_file(folder, text)
    pipeline = Pipeline.load(path)
    before = sorted(folder.rglob("*"))
    with pytest.raises(SkytideError) as caught:
        run(pipeline, lambda line: None)
    assert sorted(folder.rglob("*")) == before
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(f"{folder}/", "")


def results(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "out").to_pylist()
    return rows


def test_a_batch_pipeline_writes_the_skyline_and_says_so(folder: Path) -> None:
    said = done(folder, BATCH)
    assert sorted(row["id"] for row in results(folder)) == [1, 2, 4, 5]
    assert results(folder)[0].keys() == {"id", "a", "b", "g"}
    assert len(said) == 1
    assert said[0].startswith("5 rows in, 4 rows out in ") and said[0].endswith(f"results: {folder / 'out'}")


def test_rows_are_prepared_by_sql_casts_columns_filters_and_a_selection_in_this_order(folder: Path) -> None:
    prepare = """
[prepare]
sql = "SELECT string(a) AS a, b, g, id FROM input"
casts = { a = "DOUBLE" }
columns.total = "a + b"
columns.twice = "2 * total"
filter = ["g = 'x'", "twice > 1"]
select = ["id", "total AS a", "b"]
"""
    done(folder, BATCH + prepare)
    assert sorted((row["id"], row["a"], row["b"]) for row in results(folder)) == [(1, 4.0, 1.0)]
    assert results(folder)[0].keys() == {"id", "a", "b"}


def test_the_mode_says_what_happens_to_results_that_are_there(folder: Path) -> None:
    done(folder, BATCH)
    with pytest.raises(PipelineError, match="exists already"):
        Pipeline.load(folder / "pipeline.toml")
    done(folder, BATCH.replace('path = "out"', 'path = "out"\nmode = "append"'))
    assert len(results(folder)) == 8
    done(folder, BATCH.replace('path = "out"', 'path = "out"\nmode = "overwrite"'))
    assert len(results(folder)) == 4


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('"csv"', '"cvs"', "line 2: [source] format: Failed to find the data source: cvs"),
        ("a DOUBLE", "a DUBLE", "line 4: [source] schema: Unsupported data type"),
        ("[sink]", '[prepare]\nsql = "SELECT nope FROM input"\n[sink]', "line 9: [prepare] sql: A column"),
        ("[sink]", '[prepare]\nsql = "SELECT a b c FROM input"\n[sink]', "line 9: [prepare] sql: Syntax error"),
        ("[sink]", '[prepare]\ncolumns.c = "a +"\n[sink]', "line 9: [prepare] columns.c: Syntax error"),
        ("[sink]", '[prepare]\ncasts.g = "NUMBER"\n[sink]', "line 9: [prepare] casts.g: Unsupported data type"),
        ("[sink]", '[prepare]\ncasts.h = "INT"\n[sink]', "line 9: [prepare] casts.h: A column"),
        ("[sink]", '[prepare]\nfilter = "h > 1"\n[sink]', "line 9: [prepare] filter: A column"),
        ("[sink]", '[prepare]\nselect = "h"\n[sink]', "line 9: [prepare] select: A column"),
        (
            "[sink]",
            '[prepare]\nselect = ["a", "id"]\n[sink]',
            "line 7: [query] min: 'b' is not a column of the rows; use one of: a, id",
        ),
        (
            '["a", "b"]',
            '["a", "g"]',
            "line 7: [query] min: column 'g': the column holds string, not numbers; convert it or leave it out",
        ),
    ],
)
def test_what_only_spark_can_tell_is_still_one_line_with_its_place(folder: Path, old: str, new: str, line: str) -> None:
    assert refused(folder, BATCH.replace(old, new, 1)).startswith(f"pipeline.toml, {line}")


def test_bad_data_is_one_line_and_leaves_no_results(folder: Path) -> None:
    (folder / "in" / "more.csv").write_text("6,,1.0,x\n")
    line = refused(folder, BATCH)
    assert line.startswith("column 'a': the value is missing (NULL or NaN)")
    done(folder, BATCH.replace('min = ["a", "b"]', 'min = ["a", "b"]\nnulls = "drop"'))
    assert len(results(folder)) == 4


def test_a_job_that_fails_for_another_reason_says_it_in_one_line(folder: Path) -> None:
    text = BATCH + """[prepare]\nsql = "SELECT *, raise_error('no luck') AS c FROM input"\n"""
    with pytest.raises(RunFailedError) as caught:
        done(folder, text)
    assert "no luck" in str(caught.value) and "\n" not in str(caught.value)
    assert not (folder / "out").exists()


# -- windows -----------------------------------------------------------------------------------------------------------


def flights(folder: Path, parts: int = 3) -> list[dict[str, Any]]:
    """Rows a quarter of an hour apart, in files that Spark reads in order."""
    rows = [
        {
            "ts": f"2026-01-01T{number // 4:02}:{number % 4 * 15:02}:00Z",
            "id": f"f{number:02}",
            "a": float(number * 7 % 5),
            "b": float(number * 3 % 4),
            "g": "pq"[number % 2],
        }
        for number in range(60)
    ]
    size = len(rows) // parts
    for part in range(parts):
        lines = [json.dumps(row) for row in rows[part * size : part * size + size]]
        (folder / "in").mkdir(exist_ok=True)
        path = folder / "in" / f"{part}.json"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1_700_000_000 + part, 1_700_000_000 + part))  # Spark reads older files first
    return rows


def expected_changes(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """The changes as one window on this machine has them; the last instant is closed."""
    import pyarrow as pa

    window = sk.SlidingWindow(sk.Preference(minimize=["a"], maximize=["b"], by=["g"]), duration="2h")
    table = pa.Table.from_pylist(rows)
    times = table.column("ts").cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    found = list(window.extend(table, times=times, ids=[row["id"] for row in rows]))
    found += list(window.advance(window.latest))
    return [(str(one.time)[:19].replace(" ", "T"), one.change, one.id) for one in found]


def present(folder: Path) -> set[str]:
    """The ids of the answer after the last micro-batch."""
    now = CurrentTable(str(folder / "now")).read()
    return set() if now is None else set(now[1].column("id").to_pylist())


def test_a_window_over_a_batch_writes_the_changes_in_order_and_the_present_answer(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = flights(tmp_path)
    (tmp_path / "in" / "bad.json").write_text('{"ts": "2026-01-01T01:00:00Z", "id": "bad", "b": 1.0, "g": "p"}\n')
    said = done(tmp_path, STREAM.replace("stream = true", "stream = false"))
    found = [(row["time"].isoformat()[:19], row["change"], row["id"]) for row in results(tmp_path)]
    assert found == expected_changes(rows)
    dead = pq.read_table(tmp_path / "dead").to_pylist()
    assert [(row["kind"], row["id"]) for row in dead] == [("bad", "bad")]
    alive: set[str] = set()
    for _, change, name in found:
        (alive.add if change == "+" else alive.remove)(name)
    assert present(tmp_path) == alive
    assert said[0].startswith(f"61 rows in, {len(found)} changes, 0 late, 1 bad in ")


def test_a_stream_goes_to_any_sink_of_sparks_and_reports_each_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    rows = flights(tmp_path)
    text = STREAM.replace('format = "parquet"', 'format = "json"')
    text = text.replace('dead_letters = "dead"\ncurrent = { path = "now" }\n', "")
    text = text.replace("[query]", "[source.options]\nmaxFilesPerTrigger = 1\n[query]")
    said = done(tmp_path, text)
    lines = "".join(path.read_text() for path in (tmp_path / "out").glob("*.json")).splitlines()
    records = [json.loads(line) for line in lines]
    last = rows[-1]["ts"][:19]
    found = sorted((one["time"][:19], one["change"], one["id"]) for one in records)
    assert found == sorted(one for one in expected_changes(rows) if one[0] < last)
    batches = [line for line in said if line.startswith("batch ")]
    assert [line.split(":")[0] for line in batches] == [f"batch {number}" for number in range(len(batches))]
    assert batches[0].startswith("batch 0: 20 rows in, ") and " pruned, " in batches[0] and " behind, " in batches[0]
    assert "60 rows in " in said[-1] and f"{len(found)} changes, 0 late, 0 bad; changes: " in said[-1]


def test_a_stream_to_our_own_sinks_goes_on_where_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    rows = flights(tmp_path)
    late = tmp_path / "in" / "2.json"
    later = late.read_text()
    late.unlink()
    done(tmp_path, STREAM)
    late.write_text(later + '{"ts": "2026-01-01T01:00:00Z", "id": "late", "a": 0.0, "b": 1.0, "g": "p"}\n')
    said = done(tmp_path, STREAM)
    last = rows[-1]["ts"][:19]
    found = [(row["time"].isoformat()[:19], row["change"], row["id"]) for row in results(tmp_path)]
    expected = [one for one in expected_changes(rows) if one[0] < last]
    assert sorted(found) == sorted(expected)
    dead = pq.read_table(tmp_path / "dead").to_pylist()
    assert [(row["kind"], row["id"]) for row in dead] == [("late", "late")]
    alive: set[str] = set()
    for _, change, name in expected:
        (alive.add if change == "+" else alive.remove)(name)
    assert present(tmp_path) == alive
    assert ", 1 late, 0 bad; changes: " in said[-1]


def test_another_query_over_the_same_checkpoint_is_refused_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    flights(tmp_path)
    done(tmp_path, STREAM)
    (tmp_path / "in" / "more.json").write_text(
        '{"ts": "2026-01-02T01:00:00Z", "id": "x", "a": 0.0, "b": 1.0, "g": "p"}\n'
    )
    with pytest.raises(StateError, match="duration"):
        done(tmp_path, STREAM.replace('"2h"', '"3h"'))
    shutil.rmtree(tmp_path / "checkpoint")
    line = refused(tmp_path, STREAM)
    assert line.startswith("pipeline.toml, line 21: [run] checkpoint: the sink holds micro-batch ")
