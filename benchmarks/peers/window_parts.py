"""The measurements of `benchmarks.peers.window`: each part gives lines of plain values, answers checked."""

from __future__ import annotations

import itertools
import math
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import moocore
import numpy as np

from benchmarks.peers.batch import PEERS
from skytide.kernel.batch import skyline_mask
from skytide.model import Booleans, Changes, Floats, Integers, Preference
from skytide.monitors.sliding.engine import Rows
from skytide.monitors.sliding.engines import ENGINES, load_engine
from skytide.monitors.sliding.window import SlidingWindow
from skytide.streams.arrivals import spike_times
from skytide.streams.generators import chunks, generate

FLAT_SCAN = Path(__file__).with_name("flat_scan.cpp")
Line = dict[str, Any]
ANEW: dict[str, Callable[[Floats], Booleans]] = {**PEERS, "skytide anew": partial(skyline_mask, threads=1)}
"""Who computes the skyline of a whole window, in one thread."""
ENOUGH = 5.0
"""Seconds of one of them in a cell, after which it is not asked again there."""


def counted(d: int, length: int) -> SlidingWindow:
    """A count window over the fast engine."""
    return SlidingWindow(Preference.columns(d), count=length, method="eager", index="list")


def clock(work: Callable[[], Any], now: Callable[[], float] = time.perf_counter) -> tuple[float, Any]:
    """Seconds and result of one call, by the clock on the wall unless told otherwise."""
    start = now()
    found = work()
    return now() - start, found


# -- the flat scan -----------------------------------------------------------------------------------------------------


def compile_flat_scan(source: Path, folder: Path) -> Path | None:
    """The peer's program, compiled into the folder; None where its source or g++ is missing."""
    compiler = shutil.which("g++")
    if compiler is None or not source.exists():
        return None
    program = folder / "flat_scan"
    subprocess.run([compiler, "-O3", "-march=native", str(source), "-o", str(program)], check=True)
    return program


def run_flat_scan(program: Path, file: Path, d: int, n: int, length: int) -> dict[str, float]:
    """What the peer prints: kept, entered, last, rows_per_second."""
    command = [str(program), str(file), str(d), str(n), str(length)]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {name: float(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def figures(window: SlidingWindow, changes: Changes) -> dict[str, int]:
    """What the peer counts, from the changes: rows that entered on arrival, rows in the last skyline."""
    on_arrival = (changes.signs > 0) & (changes.times == changes.ids)
    return {"entered": int(on_arrival.sum()), "last": len(window.skyline())}


def flat(
    program: Path, folder: Path, kinds: list[str], dimensions: list[int], n: int, length: int, repeats: int, seed: int
) -> Iterator[Line]:
    """Ours and the flat scan over the same rows, in turn; the best of the repeats counts."""
    for kind in kinds:
        for d in dimensions:
            rows = generate(kind, n, d, seed)
            file = folder / "rows.bin"
            rows.tofile(file)
            ours, theirs, equal, found = math.inf, 0.0, True, {}
            for _ in range(repeats):  # as often as the peer, or a busy moment would count against one side only
                window = counted(d, length)
                taken, changes = clock(lambda window=window, rows=rows: window.extend(rows))  # type: ignore[misc]
                ours = min(ours, taken)
                found = run_flat_scan(program, file, d, len(rows), length)
                theirs = max(theirs, found["rows_per_second"])
                equal = equal and all(found[name] == value for name, value in figures(window, changes).items())
            yield {
                "kind": kind, "d": d, "rows": len(rows), "kept at most": int(found["kept"]),
                "skytide, rows/s": round(len(rows) / ours), "flat scan, rows/s": round(theirs),
                "ratio": round(len(rows) / theirs / ours, 2), "equal": equal,
            }  # fmt: skip


# -- recomputation -----------------------------------------------------------------------------------------------------


def recompute(kinds: list[str], dimensions: list[int], length: int, points: int, seed: int) -> Iterator[Line]:
    """Ours beside the skyline of the whole window, computed anew at every hundredth of it by each who can.

    Processor time of one thread, in the same run. The ratio is that of the fastest of them, our own kernel included:
    below 1 whoever needs no changes does better without a window.
    """
    step = max(1, length // 100)
    for kind in kinds:
        for d in dimensions:
            rows = generate(kind, length + step * points, d, seed)
            window = counted(d, length)
            window.extend(rows[:length])
            ours, equal = 0.0, True
            taken: dict[str, list[float]] = {name: [] for name in ANEW}
            for end in range(length + step, len(rows) + 1, step):
                part, live = rows[end - step : end], rows[end - length : end]
                seconds, _ = clock(lambda window=window, part=part: window.extend(part), time.thread_time)  # type: ignore[misc]
                ours += seconds
                answer = sorted(window.skyline())
                for name, anew in ANEW.items():
                    if sum(taken[name]) < ENOUGH:  # else it is slow, and few steps tell that as well
                        seconds, mask = clock(lambda anew=anew, live=live: anew(live), time.thread_time)  # type: ignore[misc]
                        taken[name].append(seconds)
                        equal = equal and answer == (np.flatnonzero(mask) + end - length + 1).tolist()
            means = {name: sum(one) / len(one) for name, one in taken.items()}
            fastest = min(means, key=lambda name: means[name])
            yield {
                "kind": kind, "d": d, "window": length, "points": points, "window, ms": round(ours / points * 1e3, 3),
                **{f"{name}, ms": round(mean * 1e3, 3) for name, mean in means.items()},
                "fastest anew": fastest, "ratio": round(means[fastest] / (ours / points), 2), "goal": 20.0,
                "equal": equal,
            }  # fmt: skip


# -- windows of growing length -----------------------------------------------------------------------------------------


def sweep(kinds: list[str], dimensions: list[int], lengths: list[int], seed: int) -> Iterator[Line]:
    """Cost per row and retained rows, after the window has filled, for growing windows; and the memory held."""
    for kind in kinds:
        for d in dimensions:
            for length in lengths:
                measured = min(10**6, max(10**5, length))
                window = counted(d, length)
                for part in chunks(kind, length, d, seed, size=10**6):
                    window.extend(part)
                rows = generate(kind, measured, d, seed, start=length)
                before = window.stats()
                taken, _ = clock(lambda window=window, rows=rows: window.extend(rows))  # type: ignore[misc]
                stats = window.stats()
                retained = stats["retained"]
                own = retained * 8 * (d + 3)
                logarithm = math.log(length) ** d / math.factorial(d)
                members = np.flatnonzero(skyline_mask(generate(kind, length, d, seed, start=measured))) + measured + 1
                yield {
                    "kind": kind, "d": d, "window": length, "ns/row": round(taken / measured * 1e9),
                    "tests/row": round((stats["dominance_tests"] - before["dominance_tests"]) / measured, 2),
                    "retained": retained,
                    "ln^d(W)/d!": round(logarithm) if kind == "independent" else "",
                    "bytes": stats["memory_bytes"], "bytes / columns": round(stats["memory_bytes"] / own, 2),
                    "equal": sorted(window.skyline()) == members.tolist(),
                }  # fmt: skip


# -- single operations -------------------------------------------------------------------------------------------------


class Insertions(NamedTuple):
    """What single insertions took, by the processor's clock and the wall's, what they changed and what is kept."""

    costs: Floats
    waits: Floats
    tests: Integers
    """Comparisons of two rows, which do not depend on the machine."""
    moves: list[tuple[int, int, int]]
    retained: int


def insertions(rows: Floats, length: int, name: tuple[str, str]) -> Insertions:
    """Rows one by one into an engine, after the first `length` of them have filled its window."""
    engine = load_engine(*name)(rows.shape[1])
    arrivals = np.arange(1, len(rows) + 1)
    engine.run(_part(rows, arrivals, 0, length, length), length)
    count = len(rows) - length
    costs, waits, tests = np.empty(count), np.empty(count), np.empty(count, np.int64)
    moves: list[tuple[int, int, int]] = []
    for i in range(count):
        one = _part(rows, arrivals, length + i, length + i + 1, length)
        before = engine.counters()["dominance_tests"]
        wall, start = time.perf_counter(), time.thread_time()
        found = engine.run(one, length + i + 1)
        costs[i], waits[i] = time.thread_time() - start, time.perf_counter() - wall
        tests[i] = engine.counters()["dominance_tests"] - before
        moves += sorted(zip(found.times.tolist(), found.signs.tolist(), found.handles.tolist(), strict=True))
    return Insertions(costs, waits, tests, moves, len(engine.retained()))


def operations(kinds: list[str], length: int, count: int, seed: int, deviation: float) -> Iterator[Line]:
    """tao06, Figs. 13 and 14: the cost of each of many single insertions, for every engine, after a warm-up.

    Costs are processor time: the largest of many short times is else that of another process's turn. The largest by the
    clock on the wall stands beside it.
    """
    d = 3
    for kind in kinds:
        rows = generate(kind, length + count, d, seed, deviation=deviation if kind == "anti-correlated" else None)
        answers: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        for name in ENGINES:
            one = insertions(rows, length, name)
            costs, waits, moves = one.costs, one.waits, one.moves
            answers[name] = moves
            yield {
                "kind": kind, "engine": "-".join(name), "window": length, "retained": one.retained,
                "median, us": round(float(np.median(costs)) * 1e6, 1),
                "p99, us": round(float(np.percentile(costs, 99)) * 1e6, 1),
                "largest, us": round(float(costs.max()) * 1e6, 1), "mean, us": round(float(costs.mean()) * 1e6, 1),
                "largest on the wall, us": round(float(waits.max()) * 1e6, 1),
                "equal": moves == next(iter(answers.values())),
            }  # fmt: skip


def _part(rows: Floats, arrivals: Integers, first: int, last: int, length: int) -> Rows:
    when = arrivals[first:last]
    return Rows(rows[first:last], when, when + length, when)


# -- spikes ------------------------------------------------------------------------------------------------------------


def spikes(kinds: list[str], dimensions: list[int], periods: int, seed: int, deviation: float) -> Iterator[Line]:
    """tao06, Sec. 6.2: 29 s at 10 rows/s, 1 s at 20,000 rows/s; every second's rows are one call. Nothing is lost.

    The stream is kept up with when no second's rows take a second.
    """
    for kind in kinds:
        for d in dimensions:
            times = spike_times(periods, seed)
            rows = generate(kind, len(times), d, seed, deviation=deviation if kind == "anti-correlated" else None)
            window = SlidingWindow(Preference.columns(d), duration=15.0, method="eager", index="list")
            bounds = np.searchsorted(times, np.arange(0, 30 * periods + 1))
            spent = []
            for first, last in itertools.pairwise(bounds.tolist()):
                if last > first:
                    start = time.perf_counter()
                    window.extend(rows[first:last], times=times[first:last])
                    spent.append(time.perf_counter() - start)
            live = np.flatnonzero(times > times[-1] - 15.0)
            mask = moocore.is_nondominated(rows[live], keep_weakly=True)
            yield {
                "kind": kind, "d": d, "rows": len(times), "seconds of stream": 30 * periods,
                "seconds of work": round(sum(spent), 3), "longest second, s": round(max(spent), 3),
                "lost": len(times) - window.stats()["rows"],
                "equal": sorted(window.skyline()) == (live[mask] + 1).tolist(),
            }  # fmt: skip
