"""Scores are deterministic, monotone and refuse what has none; the top k are the band of the scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError
from skytide.model import Floats, Preference
from skytide.monitors.sliding.engine import Rows
from skytide.monitors.sliding.scoring import Score
from skytide.monitors.sliding.skyband import SkybandEngine
from skytide.reference.window import window_changes

THREE = Preference.columns(3)
finite = st.floats(allow_nan=False, allow_infinity=False)
matrices = st.lists(st.tuples(finite, finite, finite), min_size=1, max_size=12).map(lambda rows: np.array(rows))
weights = st.lists(st.floats(0, 1e9), min_size=3, max_size=3).filter(any)


@settings(max_examples=200, deadline=None)
@given(matrices, weights, st.data())
def test_a_row_has_the_same_score_in_any_batch(values: Floats, given_weights: list[float], data: st.DataObject) -> None:
    score = Score(THREE, given_weights)
    try:
        together = score(values)[:, 0]
    except InputError:
        return
    picked = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=40))
    assert score(values[picked])[:, 0].tobytes() == together[picked].tobytes()
    assert score(np.asfortranarray(values))[:, 0].tobytes() == together.tobytes()


@settings(max_examples=200, deadline=None)
@given(matrices, weights)
def test_a_dominated_row_never_scores_better(values: Floats, given_weights: list[float]) -> None:
    better = np.minimum(values, values[0])
    score = Score(THREE, given_weights)
    try:
        assert (score(better) <= score(values)).all()
    except InputError:
        # Sums that overflow in both directions have no score.
        assert float(np.abs(values).max()) * max(given_weights) > 1e307


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=14),
    st.integers(1, 4),
    st.integers(1, 8),
    st.tuples(st.integers(0, 2), st.integers(1, 2)),
)
def test_the_band_of_the_scores_is_the_top_k_with_ties(
    drawn: list[tuple[int, int, int]], k: int, duration: int, two: tuple[int, int]
) -> None:
    values = np.array([row[:2] for row in drawn], dtype=np.float64).reshape(len(drawn), 2)
    arrivals = np.cumsum([row[2] for row in drawn], dtype=np.int64)
    handles = np.arange(len(drawn), dtype=np.int64)
    until = int(arrivals[-1]) + duration if len(drawn) else 0
    scores = Score(Preference.columns(2), {0: two[0], 1: two[1]})(values)
    moves = SkybandEngine(1, k).run(Rows(scores, arrivals, arrivals + duration, handles), until)
    signs = np.where(moves.signs > 0, "+", "-")
    expected = window_changes(
        [row[:2] for row in drawn],
        arrivals.tolist(),
        handles.tolist(),
        duration=duration,
        until=until,
        k=k,
        score=lambda row: row[0] * two[0] + row[1] * two[1],
    )
    found = zip(moves.times.tolist(), signs.tolist(), moves.handles.tolist(), strict=True)
    assert sorted(found) == sorted(map(tuple, expected))


def test_a_column_without_weight_is_not_looked_at() -> None:
    values = np.array([[np.inf, 2.0, 3.0], [-np.inf, 1.0, 5.0]])
    assert Score(THREE, {1: 2.0})(values).tolist() == [[4.0], [2.0]]
    assert Score(THREE, [0, 2, 1])(values).tolist() == [[7.0], [7.0]]


def test_infinities_of_both_signs_have_no_sum_and_say_where() -> None:
    with pytest.raises(InputError, match="row 2: the weighted sum is not a number"):
        Score(THREE, [1, 1, 0])(np.array([[1.0, np.inf, 0.0], [-np.inf, np.inf, 0.0]]))
    assert Score(THREE, [1, 1, 0])(np.array([[1.0, np.inf, 0.0]])).tolist() == [[np.inf]]


@pytest.mark.parametrize("bad", [-1.0, -1e-300, np.nan, np.inf, "1", None, True])
def test_a_weight_is_a_finite_number_from_zero(bad: Any) -> None:
    with pytest.raises(OptionError, match="is not a weight"):
        Score(THREE, {0: 1.0, 2: bad})


def test_weights_must_fit_the_columns_and_prefer_something() -> None:
    with pytest.raises(OptionError, match="2 weight"):
        Score(THREE, [1.0, 2.0])
    with pytest.raises(OptionError, match="is not a preference column"):
        Score(THREE, {"price": 1.0})
    with pytest.raises(OptionError, match="all weights are 0"):
        Score(THREE, [0.0, 0.0, 0.0])


def test_a_function_of_the_users_is_asked_and_checked() -> None:
    values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert Score(THREE, lambda matrix: matrix.max(axis=1))(values).tolist() == [[3.0], [6.0]]
    assert Score(THREE, lambda matrix: [1, 2])(values).tolist() == [[1.0], [2.0]]
    for wrong in (lambda matrix: 1.0, lambda matrix: matrix, lambda matrix: ["a", "b"]):
        with pytest.raises(InputError, match="one number per row"):
            Score(THREE, wrong)(values)
    with pytest.raises(InputError, match="row 2: the score function gives NaN"):
        Score(THREE, lambda matrix: np.array([1.0, np.nan]))(values)
    with pytest.raises(ValueError, match="read-only"):
        Score(THREE, lambda matrix: matrix.sort(axis=0))(values)
