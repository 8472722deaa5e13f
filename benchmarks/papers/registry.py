"""What an experiment of a paper is: a sweep of independent tasks, how they are drawn, and what the paper says of them.

A task names a function, as `module:function`, and gives it plain parameters; the function returns rows, which are flat.
Every row has `equal`: whether the answers were found right. Figures that show the same runs share their tasks.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]
Rows = Sequence[Row]
SIZES = {
    "smoke": "seconds: to see that all works; shapes mean nothing",
    "laptop": "minutes on two cores",
    "full": "the paper's parameters; hours, for a cluster",
}
RANKED = 0.6
"""What rises or falls with something, apart from the noise of the runs, has this rank correlation at least."""
PAPERS = {
    "tao06": "Tao, Papadias: Maintaining Sliding Window Skylines on Data Streams. TKDE 18(3), 2006",
    "zhang09p": "W. Zhang, Lin, Y. Zhang, Wang, Yu: Probabilistic Skyline Operator over Sliding Windows. ICDE 2009",
    "udom14": "Udomlamlert, Hara, Nishio: Skyline Computation under Frequent Data Updates. 2014",
    "zhang09c": "Z. Zhang, Cheng, Papadias, Tung: Minimizing the Communication Cost for Continuous Skyline "
    "Maintenance. SIGMOD 2009",
    "papa14": "Papapetrou, Garofalakis: Continuous Fragmented Skylines over Distributed Streams. ICDE 2014",
}


class Place(NamedTuple):
    """What a task finds on the machine that it runs on."""

    data: Path | None


class Task(NamedTuple):
    """One run of an experiment: a function and its parameters, which decide all of its answers."""

    experiment: str
    parameters: Row

    @property
    def key(self) -> str:
        """A name that no other task has.

        >>> Task("a:b", {"x": 1, "y": 2}).key == Task("a:b", {"y": 2, "x": 1}).key != Task("a:b", {"x": 1}).key
        True
        """
        told = json.dumps([self.experiment, self.parameters], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def words(self) -> str:
        """The task for people."""
        return " ".join([self.experiment.rpartition(":")[2], *(f"{k}={v}" for k, v in self.parameters.items())])

    def run(self, place: Place) -> list[Row]:
        """The rows, each with the parameters."""
        module, name = self.experiment.split(":")
        function: Callable[[Row, Place], list[Row]] = getattr(importlib.import_module(module), name)
        return [{**self.parameters, **row} for row in function(dict(self.parameters), place)]


@dataclass(frozen=True)
class Panel:
    """A part of a figure: a line for each value of `series`, over `x`; rows with equal `x` are averaged."""

    title: str
    x: str
    y: str
    series: str = "method"
    where: tuple[tuple[str, Any], ...] = ()
    log: str = ""
    """The axes with a logarithmic scale: x, y, or both."""
    bars: bool = False
    """Bars on top of each other, one for each of the columns `stacked`, instead of lines."""
    stacked: tuple[str, ...] = ()
    label: str = ""
    """What stands below the axis, where the name of the column says too little."""

    def rows(self, rows: Rows) -> list[Row]:
        """Those that are shown."""
        return chosen(rows, **dict(self.where))


class NotMeasuredError(Exception):
    """A claim asks for rows that there are none of: nothing can be said of it."""


class Found(NamedTuple):
    """What was measured for a claim; `holds` is None where that says too little to judge by."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Claim:
    """What the paper says, in words, with its numbers; and what these rows say of it."""

    says: str
    ours: Callable[[Rows], Found]
    why: str = ""
    """Why it does not hold here, as far as is known; it is shown where it does not."""


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper."""

    paper: str
    kind: str
    number: int
    title: str
    experiment: str
    sweep: Callable[[str], Iterable[Row]]
    """The parameters of the tasks at a size."""
    panels: tuple[Panel, ...]
    columns: tuple[str, ...]
    """The columns of the table of what was measured; rows that are equal in all but numbers are averaged."""
    claims: tuple[Claim, ...] = ()
    note: str = ""
    """Why ours differs from the paper's, where it does."""
    needs: tuple[str, ...] = ()
    """Files of the folder with data without which it is left out."""
    by: tuple[str, ...] = ()
    """The columns of the table that tell its lines apart; all others are numbers, and are averaged."""
    tabled: tuple[tuple[str, Any], ...] = ()
    """Only rows with these values are in the table."""
    known: dict[tuple[Any, ...], float] = field(default_factory=dict)
    """The paper's numbers by the values of `by`."""
    also: tuple[tuple[Callable[[str], Iterable[Row]], tuple[str, ...]], ...] = ()
    """Further tasks of the same experiment, each with the files that it needs."""
    across: int = 2
    """Panels beside each other."""

    @property
    def key(self) -> str:
        """Its name in reports and in addresses."""
        return f"{self.paper}-{self.kind}-{self.number}"

    def tasks(self, size: str, seed: int, data: Path | None) -> list[Task]:
        """What can be run for it."""
        sweeps = [(self.sweep, self.needs), *self.also]
        found = [one for sweep, needs in sweeps if not _lost(needs, data) for one in sweep(size)]
        return [Task(self.experiment, {**one, "seed": seed}) for one in found]

    def missing(self, data: Path | None) -> str:
        """What cannot be run of it for want of data, or nothing."""
        several = (self.needs, *(needs for _, needs in self.also))
        lost = list(dict.fromkeys(name for needs in several for name in _lost(needs, data)))
        part = "" if self.needs else "what needs it: "
        return f"{part}{' and '.join(lost)} not found in the folder of data (--data)" if lost else ""


def _lost(needs: tuple[str, ...], data: Path | None) -> list[str]:
    return [name for name in needs if data is None or not any(data.glob(name))]


def chosen(rows: Rows, **where: Any) -> list[Row]:
    """The rows with these values.

    >>> chosen([{"d": 2}, {"d": 3}], d=3)
    [{'d': 3}]
    """
    return [row for row in rows if all(row.get(name) == value for name, value in where.items())]


def mean(rows: Rows, column: str, **where: Any) -> float:
    """The mean of a column over the rows with these values; NotMeasuredError where there are none.

    >>> mean([{"d": 2, "y": 1.0}, {"d": 2, "y": 2.0}], "y", d=2)
    1.5
    """
    found = [row[column] for row in chosen(rows, **where) if row.get(column) is not None]
    if not found:
        raise NotMeasuredError(f"no row with {where} has {column}")
    return float(sum(found) / len(found))


def values(rows: Rows, column: str) -> list[Any]:
    """The values of a column, each once, in their order."""
    return list(dict.fromkeys(row[column] for row in rows if column in row))


def first_and_last(rows: Rows, column: str) -> tuple[Any, Any]:
    """The least and the largest number of a column that was varied; NotMeasuredError where there is one at most."""
    found = values(rows, column)
    if len(found) < 2:
        raise NotMeasuredError(f"there is one value of {column} at most")
    return min(found), max(found)


def rank(several: Sequence[float]) -> float:
    """Kendall's rank correlation of numbers with their order: 1 where all rise, -1 where all fall.

    >>> rank([1.0, 2.0, 3.0]), rank([3.0, 1.0])
    (1.0, -1.0)
    """
    pairs = [(high > low) - (high < low) for at, low in enumerate(several) for high in several[at + 1 :]]
    if not pairs:
        raise NotMeasuredError("there is one number at most")
    return sum(pairs) / len(pairs)


def by_size(size: str, smoke: Any, laptop: Any, full: Any) -> Any:
    """One of three, by the name of the size."""
    return {"smoke": smoke, "laptop": laptop, "full": full}[size]


def figures() -> list[Figure]:
    """All figures and tables, in the order of the papers."""
    found: list[Figure] = []
    for paper in PAPERS:
        found += importlib.import_module(f"benchmarks.papers.{paper}.catalogue").FIGURES
    return found
