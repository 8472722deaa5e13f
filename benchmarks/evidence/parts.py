"""The parts of the evidence: benchmarks, each a process of its own, with the arguments of each size; and what is kept.

A part runs by `skytide bench`, with nothing beside it, since times are taken. What it prints and finds is one file in
the folder of the results, with the machine, the versions and how busy the machine was; a part whose file is there, from
the same call of the same code, and that ended well, is not run again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine

ROOT = Path(__file__).resolve().parents[2]
SIZES = {
    "smoke": "to see that all works; nothing is judged but answers",
    "laptop": "an hour and a half on two cores",
    "full": "many hours",
}
Kept = dict[str, Any]
"""What is known of a part: how it was called, when, on what, what it printed and what it found."""
PAPERS = "papers"
QUIET, REST = 0.4, 120.0
"""A part begins when fewer processes than that wanted a core over the last minute, or after so many seconds."""


@dataclass(frozen=True)
class Part:
    """A benchmark: what it is called in the report, and what follows `skytide bench` at each size."""

    name: str
    title: str
    smoke: str
    laptop: str
    full: str

    def words(self, size: str) -> list[str]:
        """The call at a size, as words."""
        return str(getattr(self, size)).split()


PARTS = (
    Part(
        "verify",
        "Every command beside the definitions",
        "verify --size smoke",
        "verify",
        "verify --size full",
    ),
    Part("work", "The guard of work", "work", "work", "work"),
    Part(PAPERS, "The figures of five papers", "papers --size smoke", "papers", "papers --size full"),
    Part("peers", "All peers", "peers --size smoke", "peers", "peers --size full"),
    Part("batch", "Tables beside two peers", "batch --quick --budget 2", "batch --budget 5 --repeats 3", "batch"),
    Part(
        "window",
        "Windows beside a scan in C++ and beside computing anew",
        "window --quick --parts flat recompute",
        "window --parts flat recompute operations",
        "window",
    ),
    Part(
        "uncertain",
        "Uncertain rows beside a scan",
        "uncertain --quick --parts rates drift",
        "uncertain --parts rates drift --seconds 2 --arrivals 2000000",
        "uncertain",
    ),
    Part(
        "snapshots",
        "Objects that change, beside computing anew",
        "snapshots --quick --parts synthetic nba stocks",
        "snapshots --parts synthetic nba stocks --snapshots 2000 --repeats 2 --budget 5",
        "snapshots",
    ),
    Part(
        "filtering",
        "Messages of many clients",
        "filtering --quick --parts dimensions tcp",
        "filtering --parts dimensions distribution tcp",
        "filtering --full",
    ),
    Part(
        "fragmented",
        "Messages about objects in fragments",
        "fragmented --quick --parts correlation types",
        "fragmented --parts correlation change types weather movies",
        "fragmented --full",
    ),
    Part(
        "network",
        "Coordinator and sites between processes",
        "network --quick",
        "network --seconds 8 --probes 100 --faults 120 --inputs 200000",
        "network",
    ),
    Part(
        "spark-tables",
        "Tables on Spark",
        "spark --parts batch --quick --repeats 1 --limit 2",
        "spark --parts batch --repeats 3 --cells 1000000x3-independent 1000000x6-anti-correlated "
        "10000000x3-independent 10000000x6-anti-correlated --sql 9000x4-anti-correlated --limit 40",
        "spark --parts batch",
    ),
    Part(
        "spark-streams",
        "Windows on Spark",
        "spark --parts streaming --quick",
        "spark --parts streaming",
        "spark --parts streaming",
    ),
    Part(
        "spark-rounds",
        "Clients on Spark",
        "spark --parts rounds --quick",
        "spark --parts rounds",
        "spark --parts rounds",
    ),
    Part("scale", "How it grows on Spark", "scale --size smoke", "scale", "scale --size full"),
    Part(
        "soak",
        "A pipeline while everything fails",
        "soak --minutes 1 --no-network --rate 2000",
        "soak --minutes 30",
        "soak --minutes 240",
    ),
)


def part_of(name: str) -> Part:
    """The part of a name."""
    return next(one for one in PARTS if one.name == name)


def shown(words: list[str]) -> str:
    """A call as people type it."""
    return " ".join(["skytide bench", *words])


class Folder:
    """Where results are kept: a file for each part, and the papers' figures in a folder of their own."""

    def __init__(self, path: Path) -> None:
        self._parts = path / "parts"
        self._parts.mkdir(parents=True, exist_ok=True)
        self.papers = path / PAPERS

    def get(self, part: Part, size: str) -> Kept | None:
        """What is known of a part, if it was called as it would be now, however it ended."""
        path = self._parts / f"{part.name}.json"
        if not path.exists():
            return None
        found: Kept = json.loads(path.read_text(encoding="utf-8"))
        return found if found["call"] == shown(part.words(size)) else None

    def done(self, part: Part, size: str) -> Kept | None:
        """What is known of a part that ended well with the code that is here."""
        found = self.get(part, size)
        well = found is not None and not found["status"] and found["found"] and found["code"] == machine.code()
        return found if well else None

    def put(self, part: Part, kept: Kept) -> None:
        """Keep it; whole or not at all."""
        path = self._parts / f"{part.name}.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        fresh.replace(path)


def come_to_rest(seconds: float) -> None:
    """Wait until the machine has forgotten what it did before, or for so many seconds."""
    end = time.monotonic() + seconds
    while machine.busy() > QUIET and time.monotonic() < end:
        time.sleep(1)


def run(part: Part, size: str, papers: Path, say: Callable[[str], object], *, again: bool = False) -> Kept:
    """Run a part to its end, alone; `say` is told each line that it prints. `again`: also what it has kept itself."""
    words = part.words(size)
    if size != "smoke":
        come_to_rest(REST)
    busy, start, day = machine.busy(), time.monotonic(), datetime.now(UTC).date().isoformat()
    printed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="skytide-evidence-") as name:
        found = Path(name, "found.json")
        call = [sys.executable, "-m", "skytide.cli", "bench", *words, "--json", str(found)]
        if part.name == PAPERS:
            call += ["--out", str(papers.resolve()), *(["--again"] if again else [])]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(call, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    printed.append(line.rstrip().replace(str(papers.resolve()), PAPERS))
                    say(f"{part.name}: {printed[-1]}")
                status = process.wait()
            except BaseException:
                process.terminate()
                raise
        values = json.loads(found.read_text(encoding="utf-8")) if found.exists() else None
    return {
        "part": part.name,
        "call": shown(words),
        "day": day,
        "seconds": round(time.monotonic() - start, 1),
        "busy": round(busy, 2),
        "code": machine.code(),
        "status": status,
        "printed": printed,
        "found": values,
    }
