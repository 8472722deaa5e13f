"""What only I-Lazy does: successors of an expired row come in portions, and later ones may outdo earlier ones."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel.rtree_lanes import LANES
from skytide.monitors.sliding.engine import Moves, Rows
from skytide.monitors.sliding.lazy import LazyList, LazyRtree


class SmallPortions(LazyRtree):
    """Takes LANES successors at a time."""

    def _reset(self) -> None:
        super()._reset()
        self._buffer = np.empty(2 * LANES, dtype=np.int64)
        self._found = np.empty(LANES * self.dimensions)


def as_set(moves: Moves) -> set[tuple[int, int, int]]:
    return set(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist(), strict=True))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(20, 300))
def test_portions_of_successors_make_no_difference(seed: int, d: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 50, (n, d)).astype(np.float64)
    values[:, -1] = 50.0 * d - values[:, :-1].sum(axis=1) + rng.integers(0, 20, n)
    # A few rows keep all others out, until they expire.
    values[:: n // 3] = 0.0
    times = np.arange(n, dtype=np.int64)
    rows = Rows(values, times, times + n // 2, times)
    trees, lists = SmallPortions(d), LazyList(d)
    assert as_set(trees.run(rows, n)) == as_set(lists.run(rows, n))
    trees.sky._check()
    trees.rest._check()
    nothing = Rows(values[:0], times[:0], times[:0], times[:0])
    assert as_set(trees.run(nothing, 2 * n)) == as_set(lists.run(nothing, 2 * n))
    assert len(trees.retained()) == 0
