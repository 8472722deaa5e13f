"""Checkpoints that are not what they should be: of another query, damaged, on a full disk."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skytide.errors import SkytideError
from tests.spark.streaming.contract import rows_of, write_batch
from tests.spark.streaming.faults import CASE, again, check, environment, job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_state_of_another_query_and_damaged_state_are_refused(spark: SparkSession, folder: Path) -> None:
    """The state is another process's: no worker of this one has it in memory."""
    assert job(folder).returncode == 0
    write_batch(rows_of(CASE).slice(0, 5), folder / "in", 9)
    with pytest.raises(SkytideError, match="made with duration = 12, and the query has 13"):
        again(spark, folder, "--duration", "13")
    for state in (folder / "checkpoint" / "state").rglob("*.changelog"):
        state.write_bytes(state.read_bytes()[:-40] + b"?" * 40)
        state.with_name(f".{state.name}.crc").unlink(missing_ok=True)
    with pytest.raises(Exception, match="CANNOT_LOAD_STATE_STORE"):
        again(spark, folder)
    check(folder)


@pytest.mark.skipif(not shutil.which("unshare"), reason="a small disk needs unshare and mount, of util-linux")
def test_a_full_disk_stops_the_run_and_it_goes_on_when_there_is_room(folder: Path) -> None:
    disk = folder / "disk"
    disk.mkdir()
    run = f"{sys.executable} -m tests.spark.streaming.jobs {folder} --checkpoint {disk}/checkpoint"
    script = (
        f"mount -t tmpfs -o size=200k tmpfs {disk} || exit 77; exec {run} --room 'mount -o remount,size=64m {disk}'"
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
    assert tried.returncode == 0, tried.stderr[-3000:]
    assert "failed: " in tried.stdout and tried.stdout.endswith("done\n")
    check(folder)
