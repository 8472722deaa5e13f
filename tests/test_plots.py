"""Pictures: what is drawn, not how it looks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skytide.errors import OptionError
from skytide.model import Preference
from skytide.plots import Sample, check_plot, draw_skyline


def test_a_sample_keeps_all_of_few_rows_and_so_many_of_many() -> None:
    sample = Sample(1, size=50)
    for start in range(0, 1000, 40):
        sample.add(np.arange(start, start + 40, dtype=float)[:, None])
        assert sample.seen == start + 40
        assert len(np.unique(sample.rows)) == min(50, start + 40)


def test_a_sample_prefers_neither_early_nor_late_rows() -> None:
    means = []
    for seed in range(40):
        sample = Sample(1, size=100, seed=seed)
        for start in range(0, 10_000, 700):
            sample.add(np.arange(start, min(start + 700, 10_000), dtype=float)[:, None])
        means.append(sample.rows.mean())
    # The mean of 4,000 uniform rows: five standard errors to either side.
    assert abs(np.mean(means) - 5000) < 5 * 2887 / np.sqrt(4000)


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("groups", [1, 3, 14])
def test_infinite_values_equal_values_and_many_groups_are_drawn(dimensions: int, groups: int, tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 3, (60, dimensions)).astype(float)
    values[0, 0], values[1, 1] = np.inf, np.nan
    names = tuple("abc"[:dimensions])
    sample = Sample(dimensions)
    sample.add(values)
    labels = [f"g{place % groups}" for place in range(20)] if groups > 1 else None
    path = tmp_path / "picture.svg"
    draw_skyline(path, names, Preference(minimize=names[:1], maximize=names[1:]), sample, values[:20], labels)
    text = path.read_text()
    assert "a (lower is better)" in text and "b (higher is better)" in text
    assert ("other groups" in text) == (groups > 10)
    assert "20 of 60 rows" in text


@pytest.mark.parametrize(
    ("path", "columns"), [("p.gif", "ab"), ("none/p.png", "ab"), ("p.png", "a"), ("p.png", "abcd"), ("p.png", "aa")]
)
def test_a_picture_that_cannot_be_drawn_is_refused(path: str, columns: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError):
        check_plot(str(tmp_path / path), tuple(columns))
