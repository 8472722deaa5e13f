"""A streaming pipeline under load while drivers, executors, workers and the network fail at random.

`skytide bench soak --minutes 30 --seed 1`. A window over rows that come at a rate, and the change stream of a
coordinator whose sites are on a bad network, run as two queries of one Spark job. The driver is killed and starts again
from its checkpoint; executors and Python workers are killed; connections are cut. At the end every change stream must
be the reference's, each change once, and the memory of all processes must have stayed flat; else the exit
status is 1. All is on this machine, on loopback, and only processes that this one has started are ended, by their ids.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.soak import processes
from benchmarks.soak.homes import end_in_order, spark_home
from benchmarks.soak.job import EXECUTOR_HEAP, Settings
from benchmarks.soak.judging import Compared, judged
from benchmarks.soak.memory import JVMS, LEAST, WARM_UP, Memory
from benchmarks.soak.playing import Outcome, played

SMALL_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
MASTER = "local-cluster[2,1,1024]"


def run(
    seconds: float,
    seed: int,
    *,
    rate: float,
    pause: float,
    master: str = MASTER,
    java: str = SMALL_JAVA,
    network: bool = True,
) -> tuple[Outcome, list[Compared], list[str]]:
    """Play it in a temporary folder, and judge; `pause` are seconds from a fault to the next, on average."""
    heap = 768
    with tempfile.TemporaryDirectory(prefix="skytide-soak-") as name:
        folder = Path(name)
        before = os.environ.get("SPARK_HOME")
        os.environ["SPARK_HOME"] = str(spark_home(folder / "spark"))
        try:
            settings = Settings(str(folder / "run"), master, seed, rate, "proxy" if network else "", java, heap)
            memory = Memory({processes.DRIVER_JVM: heap, processes.EXECUTOR: EXECUTOR_HEAP})
            outcome = asyncio.run(played(settings, seconds, pause, seed, memory))
            streams, problems = judged(folder / "run", seed, outcome)
        finally:
            if before is None:
                del os.environ["SPARK_HOME"]
            else:
                os.environ["SPARK_HOME"] = before
        if problems:
            errors = folder / "run" / "errors"
            print(errors.read_text(errors="replace")[-4000:] if errors.exists() else "", file=sys.stderr)
    return outcome, streams, problems


# -- what is printed ---------------------------------------------------------------------------------------------------


def tables(outcome: Outcome, streams: list[Compared]) -> list[str]:
    """The figures as Markdown."""
    slow = max(outcome.recovered, default=0.0)
    lines = [
        f"{outcome.lives} lives of the driver, {outcome.rows:,} rows, "
        + ", ".join(f"{count:,} micro-batches of {name}" for name, count in outcome.batches.items())
        + f"; after a fault two more micro-batches came within {slow:.0f} s at most",
        "",
        "| fault | times |",
        "|---|---:|",
        *(f"| {name} | {count} |" for name, count in sorted(outcome.faults.items())),
        *(f"| network: {name} | {count} |" for name, count in sorted(outcome.network.get("faults", {}).items())),
        "",
        "| stream | expected | found | missing | too many | equal |",
        "|---|---:|---:|---:|---:|---|",
        *(
            f"| {one.name} | {one.expected:,} | {one.found:,} | {one.missing} | {one.surplus} | {_word(one.equal)} |"
            for one in streams
        ),
        "",
        "| process | of them | seconds after warm-up | most, MiB | slope, MiB/min | bound | flat |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    for one in outcome.memory:
        slope = "too short to tell" if one.slope is None else f"{one.slope:+.2f}"
        bound = "none" if one.bound is None else f"{one.bound:g} MiB" if one.role in JVMS else f"{one.bound:g} MiB/min"
        lines.append(
            f"| {one.role} | {one.processes} | {one.seconds:.0f} | {one.most:.0f} | {slope} | {bound} | "
            f"{'not judged' if one.flat is None or one.bound is None else _word(one.flat)} |"
        )
    seen = outcome.network
    if not seen:
        return lines
    return [
        *lines,
        "",
        f"the coordinator: {seen['rows']:,} rows, {seen['states']:,} states read, {seen['right']:,} of them and of "
        f"those that events tell of published as exact and right, {seen['wrong']} wrong",
    ]


def _word(right: bool) -> str:
    return "yes" if right else "NO"


def main(argv: list[str]) -> int:
    """Run it; 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="skytide bench soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="of load and faults (30)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=10_000.0, help="rows a second (10,000)")
    parser.add_argument("--pause", type=float, default=15.0, help="seconds between faults, on average (15)")
    parser.add_argument("--master", default=MASTER, help=f"where the pipeline runs ({MASTER})")
    parser.add_argument("--no-network", action="store_true", help="the window alone, without a coordinator and sites")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    chosen = parser.parse_args(argv)
    if min(chosen.minutes, chosen.rate, chosen.pause) <= 0 or not chosen.master.startswith("local"):
        parser.error("minutes, rate and pause are positive, and the master is local[N] or local-cluster[N,1,1024]")
    found = machine.describe("pyspark", "pyarrow", "starlette", "uvicorn")
    opening = [
        machine.sentence(found),
        f"{chosen.minutes:g} minutes on {chosen.master}, {chosen.rate:,.0f} rows a second, a fault every "
        f"{chosen.pause:g} s, seed {chosen.seed}; memory counts after {WARM_UP:.0f} s of a process, and slopes of "
        f"{LEAST:.0f} s or more",
        "",
    ]
    print(*opening, sep="\n", flush=True)
    end_in_order()
    outcome, streams, problems = run(
        60 * chosen.minutes,
        chosen.seed,
        rate=chosen.rate,
        pause=chosen.pause,
        master=chosen.master,
        network=not chosen.no_network,
    )
    verdict = [f"WRONG: {problem}" for problem in problems] or ["nothing lost, nothing doubled, memory flat"]
    lines = [*tables(outcome, streams), "", *verdict]
    print(*lines, sep="\n")
    if chosen.markdown:
        chosen.markdown.write_text("\n".join([*opening, *lines, ""]))
    if chosen.json:
        chosen.json.write_text(json.dumps(_plain(outcome, streams, problems, found), indent=1))
    return 1 if problems else 0


def _plain(outcome: Outcome, streams: list[Compared], problems: list[str], found: dict[str, str]) -> dict[str, Any]:
    told = {name: value for name, value in vars(outcome).items() if name not in ("events", "memory")}
    return {
        "benchmark": "soak",
        "machine": found,
        "streams": [asdict(one) for one in streams],
        "memory": [asdict(one) for one in outcome.memory],
        "problems": problems,
        **told,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
