"""Which rows of a part may be dropped: by the rule in fractions, by the scan and by the engine alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.model import Floats
from skytide.monitors.uncertain import part
from skytide.reference.batch import dominates

CHANCES = [0.0, 5e-324, 1e-6, 0.3, 0.5, 0.7, 1 - 2.0**-53, 1.0]


@pytest.fixture(params=["scan", "engine"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(part, "SHORT", 10**9 if request.param == "scan" else 0)
    yield


def by_the_rule(values: Floats, chances: Floats, threshold: float) -> list[bool]:
    """A row stays if its product is not below the threshold when it comes, or over newer rows alone in the end."""
    rows = [tuple(row) for row in values.tolist()]
    found = []
    for i, row in enumerate(rows):
        older, newer = (
            math.prod(1 - Fraction(float(chances[j])) for j in others if dominates(rows[j], row))
            for others in (range(i), range(i + 1, len(rows)))
        )
        found.append(max(older, newer) >= Fraction(threshold) * (1 - Fraction(1, 10**9)))
    return found


@pytest.mark.usefixtures("either_way")
@settings(max_examples=150, deadline=None)
@given(data=st.data(), d=st.integers(1, 3), n=st.integers(1, 14))
def test_a_row_is_dropped_as_the_rule_says(data: st.DataObject, d: int, n: int) -> None:
    cell = st.integers(0, 3).map(float) | st.sampled_from([-np.inf, np.inf, -0.0])
    values = np.array(data.draw(st.lists(cell, min_size=n * d, max_size=n * d))).reshape(n, d)
    chances = np.array(data.draw(st.lists(st.sampled_from(CHANCES), min_size=n, max_size=n)))
    threshold = data.draw(st.sampled_from([1.0, 0.5, 0.49, 0.3, 0.25, 1e-16, 1e-300, 5e-324]))
    kept = part.survivors(values, chances, threshold).tolist()
    assert kept == by_the_rule(values, chances, threshold)


@pytest.mark.parametrize("chances", [[0.5, 1.0, 0.25], [0.001, 0.01], [0.9, 1e-9]])
def test_scan_and_engine_drop_the_same_rows_of_a_long_part(chances: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = np.random.default_rng(2)
    values = source.random((3_000, 3))
    drawn = source.choice(chances, 3_000)
    found = []
    for short in (0, 10**9):
        monkeypatch.setattr(part, "SHORT", short)
        found.append(part.survivors(values, drawn, 0.3))
    assert (found[0] == found[1]).all() and 0 < found[0].sum() < 3_000
