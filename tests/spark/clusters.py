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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
driver.extraJavaOptions = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
executor.extraJavaOptions = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
executorEnv.XDG_CACHE_HOME = "{cache}"
"""


def pipeline(name: str, master: str, python: str) -> dict[str, Any]:
    """Run a pipeline on a master: its exit status, the ids that it wrote, where executors had the package."""
    out = Path.cwd() / name
    text = PIPELINE.format(out=out, python=python, cache=os.environ["XDG_CACHE_HOME"])
    file, log = Path.cwd() / f"{name}.toml", Path(python).parent / "started.log"
    log.write_text("")
    file.write_text(text)
    command = [sys.executable, "-m", "skytide.cli", "run", "--master", master, str(file)]
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


@contextmanager
def standalone() -> Iterator[str]:
    """A master and a worker on loopback; the address of the master."""
    import pyspark

    from skytide.spark import ensure_java

    ensure_java()
    home = Path(pyspark.__file__).parent
    environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    start = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy"]
    processes = []

    def begin(what: str, *arguments: str) -> subprocess.Popen[str]:
        log = (Path.cwd() / f"{what}.log").open("w")
        command = [start[0], f"{start[1]}.{what}", *arguments]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, text=True)
        processes.append(process)
        return process

    try:
        begin("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        address = until("master.Master.log", r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        folder = str(Path.cwd() / "work")
        begin("worker.Worker", "--host", "127.0.0.1", "--cores", "2", "--memory", "2g", "--work-dir", folder,
              "--webui-port", "0", address)  # fmt: skip
        until("worker.Worker.log", "Successfully registered with master")
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(60)


def until(log: str, pattern: str) -> str:
    """What a process has written to its log, once it has."""
    for _ in range(1200):
        found = re.search(pattern, (Path.cwd() / log).read_text())
        if found:
            return found.group(found.lastindex or 0)
        time.sleep(0.1)
    raise TimeoutError(f"{log} does not say {pattern}: {(Path.cwd() / log).read_text()[-2000:]}")


if __name__ == "__main__":
    answer = {"local-cluster": pipeline("local-cluster", "local-cluster[2,1,1024]", sys.argv[1])}
    with standalone() as master:
        answer["standalone"] = pipeline("standalone", master, sys.argv[1])
    print(json.dumps(answer))
