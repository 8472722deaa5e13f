"""What breaks is mended by starting again: nothing lost, nothing doubled, or a clear refusal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skytide.spark import CurrentTable
from tests.spark.streaming.contract import Case, differences, expected, rows_of, write_batch

CASE = Case(batches=5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = rows_of(CASE)
    size = -(-table.num_rows // CASE.batches)
    for number in range(CASE.batches):
        write_batch(table.slice(number * size, size), tmp_path / "in", number)
    return tmp_path


def job(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The job in a process group of its own, which a crash ends as a whole."""
    command = [sys.executable, "-m", "tests.spark.streaming.jobs", str(folder), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, start_new_session=True, env=environment()
    )


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}


def check(folder: Path) -> None:
    """All changes are there, each once, and the current answer is what they lead to."""
    table = rows_of(CASE)
    out = pq.read_table(folder / "changes")
    assert differences(CASE, table, out.append_column("kind", pa.array(["change"] * out.num_rows))) == []
    answer: set[Any] = set()
    for changes in expected(CASE, table).values():
        for _, change, one in sorted(changes, key=lambda change: (change[0], change[1] == "+")):
            (answer.add if change == "+" else answer.remove)(one)
    current = CurrentTable(str(folder / "current")).read()
    assert current is not None and set(current[1].column("id").to_pylist()) == answer
    assert not (folder / "dead").exists() or not list((folder / "dead").glob("*.parquet"))


def test_a_killed_driver_loses_and_doubles_nothing(folder: Path) -> None:
    for crash in ("1:before", "2:after"):
        assert job(folder, "--crash", crash).returncode == -signal.SIGKILL
    ended = job(folder)
    assert ended.returncode == 0, ended.stderr[-2000:]
    check(folder)


def test_a_killed_executor_is_made_up_for(folder: Path) -> None:
    ended = job(folder, "--master", "local-cluster[2,1,1024]", "--executor")
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert (folder / "killed").exists()
    check(folder)


def test_state_of_another_query_and_damaged_state_are_refused(folder: Path) -> None:
    assert job(folder).returncode == 0
    write_batch(rows_of(CASE).slice(0, 5), folder / "in", 9)
    changed = job(folder, "--duration", "13")
    assert changed.returncode == 3
    assert "made with duration = 12, and the query has 13" in changed.stdout
    for state in (folder / "checkpoint" / "state").rglob("*.changelog"):
        state.write_bytes(state.read_bytes()[:-40] + b"?" * 40)
        state.with_name(f".{state.name}.crc").unlink(missing_ok=True)
    damaged = job(folder)
    assert damaged.returncode != 0 and "done" not in damaged.stdout
    check(folder)


def test_a_full_disk_stops_the_run_and_it_goes_on_when_there_is_room(folder: Path) -> None:
    disk = folder / "disk"
    disk.mkdir()
    run = f"{sys.executable} -m tests.spark.streaming.jobs {folder} --checkpoint {disk}/checkpoint"
    script = (
        f"mount -t tmpfs -o size=200k tmpfs {disk} || exit 77; {run}; echo first $?; "
        f"mount -o remount,size=64m {disk}; {run}; echo second $?"
    )
    tried = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment(),
    )
    if tried.returncode == 77 or "unshare" in tried.stderr[:200]:
        pytest.skip("a small disk needs a mount namespace, which this machine does not give")
    assert "first 0" not in tried.stdout and "first" in tried.stdout
    assert "second 0" in tried.stdout, tried.stderr[-3000:]
    check(folder)
