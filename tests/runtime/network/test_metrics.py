"""The metrics' text is what Prometheus reads: parsed by the rules of the format, it says what was counted."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import OptionError
from skytide.runtime.network.metrics import MOST_LABELS, Metrics

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
Sample = tuple[str, tuple[tuple[str, str], ...]]


def _plain(text: str, quotes: bool) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "\\": "\\", **({'"': '"'} if quotes else {})}[found[1]], text)


def _parsed(text: str) -> tuple[dict[Sample, float], dict[str, str], dict[str, str]]:
    """Samples, help and type by name: the exposition format, read strictly."""
    samples: dict[Sample, float] = {}
    helps: dict[str, str] = {}
    types: dict[str, str] = {}
    assert text == "" or text.endswith("\n")
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            name, _, said = line[7:].partition(" ")
            assert name not in helps
            helps[name] = _plain(said, quotes=False)
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name not in types and kind in ("counter", "gauge", "histogram")
            types[name] = kind
        else:
            match = _SAMPLE.fullmatch(line)
            assert match is not None, line
            labels, place, rest = [], 0, match[2] or ""
            while place < len(rest):
                pair = _LABEL.match(rest, place)
                assert pair is not None, rest
                labels.append((pair[1], _plain(pair[2], quotes=True)))
                place = pair.end()
            key = (match[1], tuple(labels))
            assert key not in samples
            samples[key] = float(match[3])
    return samples, helps, types


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.text("\"\\\n,}{='"), st.floats(0, 1e300))),
)
def test_any_text_in_help_and_labels_comes_back(help: str, adds: list[tuple[str, str, float]]) -> None:
    metrics = Metrics()
    counter = metrics.counter("skytide_things_total", help, ["one", "two"])
    expected: dict[Sample, float] = {}
    for one, two, amount in adds:
        counter.add(amount, one, two)
        key = ("skytide_things_total", (("one", one), ("two", two)))
        expected[key] = expected.get(key, 0) + amount
    samples, helps, types = _parsed(metrics.text())
    assert (samples, helps, types) == (expected, {"skytide_things_total": help}, {"skytide_things_total": "counter"})


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=5, unique=True), st.lists(st.floats(-1e9, 1e9)))
def test_a_histogram_counts_what_is_at_most_each_bound(bounds: list[float], values: list[float]) -> None:
    bounds = sorted(one for one in bounds if math.isfinite(one)) or [1.0]
    metrics = Metrics()
    histogram = metrics.histogram("skytide_x_seconds", "X.", ["site"], bounds)
    for value in values:
        histogram.observe(value, "a")
    samples, _, types = _parsed(metrics.text())
    assert types == {"skytide_x_seconds": "histogram"}
    if not values:
        assert samples == {}
        return
    found = {dict(labels)["le"]: value for (name, labels), value in samples.items() if name.endswith("_bucket")}
    assert list(found.values()) == sorted(found.values()) and list(found)[-1] == "+Inf"
    for bound in [*bounds, math.inf]:
        [count] = [value for text, value in found.items() if float(text) == bound]
        assert count == sum(value <= bound for value in values)
    assert samples["skytide_x_seconds_count", (("site", "a"),)] == len(values)
    assert samples["skytide_x_seconds_sum", (("site", "a"),)] == sum(values)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (3.0, "3"), (0.1, "0.1"), (1e300, "1e+300"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")],
)
def test_numbers_are_written_as_the_format_has_them(value: float, text: str) -> None:
    metrics = Metrics()
    metrics.gauge("skytide_g", "G.").set(value)
    assert metrics.text().splitlines()[-1] == f"skytide_g {text}"


def test_gauges_go_up_and_down_or_are_asked() -> None:
    metrics, state = Metrics(), {"n": 5}
    gauge, asked = metrics.gauge("skytide_a", "A."), metrics.gauge("skytide_b", "B.")
    gauge.add(3)
    gauge.add(-1)
    asked.ask(lambda: state["n"])
    assert metrics.text().count("skytide_a 2\n") == 1 and "skytide_b 5\n" in metrics.text()
    state["n"] = 6
    assert "skytide_b 6\n" in metrics.text() and gauge.value() == 2


def test_names_that_anyone_can_make_up_do_not_fill_the_memory() -> None:
    metrics = Metrics()
    counter = metrics.counter("skytide_refused_total", "R.", ["name"])
    for number in range(3 * MOST_LABELS):
        counter.add(1, str(number))
    counter.add(1, "0")
    samples, _, _ = _parsed(metrics.text())
    assert len(samples) == MOST_LABELS + 1
    assert counter.value("other") == 2 * MOST_LABELS and counter.value("0") == 2


def test_text_that_utf8_cannot_say_does_not_spoil_the_rest() -> None:
    metrics = Metrics()
    metrics.counter("skytide_x_total", "X.", ["name"]).add(1, "a\ud800b")
    assert b'name="a?b"' in metrics.text().encode()


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("x", []),
        ("skytide_X", []),
        ("skytide_ok ", []),
        ("skytide_ok", ["le"]),
        ("skytide_ok", ["__x"]),
        ("skytide_a_sum", []),
    ],
)
def test_bad_and_double_names_are_refused(name: str, labels: list[str]) -> None:
    metrics = Metrics()
    metrics.histogram("skytide_a", "A.")
    with pytest.raises(OptionError):
        metrics.counter(name, "X.", labels)


def test_counters_do_not_go_down_and_labels_are_complete() -> None:
    counter: Any = Metrics().counter("skytide_x_total", "X.", ["a"])
    for amount, labels in ((-1, ("x",)), (math.nan, ("x",)), (1, ()), (1, ("x", "y"))):
        with pytest.raises(OptionError):
            counter.add(amount, *labels)
    with pytest.raises(OptionError, match="bounds"):
        Metrics().histogram("skytide_h", "H.", bounds=[2, 1])
