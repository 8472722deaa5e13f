"""Pipeline files for tests."""

from __future__ import annotations

from pathlib import Path

from skytide.spark.pipeline import Pipeline, PipelineError

BATCH = """\
[source]
format = "csv"
path = "in"
schema = "id INT, a DOUBLE, b DOUBLE, g STRING"
[query]
kind = "skyline"
min = ["a", "b"]
[sink]
format = "parquet"
path = "out"
"""
STREAM = """\
[source]
format = "json"
path = "in"
stream = true
schema = "ts TIMESTAMP, id STRING, a DOUBLE, b DOUBLE, g STRING"
[query]
kind = "window"
min = ["a"]
max = ["b"]
by = "g"
id = "id"
time = "ts"
duration = "2h"
[sink]
format = "parquet"
path = "out"
dead_letters = "dead"
current = { path = "now" }
[run]
trigger = "once"
checkpoint = "checkpoint"
"""


def pipeline_file(folder: Path, text: str) -> Path:
    """The text as a pipeline file, beside an empty folder to read from."""
    (folder / "in").mkdir(exist_ok=True)
    path = folder / "pipeline.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(folder: Path, text: str) -> str:
    """The line that a pipeline file is refused with, without its folder."""
    path = pipeline_file(folder, text)
    try:
        Pipeline.load(path)
    except PipelineError as problem:
        line = str(problem)
        assert "\n" not in line
        return line.replace(f"{folder}/", "")
    raise AssertionError(f"the file was accepted: {text}")
