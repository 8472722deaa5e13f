"""Kernels compiled once: `python -m tests.kernels` is done before the tests, and each of their processes gains from it.

Tests run in several processes, and so do Spark's tasks: each would compile whatever it needs and has not been kept yet.
The runs of the guard of work call nearly all that there is.
"""

from __future__ import annotations

import multiprocessing
import os

from benchmarks.work import record
from benchmarks.work.runs import all_runs


def family_of(run: str) -> str:
    """What the run is of: those of one family share most of their kernels."""
    return run.partition(":")[0]


def compile_family(family: str) -> None:
    """Run what compiles its kernels; what is compiled is kept beside them."""
    record.measured({name: run for name, run in all_runs().items() if family_of(name) == family})


def main() -> None:
    """All of them, on all cores."""
    families = list(dict.fromkeys(map(family_of, all_runs())))
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        pool.map(compile_family, families, chunksize=1)


if __name__ == "__main__":
    main()
