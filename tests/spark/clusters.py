"""Pipelines on clusters, in processes of their own: `python -m tests.spark.clusters PYTHON` prints what they found.

PYTHON is the program that executors run; it has no Skytide. `skytide run` itself is called as a process, too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.spark.small import JAVA

PIPELINE = """
[source]
format = "skytide"
options = {{ rows = 3, dimensions = 1, time = "none", partitions = 2 }}
[prepare]
columns.zero = "0.0"
[query]
kind = "skyline"
min = ["zero"]
[sink]
format = "json"
path = "{out}"
[run]
[spark]
pyspark.python = "{python}"
driver.host = "127.0.0.1"
driver.bindAddress = "127.0.0.1"
driver.memory = "1g"
executor.memory = "512m"
cores.max = 2
executor.cores = 1
sql.shuffle.partitions = 2
driver.extraJavaOptions = "{java}"
executor.extraJavaOptions = "{java}"
executorEnv.XDG_CACHE_HOME = "{cache}"
"""


def pipeline(name: str, python: str, *where: str, settings: bool = True) -> dict[str, Any]:
    """Run a pipeline somewhere: its exit status, the ids that it wrote, where executors had the package."""
    out = Path.cwd() / name
    text = PIPELINE.format(out=out, java=JAVA, python=python, cache=os.environ["XDG_CACHE_HOME"])
    file, log = Path.cwd() / f"{name}.toml", Path(python).parent / "started.log"
    log.write_text("")
    file.write_text(text if settings else text[: text.index("[spark]")])
    command = [sys.executable, "-m", "skytide.cli", "run", *where, str(file)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    rows = [json.loads(line)["id"] for path in out.glob("*.json") for line in path.read_text().splitlines()]
    homes = sorted(str(path) for path in Path(os.environ["XDG_CACHE_HOME"]).glob("skytide/skytide-*/skytide"))
    workers = sum("pyspark.daemon" in line or "pyspark.worker" in line for line in log.read_text().splitlines())
    return {
        "workers": workers,
        "status": done.returncode,
        "rows": sorted(rows),
        "homes": homes,
        "said": done.stderr[-2000:],
    }


Begin = Callable[..., None]


@contextmanager
def processes(**variables: str) -> Iterator[Begin]:
    """Starts programs of Spark's, each with a log, and ends them."""
    import pyspark

    from skytide.spark import ensure_java

    ensure_java()
    home = Path(pyspark.__file__).parent
    environment = (
        os.environ
        | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_JAVA_OPTS": JAVA}
        | variables
    )
    started = []

    def begin(log: str, program: str, *arguments: str) -> None:
        with (Path.cwd() / log).open("w") as file:
            command = [str(home / "bin" / program), *arguments]
            started.append(subprocess.Popen(command, env=environment, stdout=file, stderr=file))

    try:
        yield begin
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(60)


@contextmanager
def standalone() -> Iterator[str]:
    """A master and a worker on loopback; the address of the master."""
    deploy = "org.apache.spark.deploy"
    with processes() as begin:
        options = ["--host", "127.0.0.1", "--webui-port", "0"]
        begin("master.log", "spark-class", f"{deploy}.master.Master", *options, "--port", "0")
        address = until("master.log", r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        options += ["--cores", "2", "--memory", "2g", "--work-dir", str(Path.cwd() / "work")]
        begin("worker.log", "spark-class", f"{deploy}.worker.Worker", *options, address)
        until("worker.log", "Successfully registered with master")
        yield address


@contextmanager
def connect(python: str) -> Iterator[str]:
    """A server of Spark Connect on loopback that has no Skytide; its address."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.ui.enabled": "false",
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    # A server has an environment of its own: nothing of ours is on its path.
    with processes(PYSPARK_PYTHON=python, PYTHONPATH="") as begin:
        begin("connect.log", "spark-submit", "--master", "local[2]", *options, "--class", server, "spark-internal")
        yield "sc://" + until("connect.log", r"Spark Connect server started at: (127\.0\.0\.1:\d+)")


def until(log: str, pattern: str) -> str:
    """What a process has written to its log, once it has."""
    for _ in range(1200):
        found = re.search(pattern, (Path.cwd() / log).read_text())
        if found:
            return found.group(found.lastindex or 0)
        time.sleep(0.1)
    raise TimeoutError(f"{log} does not say {pattern}: {(Path.cwd() / log).read_text()[-2000:]}")


if __name__ == "__main__":
    program = sys.argv[1]
    with standalone() as address:
        answer = {"standalone": pipeline("standalone", program, "--master", address)}
    with connect(program) as address:
        answer["connect"] = pipeline("connect", program, "--remote", address, settings=False)
    print(json.dumps(answer))
