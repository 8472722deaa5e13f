"""Objects in fragments in rounds on Spark: the rows and bytes that reach the driver, against shipping everything.

A stream is papa14's: every object is at every site, then updates at random, some for each timestamp. Changes are
compared with those of `skytide fragments` on the same rows. The first timestamp, in which all is told, is counted too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import skytide as sk
from benchmarks.spark.rounds import Stream, measured
from skytide.protocols.fragmented.functions import Functions
from skytide.runtime.fragments import Fragmented
from skytide.spark import fragments
from skytide.streams.fragments import fragments as local_vectors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from skytide.model import Changes
    from skytide.spark.rounds.operator import Rounds

STREAMS = ("independent:2", "correlated:2", "anti-correlated:2")


@dataclass(frozen=True)
class Fragments(Stream):
    """`KIND:D`: so many columns of this kind, all minimised."""

    objects: int
    sites: int
    updates: int
    per_time: int
    """Updates in a timestamp."""
    per_batch: int
    """Timestamps in a micro-batch."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [f"x{k}" for k in range(int(self.text.split(":")[1]))]

    @property
    def schema(self) -> str:
        """The columns, as Spark reads them."""
        return ", ".join(["t BIGINT", "site BIGINT", "object BIGINT", *(f"{name} DOUBLE" for name in self.columns)])

    def tables(self) -> Iterator[pa.Table]:
        """The rows of one micro-batch after the other; the first has the objects' beginning only."""
        kind, d = self.text.split(":")
        first, *runs = local_vectors(kind, self.objects, self.sites, int(d), self.updates, seed=7)
        tables = [
            pa.table(
                {
                    "t": (run.times + self.per_time - 1) // self.per_time,
                    "site": run.sites,
                    "object": run.ids,
                    **{name: run.values[:, k] for k, name in enumerate(self.columns)},
                }
            )
            for run in (first, *runs)
        ]
        yield tables[0]
        rest, size = pa.concat_tables(tables[1:]), self.per_time * self.per_batch
        for start in range(0, rest.num_rows, size):
            yield rest.slice(start, size)

    def watched(self, rows: DataFrame, method: str, buckets: int) -> Rounds:
        """The protocol on Spark."""
        preference = sk.Preference(minimize=self.columns)
        # Rows of one time have no order on Spark; without it, the largest of a cell counts.
        return fragments(rows, preference, site="site", time="t", id="object", method=method, buckets=buckets)

    def truth(self, table: pa.Table, method: str) -> Changes:
        """What it gives on one machine, with rows of one time in the order of their values."""
        table = table.sort_by([(name, "ascending") for name in ("t", *self.columns)])
        monitor = Fragmented(Functions(self.columns), method)
        return monitor.extend(table, *(table.column(name) for name in ("t", "object", "site")))


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all changes are those expected."""
    parser = argparse.ArgumentParser(
        prog="skytide bench spark --parts fragments", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="one small stream only")
    parser.add_argument("--objects", type=int, default=500)
    parser.add_argument("--sites", type=int, default=50)
    parser.add_argument("--updates", type=int, default=200_000)
    parser.add_argument("--per-time", type=int, default=2000, help="updates in a timestamp (2000)")
    parser.add_argument("--per-batch", type=int, default=20, help="timestamps in a micro-batch (20)")
    parser.add_argument("--methods", nargs="+", default=["auto"])
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument("--streams", nargs="+", default=list(STREAMS), help="KIND:D")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    chosen = parser.parse_args(argv)
    if chosen.quick:
        chosen.objects, chosen.sites, chosen.updates, chosen.per_time, chosen.per_batch = 20, 5, 300, 50, 3
        chosen.streams = chosen.streams[:1]
    shape = (chosen.objects, chosen.sites, chosen.updates, chosen.per_time, chosen.per_batch)
    return measured([Fragments(text, *shape) for text in chosen.streams], chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
