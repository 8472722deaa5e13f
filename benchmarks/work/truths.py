"""What the answers are by definition, by the slow code that `skytide verify` uses; no kernel has a part in it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from skytide.cli._verify.comparing import Stream
from skytide.cli._verify.definition import undominated
from skytide.cli._verify.populations import Fragments, Living, Population, Uncertain, Updates
from skytide.cli._verify.rows import Question, Rows, Unit
from skytide.cli._verify.sampled import Series
from skytide.model import Floats, Integers
from skytide.reference.frequent import exact

Answer = list[tuple[Any, ...]]
"""Changes: time, sign and id, and what else there is; or the places of rows."""


def skyline(values: Floats, offsets: Integers | None = None) -> Answer:
    """The places of the rows that no row dominates, within each run of rows."""
    cuts = [0, len(values)] if offsets is None else offsets.tolist()
    found = [undominated(values[low:high]) + low for low, high in pairwise(cuts)]
    return [(int(place),) for part in found for place in part]


def rows_of(
    values: Floats, ids: Any, times: Integers | None = None, groups: Integers | None = None, **beside: Any
) -> Rows:
    """Rows that are all taken."""
    none: Integers = np.zeros(0, np.int64)
    total = len(values)
    groups = np.zeros(total, np.int64) if groups is None else groups
    unit = Unit(None, [])
    places = [("", 1, 0)]
    return Rows(values, list(ids), times, groups, np.arange(total), beside, none, none, unit, None, total, places)


def question(kind: str, dimensions: int, **options: Any) -> Question:
    """A question about columns that are all minimised."""
    names = tuple(f"c{place}" for place in range(dimensions))
    common = {"minimize": names, "maximize": (), "by": (), "nulls": "error", "top": None, "known": names}
    return Question(kind, {**common, **options}, names)


def changes(population: Population) -> Answer:
    """The net differences between the answers of consecutive instants, in the order of the change stream."""
    return list(_changes(population))


def _changes(population: Population) -> Iterator[tuple[Any, ...]]:
    answers: dict[Any, set[Any]] = {}
    for number, time in enumerate(population.instants.tolist()):
        groups = set(population.step(number))
        before = set().union(*(answers.get(group, set()) for group in groups))
        for group in groups:
            members = population.answer(group)
            assert not members.may, "the last digits decide: choose other data"
            answers[group] = members.must
        after = set().union(*(answers[group] for group in groups))
        for sign, whom in (("-", before - after), ("+", after - before)):
            yield from ((time, sign, *_parts(one)) for one in sorted(whom, key=_order))


def _parts(member: Any) -> tuple[Any, ...]:
    return member if isinstance(member, tuple) else (member,)


def _order(member: Any) -> tuple[Any, ...]:
    one, *rest = _parts(member)
    return (str(one), *rest)


def window(values: Floats, times: Integers | None, groups: Integers | None = None, **options: Any) -> Answer:
    """A sliding window; rows are named by their numbers."""
    asked = question("window", values.shape[1], **options)
    return changes(Living(asked, rows_of(values, range(1, len(values) + 1), times, groups)))


def uncertain(values: Floats, chances: Floats, ids: Any, runs: Integers | None = None, **options: Any) -> Answer:
    """A window of uncertain rows, or of objects."""
    beside = {"chances": chances} if runs is None else {"chances": chances, "runs": runs}
    asked = question("uncertain", values.shape[1], **options)
    return changes(Uncertain(asked, rows_of(values, ids, **beside)))


def updates(moves: Any, groups: Integers | None = None) -> Answer:
    """Objects that are set."""
    asked = question("snapshots", moves.values.shape[1])
    return changes(Updates(asked, rows_of(moves.values, moves.ids.tolist(), moves.times, groups)))


def counted(moves: Any, theta: str, over: int, sampling: tuple[float, float, int] | None = None) -> Answer:
    """Who is in enough of the last skylines, or of those of them that are sampled."""
    told = updates(moves)
    stream = Stream(
        np.array([one[0] for one in told]),
        np.array([1 if one[1] == "+" else -1 for one in told]),
        [one[2] for one in told],
    )
    series = Series(np.unique(moves.times), stream, exact(theta), over)
    return changes(series.counted() if sampling is None else series.sampled(*sampling))


def fragments(moves: Any, sites: Integers, functions: tuple[str, ...]) -> Answer:
    """Functions of averages over sites."""
    dimensions = moves.values.shape[1]
    asked = question("fragments", dimensions)
    asked = Question("fragments", {**asked.options, "minimize": functions}, asked.columns)
    rows = rows_of(moves.values, moves.ids.tolist(), moves.times, sites=sites.tolist())
    return changes(Fragments(asked, rows))
