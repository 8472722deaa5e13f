"""Updates drawn for tests of engines, the answer to them by definition, and what must hold inside the boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from skytide.kernel import snapshots as kernel
from skytide.kernel.eager_codes import cell_of
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.snapshots.auto import AutoEngine
from skytide.monitors.snapshots.boxes import BoxEngine
from skytide.monitors.snapshots.engine import Engine, Flips, Updates
from skytide.monitors.snapshots.recompute import RecomputeEngine

EXTREMES = [float("-inf"), -1.797e308, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.797e308, float("inf")]
PALETTES = [[0.0, 1.0], [0.0, 1.0, 2.0, 3.0], [float(number) for number in range(40)], EXTREMES]
ENGINES: dict[str, Callable[[int], Engine]] = {
    **{f"boxes-{patience}": lambda d, p=patience: BoxEngine(d, patience=p) for patience in (1, 2, 3, 50)},  # type: ignore[misc]
    "recompute": RecomputeEngine,
    "auto": AutoEngine,
    "auto-2": lambda d: AutoEngine(d, patience=2),
    "timed-2": lambda d: BoxEngine(d, patience=2, timed=True),
}
Flip = tuple[int, int, int]


def whole_numbers(shape: tuple[int, ...], highest: int) -> st.SearchStrategy[Integers]:
    size = int(np.prod(shape))
    # One draw of bytes is far quicker than one per number, and shrinks as well.
    drawn = st.binary(min_size=size, max_size=size)
    return drawn.map(lambda some: (np.frombuffer(some, np.uint8).astype(np.int64) % (highest + 1)).reshape(shape))


@st.composite
def updates(draw: st.DrawFn, most: int = 24) -> Updates:
    """Few objects, many ties; several updates of one object in one snapshot, objects that come, go and return."""
    d, objects = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    sizes = draw(whole_numbers((draw(st.integers(0, most)),), draw(st.integers(1, 2 * objects))))
    total = int(sizes.sum())
    palette = np.array(draw(st.sampled_from(PALETTES)))
    rows = palette[draw(whole_numbers((total, d), len(palette) - 1))]
    gone = (draw(whole_numbers((total,), draw(st.sampled_from([3, 9])))) == 1).astype(np.uint8)
    rows[gone == 1] = np.nan  # anything may stand where an object goes
    slots = draw(whole_numbers((total,), objects - 1)) * draw(st.sampled_from([1, 7]))
    return Updates(slots, rows, gone, np.append(0, np.cumsum(sizes)))


def of(lists: Iterable[Iterable[tuple[int, Any]]], d: int) -> Updates:
    """Updates written down by hand: for each snapshot pairs of a slot and a point, or None where the object goes."""
    parts = [list(part) for part in lists]
    flat = [pair for part in parts for pair in part]
    rows = np.array([[np.nan] * d if row is None else row for _, row in flat], np.float64).reshape(len(flat), d)
    gone = np.array([row is None for _, row in flat], np.uint8)
    cuts = np.append(0, np.cumsum([len(part) for part in parts])).astype(np.int64)
    return Updates(np.array([slot for slot, _ in flat], np.int64), rows, gone, cuts)


def joined(first: Updates, more: Updates) -> Updates:
    """The snapshots of the one, then those of the other."""
    return Updates(
        np.concatenate((first.slots, more.slots)),
        np.concatenate((first.rows, more.rows)),
        np.concatenate((first.gone, more.gone)),
        np.concatenate((first.cuts, first.cuts[-1] + more.cuts[1:])),
    )


def undominated(points: Floats) -> Booleans:
    """Which points no other dominates, by definition."""
    no_worse, better = np.ones((len(points),) * 2, bool), np.zeros((len(points),) * 2, bool)
    for column in points.T:
        no_worse &= column[:, None] <= column
        better |= column[:, None] < column
    return np.asarray(~(no_worse & better).any(axis=0))


def answers(given: Updates) -> list[set[int]]:
    """The slots in the skyline after each snapshot, by definition."""
    objects: dict[int, npt.NDArray[np.float64]] = {}
    found = []
    for i in range(given.snapshots):
        for u in range(int(given.cuts[i]), int(given.cuts[i + 1])):
            if given.gone[u]:
                objects.pop(int(given.slots[u]), None)
            else:
                objects[int(given.slots[u])] = given.rows[u]
        slots = list(objects)
        inside = undominated(np.array([objects[slot] for slot in slots]).reshape(len(slots), given.rows.shape[1]))
        found.append({slot for slot, stays in zip(slots, inside.tolist(), strict=True) if stays})
    return found


def differences(found: list[set[int]], before: set[int] | None = None) -> set[Flip]:
    flips = set()
    last = before or set()
    for i, answer in enumerate(found):
        flips |= {(i, -1, slot) for slot in last - answer} | {(i, 1, slot) for slot in answer - last}
        last = answer
    return flips


def listed(flips: Flips) -> set[Flip]:
    """The flips as a set; snapshots must rise, and no slot may flip twice in one."""
    assert (flips.snapshots[1:] >= flips.snapshots[:-1]).all()
    found = list(zip(flips.snapshots.tolist(), flips.signs.tolist(), flips.slots.tolist(), strict=True))
    assert len({(snapshot, slot) for snapshot, _, slot in found}) == len(found)
    return set(found)


def boxes_of(engine: Engine) -> BoxEngine | None:
    """The boxes in which the engine keeps its objects now, if it does."""
    current = engine._current if isinstance(engine, AutoEngine) else engine
    return current if isinstance(current, BoxEngine) else None


def check(engine: Engine) -> None:
    """Whatever the links, lists and boxes say about the objects must be true."""
    boxes = boxes_of(engine)
    if boxes is None:
        return
    s = boxes._state
    live = np.flatnonzero(s.dominator != kernel.FREE)
    assert s.numbers[kernel.OBJECTS] == len(live)
    assert not (s.dominator == kernel.WAITING).any()
    assert (s.corners[live] >= s.points[live]).all()
    linked = live[s.dominator[live] >= 0]
    hosts = s.dominator[linked]
    assert (s.dominator[hosts] != kernel.FREE).all()
    _dominate(s.corners[hosts], s.points[linked])
    _check_lists(s)
    _check_candidates(s, live, boxes._patience)


def _dominate(better: Floats, worse: Floats) -> None:
    assert (better <= worse).all() and (better < worse).any(axis=1).all()


def _check_lists(s: kernel.State) -> None:
    hanging = []
    for host in range(len(s.first)):
        one, before = int(s.first[host]), kernel.NOBODY
        assert one < 0 or s.dominator[host] != kernel.FREE
        while one >= 0:
            assert s.dominator[one] == host and s.before[one] == before
            hanging.append(one)
            one, before = int(s.after[one]), one
    assert sorted(hanging) == np.flatnonzero(s.dominator >= 0).tolist()


def _check_candidates(s: kernel.State, live: Integers, patience: int) -> None:
    numbers = s.numbers
    candidates = s.candidates[: numbers[kernel.CANDIDATES]]
    assert sorted(candidates.tolist()) == np.flatnonzero(s.dominator == kernel.NOBODY).tolist()
    places = np.full(len(s.place), kernel.NOBODY)
    places[candidates] = np.arange(len(candidates))
    assert (s.place == places).all()
    assert (s.front[: len(candidates)] == s.points[candidates]).all()
    if numbers[kernel.CODED]:
        cells = [[cell_of(s.edges[k], value) for k, value in enumerate(s.points[one])] for one in candidates.tolist()]
        assert s.cells[: len(candidates)].tolist() == cells
    dominated = candidates[s.rival[candidates] >= 0]
    assert (s.dominator[s.rival[dominated]] != kernel.FREE).all()
    _dominate(s.points[s.rival[dominated]], s.points[dominated])
    assert (numbers[kernel.CLOCK] - s.since[dominated] + 1 < patience).all()
    answer = sorted(live[undominated(s.points[live])].tolist())
    assert sorted(candidates[s.rival[candidates] < 0].tolist()) == answer
    assert np.flatnonzero(s.shown).tolist() == answer


def anti_correlated(rng: np.random.Generator, n: int, d: int, side: int) -> Floats:
    """Points of a whole-number grid near a plane: most are in the skyline, and many tie."""
    points = rng.integers(0, side, (n, d)).astype(np.float64)
    if d > 1:
        points[:, -1] = side * (d - 1) - points[:, :-1].sum(axis=1) + rng.integers(0, 2, n)
    return points


def crowd(rng: np.random.Generator, n: int, d: int, side: int, snapshots: int, moving: int) -> Updates:
    """Many candidates: all objects at first, then some that move, come or go in each snapshot."""
    slots, rows, gone, cuts = [np.arange(n)], [anti_correlated(rng, n, d, side)], [np.zeros(n, np.uint8)], [0, n]
    for _ in range(snapshots - 1):
        size = int(rng.integers(0, moving + 1))
        slots.append(rng.integers(0, n + n // 4, size))
        rows.append(anti_correlated(rng, size, d, side) + rng.integers(0, 3, (size, 1)))
        gone.append((rng.random(size) < 0.1).astype(np.uint8))
        rows[-1][gone[-1] == 1] = np.nan
        cuts.append(cuts[-1] + size)
    return Updates(np.concatenate(slots), np.concatenate(rows), np.concatenate(gone), np.array(cuts))
