"""Walks, jitter, fragments, spikes and probabilities: the distributions the papers name, and repeatability."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError
from skytide.streams import fragments, generate, jitter, probabilities, random_walk, spike_times, steady_times, together
from skytide.streams.generators import BLOCK
from skytide.streams.uncertainty import LEAST


def test_a_walk_starts_with_all_objects_and_then_names_those_that_moved() -> None:
    runs = list(random_walk(400, 3, 30, seed=2))
    assert runs[0].ids.tolist() == list(range(400)) and runs[0].values.max() > 90
    before = runs[0].values.copy()
    moved_attributes = 0
    for number, run in enumerate(runs[1:], start=1):
        assert set(run.times.tolist()) <= {number} and np.all(np.diff(run.ids) > 0)
        changed = run.values != before[run.ids]
        assert changed.any(axis=1).all()
        moved_attributes += int(changed.sum())
        before[run.ids] = run.values
    assert moved_attributes == pytest.approx(29 * 400 * 3 * 0.025, rel=0.2)


def test_the_share_of_objects_that_move_is_that_of_the_paper() -> None:
    moved = [len(run.ids) for run in random_walk(5000, 3, 40, seed=1)][1:]
    assert np.mean(moved) / 5000 == pytest.approx(1 - (1 - 0.025) ** 3, rel=0.03)


def test_the_steps_are_normal_with_deviation_one_half() -> None:
    _, second = random_walk(20_000, 1, 2, seed=1, share=1.0, operation="add")
    assert second.values.std() == pytest.approx(0.5, rel=0.02) and abs(second.values.mean()) < 0.02


@settings(max_examples=20)
@given(st.integers(1, 20), st.integers(1, 3), st.integers(0, 6), st.integers(0, 3), st.sampled_from([0.0, 0.3, 1.0]))
def test_added_steps_lead_to_the_same_positions_as_set_ones(
    objects: int, d: int, snapshots: int, seed: int, share: float
) -> None:
    positions = np.zeros((objects, d))
    placed = random_walk(objects, d, snapshots, seed, share=share)
    added = random_walk(objects, d, snapshots, seed, share=share, operation="add")
    for number, (one, other) in enumerate(zip(placed, added, strict=True)):
        positions[other.ids] = other.values if number == 0 else positions[other.ids] + other.values
        assert np.array_equal(one.ids, other.ids) and np.array_equal(positions[one.ids], one.values)


def test_a_longer_walk_begins_with_the_shorter_one() -> None:
    short, long = together(random_walk(30, 2, 5), 2), together(random_walk(30, 2, 9), 2)
    assert all(np.array_equal(a, b[: len(a)]) for a, b in zip(short, long, strict=True)) and len(long.ids) > 30


def test_together_of_no_runs_is_empty() -> None:
    assert together(random_walk(30, 2, 0), 2).values.shape == (0, 2)


def test_jitter_stays_uniform_around_the_rows_of_the_generator() -> None:
    centres = generate("anti-correlated", 200, 2, 5)
    steps = np.stack([run.values - centres for run in jitter("anti-correlated", 200, 2, 50, seed=5, extent=0.04)])
    assert abs(steps).max() <= 0.04 + 1e-12 and steps.std() == pytest.approx(0.04 / math.sqrt(3), rel=0.03)
    assert not np.array_equal(steps[0], steps[1])


@settings(max_examples=15)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 60), st.integers(0, 3), st.sampled_from([0.0, 0.1, 1.0]))
def test_each_update_of_a_fragment_moves_its_last_local_vector_within_the_bound(
    objects: int, sites: int, updates: int, seed: int, change: float
) -> None:
    first, *later = fragments("independent", objects, sites, 2, updates, seed, max_change=change)
    vectors = generate("independent", objects, 2, seed)
    local = {}
    for site, one, row in zip(first.sites.tolist(), first.ids.tolist(), first.values, strict=True):
        assert np.array_equal(row, vectors[one])
        local[site, one] = row
    assert len(local) == objects * sites and set(first.times.tolist()) == {0}
    clock = 0
    for run in later:
        for time, site, one, row in zip(
            run.times.tolist(), run.sites.tolist(), run.ids.tolist(), run.values, strict=True
        ):
            clock += 1
            assert time == clock
            old = local[site, one]
            assert np.all(row >= (1 - change) * old - 1e-12) and np.all(row <= (1 + change) * old + 1e-12)
            local[site, one] = row
    assert clock == updates


def test_more_updates_of_fragments_begin_with_fewer_and_reach_every_site_and_object() -> None:
    few = [run.values for run in fragments("correlated", 10, 7, 2, BLOCK - 5)][1]
    runs = list(fragments("correlated", 10, 7, 2, BLOCK + 5))
    assert np.array_equal(few, runs[1].values[: BLOCK - 5]) and len(runs[2].ids) == 5
    assert set(runs[1].sites.tolist()) == set(range(7)) and set(runs[1].ids.tolist()) == set(range(10))


def test_spikes_have_10_rows_a_second_and_then_20000_in_one() -> None:
    times = spike_times(20, seed=1)
    calm = times % 30 < 29
    assert calm.sum() / (20 * 29) == pytest.approx(10, rel=0.05) and (~calm).sum() / 20 == pytest.approx(
        20_000, rel=0.01
    )
    assert np.all(np.diff(times) >= 0) and times.min() >= 0 and times.max() < 600


def test_a_period_of_spikes_is_the_same_alone_and_among_others() -> None:
    whole = spike_times(3, seed=1)
    assert np.array_equal(whole[whole >= 60], spike_times(1, seed=1, start=2))
    assert len(spike_times(0)) == 0


def test_steady_times_continue_from_any_position() -> None:
    assert np.array_equal(steady_times(9, 3.0)[4:], steady_times(5, 3.0, start=4))


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_probabilities_are_above_0_and_at_most_1_and_repeat_from_any_position(distribution: str) -> None:
    drawn = probabilities(BLOCK + 500, 3, distribution=distribution)
    assert drawn.min() > 0 and drawn.max() <= 1 and drawn.mean() == pytest.approx(0.5, abs=0.02)
    assert np.array_equal(drawn[100:], probabilities(BLOCK + 400, 3, distribution=distribution, start=100))


def test_normal_probabilities_are_clipped_at_both_ends() -> None:
    drawn = probabilities(20_000, 3, distribution="normal", mean=0.9)
    beyond = 0.5 * math.erfc(0.1 / 0.3 / math.sqrt(2))
    assert (drawn == 1).mean() == pytest.approx(beyond, rel=0.05)
    assert (probabilities(20_000, 3, distribution="normal", mean=0.1) == LEAST).mean() == pytest.approx(
        beyond, rel=0.05
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: random_walk(0, 2, 3),
        lambda: random_walk(5, 2, 3, share=1.5),
        lambda: random_walk(5, 2, 3, step=math.inf),
        lambda: random_walk(5, 2, 3, operation="multiply"),
        lambda: jitter("independent", 5, 2, 3, extent=-1),
        lambda: jitter("indep", 5, 2, 3),
        lambda: fragments("independent", 5, 0, 2, 3),
        lambda: fragments("independent", 5, 3, 2, 3, max_change=1.1),
        lambda: spike_times(-1),
        lambda: spike_times(1, burst_gap=0),
        lambda: steady_times(5, rate=0),
        lambda: probabilities(5, distribution="beta"),
        lambda: probabilities(5, mean=2),
        lambda: probabilities(5, deviation=math.nan),
    ],
)
def test_unusable_parameters_are_refused_before_anything_is_drawn(call: Any) -> None:
    with pytest.raises(OptionError):
        call()
