"""`.plot()` on results: figures without pyplot, of what the results say, and files where they are asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import skytide
from skytide import Changes, Frequent, Ledger, Preference, SlidingWindow, Snapshots, UncertainWindow
from skytide.errors import MissingDependencyError, OptionError, OutputError
from skytide.explain import explain
from skytide.plots import LivingSample, Sizes

CARS = {"price": [20.0, 25, 30, 20], "mpg": [30.0, 40, 35, 30], "city": ["Rome", "Oslo", "Oslo", "Rome"]}
PREFERENCE = Preference(minimize=["price"], maximize=["mpg"], by=["city"])
WIDE = Preference(minimize=["a", "b"], maximize=["c", "d"])
ROWS = np.random.default_rng(1).integers(0, 5, (60, 4)).astype(float)
ROWS[0], ROWS[1] = np.inf, [1.797e308, -1.797e308, 5e-324, -0.0]


def _window(**options: Any) -> SlidingWindow:
    window = SlidingWindow(WIDE, **options)
    window.extend(dict(zip("abcd", ROWS.T, strict=True)))
    return window


def _uncertain(objects: bool = False) -> UncertainWindow:
    window = UncertainWindow(WIDE, count=50, thresholds=[0.1, 0.4])
    chances = {"probabilities": np.full(60, 0.5)}
    table = dict(zip("abcd", ROWS.T, strict=True))
    if objects:
        window.extend(table, objects=[f"o{at // 2}" for at in range(60)], **chances)
    else:
        window.extend(table, **chances)
    return window


def _snapshots() -> Snapshots:
    monitor = Snapshots(PREFERENCE)
    monitor.apply({"id": ["a", "b", "c", "d"], **CARS}, time=1)
    return monitor


def _frequent() -> Frequent:
    monitor = Frequent(theta=0.5, over=3)
    for at, members in enumerate(["ab", "b", "bc", "", "a"]):
        monitor.observe(list(members), time=np.datetime64("2024-01-01") + at)
    return monitor


def _ledger() -> Ledger:
    ledger = Ledger()
    ledger.record("up", "failure", receiver="server", size=24)
    ledger.record("down", "filter", receiver="a", size=24)
    return ledger


def _changes() -> Changes:
    return Changes.of(
        [np.datetime64("2024-01-01", "s")] * 2 + [np.datetime64("2024-01-03", "s")], [1, 1, -1], list("aba")
    )


FIGURES: dict[str, Callable[..., Any]] = {
    "plot": lambda **more: skytide.plot(CARS, PREFERENCE, **more),
    "plot of an array": lambda **more: skytide.plot(ROWS, **more),
    "window": lambda **more: _window(count=40).plot(**more),
    "top k": lambda **more: _window(count=40, k=3, score={"a": 1.0}).plot(**more),
    "no rows": lambda **more: SlidingWindow(WIDE, count=3).plot(**more),
    "uncertain": lambda **more: _uncertain().plot(**more),
    "objects": lambda **more: _uncertain(objects=True).plot(**more),
    "ranking": lambda **more: _uncertain().query().plot(**more),
    "threshold changes": lambda **more: (
        UncertainWindow(WIDE, count=9, thresholds=[0.1, 0.4])
        .extend(dict(zip("abcd", ROWS.T, strict=True)), probabilities=np.full(60, 0.5))
        .plot(**more)
    ),
    "snapshots": lambda **more: _snapshots().plot(**more),
    "changes": lambda **more: _changes().plot(**more),
    "no changes": lambda **more: Changes.concatenate([]).plot(**more),
    "one instant": lambda **more: Changes.of([5], [1], [1]).plot(**more),
    "frequent": lambda **more: _frequent().plot(**more),
    "nobody": lambda **more: Frequent(theta=0.5, over=3).plot(**more),
    "explanation": lambda **more: explain(CARS, PREFERENCE, 2).plot(**more),
    "explanation inside": lambda **more: explain(dict(zip("abcd", ROWS.T, strict=True)), WIDE, 3).plot(**more),
    "explanation far out": lambda **more: explain(dict(zip("abcd", ROWS.T, strict=True)), WIDE, 0).plot(**more),
    "ledger": lambda **more: _ledger().plot(**more),
    "no ledger": lambda **more: Ledger().plot(**more),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_result_is_a_figure_and_where_asked_a_file(name: str, tmp_path: Path) -> None:
    figure = FIGURES[name](path=tmp_path / "out.svg")
    assert isinstance(figure, Figure)
    assert (tmp_path / "out.svg").read_bytes().startswith(b"<?xml")


def test_pyplot_is_never_loaded_and_importing_loads_no_matplotlib() -> None:
    probe = (
        "import sys, numpy as np, skytide; w = skytide.SlidingWindow(skytide.Preference.columns(2), count=2);"
        "assert 'matplotlib' not in sys.modules; w.plot(); skytide.plot(np.eye(2));"
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True False"


@pytest.mark.parametrize(
    "name", ["plot", "window", "uncertain", "snapshots", "changes", "frequent", "explanation", "ledger"]
)
def test_without_matplotlib_the_error_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"skytide\[plot\]"):
        FIGURES[name]()


def test_a_mask_says_what_is_drawn_as_the_answer() -> None:
    figure = skytide.plot(CARS, PREFERENCE, mask=[True, False, False, False])
    assert figure.axes[0].get_title(loc="left") == "1 of 4 rows is in the skyline"
    assert [text.get_text() for text in figure.legends[0].texts] == ["the rest", "Rome"]


def test_columns_are_chosen_by_name() -> None:
    figure = _window(count=40).plot(columns=["d", "a"])
    assert figure.axes[0].get_xlabel() == "d (higher is better)"
    assert figure.axes[0].get_ylabel() == "a (lower is better)"


@pytest.mark.parametrize(
    "bad",
    [
        lambda: skytide.plot(CARS, PREFERENCE, mask=[True]),
        lambda: skytide.plot(CARS, PREFERENCE, mask=[1, 0, 0, 1]),
        lambda: skytide.plot(CARS, PREFERENCE, columns=["price", "price"]),
        lambda: _window(count=4).plot(columns=["a", "z"]),
        lambda: _window(count=4).plot(columns=[]),
        lambda: _window(count=4).plot(path="x.gif"),
        lambda: _ledger().plot(path="nowhere/x.png"),
    ],
)
def test_what_cannot_be_drawn_is_refused(bad: Callable[[], Any]) -> None:
    with pytest.raises(OptionError):
        bad()


def test_a_file_that_cannot_be_written_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="folder"):
        (tmp_path / "x.png").mkdir()
        _ledger().plot(path=tmp_path / "x.png")
    with pytest.raises(OutputError):
        _ledger().plot(path=tmp_path / ("x" * 300 + ".png"))


def test_the_lines_of_changes_are_the_sizes() -> None:
    times = np.sort(np.random.default_rng(2).integers(0, 9_000, 20_000))
    signs = np.where(np.arange(20_000) % 3 < 2, 1, -1)
    found = Sizes.of(times, signs)
    assert found.sizes[-1] == signs.sum() and len(found.times) == len(np.unique(times))
    shown, sizes = found.fewer(300)
    assert len(shown) <= 301 and shown[-1] == times[-1]
    assert sizes.max() == found.sizes.max() and sizes.min() == found.sizes.min()


def test_a_sample_of_the_living_has_all_of_few_and_none_of_the_dead() -> None:
    sample = LivingSample(1, size=64)
    for start in range(0, 5000, 50):
        keys = np.arange(start, start + 50.0)
        sample.live(keys[:, None], keys, bound=start + 50 - 41.0)
        assert len(sample.rows) == 40 and sample.rows.min() >= start + 10
    for start in range(5000, 9000, 50):
        keys = np.arange(start, start + 50.0)
        sample.live(keys[:, None], keys, bound=start + 50 - 1001.0)
        assert len(sample.rows) <= 64 and (sample.rows > start + 50 - 1001).all()
    assert len(sample.rows) > 5 and sample.seen == 9000
