"""Streams drawn for tests of engines, and what the answer to them is by definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from skytide.model import Integers
from skytide.monitors.sliding.engine import Moves, Rows

EXTREMES = [float("-inf"), -1.797e308, -5e-324, -0.0, 0.0, 5e-324, 1.797e308, float("inf")]
Changes = list[tuple[int, int, int]]


@dataclass
class Stream:
    rows: Rows
    cuts: list[int]
    """Instants at which a run ends; rows up to each go into its run."""

    def runs(self) -> list[tuple[Rows, int]]:
        found, start = [], 0
        for until in self.cuts:
            stop = int(np.searchsorted(self.rows.arrivals, until, side="right"))
            found.append((part(self.rows, start, stop), until))
            start = stop
        return found


def part(rows: Rows, start: int, stop: int) -> Rows:
    return Rows(rows.values[start:stop], rows.arrivals[start:stop], rows.expiries[start:stop], rows.handles[start:stop])


def whole_numbers(shape: tuple[int, ...], highest: int) -> st.SearchStrategy[Integers]:
    size = int(np.prod(shape))
    # One draw of bytes is far quicker than one per number, and shrinks as well.
    drawn = st.binary(min_size=size, max_size=size)
    return drawn.map(lambda some: (np.frombuffer(some, np.uint8).astype(np.int64) % (highest + 1)).reshape(shape))


@st.composite
def streams(draw: st.DrawFn, most: int = 40, dimensions: int | None = None) -> Stream:
    d = dimensions or draw(st.integers(1, 4))
    n = draw(st.integers(0, most))
    numbers = draw(st.sampled_from([[0.0, 1.0, 2.0], [float(number) for number in range(30)], EXTREMES]))
    values = np.array(numbers)[draw(whole_numbers((n, d), len(numbers) - 1))]
    arrivals = np.cumsum(draw(whole_numbers((n,), draw(st.integers(1, 4)))))
    arrivals += draw(st.sampled_from([0, -(2**63) + 1, 2**62]))
    # Expiries never decrease, but rows may live for any time, or not at all.
    constant = draw(st.booleans())
    spans = draw(st.integers(1, n + 1)) if constant else draw(whole_numbers((n,), 3 * n // 2 + 1))
    expiries = np.maximum.accumulate(arrivals + spans)
    handles = np.random.default_rng(draw(st.integers(0, 9))).permutation(n)
    rows = Rows(values, arrivals, expiries, handles)
    first, last = (int(arrivals[0]), int(expiries[-1])) if n else (0, 5)
    inner = draw(st.lists(st.integers(first, last), max_size=6))
    return Stream(rows, sorted({*inner, last}))


def truth(rows: Rows, k: int, until: int) -> Changes:
    """The change stream by definition: at each instant, the live rows with fewer than k live dominators."""
    values = rows.values.tolist()
    arrivals, expiries = rows.arrivals.tolist(), rows.expiries.tolist()
    found: Changes = []
    before: set[int] = set()
    for at in sorted({*arrivals, *expiries}):
        if at > until:
            break
        live = [i for i in range(len(values)) if arrivals[i] <= at < expiries[i]]
        answer = {
            int(rows.handles[i])
            for i in live
            if sum(all(map(float.__le__, values[j], values[i])) and values[j] != values[i] for j in live) < k
        }
        found += [(at, -1, one) for one in before - answer] + [(at, 1, one) for one in answer - before]
        before = answer
    return sorted(found)


def listed(moves: Moves) -> Changes:
    assert (moves.times[1:] >= moves.times[:-1]).all()
    found = list(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist(), strict=True))
    assert len({(at, one) for at, _, one in found}) == len(found), "a handle twice in one instant"
    return found
