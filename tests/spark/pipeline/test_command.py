"""`skytide run` as a process: interrupted, ended, gone on with; and the examples."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.cli.command import run
from tests.spark.pipeline.files import STREAM
from tests.spark.pipeline.test_running import expected_changes, flights
from tests.spark.small import SMALL_JVM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[3] / "examples" / "pipelines"
SMALL = "\n[run.spark]\n" + "".join(f'{name.removeprefix("spark.")} = "{value}"\n' for name, value in SMALL_JVM.items())


def until_batches(stream: IO[str], count: int) -> Iterator[str]:
    """The lines that a run says, up to the given number of micro-batches."""
    for line in stream:
        yield line
        count -= line.startswith("batch ")
        if not count:
            return


def test_a_stream_that_signals_stop_goes_on_with_nothing_lost_or_doubled(spark: SparkSession, tmp_path: Path) -> None:
    """Ctrl-C reaches every process of the terminal, SIGTERM only ours; said twice, it stops within a micro-batch."""
    rows = flights(tmp_path, parts=15)
    text = STREAM.replace('trigger = "once"', 'trigger = "100ms"\nmaster = "local[1]"') + SMALL
    text = text.replace("[query]", "[source.options]\nmaxFilesPerTrigger = 1\n[query]")
    (tmp_path / "pipeline.toml").write_text(text)
    command = [sys.executable, "-m", "skytide.cli", "run", str(tmp_path / "pipeline.toml")]
    for number, status, times in ((signal.SIGINT, 130, 1), (signal.SIGTERM, 143, 1), (signal.SIGTERM, 143, 2)):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        assert process.stderr is not None
        said = list(until_batches(process.stderr, 2))
        for pause in (0, 0.2)[:times]:
            time.sleep(pause)
            (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        said += list(process.stderr)
        assert process.wait() == status, said
        process.stderr.close()
        assert "stopping after this micro-batch; the same signal again stops at once\n" in said
        assert re.match(r"\d+ batches, \d+ rows in .* changes: ", said[-1])
        progress = [line for line in said if line.startswith("batch ")]
        assert len(progress) == len(said) - 2, said
    done = run("run", "--once", tmp_path / "pipeline.toml")
    assert done.exit_code == 0, done.stderr
    found = [
        (row["time"].isoformat()[:19], row["change"], row["id"]) for row in pq.read_table(tmp_path / "out").to_pylist()
    ]
    expected = [one for one in expected_changes(rows) if one[0] < rows[-1]["ts"][:19]]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.toml")))
def test_the_examples_run(spark: SparkSession, tmp_path: Path, name: str) -> None:
    shutil.copy(EXAMPLES / name, tmp_path)
    done = run("run", "--once", tmp_path / name)
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    assert re.search(r"\d+ rows (in|out)", done.stderr.splitlines()[-1])
    assert len(list(tmp_path.iterdir())) > 1
