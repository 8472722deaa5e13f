"""A report of a run: the page with everything that it shows in one file, which needs no server and no network."""

from __future__ import annotations

import json
import re
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from skytide.errors import MissingDependencyError, OptionError
from skytide.streams.files.output import publish, temporary_beside

if TYPE_CHECKING:
    from skytide.dashboard.board import Board

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""A report asks nobody for anything."""
_CHARSET = '<meta charset="utf-8">'
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|let|class)", re.MULTILINE)


def plotly_file() -> Path:
    """The plotting library of the page, as plotly's own package ships it."""
    found = find_spec("plotly")
    if found is None or found.origin is None:
        raise MissingDependencyError("the page needs plotly", remedy="pip install 'skytide[dashboard]'")
    return Path(found.origin).parent / "package_data" / "plotly.min.js"


def check_report(path: str | Path) -> None:
    """An error where a report cannot be written: unknown extension, no such folder, nothing to draw with."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise OptionError("the report's extension is not known", file=str(path), remedy="use .html")
    if not target.parent.is_dir():
        raise OptionError("the report's folder does not exist", file=str(path), remedy="make the folder first")
    plotly_file()


def write_report(board: Board, path: str | Path) -> None:
    """Write the report of a board; it appears whole or not at all. About five megabytes, most of it the library."""
    check_report(path)
    target = Path(path)
    temporary = temporary_beside(target)
    try:
        temporary.write_text(_page(json.dumps(board.recording(), allow_nan=False)), encoding="utf-8")
        publish(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _page(recording: str) -> str:
    page = _part("index.html")
    kept = {
        _CHARSET: f'{_CHARSET}\n<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<link rel="stylesheet" href="assets/style.css">': f"<style>\n{_part('style.css')}</style>",
        '<script src="assets/plotly.min.js"></script>': f"<script>{plotly_file().read_text(encoding='utf-8')}</script>",
        '<script type="module" src="assets/app.js"></script>': f'<script type="module">\n{_joined("app.js")}</script>',
        '<script id="recording" type="application/json"></script>': '<script id="recording" type="application/json">'
        + recording.replace("<", "\\u003c")  # the data cannot end the script that holds it
        + "</script>",
    }
    for link, inlined in kept.items():
        before, found, after = page.partition(link)
        assert found, f"the page has no {link}"
        page = before + inlined + after
    return page


def _part(name: str) -> str:
    return (resources.files("skytide.dashboard") / "page" / name).read_text(encoding="utf-8")


def _joined(name: str, there: set[str] | None = None) -> str:
    """A module after those that it imports, each once, as one text."""
    there = set() if there is None else there
    if name in there:
        return ""
    there.add(name)
    text = _part(name)
    before = "".join(_joined(found, there) for found in _IMPORT.findall(text))
    return before + _EXPORT.sub("", _IMPORT.sub("", text))
