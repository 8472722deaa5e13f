"""How the skyline and the window on Spark grow: with rows, columns, windows, groups, and from one master to another.

`skytide bench scale --size smoke|laptop|full`. Each master is a process of its own on this machine: `local[2]`,
`local-cluster[2,1,1024]` and a standalone cluster of a master and two workers. Every answer is compared with the
kernel's without Spark. Growth is given as the slope of a line through the logarithms: 1 is linear. The last part is on
paper: what a hundred executors would reach by the costs measured here, and what would limit them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import machine
from benchmarks.scale.job import Case
from benchmarks.scale.masters import CORES, MASTERS, FailedError, measured
from benchmarks.scale.paper import Costs, beside, line, pages, power_law, slope
from benchmarks.soak.homes import end_in_order
from skytide.spark.batch_tasks import survivors_of
from skytide.spark.sinks import ParquetSink
from skytide.spark.streaming.packing import packed
from skytide.spark.streaming.write import in_order

Found = dict[str, Any]
PARTS = ("rows", "dimensions", "groups", "window", "batch", "window dimensions", "window groups")
"""What is varied; each part is a table and a slope."""
_MANY_TASKS = 34
DIMENSIONS = Case("", 0).dimensions
"""Of the cases that the costs are made of."""


# -- what is measured --------------------------------------------------------------------------------------------------


def cases_of(size: str, master: str) -> list[Case]:
    """The cases of a master; growth is looked at on the first alone."""
    unit, rows = {"smoke": (4_000, (1, 4)), "laptop": (250_000, (4, 12, 40, 120, 400))}.get(
        size, (1_000_000, (1, 3, 10, 30, 100))
    )
    found = [Case("rows", unit * times) for times in (rows if master == MASTERS[0] else rows[::2])]
    stream: dict[str, Any] = {"rows": 5 * unit, "batch": unit, "length": unit}
    found.append(Case("window", **stream))
    if master != MASTERS[0]:
        return found
    # What the costs are made of comes first: a run that is ended early has them.
    found += [Case("all travel", pruned=False, **stream)]
    found += [Case("idle", 8 * tasks, batch=tasks, length=unit, tasks=tasks) for tasks in (2, _MANY_TASKS)]
    found += [Case("batch", 5 * few, batch=few, length=unit) for few in (unit // 25, unit // 5)]
    found += [Case("window", **(stream | {"length": unit * share // 100})) for share in (1, 10)]
    found += [Case("dimensions", 4 * unit, d, kind) for kind in _kinds(size) for d in (2, 3, 4, 6)]
    found += [Case("groups", 4 * unit, groups=groups) for groups in (1, 10, 100, 1000)[: 2 if size == "smoke" else 4]]
    found += [Case("window dimensions", dimensions=d, **stream) for d in (2, 4)]
    found += [Case("window groups", groups=groups, **stream) for groups in (1, 10, 100)[: 2 if size == "smoke" else 3]]
    return found


def _kinds(size: str) -> tuple[str, ...]:
    return ("independent",) if size == "smoke" else ("independent", "anti-correlated")


# -- tables ------------------------------------------------------------------------------------------------------------

TABLE = ("master", "rows", "dimensions", "kind", "groups", "skyline", "source s", "prune s", "skyline s")
STREAM = ("master", "batch", "length", "dimensions", "groups", "batch s", "rows/s", "per million", "retained")


def table(lines: Sequence[Found], names: Sequence[str], more: Callable[[Found], Found]) -> list[str]:
    """Lines as Markdown, with columns that are computed from them."""
    shown = [{name: one[name] for name in names} | more(one) | {"equal": one["equal"]} for one in lines]
    head = list(shown[0]) if shown else []
    rows = ["| " + " | ".join(_word(value) for value in one.values()) + " |" for one in shown]
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *rows] if shown else []


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def of_table(one: Found) -> Found:
    """What a line of a table is worth beside its seconds."""
    return {"M rows/s": one["rows"] / one["skyline s"] / 1e6, "reach per million": one["reach"] * 1e6 / one["rows"]}


def growth(lines: Sequence[Found]) -> Iterator[str]:
    """How cost and traffic grow with what each part varies; a sentence for each."""
    first = [one for one in lines if one["master"] == MASTERS[0]]
    varied = {"rows": "rows", "dimensions": "dimensions", "groups": "groups", "window": "length", "batch": "batch"}
    varied |= {"window dimensions": "dimensions", "window groups": "groups"}
    for part in PARTS:
        # A window of the usual length is the one that the others of its kind are to be compared with.
        usual = [one for one in first if one["part"] == "window" and one["length"] == one["batch"]]
        mine = [one for one in first if one["part"] == part]
        for kind in dict.fromkeys(one["kind"] for one in mine):
            some = [one for one in mine if one["kind"] == kind]
            if part in ("batch", "window dimensions"):
                some += usual
            some.sort(key=lambda one: one[varied[part]])
            sizes = [float(one[varied[part]]) for one in some]
            if len(set(sizes)) < 2:
                continue
            stream = bool(some[0]["batch"])
            seconds = [one["batch s" if stream else "skyline s"] for one in some]
            reach = [max(float(one["reach"]), 1.0) for one in some]
            yield (
                f"{part}, {kind}, {sizes[0]:,.0f} to {sizes[-1]:,.0f}: seconds "
                f"{'of a micro-batch ' if stream else ''}grow with the power {slope(sizes, seconds):+.2f}, rows that "
                f"reach the merge with {slope(sizes, reach):+.2f}"
            )


# -- on paper ----------------------------------------------------------------------------------------------------------


def costs_of(lines: Sequence[Found]) -> Costs:
    """The costs of the model, from the lines of the first master, and two that are measured here."""
    first = [one for one in lines if one["master"] == MASTERS[0]]
    tables = [one for one in first if one["part"] == "rows"]
    rows = [float(one["rows"]) for one in tables]
    _, source = line(rows, [one["source s"] for one in tables])
    _, both = line(rows, [one["prune s"] for one in tables])
    idle = [one for one in first if one["part"] == "idle"]
    batch, task = line([float(one["tasks"]) for one in idle], [one["batch s"] for one in idle])
    (usual,) = (one for one in first if one["part"] == "window" and one["length"] == one["batch"])
    (travel,) = (one for one in first if one["part"] == "all travel")
    # Where all rows travel nothing is pruned, and the rest of what it takes longer is the merge's.
    beyond = travel["batch s"] - usual["batch s"] + usual["batch"] * max(both - source, 0.0)
    streams = [one for one in first if one["part"] == "batch"] + [usual]
    held = [one["batch"] / one["tasks"] for one in streams]
    left = power_law(held, [one["reach"] / one["tasks"] for one in streams])
    return Costs(
        source=source * CORES,
        prune=max(both - source, 0.0) * CORES,
        merge=max(beyond, 0.0) / max(travel["reach"] - usual["reach"], 1.0),
        batch=batch,
        task=task * CORES,  # tasks of this machine take turns on its cores
        change=change_cost(),
        left=left,
        changed=usual["changes"] / max(usual["reach"], 1.0),
        row_bytes=row_bytes(usual["dimensions"]),
        compare=compare_cost(usual["dimensions"]),
        seen=(min(held), max(held)),
    )


def change_cost(changes: int = 100_000) -> float:
    """Seconds that the driver takes for a change: put in order, encoded, written."""
    random = np.random.default_rng(0)
    rows = pa.table(
        {
            "time": random.integers(0, changes, changes),
            "change": pa.array(["+", "-"]).take(pa.array(random.integers(0, 2, changes))),
            "id": random.integers(0, changes, changes),
            **{f"x{place}": random.random(changes) for place in range(3)},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        ParquetSink(folder).write(0, in_order(rows, []))
        return (time.perf_counter() - start) / changes


def compare_cost(dimensions: int, rows: int = 1_000_000) -> float:
    """Seconds of a row in the prune of a task, without Spark: it is there as Arrow already."""
    case = Case("compare", rows, dimensions)
    batches = list(case.generated(1).batches(0, rows))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        survivors_of(iter(batches), case.preference, "error")
        seconds.append(time.perf_counter() - start)
    return min(seconds) / rows


def row_bytes(dimensions: int, rows: int = 10_000) -> float:
    """Bytes of a row as it travels and as it is kept: packed, with its id, its time and its values."""
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {"id": np.arange(rows), "time": np.arange(rows)}
    columns |= {f"x{place}": random.random(rows) for place in range(dimensions)}
    return sum(len(piece) for piece in packed(pa.table(columns))) / rows


# -- command -----------------------------------------------------------------------------------------------------------


def report(lines: Sequence[Found]) -> list[str]:
    """Everything that the lines come to."""
    tables = [one for one in lines if not one["batch"]]
    streams = [one for one in lines if one["batch"]]
    said = ["### Tables", "", *table(tables, TABLE, of_table), "", "### Windows over streams", ""]
    said += [*table(streams, STREAM, lambda one: {"tasks": one["tasks"]}), "", "### How it grows", ""]
    said += [f"- {sentence}" for sentence in growth(lines)]
    costs = costs_of(lines)
    said += ["", "### On paper", "", *pages(costs), "", "### The paper beside what was measured", ""]
    return [*said, *beside(costs, streams, DIMENSIONS, CORES)]


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all answers are equal."""
    parser = argparse.ArgumentParser(prog="skytide bench scale", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=("smoke", "laptop", "full"), default="laptop")
    parser.add_argument("--masters", nargs="+", choices=MASTERS, default=list(MASTERS), help=", ".join(MASTERS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    chosen = parser.parse_args(argv)
    found = machine.describe("pyspark", "pyarrow")
    opening = [machine.sentence(found), f"size {chosen.size}, seed {chosen.seed}"]
    if machine.busy() > 0.6:
        opening.append(f"the machine is busy ({machine.busy():.1f} processes per core): times are not to be trusted")
    print(*opening, "", sep="\n", flush=True)
    end_in_order()
    lines: list[Found] = []
    failed: dict[str, str] = {}

    def keep() -> None:
        """A long run that is ended early leaves what it has found."""
        if chosen.json:
            kept = {"benchmark": "scale", "machine": found, "lines": lines, "failed": failed}
            chosen.json.write_text(json.dumps(kept, indent=1))

    keep()
    for master in chosen.masters:
        try:
            for one in measured(master, cases_of(chosen.size, master), chosen.seed):
                lines.append({"master": master, **one})
                keep()
                print(f"{master}, {one['part']}: {_short(one)}", file=sys.stderr, flush=True)
        except FailedError as problem:  # the others can still be measured
            failed[master] = str(problem)
            keep()
            print(problem, file=sys.stderr, flush=True)
    # Costs and slopes are those of the first master: without it there are the tables alone.
    whole = MASTERS[0] in chosen.masters and MASTERS[0] not in failed
    said = report(lines) if whole else table([one for one in lines if not one["batch"]], TABLE, of_table)
    equal = all(one["equal"] for one in lines)
    said += ["", "ANSWERS DIFFER" if not equal else "all answers are equal" if lines else "nothing was measured"]
    said += [f"FAILED: {reason}" for reason in failed.values()]
    print(*said, sep="\n")
    if chosen.markdown:
        chosen.markdown.write_text("\n".join([*opening, "", *said, ""]))
    return 0 if equal and not failed else 1


def _short(one: Found) -> str:
    names = ("rows", "dimensions", "groups", "length", "source s", "prune s", "skyline s", "batch s", "reach", "equal")
    return ", ".join(f"{name} {_word(one[name])}" for name in names if one.get(name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
