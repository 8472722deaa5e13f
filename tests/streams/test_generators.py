"""The random rows: what they are, how large their skylines are, and that only seed and position decide them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError
from skytide.model import Floats
from skytide.streams import KINDS, chunks, generate
from skytide.streams.generators import BLOCK, MOST_ANTI_COLUMNS

kinds = st.sampled_from(KINDS)


def skyline_size(rows: Floats) -> int:
    """The skyline's size by comparing all pairs, a slice at a time; rows have no ties here."""
    size = 0
    for part in np.array_split(rows, -(-len(rows) // 200)):
        no_worse = np.ones((len(part), len(rows)), dtype=bool)
        for column in range(rows.shape[1]):
            no_worse &= rows[:, column] <= part[:, column, None]
        size += int((no_worse.sum(axis=1) == 1).sum())
    return size


def mean_size(kind: str, n: int, d: int, repeats: int, **options: Any) -> float:
    return float(np.mean([skyline_size(generate(kind, n, d, seed, **options)) for seed in range(repeats)]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_rows_lie_in_the_unit_cube(kind: str, d: int) -> None:
    rows = generate(kind, 3000, d, seed=3)
    assert rows.shape == (3000, d) and rows.dtype == np.float64
    assert rows.min() >= 0 and rows.max() <= 1


@settings(max_examples=40)
@given(kinds, st.integers(0, 2 * BLOCK + 9), st.integers(1, 3), st.integers(1, 2 * BLOCK), st.integers(0, 5))
def test_chunks_of_any_size_give_the_same_rows(kind: str, n: int, d: int, size: int, seed: int) -> None:
    size = max(size, n // 40 + 1)
    parts = list(chunks(kind, n, d, seed, size))
    assert all(len(part) == size for part in parts[:-1])
    assert np.array_equal(np.concatenate([np.empty((0, d)), *parts]), generate(kind, n, d, seed))


@settings(max_examples=40)
@given(kinds, st.integers(0, BLOCK + 99), st.integers(0, BLOCK + 99), st.integers(1, 3))
def test_a_stream_read_from_a_position_continues_the_same_rows(kind: str, start: int, n: int, d: int) -> None:
    whole = generate(kind, start + n, d, seed=4)
    assert np.array_equal(whole[start:], generate(kind, n, d, seed=4, start=start))
    parts = [np.empty((0, d)), *chunks(kind, n, d, 4, BLOCK // 2, start=start)]
    assert np.array_equal(whole[start:], np.concatenate(parts))


def test_seeds_kinds_blocks_and_deviations_give_different_rows_and_a_seed_repeats() -> None:
    drawn = [generate(kind, 50, 2, seed) for kind in KINDS for seed in (0, 1)]
    drawn.append(generate("independent", 50, 2, 0, start=BLOCK))
    drawn.append(generate("anti-correlated", 50, 2, 0, deviation=0.005))
    assert len({rows.tobytes() for rows in drawn}) == len(drawn)
    assert np.array_equal(generate("correlated", 50, 2, 7), generate("correlated", 50, 2, 7))
    assert np.array_equal(generate("anti-correlated", 50, 2, 7), generate("anti-correlated", 50, 2, 7, deviation=0.05))


def correlation_matrix(rows: Floats) -> Floats:
    return np.asarray(np.corrcoef(rows, rowvar=False))


@pytest.mark.parametrize(("kind", "low", "high"), [("independent", -0.05, 0.05), ("correlated", 0.5, 1.0)])
def test_columns_are_correlated_as_the_kind_says(kind: str, low: float, high: float) -> None:
    correlations = correlation_matrix(generate(kind, 20_000, 4, seed=1))
    assert all(low <= correlations[i, j] <= high for i in range(4) for j in range(i))


def test_anti_correlated_columns_oppose_each_other() -> None:
    assert correlation_matrix(generate("anti-correlated", 20_000, 2, seed=1))[0, 1] < -0.9
    correlations = correlation_matrix(generate("anti-correlated", 20_000, 4, seed=1))
    assert all(-0.7 <= correlations[i, j] <= 0.05 for i in range(4) for j in range(i))


@pytest.mark.parametrize("deviation", [0.0, 0.005, 0.05])
@pytest.mark.parametrize("d", [2, 4])
def test_the_means_of_anti_correlated_rows_deviate_from_a_half_as_asked(d: int, deviation: float) -> None:
    means = generate("anti-correlated", 20_000, d, seed=2, deviation=deviation).mean(axis=1)
    assert means.mean() == pytest.approx(0.5, abs=0.003)
    assert means.std() == pytest.approx(deviation, rel=0.08, abs=1e-12)


def harmonic(n: int, order: int) -> float:
    """The expected skyline size of n independent rows in order + 1 columns without ties."""
    values = np.ones(n + 1)
    for _ in range(order):
        values = np.concatenate([[0.0], np.cumsum(values[1:] / np.arange(1, n + 1))])
    return float(values[n])


def test_harmonic_numbers_give_the_sizes_the_notes_state() -> None:
    assert [round(harmonic(n, 2)) for n in (2000, 4000, 8000, 16_000, 32_000)] == [34, 40, 47, 53, 61]
    assert round(harmonic(8000, 3)) == 154 and harmonic(8000, 1) == pytest.approx(9.6, abs=0.1)


@pytest.mark.parametrize(("n", "d"), [(2000, 2), (2000, 3), (1000, 4)])
def test_skylines_of_independent_rows_have_the_expected_size(n: int, d: int) -> None:
    assert mean_size("independent", n, d, 12) == pytest.approx(harmonic(n, d - 1), rel=0.2)


def test_skylines_of_tao06_come_out_at_deviation_0_005() -> None:
    assert mean_size("anti-correlated", 8000, 2, 3, deviation=0.005) == pytest.approx(243, rel=0.15)
    assert mean_size("anti-correlated", 2000, 3, 3, deviation=0.005) == pytest.approx(1566, rel=0.03)


def test_skylines_at_the_usual_deviation_are_much_smaller() -> None:
    assert mean_size("anti-correlated", 8000, 2, 6) == pytest.approx(33, rel=0.25)
    assert mean_size("anti-correlated", 8000, 3, 2) == pytest.approx(270, rel=0.2)
    assert mean_size("correlated", 2000, 3, 5) < 10


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("uniform", 5, 2), {}),
        (("independent", -1, 2), {}),
        (("independent", 2.5, 2), {}),
        (("independent", True, 2), {}),
        (("independent", 5, 0), {}),
        (("independent", 5, 2, -1), {}),
        (("independent", 5, 2), {"start": -1}),
        (("independent", 5, 2), {"deviation": 0.05}),
        (("anti-correlated", 5, 2), {"deviation": -0.1}),
        (("anti-correlated", 5, 2), {"deviation": math.nan}),
        (("anti-correlated", 5, MOST_ANTI_COLUMNS + 1), {}),
    ],
)
def test_unusable_parameters_are_refused(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        generate(*arguments, **options)
    with pytest.raises(OptionError):
        list(chunks(*arguments, **options))


def test_a_chunk_size_of_zero_is_refused_at_once() -> None:
    with pytest.raises(OptionError, match="0 is not a chunk size"):
        chunks("independent", 5, 2, size=0)
