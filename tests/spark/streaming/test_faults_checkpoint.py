"""Checkpoints that are not what they should be: of another query, damaged, on a full disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.streaming.contract import rows_of, write_batch
from tests.spark.streaming.faults import CASE, check, environment, job


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
