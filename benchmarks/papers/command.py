"""`skytide bench papers`: every figure and table of the five papers, run again, beside what the papers say.

    skytide bench papers --list
    skytide bench papers tao06 --figure 12 --size laptop
    skytide bench papers --size full --master spark://host:7077 --out results/

Tasks run on Spark, as many at once as the master has cores; `--master local[1]` gives undisturbed times. What has ended
is kept in --out and is not run again there; `--again` does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.papers import registry, report
from benchmarks.papers.registry import Figure, Place, Task
from benchmarks.papers.runner import Kept, Outcome, run_all
from benchmarks.real import DATA
from skytide.errors import OptionError
from skytide.spark import local_session
from skytide.spark.faults import need_pyspark
from skytide.spark.session import cores_of, remote_session
from skytide.spark.shipping import needs_shipping, ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ELSEWHERE = 16
"""Jobs at once on a cluster, unless --jobs says more."""


def options(argv: list[str]) -> argparse.Namespace:
    """The options as given."""
    parser = argparse.ArgumentParser(prog="skytide bench papers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paper", nargs="?", choices=list(registry.PAPERS), help="only this one (all)")
    parser.add_argument("--figure", type=int, action="append", default=[], metavar="N", help="only this figure")
    parser.add_argument("--table", type=int, action="append", default=[], metavar="N", help="only this table")
    parser.add_argument("--size", choices=list(registry.SIZES), default="laptop", help="smoke, laptop or full (laptop)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where results go and are found again (papers-SIZE)")
    parser.add_argument("--master", default="local[*]", help="of Spark, or sc://host:15002 (local[*])")
    parser.add_argument("--jobs", type=int, metavar="N", help="tasks at once (the cores of a local master, else 16)")
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="the real data, on every machine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="run what has ended before, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what all of it comes to")
    parser.add_argument("--list", action="store_true", help="say what there is, and end")
    chosen = parser.parse_args(argv)
    if (chosen.figure or chosen.table) and chosen.paper is None:
        parser.error("--figure and --table need a paper before them, as in: tao06 --figure 12")
    if chosen.jobs is not None and chosen.jobs < 1:
        parser.error("--jobs must be 1 or more")
    chosen.out = chosen.out or Path(f"papers-{chosen.size}")
    return chosen


def picked(chosen: argparse.Namespace, known: list[Figure]) -> list[Figure]:
    """The figures asked for; an error where one is not known."""
    own = [one for one in known if chosen.paper in (None, one.paper)]
    if not chosen.figure and not chosen.table:
        return own
    asked = [("figure", number) for number in chosen.figure] + [("table", number) for number in chosen.table]
    for kind, number in asked:
        if not any((one.kind, one.number) == (kind, number) for one in own):
            there = ", ".join(str(one.number) for one in own if one.kind == kind)
            raise OptionError(
                f"is not a {kind} of {chosen.paper}", value=number, remedy=f"there are: {there or 'none'}"
            )
    return [one for one in own if (one.kind, one.number) in asked]


def session(chosen: argparse.Namespace) -> tuple[SparkSession, int]:
    """Spark, and how many tasks may run at once."""
    if chosen.master.startswith("sc://"):
        spark = remote_session(chosen.master)
        ship(spark)
        return spark, chosen.jobs or ELSEWHERE
    # One thread for each task: what libraries would start beside it would count as its time.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    spark = local_session(chosen.master)
    if needs_shipping(chosen.master):
        ship(spark)
        return spark, chosen.jobs or max(ELSEWHERE, cores_of(chosen.master))
    return spark, chosen.jobs or cores_of(chosen.master)


class Progress:
    """Says on standard error which tasks have ended."""

    def __init__(self, many: int, kept: Kept) -> None:
        self._many, self._kept, self._done, self._start = many, kept, 0, time.monotonic()

    def __call__(self, task: Task, outcome: Outcome) -> None:
        """A task has ended."""
        self._done += 1
        wrong = sum(not row["equal"] for row in outcome["rows"])
        state = f"FAILED, {outcome['error']}" if outcome["error"] else "WRONG answers" if wrong else "right"
        paper = task.experiment.split(".")[2]
        print(
            f"[{self._done}/{self._many}, {time.monotonic() - self._start:.0f} s] {paper} {task.words}: "
            f"{outcome['seconds']:.1f} s, {state}",
            file=sys.stderr,
            flush=True,
        )
        if outcome.get("trace"):
            print(outcome["trace"], file=sys.stderr, flush=True)
        self._kept.put(task, outcome)


def run_fresh(fresh: list[Task], kept: Kept, chosen: argparse.Namespace, place: Place) -> dict[str, Outcome]:
    """Run tasks on Spark; a session that was there before stays."""
    need_pyspark()
    from pyspark.sql import SparkSession

    outcomes: dict[str, Outcome] = {}
    running = SparkSession.getActiveSession() is not None
    spark, jobs = session(chosen)
    progress = Progress(len(fresh), kept)
    together = -(-len(fresh) // jobs) if chosen.size == "smoke" else 1

    def ended(task: Task, outcome: Outcome) -> None:
        outcomes[task.key] = outcome
        progress(task, outcome)

    try:
        run_all(spark, fresh, place, jobs=jobs, together=together, ended=ended)
    finally:
        if not running:
            spark.stop()
    return outcomes


def main(argv: list[str]) -> int:
    """Run what was asked for; 0 when all of it ended and all answers are right."""
    chosen = options(argv)
    known = registry.figures()
    mine = picked(chosen, known)
    if chosen.list:
        for one in mine:
            print(f"{one.paper} --{one.kind} {one.number}: {one.title}")
        return 0
    data = chosen.data.resolve() if chosen.data.is_dir() else None
    missing = {one.key: reason for one in known if (reason := one.missing(data))}
    kept = Kept(chosen.out)
    tasks = {task.key: task for one in mine for task in one.tasks(chosen.size, chosen.seed, data)}
    fresh = [task for task in tasks.values() if chosen.again or kept.get(task) is None]
    outcomes = run_fresh(fresh, kept, chosen, Place(data)) if fresh else {}
    results = []
    for one in known:
        own = one.tasks(chosen.size, chosen.seed, data)
        found = [outcomes.get(task.key) or kept.get(task) for task in own]
        skipped = missing.get(one.key, "") if one in mine else ""
        there = [outcome for outcome in found if outcome is not None]
        results.append(report.Result(one, there, len(own), skipped, chosen.size != "smoke"))
    report.write(chosen.out, results, chosen.size, chosen.seed)
    asked = [one for one in results if one.figure in mine]
    if chosen.json:
        chosen.json.write_text(json.dumps({"benchmark": "papers", **report.counts(asked)}, indent=1))
    print(*report.summary(asked), f"see {chosen.out / 'report.html'}", sep="\n")
    return 0 if not any(one.wrong or one.failed for one in asked) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
