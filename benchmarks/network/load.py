"""A coordinator under the load of many sites: rows absorbed, messages, latency and bytes, each answer checked.

The same rows, by the same seed, go to the method that tells everything and to the one under test.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from skytide.expressions import parse
from skytide.kernel.batch import skyline_mask
from skytide.protocols.network.query import Query
from skytide.reference.functional import expression, functional_skyline

Line = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """How much load: sites, objects, at how many sites each is, worker processes, seconds of each part, rows a second
    where they are paced, how far a row moves its values, probes.
    """

    sites: int = 1000
    objects: int = 2000
    spread: int = 5
    workers: int = 2
    seconds: float = 10.0
    rate: float = 2000.0
    change: float = 0.02
    probes: int = 200


@dataclass
class Worker:
    """A process with many sites."""

    process: subprocess.Popen[str]
    answers: list[Any] = field(default_factory=list)

    def tell(self, command: str, **arguments: Any) -> None:
        """Send a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([command, arguments]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """The answer to the oldest command that has none yet."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a worker has ended")
        return json.loads(line)


class Reader:
    """Follows the change stream in a thread, and notes when each change of an object came."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._connection = http.client.HTTPConnection(*address)
        self._connection.request("GET", "/changes?format=ndjson")
        self._response = self._connection.getresponse()
        self.seen: list[tuple[float, str, Any]] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(Exception):
            while line := self._response.readline():
                event = json.loads(line) if line.strip() else {}
                if event.get("kind") == "change":
                    self.seen.append((time.monotonic(), event["change"], event["id"]))

    def close(self) -> None:
        """Stop."""
        if self._connection.sock is not None:
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._response.close()
        self._connection.close()


@contextlib.contextmanager
def coordinator(query: Query) -> Iterator[tuple[str, int]]:
    """A coordinator process of a query in a new folder: its address."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--data", str(Path(folder) / "data"), "--listen", "127.0.0.1:0", "--protocol", query.protocol]
        options += ["--method", query.method, *(part for text in query.minimize for part in ("--min", text))]
        options += [part for text in query.maximize for part in ("--max", text)]
        command = [sys.executable, "-m", "benchmarks.network.serve", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                host, port = process.stdout.readline().split()
                yield host, int(port)
            finally:
                process.terminate()


def asked(address: tuple[str, int], path: str) -> Any:
    """What the coordinator says."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    connection.request("GET", path)
    found = json.loads(connection.getresponse().read())
    connection.close()
    return found


def settled(address: tuple[str, int]) -> Any:
    """The coordinator's answer once it is exact."""
    for _ in range(600):
        state = asked(address, "/skyline")
        if state["exact"]:
            return state
        time.sleep(0.05)
    raise RuntimeError("the answer stays stale")


def shared_out(scale: Scale, protocol: str, seed: int) -> dict[str, list[str]]:
    """Which objects are at which site."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[str]] = {f"site-{number}": [] for number in range(scale.sites)}
    for one in range(scale.objects):
        spread = 1 if protocol == "filtering" else min(scale.spread, scale.sites)
        places = [one % scale.sites] if spread == 1 else rng.choice(scale.sites, spread, replace=False).tolist()
        for site in places:
            found[f"site-{site}"].append(f"o{one}")
    return found


def measured(query: Query, scale: Scale, *, seed: int = 1) -> Line:
    """Run all parts for a query; a line of figures."""
    objects = shared_out(scale, query.protocol, seed)
    names, columns = list(objects), len(query.columns)
    with coordinator(query) as address, contextlib.ExitStack() as stack:
        workers = []
        for share in np.array_split(np.arange(scale.sites), scale.workers):
            command = [sys.executable, "-m", "benchmarks.network.crowd"]
            started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            process = stack.enter_context(started)
            stack.callback(process.kill)
            worker = Worker(process)
            mine = [names[place] for place in share.tolist()]
            url = f"ws://{address[0]}:{address[1]}"
            worker.tell("crowd", url=url, sites=mine, objects={n: objects[n] for n in mine}, columns=columns, seed=seed)
            worker.answer()
            workers.append(worker)
        began = time.monotonic()
        _all(workers, "begin")
        line: Line = {"protocol": query.protocol, "method": query.method, "begin s": time.monotonic() - began}
        line |= _flat_out(workers, address, scale)  # first, so that clients and sites have got to know their ways
        line |= _paced(workers, address, scale)
        line |= _probed(workers, address, scale, columns, query)
        line["equal"] = _checked(workers, address, query)
        _all(workers, "end")
    return line


def _all(workers: list[Worker], command: str, **arguments: Any) -> list[Any]:
    for worker in workers:
        worker.tell(command, **arguments)
    return [worker.answer() for worker in workers]


def _paced(workers: list[Worker], address: tuple[str, int], scale: Scale) -> Line:
    """Rows at a steady rate: the bytes and frames that they cost."""
    before = asked(address, "/ledger")
    rate = scale.rate / len(workers)
    found = _all(workers, "run", seconds=scale.seconds, change=scale.change, rate=rate)
    after = asked(address, "/ledger")
    rows, wire = sum(one["put"] for one in found), {k: after["wire"][k] - before["wire"][k] for k in after["wire"]}
    return {
        "rows": rows,
        "rows/s": rows / max(one["seconds"] for one in found),
        "frames/row": (wire["frames_up"] + wire["frames_down"]) / rows,
        "bytes/row": (wire["bytes_up"] + wire["bytes_down"]) / rows,
        "messages/row": (after["messages"] - before["messages"]) / rows,
    }


def _probed(workers: list[Worker], address: tuple[str, int], scale: Scale, columns: int, query: Query) -> Line:
    """While rows go on at a quarter of the rate: from a row that changes the answer to the change at a reader."""
    reader = Reader(address)
    time.sleep(0.2)
    best, worst = _ends(query, columns)
    others = workers[1:] or workers
    seconds = 2 * scale.probes * 0.02 + 1
    for worker in others:
        worker.tell("run", seconds=seconds, change=scale.change, rate=scale.rate / 4 / len(others))
    workers[0].tell("probe", count=scale.probes, pause=0.01, best=best, worst=worst)
    answers = [worker.answer() for worker in (workers if len(workers) > 1 else [workers[0], workers[0]])]
    found = next(answer for answer in answers if "moments" in answer)
    time.sleep(0.5)
    reader.close()
    seen = [moment for moment, _, one in reader.seen if one == found["id"]][: len(found["moments"])]
    delays = np.array(seen) - np.array(found["moments"][: len(seen)])
    return {
        "changes seen": f"{len(seen)}/{len(found['moments'])}",
        "latency ms": float(np.median(delays)) * 1e3,
        "p99 ms": float(np.quantile(delays, 0.99)) * 1e3,
    }


def _ends(query: Query, columns: int) -> tuple[list[float], list[float]]:
    """Values that dominate all others, and values that all others dominate."""
    low, high = [1e-3] * columns, [1e3] * columns
    return (low, high) if not query.maximize else (high, low)


def _flat_out(workers: list[Worker], address: tuple[str, int], scale: Scale) -> Line:
    """As many rows as possible, with usual steps; then each so small a step that hardly any must be told."""
    lines: Line = {}
    for name, change in (("moving", scale.change), ("quiet", 1e-6)):
        before = asked(address, "/ledger")["wire"]
        found = _all(workers, "run", seconds=scale.seconds, change=change, rate=0.0)
        after = asked(address, "/ledger")["wire"]
        seconds = max(one["settled"] for one in found)
        frames = sum(after[f"frames_{way}"] - before[f"frames_{way}"] for way in ("up", "down"))
        lines |= {f"{name} rows/s": sum(one["put"] for one in found) / seconds, f"{name} frames/s": frames / seconds}
    return lines


def _checked(workers: list[Worker], address: tuple[str, int], query: Query) -> bool:
    """Whether the answer is that of the definition over all rows."""
    published = set(settled(address)["skyline"])
    cells = [cell for answer in _all(workers, "values") for cell in answer["values"]]
    signs = np.repeat([1.0, -1.0], [len(query.minimize), len(query.maximize)])
    if query.protocol == "filtering":
        values = np.array([values for _, _, values in cells]) * signs
        return published == {cells[place][1] for place in np.flatnonzero(skyline_mask(values)).tolist()}
    objects: dict[str, list[dict[str, float]]] = {}
    for _, one, values in cells:
        objects.setdefault(one, []).append(dict(zip(query.columns, values, strict=True)))
    functions = [expression(parse(text)) for text in (*query.minimize, *query.maximize)]
    return published == functional_skyline(objects, functions, signs=[int(sign) for sign in signs], nulls="drop")
