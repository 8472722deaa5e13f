"""What a coordinator may publish as exact, by the diaries of its sites and the definition of the skyline.

At a moment, an object at a site has the values of the last row that was acknowledged before, or of a row that was put
after that one: rows that are put and not acknowledged count or do not. A state is right if it is the skyline for some
choice among these.
"""

from __future__ import annotations

import bisect
import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from skytide.expressions import parse
from skytide.protocols.network.query import Query
from skytide.reference.batch import skyline
from skytide.reference.functional import Averages, expression

Values = tuple[float, ...] | None
NEVER = float("inf")
MOST_CHOICES = 2_000
MOST_MEMORY = 100_000


@dataclass
class Cell:
    """An object at a site: its rows, when each was put, and when it or a later one was acknowledged."""

    values: list[Values] = field(default_factory=lambda: [None])
    puts: list[float] = field(default_factory=lambda: [-NEVER])
    acknowledged: list[float] = field(default_factory=lambda: [-NEVER])

    def close(self) -> None:
        """After the last row: what a later row's acknowledgement says of the earlier ones."""
        for place in range(len(self.values) - 2, -1, -1):
            self.acknowledged[place] = min(self.acknowledged[place], self.acknowledged[place + 1])

    def choices(self, moment: float) -> list[Values]:
        """What may count at a moment. O(log rows + choices)."""
        first = bisect.bisect_left(self.acknowledged, moment) - 1
        last = bisect.bisect_right(self.puts, moment)
        return list(dict.fromkeys(self.values[max(first, 0) : max(last, first + 1)]))


class Truth:
    """The rows of all sites over time."""

    def __init__(self, query: Query, diaries: Iterable[Path]) -> None:
        self._query = query
        self.cells: dict[tuple[str, str], Cell] = {}
        self.rows = 0
        self.acknowledged = 0
        for path in diaries:
            by_site: dict[str, list[Any]] = {}
            for line in path.read_bytes().splitlines():
                kind, site, *rest = json.loads(line)
                by_site.setdefault(site, []).append((kind, *rest))
            for site, notes in by_site.items():
                self._read(site, notes)
        for cell in self.cells.values():
            cell.close()
        self._functions = [expression(parse(text)) for text in (*query.minimize, *query.maximize)]
        self._signs = [1] * len(query.minimize) + [-1] * len(query.maximize)
        self._value = cache(self._valued)
        self._memory: dict[Any, frozenset[str]] = {}
        self._verdicts: dict[Any, bool] = {}

    def _read(self, site: str, notes: list[Any]) -> None:
        """The notes of a site; each start begins a life of it, in which rows are counted anew."""
        starts = [place for place, note in enumerate(notes) if note[0] == "start"]
        for begin, end in zip(starts, [*starts[1:], len(notes)], strict=True):
            (_, moment, memory), life = notes[begin], notes[begin + 1 : end]
            acks = [(note[2], note[1]) for note in life if note[0] == "ack"]
            counts, times = [count for count, _ in acks], [when for _, when in acks]

            def acknowledged(row: int, counts: list[int] = counts, times: list[float] = times) -> float:
                place = bisect.bisect_left(counts, row)
                return times[place] if place < len(times) else NEVER

            # What the site does not have any more, the coordinator forgets when it hears what the site has.
            for (owner, _), cell in self.cells.items():
                if owner == site and (not memory or cell.values[-1] is None):
                    self._row(cell, None, moment, acknowledged(1))
            for note in life:
                if note[0] == "put":
                    _, when, row, one, values = note
                    cell = self.cells.setdefault((site, one), Cell())
                    self._row(cell, None if values is None else tuple(values), when, acknowledged(row))
                    self.rows += 1
                    self.acknowledged += acknowledged(row) < NEVER

    @staticmethod
    def _row(cell: Cell, values: Values, put: float, acknowledged: float) -> None:
        cell.values.append(values)
        cell.puts.append(put)
        cell.acknowledged.append(acknowledged)

    def right(self, published: frozenset[str], moment: float) -> bool | None:
        """Whether a state that was published as exact is right at a moment; None where too much may count."""
        names, options = [], []
        size = 1
        for name, cell in self.cells.items():
            choices = cell.choices(moment)
            if choices != [None]:
                names.append(name)
                options.append(choices)
                size *= len(choices)
        if size > MOST_CHOICES:
            return None
        asked = published, tuple(names), tuple(map(tuple, options))
        if asked not in self._verdicts:
            found = (self._skyline(tuple(names), chosen) for chosen in itertools.product(*options))
            self._verdicts[asked] = any(skyline == published for skyline in found)
        return self._verdicts[asked]

    def _skyline(self, names: tuple[tuple[str, str], ...], chosen: tuple[Values, ...]) -> frozenset[str]:
        found = self._memory.get((names, chosen))
        if found is None:
            if len(self._memory) > MOST_MEMORY:
                self._memory.clear()
            found = self._memory[names, chosen] = self._defined(names, chosen)
        return found

    def _defined(self, names: tuple[tuple[str, str], ...], chosen: tuple[Values, ...]) -> frozenset[str]:
        objects: dict[str, list[tuple[float, ...]]] = {}
        for (_, one), values in zip(names, chosen, strict=True):
            if values is not None:
                objects.setdefault(one, []).append(values)
        points = {one: self._value(tuple(sorted(vectors))) for one, vectors in objects.items()}
        rows = [(one, point) for one, point in points.items() if point is not None]
        return frozenset(rows[place][0] for place in skyline([point for _, point in rows]))

    def _valued(self, vectors: tuple[tuple[float, ...], ...]) -> tuple[float, ...] | None:
        """What is compared of an object; None where it does not compete. Of one fragment the average is the value."""
        averages = Averages([dict(zip(self._query.columns, vector, strict=True)) for vector in vectors])
        found = tuple(sign * f(averages) for sign, f in zip(self._signs, self._functions, strict=True))
        return None if any(value != value for value in found) else found
