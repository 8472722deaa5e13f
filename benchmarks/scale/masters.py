"""Where cases run: in one process, on executors of their own, on a standalone cluster; all on this machine.

A cluster's master and workers are processes that are started here, on loopback, and ended here by their ids.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.scale.job import Case
from benchmarks.soak.homes import spark_home
from skytide.errors import SkytideError

ROOT = Path(__file__).resolve().parents[2]
MASTERS = ("local[2]", "local-cluster[2,1,1024]", "standalone")
CORES = 2
PATIENCE = 120.0
_DEPLOY = "org.apache.spark.deploy"
_LOOPBACK = "127.0.0.1"


class FailedError(SkytideError):
    """A master or a job did not do what it should."""


def measured(master: str, cases: Sequence[Case], seed: int) -> Iterator[dict[str, Any]]:
    """What each case found on a master, as soon as it is there."""
    with tempfile.TemporaryDirectory(prefix="skytide-scale-") as name:
        folder = Path(name)
        environment = {**os.environ, "SPARK_HOME": str(spark_home(folder / "spark"))}
        if master != "standalone":
            yield from _run(master, {"spark.driver.memory": "3g", **_executors()}, cases, seed, folder, environment)
            return
        environment |= {"SPARK_LOCAL_IP": _LOOPBACK}
        with standalone(folder, environment) as address:
            yield from _run(address, {**_remote(), **_executors()}, cases, seed, folder, environment)


def _executors() -> dict[str, Any]:
    return {"spark.executor.memory": "1g", "spark.executor.cores": 1, "spark.cores.max": CORES}


def _remote() -> dict[str, Any]:
    """What a session on a cluster needs and that of this machine has by itself."""
    return {
        "spark.driver.memory": "1g",
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.sql.shuffle.partitions": CORES,
        "spark.pyspark.python": sys.executable,
        "spark.log.level": "ERROR",
    }


def _run(
    master: str,
    settings: dict[str, Any],
    cases: Sequence[Case],
    seed: int,
    folder: Path,
    environment: dict[str, str],
) -> Iterator[dict[str, Any]]:
    asked = {"master": master, "settings": settings, "cases": [asdict(case) for case in cases], "seed": seed}
    command = [sys.executable, "-m", "benchmarks.scale.job", json.dumps(asked)]
    errors = folder / "errors"
    with (
        errors.open("w") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            env=environment,
            text=True,
            start_new_session=True,
        ) as job,
    ):
        try:
            assert job.stdout is not None
            for line in job.stdout:
                if line.startswith("{"):
                    yield json.loads(line)
            status = job.wait()
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
    if status:
        raise FailedError(f"the job on {master} ended with {status}: {errors.read_text()[-2000:]}")


@contextmanager
def standalone(folder: Path, environment: dict[str, str], workers: int = CORES) -> Iterator[str]:
    """A master and workers with one core each; the address of the master."""
    started: list[subprocess.Popen[bytes]] = []
    common = ["--host", _LOOPBACK, "--webui-port", "0"]

    def begin(name: str, kind: str, *arguments: str) -> Path:
        program = [str(Path(environment["SPARK_HOME"], "bin", "spark-class")), f"{_DEPLOY}.{kind}"]
        log = folder / f"{name}.log"
        with log.open("wb") as file:
            started.append(subprocess.Popen([*program, *arguments], env=environment, stdout=file, stderr=file))
        return log

    try:
        from skytide.spark import ensure_java

        environment["JAVA_HOME"] = str(ensure_java().home)
        log = begin("master", "master.Master", *common, "--port", "0")
        address = _said(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for number in range(workers):
            room = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")]
            _said(begin(f"worker-{number}", "worker.Worker", *common, *room, address), r"(Successfully registered)")
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(60)


def _said(log: Path, pattern: str) -> str:
    """What a process has written, once it has."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found.group(1)
        time.sleep(0.1)
    raise FailedError(f"{log.stem} has not started: {log.read_text(errors='replace')[-1000:]}")
