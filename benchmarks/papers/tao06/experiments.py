"""The runs behind tao06's Figs. 12 to 21 and Tables 2 and 3, by the paper's names for its four methods.

Rows come at 10 a second, so that a window of W seconds holds 10 W of them. Anti-correlated rows have a plane deviation
of 0.005, which the paper's skyline sizes need. All methods take the same rows in turn, and their changes are compared;
the skyline that they lead to is compared with that of the batch kernel, and with the reference where windows are small.
"""

from __future__ import annotations

import gc
import time
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.papers.registry import Place, Row
from benchmarks.papers.tao06 import sizes
from benchmarks.peers.window_parts import insertions
from skytide.kernel.batch import skyline_mask
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.sliding.engine import Engine, Moves, Rows
from skytide.monitors.sliding.engines import load_engine
from skytide.reference.batch import skyline as reference_skyline
from skytide.streams.arrivals import spike_times
from skytide.streams.generators import generate

METHODS = {
    "LL-Lazy": ("lazy", "list"),
    "I-Lazy": ("lazy", "rtree"),
    "LL-Eager": ("eager", "list"),
    "I-Eager": ("eager", "rtree"),
}
RATE = sizes.RATE
PIECES = 10
"""Into so many calls a window's rows are split; after each, sizes are noted."""
REFERENCE = 200
"""Windows of up to so many rows are compared with the reference, too."""
NANOSECONDS = 10**9
CHECKED = 5
"""At the end of every so many seconds the answer is compared with the skyline of what lives."""
Move = tuple[int, int, int]
BUFFERED = 8
"""Bytes of a value that waits in the buffer."""


def table(parameters: Row, place: Place) -> list[Row]:
    """Tables 2 and 3: the mean size of the skyline."""
    kind, d, rows = parameters["kind"], parameters["d"], RATE * parameters["W"]
    found = sizes.average_size(kind, d, rows, parameters["windows"], parameters["seed"])
    expected = sizes.expected_size(rows, d) if kind == "independent" else None
    return [{"skyline": round(found, 1), "expected": expected and round(expected, 1), "equal": True}]


def made(kind: str, n: int, d: int, seed: int) -> Floats:
    """The paper's rows."""
    return generate(kind, n, d, seed, deviation=sizes.DEVIATION if kind == "anti-correlated" else None)


def in_order(moves: Moves) -> Integers:
    """Moves in an order that does not depend on the engine."""
    columns = np.stack((moves.times, moves.signs, moves.handles))
    return np.asarray(columns[:, np.lexsort(columns[::-1])])


def right(inside: Integers, live: Floats) -> bool:
    """Whether these are the positions of the skyline."""
    good = np.array_equal(inside, np.flatnonzero(skyline_mask(live)))
    if len(live) <= REFERENCE:
        good = good and inside.tolist() == list(reference_skyline([tuple(row) for row in live.tolist()]))
    return good


def warm(d: int) -> None:
    """Load compiled code, so that nobody's time has it."""
    rows = made("independent", 200, d, 0)
    for name in METHODS.values():
        insertions(rows, 150, name)  # many rows in one call, and single ones: not the same code


def amortized(parameters: Row, place: Place) -> list[Row]:
    """Figs. 12 and 15 to 17: time per tuple, tuples and bytes kept, after the first window."""
    kind, d, windows = parameters["kind"], parameters["d"], parameters["windows"]
    length = RATE * parameters["W"]
    rows = made(kind, length * (windows + 1), d, parameters["seed"])
    warm(d)
    engines = {name: load_engine(*how)(d) for name, how in METHODS.items()}
    told: dict[str, dict[str, list[float]]] = {
        name: {"seconds": [], "retained": [], "bytes": [], "tests": []} for name in METHODS
    }
    inside: Booleans = np.zeros(len(rows) + 1, np.bool_)
    equal = True
    for first in range(0, len(rows), max(1, length // PIECES)):
        stop = min(len(rows), first + max(1, length // PIECES))
        keys = np.arange(first + 1, stop + 1)
        piece = Rows(rows[first:stop], keys, keys + length, keys)
        answers = [_step(engine, piece, told[name] if first >= length else None) for name, engine in engines.items()]
        equal &= all(np.array_equal(answers[0], other) for other in answers[1:])
        inside[answers[0][2]] = answers[0][1] > 0  # of several moves of a row the last counts
        if stop % length == 0:
            equal &= right(np.flatnonzero(inside[max(0, stop - length) + 1 : stop + 1]), rows[stop - length : stop])
    many = length * windows
    return [
        {
            "method": name,
            "µs per tuple": round(1e6 * sum(one["seconds"]) / many, 3),
            "tests per tuple": round(sum(one["tests"]) / many, 2),
            "tuples kept": round(float(np.mean(one["retained"])), 1),
            "KB kept": round(float(np.mean(one["bytes"])) / 1e3, 2),
            "equal": equal,
        }
        for name, one in told.items()
    ]


def _step(engine: Engine, piece: Rows, told: dict[str, list[float]] | None) -> Integers:
    """The moves that a piece of the stream makes; what they took is noted."""
    before = engine.counters()["dominance_tests"]
    start = time.process_time()
    moves = engine.run(piece, int(piece.arrivals[-1]))
    seconds = time.process_time() - start
    if told is not None:
        counted = engine.counters()
        told["seconds"].append(seconds)
        told["tests"].append(counted["dominance_tests"] - before)
        told["retained"].append(len(engine.retained()))
        told["bytes"].append(counted["memory_bytes"])
    return in_order(moves)


def operations(parameters: Row, place: Place) -> list[Row]:
    """Figs. 13 and 14: the cost of every single arrival in the 50 seconds after the first window."""
    kind, d, length, count = parameters["kind"], parameters["d"], RATE * parameters["W"], parameters["arrivals"]
    rows = made(kind, length + count, d, parameters["seed"])
    warm(d)
    found, moves = list[Row](), []
    for name, how in METHODS.items():
        one = insertions(rows, length, how)
        moves.append(one.moves)
        pairs = zip(one.costs.tolist(), one.tests.tolist(), strict=True)
        found += [
            {
                "method": name,
                "second": round(parameters["W"] + at / RATE, 1),
                "µs": round(1e6 * cost, 2),
                "tests": tests,
            }
            for at, (cost, tests) in enumerate(pairs)
        ]
    inside = set((np.flatnonzero(skyline_mask(rows[:length])) + 1).tolist())
    for _, sign, handle in moves[0]:
        (inside.add if sign > 0 else inside.discard)(handle)
    fresh = (np.flatnonzero(skyline_mask(rows[-length:])) + count + 1).tolist()
    equal = all(one == moves[0] for one in moves[1:]) and sorted(inside) == fresh
    return [{**row, "equal": equal} for row in found]


# -- spikes ------------------------------------------------------------------------------------------------------------


def spikes(parameters: Row, place: Place) -> list[Row]:
    """Figs. 18 to 21: tuples that wait and bytes kept at the end of every second of a stream with spikes.

    Tuples are taken one by one, each when it has come and the one before is done; the clock is that of the stream, and
    a tuple takes the time that was measured for it.
    """
    d, periods = 3, parameters["periods"]
    gaps = {"burst_gap": parameters["burst_gap"]}
    times = spike_times(periods, parameters["seed"], **gaps)
    rows = made(parameters["kind"], len(times), d, parameters["seed"])
    warm(d)
    life = round(parameters["W"] * NANOSECONDS)
    # No two tuples at one instant: each is a call of its own.
    turns = np.arange(len(times))
    keys = np.maximum.accumulate(np.round(times * NANOSECONDS).astype(np.int64) - turns) + turns
    players = {
        name: Player(load_engine(*how)(d), rows, keys, life)
        for name, how in METHODS.items()
        if how[1] == parameters["index"]
    }
    # A collection of the whole process, many milliseconds, would else count as the cost of some tuple.
    gc.collect()
    gc.disable()
    try:
        found, equal = _seconds(parameters, players, rows, keys, life)
    finally:
        gc.enable()
    return [{**row, "equal": equal} for row in found]


def _seconds(
    parameters: Row, players: dict[str, Player], rows: Floats, keys: Integers, life: int
) -> tuple[list[Row], bool]:
    """The rows of all seconds, and whether the answers are right."""
    periods, found, equal = parameters["periods"], list[Row](), True
    inside: Booleans = np.zeros(len(rows), np.bool_)
    cuts = np.searchsorted(keys, np.arange(30 * periods + 1) * NANOSECONDS)
    for second, (first, last) in enumerate(pairwise(cuts.tolist()), 1):
        answers = []
        for name, player in players.items():
            row, moves = player.second(second, first, last)
            found.append({"method": name, **row})
            answers.append(moves)
        equal &= answers[0] == answers[1]
        for _, sign, handle in answers[0]:
            inside[handle] = sign > 0
        if second % CHECKED == 0:
            now = second * NANOSECONDS
            live = slice(int(np.searchsorted(keys, now - life, side="right")), last)
            equal &= inside.sum() == inside[live].sum() and right(np.flatnonzero(inside[live]), rows[live])
    for row, player in zip(found[-len(players) :], players.values(), strict=True):
        row["µs per tuple"] = round(1e6 * player.spent / max(1, len(keys)), 2)
    return found, bool(equal)


class Player:
    """Plays a stream to an engine, a tuple at a time."""

    def __init__(self, engine: Engine, rows: Floats, keys: Integers, life: int) -> None:
        self._engine, self._rows, self._keys, self._life = engine, rows, keys, life
        # When, by the stream's clock, a tuple has been taken: never before the one before it.
        self._done: Floats = np.zeros(len(keys))
        self._free = self.spent = 0.0

    def second(self, second: int, first: int, last: int) -> tuple[Row, list[Move]]:
        """Take the tuples of a second: what waits and what is kept at its end, and the changes."""
        told, before = list[Move](), self.spent
        for at in range(first, last):
            cost, moves = self._take(at)
            told += moves
            self.spent += cost
            self._free = max(self._free, self._keys[at] / NANOSECONDS) + cost
            self._done[at] = self._free
        told += _listed(self._engine.run(_none(self._rows), second * NANOSECONDS))
        waiting = last - int(np.searchsorted(self._done[:last], second, side="right"))
        kept = self._engine.counters()["memory_bytes"] + waiting * BUFFERED * (self._rows.shape[1] + 1)
        row = {
            "second": second,
            "waiting": waiting,
            "KB kept": round(kept / 1e3, 2),
        }
        if last > first:
            row["µs per tuple, by second"] = round(1e6 * (self.spent - before) / (last - first), 2)
        return row, told

    def _take(self, at: int) -> tuple[float, list[Move]]:
        """Take a tuple: the seconds of processor time, and the changes."""
        key = self._keys[at : at + 1]
        one = Rows(self._rows[at : at + 1], key, key + self._life, np.array([at]))
        start = time.thread_time()
        moves = self._engine.run(one, int(key[0]))
        return time.thread_time() - start, _listed(moves)


def _listed(moves: Moves) -> list[Move]:
    return sorted(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist(), strict=True))


def _none(rows: Floats) -> Rows:
    nothing: Any = np.zeros(0, np.int64)
    return Rows(rows[:0], nothing, nothing, nothing)
