"""One command over DATA, all its runs, and what the definitions say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from skytide.cli._progress import opened
from skytide.cli._verify.comparing import Disagreement, Pace, Stream, compare, told_apart
from skytide.cli._verify.populations import Fragments, Living, Population, Uncertain, Updates
from skytide.cli._verify.resting import expected_rows, ranking_wrong, rows_wrong
from skytide.cli._verify.rows import Question, Rows, read_rows
from skytide.cli._verify.runs import SAMPLING, Choice, Commands, Told, baseless, letters_wrong, stream_of, texts_of
from skytide.cli._verify.sampled import Series, cost_wrong, quality_wrong
from skytide.errors import MissingDependencyError, SkytideError
from skytide.reference.frequent import exact

POPULATIONS: dict[str, Callable[[Question, Rows], Living | Updates | Fragments]] = {
    "window": Living,
    "uncertain": Uncertain,
    "snapshots": Updates,
    "monitor": Updates,
    "fragments": Fragments,
}
Again = Callable[[], Population]
"""Makes a population that begins anew."""
_PLAIN = {"frequent": None, "theta": None, "over": None}


@dataclass(frozen=True)
class Result:
    """What was found of one run: what of it was looked at, at how many of how many instants."""

    choice: Choice
    what: str
    rows: int
    instants: int
    checked: int
    finding: Disagreement | None = None
    skipped: str = ""
    figures: dict[str, float] = field(default_factory=dict)


class _BaselessError(Exception):
    """Every run refuses data that can be used."""

    def __init__(self, finding: Disagreement, rows: int) -> None:
        super().__init__(finding.reason)
        self.finding, self.rows = finding, rows


class Verification:
    """All runs of a command over DATA; `pace` makes the pace of each comparison."""

    def __init__(
        self,
        question: Question,
        commands: Commands,
        choices: list[Choice],
        pace: Callable[[], Pace],
        watch: Callable[[float], None] = lambda share: None,
    ) -> None:
        self._question, self._commands, self._choices = question, commands, choices
        self._pace, self._watch = pace, watch

    def results(self, data: str) -> list[Result]:
        """Run everything, and compare. Data that every run refuses is an error of the input, if there is a reason."""
        try:
            if self._question.kind == "skyline":
                return self._skylines(data)
            if self._question.options.get("final"):
                return self._rankings(data)
            return self._streams(data)
        except _BaselessError as refused:
            return [Result(one, "data", refused.rows, 0, 0, refused.finding) for one in self._choices]

    # -- streams -------------------------------------------------------------------------------------------------------

    def _streams(self, data: str) -> list[Result]:
        options = self._question.options
        theta = options.get("frequent") or options.get("theta")
        approximate = [one for one in self._choices if one["method"] in SAMPLING]
        certain = [one for one in self._choices if one not in approximate]
        # Whether theta is one is for the command to say, before anything is made of it.
        counted = self._told(data, certain, {}) if theta is not None and certain else []
        sampled = self._told(data, approximate, {}) if approximate else []
        told = self._told(data, certain or [{"method": "naive"}], _PLAIN)
        rows = self._rows(data)
        if rows.unusable:
            return self._taken(told, rows, "changes")
        population = self._anew(rows)
        results, streams = self._compared(told, rows, population, lambda: self._anew(rows))
        if theta is None and not approximate:
            return results
        right = [stream for result, stream in zip(results, streams, strict=True) if result.finding is None]
        looked = min(one.checked for one in results)
        results = results if certain else [one for one in results if one.finding is not None]
        if not right:
            return results
        snapshots = population.instants[population.taken] if isinstance(population, Updates) else population.instants
        series = Series(snapshots, right[0], exact(theta or 1), options["over"] or 1)
        if counted:
            results += self._compared(counted, rows, series.counted(), series.counted, "frequent")[0]
        if not approximate:
            return results
        found = self._approximate(sampled, rows, series)
        # Without a line of their own, the skylines that were sampled are part of what was looked at.
        found = found if certain else [replace(one, checked=min(one.checked, looked)) for one in found]
        return results + found

    def _told(self, data: str, choices: list[Choice], changed: dict[str, Any]) -> list[tuple[Choice, Told]]:
        found = [(choice, self._commands.told(data, **{**changed, **choice})) for choice in choices]
        refusals = [told.refusal for _, told in found if told.refusal is not None]
        if refusals and len(refusals) == len(found):
            self._check_reason(refusals[0], data)
            raise refusals[0]
        return found

    def _check_reason(self, refusal: SkytideError, data: str) -> None:
        """An error of its own where the definitions should know why the data is refused, and do not."""
        if baseless(refusal, "") is None:
            return
        if "the result of an update" in refusal.reason and self._question.length("lateness"):
            return  # rows are judged as they come: one that comes later may have made the result a number
        try:
            rows = self._rows(data)
        except SkytideError:
            return
        finding = baseless(refusal, rows.unusable)
        if finding is not None:
            raise _BaselessError(finding, rows.total)

    def _opened(self, data: str) -> Any:
        texts = [] if self._question.kind == "skyline" else texts_of(self._question)
        return opened("verify", data, typed=self._question.time is not None, text=texts)

    def _rows(self, data: str) -> Rows:
        """The rows that are to be taken, or why DATA cannot be used."""
        with self._opened(data) as source:
            rows = read_rows(self._question, source)
        if not rows.unusable and self._question.kind in POPULATIONS:
            rows.unusable = self._anew(rows).unusable()
        return rows

    def _taken(self, told: list[tuple[Choice, Told]], rows: Rows, what: str) -> list[Result]:
        """The results where DATA cannot be used, but some run took it."""
        return [Result(choice, what, rows.total, 0, 0, one.wrong(rows.unusable)) for choice, one in told]

    def _anew(self, rows: Rows) -> Living | Updates | Fragments:
        return POPULATIONS[self._question.kind](self._question, rows)

    def _compared(
        self, told: list[tuple[Choice, Told]], rows: Rows, population: Population, again: Again, what: str = "changes"
    ) -> tuple[list[Result], list[Stream]]:
        """Follow the streams of runs beside a population; equal streams are one, others are told apart."""
        none = Stream(np.zeros(0, np.int64), np.zeros(0, np.int64), [])
        streams = [none if one.table is None else stream_of(one.table, rows.unit) for _, one in told]
        first: dict[int, int] = {}
        for place, stream in enumerate(streams):
            first[place] = next((before for before in first if streams[before].same(stream)), place)
        distinct = sorted(set(first.values()))
        found = compare(population, [streams[place] for place in distinct], self._pace(), self._watch)
        if isinstance(population, Updates):
            rows.spoiled = population.spoiled
        findings = dict(zip(distinct, found.findings, strict=True))
        open_ones = [place for place in distinct if findings[place] is None]
        if len(open_ones) > 1:
            decided = told_apart(again(), [streams[place] for place in open_ones], self._watch)
            findings |= dict(zip(open_ones, decided, strict=True))
        results = []
        for place, (choice, one) in enumerate(told):
            wrong = one.wrong() or findings[first[place]] or letters_wrong(rows, one)
            wrong = wrong or cost_wrong(choice["method"], one.cost)
            if wrong is not None and wrong.time is not None:
                wrong = replace(wrong, time=rows.unit.shown(wrong.time))
            results.append(Result(choice, what, rows.total, found.instants, found.checked, wrong))
        return results, streams

    def _approximate(self, told: list[tuple[Choice, Told]], rows: Rows, series: Series) -> list[Result]:
        """Sampling and hybrid: their answers follow from the sampled skylines; how good they are is reported."""
        options = self._question.options
        counted = partial(series.sampled, options["epsilon"], options["delta"], options["seed"])
        results, streams = self._compared(told, rows, counted(), counted, "sampled")
        found = []
        for result, stream, (_, one) in zip(results, streams, told, strict=True):
            figures = series.quality(stream, options["epsilon"]) if result.finding is None else {}
            finding = result.finding or quality_wrong(figures, one.cost)
            found.append(replace(result, finding=finding, figures=figures))
        return found

    # -- answers at rest -----------------------------------------------------------------------------------------------

    def _skylines(self, data: str) -> list[Result]:
        told = self._told(data, self._choices, {})
        with self._opened(data) as source:
            rows = read_rows(self._question, source)
            if rows.unusable:
                return self._taken(told, rows, "skyline")
            expected = expected_rows(self._question, rows, source)
        results = []
        for choice, one in told:
            if isinstance(one.refusal, MissingDependencyError):
                results.append(Result(choice, "skyline", rows.total, 1, 0, skipped=str(one.refusal)))
                continue
            results.append(Result(choice, "skyline", rows.total, 1, 1, one.wrong() or rows_wrong(expected, one)))
        return results

    def _rankings(self, data: str) -> list[Result]:
        told = self._told(data, self._choices, {})
        rows = self._rows(data)
        if rows.unusable:
            return self._taken(told, rows, "last window")
        results = []
        for choice, one in told:
            population = self._anew(rows)
            assert isinstance(population, Uncertain)
            wrong = one.wrong() or ranking_wrong(population, one) or letters_wrong(rows, one)
            results.append(Result(choice, "last window", rows.total, 1, 1, wrong))
        return results
