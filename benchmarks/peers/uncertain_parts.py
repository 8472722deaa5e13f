"""The measurements of `benchmarks.peers.uncertain`: each part gives lines of plain values, answers checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from skytide.model import Floats, Integers
from skytide.monitors.uncertain.auto import make_engine
from skytide.monitors.uncertain.engine import ThresholdMoves, UncertainRows
from skytide.streams.generators import generate
from skytide.streams.uncertainty import probabilities

Line = dict[str, Any]
STEP = 1_000
"""Rows per call, as in the paper, which takes the time of each thousand."""
LEAST = 0.3
"""The paper's threshold."""
PAPER_RATES = {2: 38_000, 5: 728}
"""Elements per second of the paper: in 2-d for any data, in 5-d for anti-correlated data (Fig. 8)."""


def stream(kind: str, d: int, first: int, last: int, window: int, seed: int, **chances: Any) -> UncertainRows:
    """Rows [first, last) of a stream through a count window."""
    numbers = np.arange(first, last, dtype=np.int64)
    values = generate(kind, last - first, d, seed, start=first)
    drawn = probabilities(last - first, seed, start=first, **chances)
    return UncertainRows(values, drawn, numbers, numbers + window, numbers)


def ordered(moves: ThresholdMoves) -> Integers:
    """The moves as one array in an order of their own."""
    columns = np.stack((moves.times, moves.signs, moves.thresholds, moves.handles))
    return np.asarray(columns[:, np.lexsort(columns[::-1])])


class Slide:
    """An engine that takes rows a thousand at a time, timed, with the largest sizes seen."""

    def __init__(self, method: str, d: int, thresholds: Sequence[float]) -> None:
        self.engine = make_engine(d, thresholds, method=method)
        self.least = thresholds[-1]
        self.seconds = 0.0
        self.taken = 0
        self.candidates = 0
        self.answer = 0
        self.moves: list[Integers] = []

    def run(self, rows: UncertainRows, *, limit: float = float("inf"), sizes: bool = False, keep: bool = False) -> None:
        """Take the rows, or as many as the limit in seconds allows."""
        for first in range(0, len(rows), STEP):
            piece = rows.pick(slice(first, first + STEP))
            start = time.process_time()
            moves = self.engine.run(piece, int(piece.arrivals[-1]))
            self.seconds += time.process_time() - start
            self.taken += len(piece)
            if keep:
                self.moves.append(ordered(moves))
            if sizes and first % (16 * STEP) == 0:
                self.candidates = max(self.candidates, len(self.engine.retained()))
                self.answer = max(self.answer, len(self.engine.answer(self.least)[0]))
            if self.seconds > limit:
                break

    def restart(self) -> None:
        """Measure from here on."""
        self.seconds, self.taken, self.moves = 0.0, 0, []

    @property
    def rate(self) -> int:
        """Rows per second."""
        return int(self.taken / self.seconds) if self.seconds else 0


def agree(one: Slide, other: Slide) -> bool:
    """Whether two engines gave the same moves as far as both went."""
    return all(np.array_equal(a, b) for a, b in zip(one.moves, other.moves, strict=False))


def rates(
    kinds: Sequence[str], distributions: Sequence[str], dimensions: Sequence[int], n: int, window: int, limit: float,
    seed: int,
) -> Iterator[Line]:  # fmt: skip
    """Every cell: rows per second after the window has filled, of all three engines on the same stretch."""
    for kind in kinds:
        for distribution in distributions:
            for d in dimensions:
                yield _cell(kind, distribution, d, n, window, limit, seed)


def _cell(kind: str, distribution: str, d: int, n: int, window: int, limit: float, seed: int) -> Line:
    rows = stream(kind, d, 0, n, window, seed, distribution=distribution)
    paper = PAPER_RATES.get(d, 0) if d == 2 or kind == "anti-correlated" else 0
    return {"kind": kind, "P": distribution, "d": d, **compared(rows, window, limit, paper)}


def compared(rows: UncertainRows, window: int, limit: float, paper: int = 0) -> Line:
    """All engines on the rows after the first window, from what is kept then; but `auto` for so many seconds."""
    d, n = rows.values.shape[1], len(rows)
    auto = Slide("auto", d, [LEAST])
    auto.run(rows.pick(slice(0, window)))
    filled, retained = auto.rate, auto.engine.retained()
    auto.restart()
    rest = rows.pick(slice(window, n))
    auto.run(rest, sizes=True, keep=True)
    others = []
    for method in ("tree", "scan"):
        other = Slide(method, d, [LEAST])
        other.engine.load(retained, window - 1)
        other.run(rest, limit=limit, keep=True)
        others.append(other)
    tree, scan = others
    return {
        "filling, rows/s": filled,
        "auto, rows/s": auto.rate,
        "tree, rows/s": tree.rate,
        "scan, rows/s": scan.rate,
        "auto/scan": round(auto.rate / max(1, scan.rate), 1),
        "tree/scan": round(tree.rate / max(1, scan.rate), 1),
        "paper, rows/s": paper or "-",
        "auto/paper": round(auto.rate / paper, 1) if paper else "-",
        "candidates": auto.candidates,
        "answer": auto.answer,
        "equal": agree(auto, tree) and agree(auto, scan),
    }


def thresholds(counts: Sequence[int], n: int, window: int, queries: int, seed: int) -> Iterator[Line]:
    """Fig. 12, anti-correlated in 3-d: the cost of an element, and of an ad-hoc query, by the number of thresholds."""
    rows = stream("anti-correlated", 3, 0, n, window, seed)
    asked = np.linspace(LEAST, 1, queries).tolist()
    for count in counts:
        levels = np.linspace(LEAST, 1, count + 1)[:-1][::-1].tolist()
        line: Line = {"thresholds": count}
        slides = []
        for method in ("auto", "tree"):
            slide = Slide(method, 3, levels)
            slide.run(rows.pick(slice(0, window)))
            slide.restart()
            slide.run(rows.pick(slice(window, n)), keep=True)
            start = time.process_time()
            found = [slide.engine.answer(threshold) for threshold in asked]
            elapsed = time.process_time() - start
            line[f"{method}, µs/element"] = round(1e6 * slide.seconds / slide.taken, 1)
            line[f"{method}, µs/query"] = round(1e6 * elapsed / queries, 1)
            slides.append((slide, [sorted(handles.tolist()) for handles, _ in found]))
        line["equal"] = agree(slides[0][0], slides[1][0]) and slides[0][1] == slides[1][1]
        yield line


def sizes(window: int, few: bool, seed: int) -> Iterator[Line]:
    """Figs. 5 to 7 and 9 to 11, anti-correlated in 3-d: sizes and cost by window, mean probability and threshold."""
    for length in (window // 10, window // 5, window // 2, window):
        yield _sized("window", length, length, 0.0, LEAST, seed)
    for mean in (0.1, 0.9) if few else (0.1, 0.3, 0.5, 0.7, 0.9):
        yield _sized("mean of P", mean, window, mean, LEAST, seed)
    for threshold in (0.1, 0.9) if few else (0.1, 0.3, 0.5, 0.7, 0.9):
        yield _sized("threshold", threshold, window, 0.0, threshold, seed)


def _sized(what: str, shown: float, window: int, mean: float, threshold: float, seed: int) -> Line:
    chances: dict[str, Any] = {"distribution": "normal", "mean": mean} if mean else {}
    rows = stream("anti-correlated", 3, 0, window + window // 2, window, seed, **chances)
    slide = Slide("auto", 3, [threshold])
    slide.run(rows.pick(slice(0, window)))
    slide.restart()
    slide.run(rows.pick(slice(window, len(rows))), sizes=True)
    return {
        "varied": what,
        "value": shown,
        "auto, rows/s": slide.rate,
        "µs/element": round(1e6 * slide.seconds / slide.taken, 2),
        "candidates": slide.candidates,
        "answer": slide.answer,
        "equal": fresh_error(slide.engine.answer(threshold), rows.pick(slice(-window, None)), 50) < 1e-9,
    }


def drift(arrivals: int, window: int, seed: int) -> Iterator[Line]:
    """After so many arrivals, each member's probability beside a fresh computation over the whole window."""
    for kind in ("independent", "anti-correlated"):
        for method in ("auto", "tree"):
            slide = Slide(method, 3, [LEAST, 0.01])
            for first in range(0, arrivals, 10**6):
                last = min(arrivals, first + 10**6)
                rows = stream(kind, 3, max(0, first - window), last, window, seed, distribution="normal", mean=0.4)
                slide.run(rows.pick(rows.arrivals >= first))
            found = slide.engine.answer(0.01)
            error = fresh_error(found, rows.pick(slice(-window, None)), len(found[0]))
            yield {
                "kind": kind,
                "engine": method,
                "arrivals": arrivals,
                "rows/s": slide.rate,
                "members": len(found[0]),
                "largest relative error": f"{error:.1e}",
                "equal": error < 1e-9,
            }


def fresh_error(found: tuple[Integers, Floats], live: UncertainRows, most: int) -> float:
    """The largest relative error of (at most so many of) the probabilities of an answer."""
    order = {int(handle): position for position, handle in enumerate(live.handles)}
    worst = 0.0
    for handle, chance in list(zip(found[0].tolist(), found[1].tolist(), strict=True))[:most]:
        row = live.values[order[handle]]
        above = (live.values <= row).all(axis=1) & (live.values < row).any(axis=1)
        factors = 1 - live.probabilities[above].astype(np.longdouble)
        fresh = np.longdouble(live.probabilities[order[handle]]) * factors.prod()
        worst = max(worst, abs(float(chance / fresh - 1)))
    return worst
