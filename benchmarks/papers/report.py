"""Results as files: one Parquet table, an SVG for each figure, one HTML page, and the same as Markdown.

The page needs nothing but itself. Each figure has an address of its own in both: `#tao06-figure-12`.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import machine
from benchmarks.papers import drawing
from benchmarks.papers.registry import PAPERS, SIZES, Claim, Figure, Found, NotMeasuredError, Row, Task, chosen, mean
from benchmarks.papers.runner import Outcome

VERDICTS = {True: "holds", False: "does not hold", None: "—"}
UNKNOWN = "why is not known"
"""Said of what does not hold and has no reason among the papers' statements."""
TOO_LITTLE = Found("too little was measured to say", None)
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #24292f; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; display: block; overflow-x: auto; }
td, th { border-bottom: 1px solid #e6e9ec; padding: .2em .7em; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; }
.no { color: #b42318; } .yes { color: #1a7f37; } .note { color: #57606a; }
nav { columns: 3; font-size: 13px; }
"""


@dataclass
class Result:
    """A figure with what was measured for it."""

    figure: Figure
    outcomes: list[Outcome]
    wanted: int
    """How many tasks it has."""
    skipped: str = ""
    judged: bool = True
    """Whether the size is large enough to judge the paper's statements by."""

    @property
    def rows(self) -> list[Row]:
        """All rows that belong to it."""
        return [row for outcome in self.outcomes for row in outcome["rows"]]

    @property
    def failed(self) -> list[Outcome]:
        """What ended with an error."""
        return [outcome for outcome in self.outcomes if outcome["error"]]

    @property
    def wrong(self) -> int:
        """How many rows come from runs whose answers are not right."""
        return sum(not row["equal"] for row in self.rows)

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Its numbers: the heading and the lines."""
        figure, rows = self.figure, chosen(self.rows, **dict(self.figure.tabled))
        shown = [name for name in figure.columns if any(row.get(name) is not None for row in rows)]
        kept: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            kept.setdefault(tuple(row.get(name) for name in figure.by), []).append(row)
        lines = [
            [*cell, *([figure.known.get(cell)] if figure.known else []), *(_cell(own, name) for name in shown)]
            for cell, own in kept.items()
        ]
        return [*figure.by, *(["paper"] if figure.known else []), *shown], lines

    @property
    def whole(self) -> bool:
        """Whether all of its runs are there."""
        return len(self.outcomes) >= self.wanted and not self.failed

    def claims(self) -> Iterator[tuple[Claim, Found]]:
        """What the paper says, and what was found."""
        for claim in self.figure.claims if self.rows else ():
            yield claim, self._judged(claim)

    def _judged(self, claim: Claim) -> Found:
        try:
            found = claim.ours(self.rows)
        except NotMeasuredError:
            return TOO_LITTLE
        except (ValueError, LookupError, ZeroDivisionError):
            # Where all runs are there, the rule itself is wrong.
            if self.whole:
                raise
            return TOO_LITTLE
        return found if self.judged else found._replace(holds=None)


def _cell(rows: list[Row], name: str) -> Any:
    """The mean of a column, or its text."""
    found = next((row[name] for row in rows if row.get(name) is not None), None)
    return found if found is None or isinstance(found, str | bool) else mean(rows, name)


def write(folder: Path, results: list[Result], size: str, seed: int) -> list[Path]:
    """Write everything that is known; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    there = [one for one in results if one.outcomes or one.skipped]
    pictures = {one.figure.key: drawing.svg(one.figure, one.rows) for one in there if one.rows}
    files = []
    for key, text in pictures.items():
        files.append(folder / f"{key}.svg")
        files[-1].write_text(text, encoding="utf-8")
    table = folder / "results.parquet"
    pq.write_table(as_table(there, size, seed), table, compression="zstd")
    opening = _opening(there, size, seed)
    page, document = folder / "report.html", folder / "index.md"
    page.write_text("\n".join(_page(there, pictures, opening)), encoding="utf-8")
    document.write_text("\n".join(_document(there, set(pictures), opening)), encoding="utf-8")
    return [*files, table, page, document]


# -- Parquet -----------------------------------------------------------------------------------------------------------


def as_table(results: list[Result], size: str, seed: int) -> pa.Table:
    """A row for each row that was measured; a column for each name, empty where a row has none of it."""
    shown: dict[str, list[str]] = {}
    outcomes: dict[str, Outcome] = {}
    for one in results:
        for outcome in one.outcomes:
            shown.setdefault(_key(outcome), []).append(one.figure.key)
            outcomes[_key(outcome)] = outcome
    lines = [
        {
            "paper": outcome["experiment"].split(".")[2],
            "figures": shown[place],
            "experiment": outcome["experiment"].rpartition(":")[2],
            "size": size,
            "parameters": json.dumps(outcome["parameters"]),
            "seconds": outcome["seconds"],
            "busy": outcome.get("busy"),
            "machine": machine.sentence(outcome["machine"]) if "machine" in outcome else None,
            "error": outcome["error"],
            **{name: value for name, value in row.items() if name != "seed"},
            "seed": seed,
        }
        for place, outcome in outcomes.items()
        for row in (outcome["rows"] or [{}])
    ]
    names = list(dict.fromkeys(name for line in lines for name in line))
    return pa.table({name: _column([line.get(name) for line in lines]) for name in names})


def _key(outcome: Outcome) -> str:
    return Task(outcome["experiment"], outcome["parameters"]).key


def _column(cells: list[Any]) -> pa.Array:
    """Numbers as numbers; where a column has texts too, all are texts."""
    known = [cell for cell in cells if cell is not None]
    if any(isinstance(cell, str) for cell in known):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    if any(isinstance(cell, float) for cell in known):
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    return pa.array(cells)


# -- words -------------------------------------------------------------------------------------------------------------


def _opening(results: list[Result], size: str, seed: int) -> list[str]:
    """What all figures have in common."""
    outcomes = [outcome for one in results for outcome in one.outcomes]
    machines = list(dict.fromkeys(machine.sentence(one["machine"]) for one in outcomes if "machine" in one))
    busy = max((one.get("busy") or 0.0 for one in outcomes), default=0.0)
    wrong, failed = sum(one.wrong for one in results), sum(len(one.failed) for one in results)
    said = [
        f"Size: {size} ({SIZES[size]}); seed {seed}. `skytide bench papers --size {size}` makes this page.",
        *machines,
        "All answers were checked in the runs, and are right."
        if not wrong
        else f"{wrong} rows come from runs whose answers are WRONG.",
    ]
    if failed:
        said.append(f"{failed} runs ended with an error.")
    if busy > 0.6:
        said.append(
            f"The machine was busy with other work (up to {busy:.1f} processes per core): times are processor "
            "time, and even so to be compared within a figure only. Messages, bytes and sizes do not depend on it."
        )
    said.append(
        "The figures of the papers give no numbers that could be read; what their texts and tables say stands beside "
        "ours. Where that is a share, a rate or a size, it holds if ours is no worse."
    )
    return said


def text(value: Any) -> str:
    """A value for people: three digits that count."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, int) or (isinstance(value, float) and value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def name(figure: Figure) -> str:
    """As in headings: it becomes the address."""
    return f"{figure.paper} {figure.kind} {figure.number}"


def verdict(claim: Claim, found: Found) -> str:
    """Whether a statement holds; where it does not, why."""
    return f"{VERDICTS[False]}: {claim.why or UNKNOWN}" if found.holds is False else VERDICTS[found.holds]


def _state(one: Result) -> Iterator[str]:
    """What is not as it should be with a figure."""
    if one.skipped:
        yield f"Left out: {one.skipped}."
    if len(one.outcomes) < one.wanted:
        yield f"{one.wanted - len(one.outcomes)} of {one.wanted} runs are not there."
    for outcome in one.failed:
        yield f"A run ended with an error: {outcome['error']} ({json.dumps(outcome['parameters'])})."
    if one.wrong:
        yield f"{one.wrong} rows come from runs whose answers are WRONG."


# -- HTML --------------------------------------------------------------------------------------------------------------


def _page(results: list[Result], pictures: dict[str, str], opening: list[str]) -> Iterator[str]:
    yield "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
    yield f"<title>The figures of five papers</title><style>{STYLE}</style></head><body>"
    yield "<h1>The figures of five papers</h1>"
    yield from (f"<p>{code(line)}</p>" for line in opening)
    yield "<nav>"
    yield from (f"<div><a href='#{one.figure.key}'>{name(one.figure)}</a></div>" for one in results)
    yield "</nav>"
    for paper, about in PAPERS.items():
        own = [one for one in results if one.figure.paper == paper]
        if own:
            yield f"<h2 id='{paper}'>{paper}</h2><p>{html.escape(about)}</p>"
        for one in own:
            yield from _section(one, pictures.get(one.figure.key, ""))
    yield "</body></html>\n"


def code(line: str) -> str:
    """A line of text as HTML; what is between backticks is code."""
    pieces = html.escape(line).split("`")
    return "".join(f"<code>{piece}</code>" if at % 2 else piece for at, piece in enumerate(pieces))


def _section(one: Result, picture: str) -> Iterator[str]:
    figure = one.figure
    yield f"<section id='{figure.key}'><h3>{name(figure)}</h3><p>{html.escape(figure.title)}</p>"
    yield from (f"<p class='no'>{html.escape(line)}</p>" for line in _state(one))
    yield picture
    claims = list(one.claims())
    if claims:
        yield "<table><tr><th>the paper</th><th>here</th><th></th></tr>"
        for claim, found in claims:
            kind = {True: "yes", False: "no", None: "note"}[found.holds]
            yield f"<tr><td>{html.escape(claim.says)}</td><td>{html.escape(found.text)}</td>"
            yield f"<td class='{kind}'>{html.escape(verdict(claim, found))}</td></tr>"
        yield "</table>"
    heading, lines = one.table()
    if lines:
        yield "<table><tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in heading) + "</tr>"
        for line in lines:
            yield "<tr>" + "".join(_td(cell) for cell in line) + "</tr>"
        yield "</table>"
    if figure.note:
        yield f"<p class='note'>{html.escape(figure.note)}</p>"
    yield "</section>"


def _td(cell: Any) -> str:
    kind = " class='number'" if isinstance(cell, int | float) else ""
    return f"<td{kind}>{html.escape(text(cell))}</td>"


# -- Markdown ----------------------------------------------------------------------------------------------------------


def _document(results: list[Result], pictures: set[str], opening: list[str]) -> Iterator[str]:
    yield "---\norphan: true\n---\n\n# The figures of five papers\n"
    yield "\n\n".join(opening)
    yield "\nAll rows are in [results.parquet](results.parquet), this page as one file is [report.html](report.html).\n"
    for paper, about in PAPERS.items():
        own = [one for one in results if one.figure.paper == paper]
        if own:
            yield f"## {paper}\n\n{about}\n"
        for one in own:
            yield from _part(one, one.figure.key in pictures)


def _part(one: Result, drawn: bool) -> Iterator[str]:
    figure = one.figure
    yield f"### {name(figure)}\n\n{figure.title}\n"
    yield from (f"**{line}**\n" for line in _state(one))
    if drawn:
        yield f"![{figure.title}]({figure.key}.svg)\n"
    claims = list(one.claims())
    if claims:
        yield from _grid(["the paper", "here", " "], ([one.says, f.text, verdict(one, f)] for one, f in claims))
    heading, lines = one.table()
    if lines:
        yield from _grid(heading, lines)
    if figure.note:
        yield f"{figure.note}\n"


def _grid(heading: list[str], lines: Iterable[list[Any]]) -> Iterator[str]:
    yield "| " + " | ".join(heading) + " |"
    yield "|" + "---|" * len(heading)
    yield from ("| " + " | ".join(text(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
    yield ""


def counts(results: list[Result]) -> dict[str, int]:
    """What a run comes to, in numbers."""
    told = [(claim, found.holds) for one in results for claim, found in one.claims()]
    return {
        "figures": sum(bool(one.rows) for one in results),
        "left out": sum(bool(one.skipped) for one in results),
        "judged": sum(holds is not None for _, holds in told),
        "hold": sum(holds is True for _, holds in told),
        "unexplained": sum(holds is False and not claim.why for claim, holds in told),
        "wrong": sum(one.wrong for one in results),
        "failed": sum(len(one.failed) for one in results),
    }


def summary(results: list[Result]) -> list[str]:
    """What a run comes to, in words."""
    said = [f"{name(one.figure)}: left out, {one.skipped}" for one in results if one.skipped]
    judged = [found.holds for one in results for _, found in one.claims() if found.holds is not None]
    if judged:
        said.append(f"{sum(judged)} of {len(judged)} statements of the papers that can be judged hold")
    said += [
        f"{name(one.figure)}: {claim.says}: {verdict(claim, found)}"
        for one in results
        for claim, found in one.claims()
        if found.holds is False and not claim.why
    ]
    failed = {_key(outcome): outcome for one in results for outcome in one.failed}
    said += [f"failed: {one['experiment']} {json.dumps(one['parameters'])}: {one['error']}" for one in failed.values()]
    wrong = [name(one.figure) for one in results if one.wrong]
    said.append(f"answers differ in {', '.join(wrong)}" if wrong else "all answers are equal")
    return said
