"""`skytide run`: what it says of files, without Spark. tests/spark/pipeline/test_command.py runs it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skytide.spark.pipeline import RunFailedError
from tests.cli.command import refused, run

PIPELINE = """\
[source]
format = "csv"
path = "cars.csv"
schema = "id INT, price DOUBLE, mpg DOUBLE"
[query]
kind = "skyline"
min = ["price"]
max = ["mpg"]
[sink]
format = "parquet"
path = "best"
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "cars.csv").write_text("1,2,3\n")
    path = tmp_path / "cars.toml"
    path.write_text(PIPELINE)
    return path


def test_a_check_says_what_would_run_and_starts_nothing(pipeline: Path) -> None:
    result = run("run", "--check", pipeline)
    assert (result.exit_code, result.stdout) == (0, "")
    target = pipeline.parent / "best"
    assert result.stderr == f"{pipeline}: skyline over a batch of csv, to {target}, on local[*]\n"
    assert run("run", "--check", "--master", "spark://h:7077", pipeline).stderr.endswith("on spark://h:7077\n")
    assert run("run", "--check", "--remote", "sc://h", pipeline).stderr.endswith("on sc://h\n")
    assert not target.exists()


@pytest.mark.parametrize("options", [[], ["--check"], ["--once"]])
def test_a_file_that_cannot_be_is_refused_in_one_line_with_its_place(pipeline: Path, options: list[str]) -> None:
    pipeline.write_text(PIPELINE.replace("min =", "# less is better\nmim ="))
    line = refused("run", *options, pipeline)
    assert (
        line == f"skytide: {pipeline}, line 8: [query] mim: there is no such key of the kind skyline; did you mean min?"
    )
    pipeline.write_text(PIPELINE.replace('"price"', '"prise"'))
    line = refused("run", *options, pipeline)
    assert line == f"skytide: {pipeline}, line 7: [query] min: 'prise' is not a column of the rows; did you mean price?"
    assert sorted(path.name for path in pipeline.parent.iterdir()) == ["cars.csv", "cars.toml"]


def test_a_file_that_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refused("run", tmp_path / "none.toml")
    assert "is a folder" in refused("run", tmp_path)
    assert "Missing argument" in refused("run")


def test_a_master_and_a_remote_exclude_each_other(pipeline: Path) -> None:
    assert "either --master or --remote" in refused("run", "--master", "local", "--remote", "sc://x", pipeline)
    assert "is not an address of Spark Connect" in refused("run", "--remote", "x", pipeline)


def test_a_failed_job_is_one_line_and_status_1(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise RunFailedError("No space left on device")

    monkeypatch.setattr("skytide.spark.pipeline.run", fail)
    result = run("run", pipeline)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "skytide: the job failed: No space left on device\n"


def test_a_bad_file_is_refused_without_pyspark_being_loaded(pipeline: Path) -> None:
    pipeline.write_text(PIPELINE.replace('"price"', '"prise"'))
    probe = f"import sys; sys.modules['pyspark'] = None\nfrom skytide.cli import app\napp(['run', {str(pipeline)!r}])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "did you mean price?" in done.stderr
    pipeline.write_text(PIPELINE)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert 'pip install "skytide[spark]"' in done.stderr


def test_a_page_is_served_while_the_job_runs(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def job(plan: Any, say: Callable[[str], None]) -> int:
        assert plan.sink.path is not None
        [thread] = [one for one in threading.enumerate() if one.name == "skytide-dashboard"]
        assert thread.is_alive()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/state") as answer:
            seen.append(json.load(answer))
        return 0

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setattr("skytide.spark.pipeline.run", job)
    result = run("run", "--dashboard", "--listen", f"127.0.0.1:{port}", pipeline)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"watch it at http://127.0.0.1:{port}/\n"
    assert (seen[0]["title"], seen[0]["kind"], seen[0]["status"]) == ("cars.toml", "skyline", "running")
    assert not [one for one in threading.enumerate() if one.name.startswith("skytide-")]


def test_a_page_of_a_sink_that_cannot_be_followed_is_refused_before_anything_starts(pipeline: Path) -> None:
    pipeline.write_text(PIPELINE.replace('"parquet"', '"orc"'))
    assert "write parquet or jsonl" in refused("run", "--dashboard", pipeline)
    assert "give --dashboard, too" in refused("run", "--stay", pipeline)
