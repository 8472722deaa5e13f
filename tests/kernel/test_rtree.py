"""The R-tree against plain scans, with its invariants stated after every step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel.rtree import RTree
from skytide.kernel.rtree_lanes import LANES
from skytide.kernel.rtree_search import dominated, exposed
from skytide.model import Booleans, Floats

EXTREMES = [-np.inf, -1.797e308, -1.0, -0.0, 0.0, 5e-324, 1.0, 1.797e308, np.inf]


def dominators(points: Floats, q: Floats) -> Booleans:
    return np.asarray((points <= q).all(axis=1) & (points < q).any(axis=1))


def dominated_by(points: Floats, q: Floats) -> Booleans:
    return np.asarray((points >= q).all(axis=1) & (points > q).any(axis=1))


@st.composite
def scripts(draw: st.DrawFn) -> tuple[Floats, list[int], int]:
    """Points on a coarse grid, how many of them are loaded at once, and after each the number of deletions."""
    d = draw(st.integers(1, 5))
    n = draw(st.integers(1, 150))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    kind = draw(st.sampled_from(["grid", "real", "extreme", "equal"]))
    if kind == "grid":
        points = rng.integers(0, draw(st.integers(1, 6)) + 1, (n, d)).astype(np.float64)
    elif kind == "real":
        points = rng.random((n, d)) * 10.0 ** rng.integers(-5, 6, d)
    elif kind == "extreme":
        points = rng.choice(EXTREMES, (n, d))
    else:
        points = np.full((n, d), 3.0)
    deletions = rng.integers(0, draw(st.integers(1, 4)), n).tolist()
    return points, deletions, draw(st.integers(0, n))


def assert_answers(tree: RTree, points: Floats, keys: dict[int, int], q: Floats) -> None:
    slots = np.array(sorted(keys), dtype=np.int64)
    live = points[slots]
    better = dominators(live, q)
    assert tree.any_dominates(q) == better.any()
    last = tree.last_dominator(q)
    if better.any():
        assert last in slots[better]
        assert keys[last] == max(keys[slot] for slot in slots[better].tolist())
        assert tree.last_dominator(q, keys[last]) == -1
    else:
        assert last == -1
    assert tree.dominated(q).tolist() == slots[dominated_by(live, q)].tolist()


@settings(max_examples=40, deadline=None)
@given(scripts(), st.randoms(use_true_random=False))
def test_every_search_agrees_with_a_scan_and_every_step_keeps_the_invariants(script, random) -> None:  # type: ignore[no-untyped-def]
    points, deletions, loaded = script
    tree = RTree(points.shape[1])
    keys = {i: i // 3 for i in range(loaded)}
    tree.load(points[:loaded], np.array(list(keys.values()), dtype=np.int64))
    tree._check()
    for i in range(loaded, len(points)):
        tree.insert(i, points[i], i // 3)
        keys[i] = i // 3
        for _ in range(min(deletions[i], len(keys))):
            gone = random.choice(sorted(keys))
            tree.remove(gone)
            del keys[gone]
            tree._check()
        tree._check()
        assert_answers(tree, points, keys, points[random.randrange(len(points))])
    for gone in sorted(keys):
        tree.remove(gone)
        tree._check()
    assert len(tree) == 0


@pytest.mark.parametrize("d", [1, 3, 10])
def test_thousands_of_equal_points_split_and_none_dominates_another(d: int) -> None:
    tree = RTree(d)
    q = np.full(d, 2.5)
    for i in range(3000):
        tree.insert(i, q, i)
    tree._check()
    assert not tree.any_dominates(q)
    assert tree.last_dominator(q) == -1
    assert len(tree.dominated(q)) == 0
    above = q.copy()
    above[0] = np.inf
    assert tree.any_dominates(above)
    assert tree.last_dominator(above) == 2999


@pytest.mark.parametrize("d", range(1, 11))
def test_one_tree_serves_all_dimensions(d: int) -> None:
    rng = np.random.default_rng(d)
    points = rng.random((600, d))
    tree = RTree(d)
    tree.load(points[:300], np.arange(300))
    for i in range(300, 600):
        tree.insert(i, points[i], i)
    tree._check()
    keys = {i: i for i in range(600)}
    for q in rng.random((50, d)):
        assert_answers(tree, points, keys, q)


def test_a_box_on_the_edge_of_the_region_decides_only_with_a_strictly_better_point() -> None:
    tree = RTree(2)
    for i in range(40):
        tree.insert(i, np.array([1.0, 1.0 + (i >= 20)]), i)
    assert not tree.any_dominates(np.array([1.0, 1.0]))
    assert tree.any_dominates(np.array([1.0, 2.0]))
    assert tree.last_dominator(np.array([1.0, 2.0])) == 19


def test_a_search_that_fills_its_buffer_can_go_on_after_deletion() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((2000, 3)) + 1.0
    tree = RTree(3)
    tree.load(points, np.arange(2000))
    out = np.empty(64, dtype=np.int64)
    seen: list[int] = []
    while found := dominated(tree.arrays, np.ones(3), out):
        assert found <= 64
        for slot in out[:found].tolist():
            tree.remove(slot)
            seen.append(slot)
    tree._check()
    assert sorted(seen) == list(range(2000))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 9), st.integers(1, 3))
def test_exposed_is_the_skyline_of_what_the_point_alone_dominates(seed: int, d: int, grid: int, blocks: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, grid + 1, (200, d)).astype(np.float64)
    keys = rng.integers(0, 50, 200)
    rest, sky = RTree(d), RTree(d)
    rest.load(points[:150], keys[:150])
    sky.load(points[150:155], keys[150:155])
    q, floor = points[199] // 2, 10
    alone = [
        i
        for i in range(150)
        if dominated_by(points[i : i + 1], q)[0]
        and keys[i] > floor
        and not dominators(points[150:155], points[i]).any()
    ]
    expected = [i for i in alone if not dominators(points[alone], points[i]).any()]
    found = np.empty(blocks * d * LANES)
    out = np.empty(blocks * LANES, dtype=np.int64)
    size = exposed(rest.arrays, sky.arrays, q, floor, np.empty(d), found, out)
    chosen = sorted(out[:size].tolist())
    if size < len(out):
        assert chosen == expected
    else:
        assert set(chosen) <= set(alone)
        assert not any(dominators(points[chosen], points[i]).any() for i in chosen)


def test_memory_follows_the_points_down_after_compaction() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((20_000, 3))
    tree = RTree(3)
    for i in range(len(points)):
        tree.insert(i, points[i], i)
    columns = len(points) * (3 + 1) * 8
    assert tree.memory_bytes < 3 * columns
    for i in range(19_000):
        tree.remove(i)
    tree.compact()
    tree._check()
    assert tree.memory_bytes < columns // 4 + 20_000 * 4
    assert tree.dominated(np.full(3, -1.0)).tolist() == list(range(19_000, 20_000))
