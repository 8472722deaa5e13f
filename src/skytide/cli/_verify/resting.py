"""Answers that are told once, at the end: the skyline of DATA, and the last window of uncertain rows."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

import numpy as np

from skytide.cli._verify.comparing import Disagreement
from skytide.cli._verify.definition import undominated
from skytide.cli._verify.populations import Uncertain, by_group, oriented
from skytide.cli._verify.rows import Question, Rows
from skytide.cli._verify.runs import Told
from skytide.model import Integers
from skytide.streams.files import Source, write_table

_CLOSE = 1e-9
_FEW = 5


def skyline_places(question: Question, rows: Rows) -> Integers:
    """The positions in DATA of the rows that no row of their group dominates, in input order. O(rows · answer)."""
    points = oriented(question, rows.values)
    found = [np.zeros(0, np.int64)]
    found += [mine[undominated(points[mine])] for mine in by_group(rows.groups).values()]
    return rows.positions[np.sort(np.concatenate(found))]


def expected_rows(question: Question, rows: Rows, source: Source) -> bytes:
    """Those rows as the CSV that the command writes."""
    text = io.BytesIO()
    write_table(None, source.take(skyline_places(question, rows)), text)
    return text.getvalue()


def rows_wrong(expected: bytes, told: Told) -> Disagreement | None:
    """Whether the rows of an answer at rest are others."""
    if told.text == expected:
        return None
    right, given = expected.decode().splitlines(), told.text.decode().splitlines()
    missing, wrong = _without(right, given), _without(given, right)
    reason = "the answer is another one" if missing or wrong else "the rows are not in the order of the input"
    return Disagreement(reason, missing=missing, wrong=wrong)


def _without(lines: list[str], others: list[str]) -> list[str]:
    left = list(lines)
    for line in others:
        if line in left:
            left.remove(line)
    return left


def ranking_wrong(population: Uncertain, told: Told) -> Disagreement | None:
    """Whether the last window's answer is another one, in other places, or with other probabilities."""
    assert told.table is not None
    ids, chances = told.table.column("id").to_pylist(), told.table.column("probability").to_pylist()
    must, may = set[Any](), set[Any]()
    true: dict[Any, float] = {}
    if len(population.instants):
        population.step(len(population.instants) - 1)
        must, may, true = population.last()
    missing, wrong = must - set(ids), set(ids) - must - may
    if missing or wrong or len(ids) != len(set(ids)):
        return Disagreement("the answer is another one", missing=sorted(missing, key=str), wrong=sorted(wrong, key=str))
    close = {one: _CLOSE * chance + population.slack for one, chance in true.items()}
    off = [one for one, chance in zip(ids, chances, strict=True) if not abs(chance - true[one]) <= close[one]]
    if off:
        return Disagreement("the probabilities are others", wrong=off[:_FEW])
    if any(later > before * (1 + _CLOSE) for before, later in pairwise(chances)):
        return Disagreement("the most probable do not come first")
    told_so = zip(pairwise(ids), pairwise(chances), strict=True)
    if any(before == later and str(one) > str(other) for (one, other), (before, later) in told_so):
        return Disagreement("those that are equally probable are not in the order of their ids as text")
    return None
