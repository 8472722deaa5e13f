"""Examples 1 to 4 of zhang09p."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skytide.kernel import uncertain_nodes as nodes
from skytide.kernel.uncertain_numbers import value
from skytide.monitors.uncertain.engine import UncertainRows
from skytide.monitors.uncertain.tree import TreeEngine
from skytide.reference.uncertain import probability
from tests.monitors.uncertain.test_engines import ENGINES, listed, objects_of


def example_one() -> UncertainRows:
    """Fig. 1(a), as far as Examples 1 to 3 tell: who dominates whom, and P. Its picture is lost.

    a2, a3 dominate a1 (Example 3: P_new(a1) = 0.6 * 0.7); a1, a2, a3 and a5 dominate a4; P(a1) = 0.9 makes 0.042.
    """
    values = np.array([[3.0, 3.0], [1.0, 3.0], [3.0, 1.0], [4.0, 4.0], [4.0, 0.0]])
    chances = np.array([0.9, 0.4, 0.3, 0.9, 0.1])
    arrivals = np.arange(1, 6)
    return UncertainRows(values, chances, arrivals, arrivals + 5, arrivals)


def test_example_one_has_the_probabilities_of_the_paper() -> None:
    rows = example_one()
    objects = objects_of(rows, list(range(5)))
    assert float(probability(objects, 3)) == pytest.approx(0.9 * 0.9 * 0.042)


@pytest.mark.parametrize("make", ENGINES)
def test_example_one_has_them_in_every_engine_that_keeps_all_five(make: Any) -> None:
    engine = make(2, [0.03])
    engine.run(example_one(), 5)
    found = dict(zip(*(part.tolist() for part in engine.answer(0.03)), strict=True))
    assert found == pytest.approx({1: 0.9 * 0.42, 2: 0.4, 3: 0.3, 4: 0.9 * 0.9 * 0.042, 5: 0.1})


@pytest.mark.parametrize("make", ENGINES)
def test_example_two_keeps_all_but_the_first(make: Any) -> None:
    engine = make(2, [0.5])
    engine.run(example_one(), 5)
    assert engine.retained().handles.tolist() == [2, 3, 4, 5]
    assert engine.answer(0.5)[0].tolist() == []


@pytest.mark.parametrize("make", ENGINES)
def test_example_three_lets_the_fourth_in_when_two_have_expired(make: Any) -> None:
    engine = make(2, [0.5])
    five = replace(example_one(), expiries=np.arange(5, 10))
    assert listed(engine.run(five.pick(slice(0, 4)), 4)) == [(1, 1, 1, 0), (3, -1, 1, 0)]
    assert engine.retained().handles.tolist() == [2, 3, 4]
    assert len(engine.run(five.pick(slice(4, 5)), 5)) == 0
    assert engine.retained().handles.tolist() == [2, 3, 4, 5]
    sixth = UncertainRows(np.array([[9.0, 9.0]]), np.array([0.2]), np.array([6]), np.array([10]), np.array([6]))
    assert listed(engine.run(sixth, 6)) == [(6, 1, 4, 0)]
    assert engine.answer(0.5)[1].tolist() == pytest.approx([0.9 * 0.7 * 0.9])


@pytest.mark.parametrize("make", ENGINES)
def test_example_four_multiplies_the_tenth_into_the_fifth_and_sixth(make: Any) -> None:
    """Of Fig. 3: a8 and a10 with P = 0.2, a10 over a5 and a6, a8 over a6, P(a5) = 0.8 and P(a6) = 0.8."""
    values = np.array([[5.0, 5.0], [4.0, 6.0], [3.0, 6.0], [2.0, 2.0]])
    chances = np.array([0.8, 0.8, 0.2, 0.2])
    arrivals = np.array([5, 6, 8, 10])
    engine = make(2, [0.5, 0.2])
    rows = UncertainRows(values, chances, arrivals, arrivals + 13, arrivals)
    engine.run(rows.pick(slice(0, 3)), 9)
    before = dict(zip(*(part.tolist() for part in engine.answer(0.2)), strict=True))
    engine.run(rows.pick(slice(3, 4)), 10)
    after = dict(zip(*(part.tolist() for part in engine.answer(0.2)), strict=True))
    assert before[5] == pytest.approx(0.8) and before[6] == pytest.approx(0.64)
    assert after[5] == pytest.approx(0.64) and after[6] == pytest.approx(0.512) and after[10] == pytest.approx(0.2)


def test_example_four_leaves_the_multiplier_at_the_entry_and_its_bounds_without_it() -> None:
    """A row that dominates a whole box multiplies into the box's entry, and nothing below is touched."""
    engine = TreeEngine(2, [0.2])
    n = 40
    x = np.arange(float(n))
    values = np.stack([np.where(x < 20, x, x + 1e6), np.where(x < 20, 1e4 - x, -x)], axis=1)
    chances = np.where(np.arange(n) % 2, 0.8, 0.5)
    arrivals = np.arange(n)
    engine.run(UncertainRows(values, chances, arrivals, arrivals + 90, arrivals), n - 1)
    before = engine._store.total.copy(), engine._store.lasting.copy()
    one = UncertainRows(np.array([[-1.0, 9e3]]), np.array([0.2]), np.array([n]), np.array([n + 90]), np.array([n]))
    engine.run(one, n)
    tree = engine._tree
    entries = tree.entries[tree.state[nodes.ROOT], : tree.sizes[tree.state[nodes.ROOT]]].tolist()
    multiplied = [m for m in entries if value(*tree.tags[nodes.NEW : nodes.ALL, m]) == pytest.approx(np.log(0.8))]
    left = [slot for m in multiplied for slot in tree.entries[m, : tree.sizes[m]].tolist()]
    assert multiplied and tree.leaf[multiplied].all() and all(values[slot, 0] < 20 for slot in left)
    for m in multiplied:
        slots = tree.entries[m, : tree.sizes[m]]
        assert value(*tree.noc[:, m]) == pytest.approx(np.log(1 - chances[slots]).sum())
        assert tree.bounds[nodes.LEAST, m] == tree.bounds[nodes.MOST, m] == 0
        assert value(*tree.tags[nodes.ALL :, m]) == pytest.approx(np.log(0.8))
    assert (engine._store.total[:, left] == before[0][:, left]).all()
    assert (engine._store.lasting[:, left] == before[1][:, left]).all()
    found = dict(zip(*(part.tolist() for part in engine.answer(0.2)), strict=True))
    assert all(found[slot] == pytest.approx(chances[slot] * 0.8) for slot in range(20))
