"""The evidence as pages: a line for each claim with its verdict, then all that the parts printed; Markdown and HTML.

Both have the same addresses: a claim's, made of its words, and `part-` and the name of a part. The HTML needs nothing
but itself; the papers' figures have a page of their own beside it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from benchmarks.evidence.claims import CLAIMS, Claim, judged
from benchmarks.evidence.parts import PAPERS, PARTS, SIZES, Kept, Part
from benchmarks.papers.registry import Found
from benchmarks.papers.report import STYLE, UNKNOWN, VERDICTS, code

TITLE = "What is claimed, and what shows it"
BUSY = 0.6
"""Processes per core that wanted to run before a part began: above, its times are not to be trusted."""
LINES = 400
"""Lines of a part that are shown; all are in its file."""


def address(title: str) -> str:
    """The name of a heading in an address, as whoever shows Markdown makes it.

    >>> address("On Spark, few moves")
    'on-spark-few-moves'
    """
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def verdicts(kept: Mapping[str, Kept], size: str) -> list[tuple[Claim, Found]]:
    """Each claim, and what was found."""
    found = []
    for claim in CLAIMS:
        known = kept.get(claim.part, {"found": None, "status": 0, "busy": 0.0})
        one = judged(claim, known["found"], all_sizes=size != "smoke", status=known["status"])
        if known["busy"] > BUSY and known["found"] is not None and not claim.answers:
            one = one._replace(text=f"{one.text}; on a busy machine")
        found.append((claim, one))
    return found


def word(claim: Claim, found: Found) -> str:
    """Whether it holds; where it does not, why."""
    return f"{VERDICTS[False]}: {claim.why or UNKNOWN}" if found.holds is False else VERDICTS[found.holds]


def write(folder: Path, kept: Mapping[str, Kept], size: str) -> list[Path]:
    """Write both pages from what is known."""
    found = verdicts(kept, size)
    document, page = folder / "index.md", folder / "report.html"
    document.write_text("\n".join(_document(found, kept, size)), encoding="utf-8")
    page.write_text("\n".join(_page(found, kept, size)), encoding="utf-8")
    return [document, page]


# -- words that both have ----------------------------------------------------------------------------------------------


def _opening(found: list[tuple[Claim, Found]], size: str) -> list[str]:
    holds = [one.holds for _, one in found if one.holds is not None]
    return [
        f"`skytide bench evidence --size {size}` ({SIZES[size]}) makes this page: it runs the benchmarks below, one "
        "after the other, each of which checks its answers, and judges by them what the README of Skytide claims.",
        f"{sum(holds)} of {len(holds)} claims that can be judged hold.",
    ]


def _about(part: Part, kept: Kept) -> str:
    busy = f"; the machine was busy ({kept['busy']:.1f} processes per core)" if kept["busy"] > BUSY else ""
    state = "" if kept["status"] == 0 else f"; exit status {kept['status']}"
    return f"`{kept['call']}`, {kept['day']}, {_duration(kept['seconds'])}, code {kept['code']}{busy}{state}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


Block = tuple[str, list[str]]
"""`table`, `title`, `list` or `text`, and its lines."""


def blocks(printed: list[str]) -> Iterator[Block]:
    """What a part printed, in pieces; tables stay whole.

    >>> list(blocks(["### A", "", "| x |", "|---|", "| 1 |", "done"]))
    [('title', ['A']), ('table', ['| x |', '|---|', '| 1 |']), ('text', ['done'])]
    """
    for kind, lines in groupby(printed[:LINES], _kind):
        some = list(lines)
        if kind == "title":
            yield from ((kind, [line.lstrip("# ")]) for line in some)
        elif kind:
            yield kind, some
    if len(printed) > LINES:
        yield "text", [f"({len(printed) - LINES:,} lines more)"]


def _kind(line: str) -> str:
    if not line.strip():
        return ""
    return {"|": "table", "#": "title", "-": "list"}.get(line[0], "text")


# -- Markdown ----------------------------------------------------------------------------------------------------------


def _document(found: list[tuple[Claim, Found]], kept: Mapping[str, Kept], size: str) -> Iterator[str]:
    yield f"---\norphan: true\n---\n\n# {TITLE}\n"
    yield "\n\n".join(_opening(found, size))
    yield "\nThis page as one file is [report.html](report.html); what each part found is in `parts/`.\n"
    yield "## Claims\n"
    for claim, one in found:
        yield f"### {claim.title}\n"
        yield f"Found: {one.text}: **{word(claim, one)}**.\n"
        yield f"Shown by [{claim.part}](#part-{claim.part}).\n"
    yield "## Parts\n"
    for part in PARTS:
        yield f"### Part {part.name}\n\n{part.title}.\n"
        if part.name not in kept:
            yield "Not measured.\n"
            continue
        yield f"{_about(part, kept[part.name])}\n"
        if part.name == PAPERS:
            yield f"All figures and tables: [{PAPERS}]({PAPERS}/index.md).\n"
        for kind, lines in blocks(kept[part.name]["printed"]):
            if kind in ("table", "list"):
                yield "\n".join(lines) + "\n"
            else:
                yield "\n\n".join(f"**{_plain(line)}**" if kind == "title" else _plain(line) for line in lines) + "\n"


def _plain(line: str) -> str:
    """A line of text as Markdown that shows the same."""
    return re.sub(r"([\\*_<>\[\]`])", r"\\\1", line.strip())


# -- HTML --------------------------------------------------------------------------------------------------------------


def _page(found: list[tuple[Claim, Found]], kept: Mapping[str, Kept], size: str) -> Iterator[str]:
    yield "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
    yield f"<title>{TITLE}</title><style>{STYLE}</style></head><body><h1>{TITLE}</h1>"
    yield from (f"<p>{code(line)}</p>" for line in _opening(found, size))
    yield "<table><tr><th>claim</th><th>found</th><th></th><th>by</th></tr>"
    for claim, one in found:
        kind = {True: "yes", False: "no", None: "note"}[one.holds]
        yield f"<tr id='{address(claim.title)}'><td>{html.escape(claim.title)}</td><td>{html.escape(one.text)}</td>"
        yield f"<td class='{kind}'>{html.escape(word(claim, one))}</td>"
        yield f"<td><a href='#part-{claim.part}'>{claim.part}</a></td></tr>"
    yield "</table>"
    for part in PARTS:
        yield f"<section id='part-{part.name}'><h2>{html.escape(part.title)}</h2>"
        if part.name in kept:
            yield f"<p class='note'>{code(_about(part, kept[part.name]))}</p>"
            if part.name == PAPERS:
                yield f"<p>All figures and tables are in <code>{PAPERS}/report.html</code>, beside this page.</p>"
            for kind, lines in blocks(kept[part.name]["printed"]):
                yield from _block(kind, lines)
        else:
            yield "<p class='note'>Not measured.</p>"
        yield "</section>"
    yield "</body></html>\n"


def _block(kind: str, lines: list[str]) -> Iterator[str]:
    if kind == "table":
        yield "<table>"
        for place, line in enumerate(lines):
            if not re.fullmatch(r"[|:\- ]+", line):
                cells = (html.escape(cell.strip()) for cell in line.strip().strip("|").split("|"))
                tag = "th" if place == 0 else "td"
                yield "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"
        yield "</table>"
    elif kind == "list":
        yield "<ul>" + "".join(f"<li>{html.escape(line.lstrip('- '))}</li>" for line in lines) + "</ul>"
    else:
        tag = "h3" if kind == "title" else "p"
        yield from (f"<{tag}>{html.escape(line)}</{tag}>" for line in lines)
