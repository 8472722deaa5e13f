"""One method over one stream: what it sends, beside what telling everything takes, and whether its answers are right.

`central` is the paper's CENTR: a message for every update that changes a local vector, with the sizes of our encoding.
It is counted, not run; where it is run, it sends just that. What is sent at the beginning is counted apart.

After every block of the stream the answer is compared with the skyline of the true means. Those are plain sums; where
an answer differs, they are summed again without rounding, as the definition has it, before that counts as wrong.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.papers.papa14.series import Block, Series
from skytide.expressions import parse
from skytide.kernel.batch import skyline_mask
from skytide.kernel.functions import values as values_of
from skytide.model import Booleans, Floats, Integers
from skytide.protocols.fragmented.messages import Kind, sizes
from skytide.protocols.fragmented.tuning import Tuning
from skytide.reference.functional import expression, functional_skyline
from skytide.runtime.fragmented import FragmentSimulation

Line = dict[str, Any]
MARKS = 20
"""So often along a stream the costs are noted."""


class Cost(NamedTuple):
    """What was sent up to a point of the stream, and what `central` had sent by then."""

    updates: int
    messages: int
    volume: int
    central_messages: int
    central_volume: int

    def since(self, before: Cost) -> Cost:
        """What was sent after another point."""
        return Cost(*(now - then for now, then in zip(self, before, strict=True)))

    @property
    def shares(self) -> tuple[float, float]:
        """Messages and bytes over those of `central`."""
        return self.messages / max(1, self.central_messages), self.volume / max(1, self.central_volume)


class Run(NamedTuple):
    """What came of a run."""

    along: list[Cost]
    initial: int
    """Bytes of the coordinator's orders at the beginning; what sites tell of their vectors, `central` needs too."""
    kinds: dict[str, int]
    seconds: float
    """Of processor time, after the beginning."""
    skyline: int
    equal: bool


class World:
    """The local vectors themselves: what every site has, which nobody knows as a whole."""

    def __init__(self, series: Series) -> None:
        self.functions = series.functions
        self._nulls, self._shape = series.nulls, (series.sites, series.objects)
        cells = series.sites * series.objects
        self._local: Floats = np.zeros((cells, self.functions.d))
        self._here: Booleans = np.zeros(cells, np.bool_)

    def take(self, block: Block) -> tuple[int, int]:
        """Take updates: how many change a vector that was there, and how many vectors are new."""
        cells = block.sites * self._shape[1] + block.objects
        order = np.argsort(cells, kind="stable")
        cells, vectors = cells[order], self.functions.local(block.values)[order]
        first = np.diff(cells, prepend=-1) != 0
        before = np.roll(vectors, 1, axis=0)
        before[first] = self._local[cells[first]]
        new = first & ~self._here[cells]
        last = np.append(first[1:], True)
        self._local[cells[last]], self._here[cells] = vectors[last], True
        return int(((vectors != before).any(axis=1) & ~new).sum()), int(new.sum())

    def agrees(self, found: Integers) -> bool:
        """Whether an answer is the skyline of the means."""
        return np.array_equal(found, self._skyline(exact=False)) or np.array_equal(found, self._skyline(exact=True))

    def _skyline(self, *, exact: bool) -> Integers:
        local, here = self._local.reshape(*self._shape, -1), self._here.reshape(self._shape)
        present = np.flatnonzero(here.any(axis=0))
        sums = _rounded_sums(local, present) if exact else local.sum(axis=0)[present]
        values = values_of(self.functions.programs, sums / here.sum(axis=0)[present, None])
        defined = ~np.isnan(values).any(axis=1)
        assert self._nulls == "drop" or defined.all(), "a function has no value"
        found: Integers = present[defined][skyline_mask(values[defined])]
        return found


def _rounded_sums(local: Floats, objects: Integers) -> Floats:
    """Correctly rounded sums over the sites; where an object is not, its vector is zero."""
    return np.array([[math.fsum(column.tolist()) for column in local[:, one].T] for one in objects.tolist()])


def played(series: Series, method: str, tuning: Tuning | None = None, wire: bool = False) -> Run:
    """Run a method over a stream, and check it."""
    more = {} if tuning is None else {"tuning": tuning}
    simulation = FragmentSimulation(series.functions, method, nulls=series.nulls, wire=wire, **more)
    world, seconds, equal = World(series), 0.0, True
    shape = simulation.functions.d, simulation.functions.k
    update, join = (sum(sizes(kind, *shape)) for kind in (Kind.UPDATE, Kind.JOIN))
    done = central = volume = 0
    along = [Cost(0, 0, 0, 0, 0)]
    for at, block in enumerate(series.blocks()):
        changes, new = world.take(block)
        start = time.process_time()
        simulation.run(at, block.sites, block.objects, block.values)
        if at:
            seconds += time.process_time() - start
            done, central, volume = done + len(block.sites), central + changes + new, volume + changes * update
            volume += new * join
        equal &= world.agrees(simulation.skyline())
        if done * MARKS >= series.updates * len(along):
            along.append(_cost(simulation, done, central, volume))
    if along[-1].updates < done:
        along.append(_cost(simulation, done, central, volume))
    cost = simulation.cost()
    kinds = {name: count for name, (count, _) in cost["kinds"].items()}
    return Run(along, cost["initial"]["bytes_down"], kinds, seconds, len(simulation.skyline()), equal)


def _cost(simulation: FragmentSimulation, done: int, central: int, volume: int) -> Cost:
    cost = simulation.cost()
    return Cost(done, cost["messages"], cost["bytes_up"] + cost["bytes_down"], central, volume)


def line(run: Run, series: Series) -> Line:
    """A run as a line of a table. `late` is the second half of the stream, when most is learned."""
    whole = run.along[-1]
    late = whole.since(run.along[(len(run.along) - 1) // 2])
    messages, volume = whole.shares
    return {
        "messages": messages,
        "late messages": late.shares[0],
        "bytes": volume,
        "late bytes": late.shares[1],
        "initial, KB/site": round(run.initial / series.sites / 1e3, 1),
        "sent": whole.messages,
        "central": whole.central_messages,
        "kinds": run.kinds,
        "along": [(cost.updates, *cost.shares, (cost.volume + run.initial) / max(1, cost.central_volume))
                  for cost in run.along[1:]],
        "updates": whole.updates,
        "skyline": run.skyline,
        "updates/s": round(whole.updates / max(run.seconds, 1e-9)),
        "equal": run.equal,
    }  # fmt: skip


def averaged(lines: list[Line]) -> Line:
    """Lines of several seeds as one; equal where all are."""
    found = dict(lines[0])
    for name in ("messages", "late messages", "bytes", "late bytes", "initial, KB/site", "sent", "skyline"):
        found[name] = float(np.mean([one[name] for one in lines])) if len(lines) > 1 else lines[0][name]
    found["equal"] = all(one["equal"] for one in lines)
    return found


def defined(series: Series, method: str) -> Line:
    """A short stream, compared with the reference after every single update, messages as bytes."""
    functions = series.functions
    simulation = FragmentSimulation(functions, method, nulls=series.nulls, wire=True)
    told = [expression(parse(text)) for text in (*functions.minimize, *functions.maximize)]
    signs = [int(sign) for sign in functions.signs]
    local: dict[int, dict[int, dict[str, float]]] = {}
    updates, wrong = 0, 0
    for at, block in enumerate(series.blocks()):
        whole = slice(0, len(block.sites))
        for piece in [whole] if at == 0 else [slice(row, row + 1) for row in range(len(block.sites))]:
            sites, objects, values = block.sites[piece], block.objects[piece], block.values[piece]
            simulation.run(at, sites, objects, values)
            for site, one, row in zip(sites.tolist(), objects.tolist(), values.tolist(), strict=True):
                local.setdefault(one, {})[site] = dict(zip(functions.columns, row, strict=True))
            fragments = {one: list(places.values()) for one, places in local.items()}
            truth = functional_skyline(fragments, told, signs=signs, nulls=series.nulls)
            wrong += set(simulation.skyline().tolist()) != truth
            updates += len(sites) if at else 0
    return {"updates": updates, "sent": simulation.cost()["messages"], "wrong": wrong, "equal": wrong == 0}
