"""Every command with every method on generated streams, compared with the definitions: `skytide verify`, many times.

`skytide bench verify --size smoke|laptop|full`. Each stream is taken twice: as it is, and with values that are rounded
to tenths of the largest, so that ties and equal rows are everywhere. The definitions are slow code that shares nothing
with the methods. The exit status is 1 where a run disagrees with them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import machine

SIZES = {"smoke": 0.02, "laptop": 1.0, "full": 10.0}
"""How many rows, as a share of those below."""
LEAST = 60


@dataclass(frozen=True)
class Case:
    """A stream, as `skytide generate` makes it, and a command over it."""

    command: str
    stream: str
    rows: int
    dimensions: int
    question: str
    more: str = ""
    """Further options of `skytide generate`."""

    @property
    def columns(self) -> list[str]:
        """What is minimised."""
        return [f"x{place + 1}" for place in range(self.dimensions)]

    def words(self) -> list[str]:
        """What follows the data in the call."""
        chosen = [] if "--m" in self.question else [word for name in self.columns for word in ("--min", name)]
        return [*chosen, *self.question.split()]


CASES = (
    Case("skyline", "independent", 100_000, 3, ""),
    Case("skyline", "anti-correlated", 50_000, 4, ""),
    Case("window", "independent", 50_000, 3, "--count 5000"),
    Case("window", "anti-correlated", 20_000, 4, "--count 2000"),
    Case("window", "spikes", 40_000, 3, "--time time --id id --duration 2"),
    Case("uncertain", "uncertain", 5_000, 3, "--prob prob --count 800 --threshold 0.3 --threshold 0.7"),
    Case("uncertain", "uncertain", 3_000, 2, "--prob prob --count 500 --threshold 0.1 --top 10"),
    Case("snapshots", "walk", 20_000, 3, "--id id --time time", "--objects 300"),
    Case("snapshots", "jitter", 20_000, 3, "--id id --time time --frequent 0.5 --over 20", "--objects 200"),
    Case("monitor", "jitter", 20_000, 3, "--id id --time time", "--objects 200"),
    Case("monitor", "walk", 20_000, 2, "--id id --time time --theta 0.5 --over 20 --epsilon 0.3", "--objects 300"),
    Case("fragments", "fragments", 6_000, 2, "--site site --id id --time time", "--objects 60 --sites 5"),
    Case(
        "fragments",
        "fragments",
        4_000,
        2,
        "--site site --id id --time time --min norm(x1,x2) --max var(x2)",
        "--objects 40 --sites 5",
    ),
)


def skytide(*words: str) -> tuple[int, str]:
    """Run a command; its exit status and what it prints."""
    call = [sys.executable, "-m", "skytide.cli", *words]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"skytide {' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.returncode, done.stdout


def rounded(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The same rows with values that are tenths of the largest: many are equal."""
    for name in columns:
        step = (pc.max(table[name]).as_py() or 1.0) / 10
        values = pc.round(pc.divide(table[name], step))
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def lines_of(case: Case, share: float, seed: int, seconds: float, folder: Path) -> Iterator[dict[str, Any]]:
    """A line for each run of the command, on the stream as it is and rounded."""
    rows = max(LEAST, round(case.rows * share))
    plain, tied = folder / "plain.parquet", folder / "tied.parquet"
    made = ["-n", str(rows), "-d", str(case.dimensions), "--seed", str(seed), "-o", str(plain)]
    skytide("generate", case.stream, *made, *case.more.split())
    pq.write_table(rounded(pq.read_table(plain), case.columns), tied)
    for values, file in (("as they are", plain), ("tenths", tied)):
        _, told = skytide("verify", case.command, str(file), *case.words(), "--seconds", str(seconds), "--json")
        for one in json.loads(told)["runs"]:
            named = [one[name] for name in ("engine", "method", "index") if name in one]
            yield {
                "command": " ".join([case.command, *case.question.split()[:6]]),
                "stream": case.stream,
                "values": values,
                "run": ", ".join(named),
                "looked at": one["looked_at"],
                "rows": one["rows"],
                "instants": one["instants"],
                "checked": one["instants_checked"],
                "result": one["result"],
            }


def main(argv: list[str]) -> int:
    """Run it; 1 where a run disagrees."""
    parser = argparse.ArgumentParser(prog="skytide bench verify", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=list(SIZES), default="laptop")
    parser.add_argument("--only", nargs="+", choices=sorted({case.command for case in CASES}), help="these commands")
    parser.add_argument("--seconds", type=float, default=20.0, help="that the definitions may take for a call (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything found")
    chosen = parser.parse_args(argv)
    found = machine.describe("pyspark", "pyarrow")
    print(machine.sentence(found), f"size {chosen.size}, seed {chosen.seed}", "", sep="\n", flush=True)
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="skytide-verify-") as name:
        for case in CASES:
            if chosen.only and case.command not in chosen.only:
                continue
            for line in lines_of(case, SIZES[chosen.size], chosen.seed, chosen.seconds, Path(name)):
                if not lines:
                    print("| " + " | ".join(line) + " |", "|" + "---|" * len(line), sep="\n")
                cells = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in line.values())
                print("| " + " | ".join(cells) + " |", flush=True)
                lines.append(line)
    wrong = sum(line["result"] == "disagrees" for line in lines)
    print("", f"{wrong} runs DISAGREE" if wrong else "no run disagrees with the definitions", sep="\n")
    if chosen.json:
        report = {"benchmark": "verify", "seed": chosen.seed, "machine": found, "lines": lines}
        chosen.json.write_text(json.dumps(report, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
