"""Continuous distributions as sampled instances."""

from typing import Any

import numpy as np
import pytest

import skytide as sk
from skytide.errors import OptionError
from skytide.monitors.uncertain.sampling import normal, sample, uniform


def test_a_sample_is_the_same_whole_or_in_batches_and_another_with_another_seed() -> None:
    every = [normal([float(k), 0.0], 1.0) for k in range(5)]
    whole = sample(every, 10, seed=3)
    parts = [sample(every[:2], 10, seed=3), sample(every[2:], 10, seed=3, start=2)]
    for columns in zip(whole, *parts, strict=True):
        assert (columns[0] == np.concatenate(columns[1:])).all()
    assert not np.array_equal(whole.values, sample(every, 10, seed=4).values)
    assert not np.array_equal(whole.values[:10] - whole.values[10:20], np.tile([-1.0, 0.0], (10, 1)))


def test_samples_have_the_moments_of_their_distributions() -> None:
    n = 20_000
    plain, boxed, tilted = (
        sample([one], n, seed=5).values
        for one in (
            normal([1.0, -2.0], [0.5, 2.0]),
            uniform([0.0, 4.0], [1.0, 8.0]),
            normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]]),
        )
    )
    assert plain.mean(0) == pytest.approx([1.0, -2.0], abs=0.06) and plain.std(0) == pytest.approx([0.5, 2.0], rel=0.05)
    assert (boxed >= [0.0, 4.0]).all() and (boxed <= [1.0, 8.0]).all()
    assert boxed.mean(0) == pytest.approx([0.5, 6.0], abs=0.05)
    assert np.mean(tilted[:, 0] * tilted[:, 1]) == pytest.approx(0.8, abs=0.03)


def test_sampled_objects_have_nearly_the_probability_of_their_distributions() -> None:
    # Of two equal and independent uniform objects on a line each is first with probability 1/2.
    line = uniform([0.0], [1.0])
    found = sample([line, line], 500, seed=11)
    window = sk.UncertainWindow(sk.Preference.columns(1), count=2, thresholds=0.1)
    window.extend(found.values, probabilities=found.probabilities, objects=found.objects)
    chances = dict(window.query())
    assert chances.keys() == {0, 1} and sum(chances.values()) == pytest.approx(1.0, abs=1e-9)
    assert chances[0] == pytest.approx(0.5, abs=0.08)


def test_any_function_is_a_distribution_and_weights_are_shares_of_the_probability() -> None:
    found = sample([lambda source, n: source.exponential(2.0, (n, 3))], 8, probabilities=0.4, start=9)
    assert found.values.shape == (8, 3) and (found.values > 0).all()
    assert found.probabilities.tolist() == [0.05] * 8 and found.objects.tolist() == [9] * 8
    assert len(sample([], 3).values) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: normal([], 1.0),
        lambda: normal([float("nan")], 1.0),
        lambda: normal([0.0], -1.0),
        lambda: normal([0.0, 0.0], [1.0, 1.0, 1.0]),
        lambda: normal([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]),
        lambda: normal([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]),
        lambda: uniform([1.0], [0.0]),
        lambda: uniform([1.0], [2.0, 3.0]),
        lambda: sample([uniform([0.0], [1.0])], 0),
        lambda: sample([uniform([0.0], [1.0])], 2, seed=-1),
        lambda: sample([uniform([0.0], [1.0])], 2, probabilities=1.1),
        lambda: sample([uniform([0.0], [1.0])], 2, probabilities=[0.5, 0.5]),
        lambda: sample([uniform([0.0], [1.0]), uniform([0.0, 0.0], [1.0, 1.0])], 2),
        lambda: sample([lambda source, n: np.zeros(n)], 2),
        lambda: sample([lambda source, n: np.full((n, 1), np.nan)], 2),
    ],
)
def test_what_is_no_distribution_is_refused_in_our_words(call: Any) -> None:
    with pytest.raises(OptionError):
        call()
