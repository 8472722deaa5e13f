"""How fast sites find that they have nothing to say: updates that stay in zones, or leave pairs in order.

The coordinator gives its orders for a stream's beginning; then every update moves a local vector by a millionth of it
at most. The time is that of the sites alone, which is all there is: no message is sent, which is checked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.papers.papa14.runs import Line
from benchmarks.papers.papa14.series import synthetic
from skytide.model import Floats, Integers
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import merged
from skytide.protocols.fragmented.methods import coordinator_of, pairs_of
from skytide.protocols.fragmented.site import SiteBlock

GOAL = 1_000_000
"""Updates per second on one core."""
LITTLE = 1e-6
QUERIES = (("a", "b"), ("a", "b", "c", "d"), ("a", "norm(b, c)"), ("a", "distance(b, c, d, e)"), ("a", "b / c"))


def measured(objects: int, sites: int, updates: int, *, quick: bool, seed: int) -> Iterator[Line]:
    """A line for each query and way to watch objects."""
    for query in QUERIES[:1] if quick else QUERIES:
        for method in ("pivot", "direct"):
            yield _line(query, method, objects, sites, updates, seed)


def _line(query: tuple[str, ...], method: str, objects: int, sites: int, updates: int, seed: int) -> Line:
    series = synthetic("independent", objects, sites, query, change=0.02, seed=seed, updates=1)
    start = next(series.blocks())
    functions = series.functions
    block = _begun(functions, method, start.sites, start.objects, functions.local(start.values))
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(start.sites), updates)
    moved = start.values[rows] * rng.uniform(1 - LITTLE, 1 + LITTLE, (updates, start.values.shape[1]))
    who, what, vectors = start.sites[rows], start.objects[rows], functions.local(moved)
    best, quiet = np.inf, True
    for _ in range(3):
        clock = time.process_time()
        row, said = block.take(1, who, what, vectors)
        best = min(best, time.process_time() - clock)
        quiet &= row == updates and not said
    return {
        "functions": ", ".join(query),
        "method": method,
        "objects": objects,
        "sites": sites,
        "updates/s": round(updates / best),
        "goal": GOAL,
        "equal": quiet,
    }


def _begun(functions: Functions, method: str, sites: Integers, objects: Integers, vectors: Floats) -> SiteBlock:
    """Sites with orders."""
    block = SiteBlock(functions, paired=pairs_of(method, functions))
    coordinator = coordinator_of(method, functions)
    said = block.join(0, sites, objects, vectors)
    while orders := coordinator.take(0, said):
        said = block.obey(*merged(orders))
    return block
