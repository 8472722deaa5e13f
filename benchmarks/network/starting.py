"""What a site takes: seconds from its first line to the coordinator's word that all is settled, and memory."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.network.load import Line, coordinator
from skytide.protocols.network.query import Query

_SITE = """
import time
began = time.perf_counter()
import os, sys, json
os.environ["SKYTIDE_PLAIN"] = "1"
from skytide.runtime.network.site import Site
imported = time.perf_counter() - began
with Site(sys.argv[1], "one") as site:
    site.put("x", [1.0, 2.0])
    site.put("y", [2.0, 1.0])
    site.flush()
    settled = time.perf_counter() - began
    unwanted = ("numba", "llvmlite", "pyarrow", "pandas", "pyspark", "starlette", "uvicorn")
    heavy = [name for name in unwanted if name in sys.modules]
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    memory = int(status["VmHWM"].split()[0]) / 1024
    print(json.dumps({"import s": imported, "settled s": settled, "memory MB": memory, "heavy": heavy}))
"""


def measured(repeats: int) -> Iterator[Line]:
    """A line for each protocol: medians over some starts."""
    for protocol in ("filtering", "fragmented"):
        with coordinator(Query(protocol, ("a", "b"))) as (host, port):
            found = [_started(f"ws://{host}:{port}") for _ in range(repeats)]
        line: Line = {"protocol": protocol}
        for name in ("import s", "settled s", "memory MB"):
            line[name] = statistics.median(one[name] for one in found)
        yield {**line, "loads none of numba, pyarrow, pyspark, starlette": not any(one["heavy"] for one in found)}


def _started(url: str) -> Line:
    done = subprocess.run([sys.executable, "-c", _SITE, url], capture_output=True, text=True, check=True, timeout=120)
    answer: Line = json.loads(done.stdout)
    return answer
