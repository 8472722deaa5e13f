"""The documents, and the blocks of code in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])
CODE = ("console", "python", "sh", "sql", "toml")
"""Languages that are run or checked."""

_FENCE = re.compile(r"^(?P<mark><!-- not run: (?P<reason>[^\n]*?) -->\n)?```(?P<language>[^\n]*)\n", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block; `reason` says why it cannot be run, where it cannot."""

    path: Path
    line: int
    language: str
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{name_of(self.path)}:{self.line}"

    @property
    def is_session(self) -> bool:
        """Whether it is a session of Python, with what that answers."""
        return self.language == "python" and self.text.startswith(">>> ")

    @property
    def needs_spark(self) -> bool:
        """Whether only Spark can run it."""
        return self.language == "sql" or (self.language == "python" and "spark" in self.text)


def name_of(path: Path) -> str:
    """The document's name in the names of tests."""
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> list[Block]:
    """All fenced blocks of a document, in their order."""
    text, found, at = path.read_text(encoding="utf-8"), list[Block](), 0
    while begin := _FENCE.search(text, at):
        end = text.index("\n```", begin.end() - 1)
        line = text.count("\n", 0, begin.start()) + 1
        found.append(Block(path, line, begin["language"].strip(), text[begin.end() : end + 1], begin["reason"]))
        at = end + 4
    return found


def to_run(path: Path, *languages: str) -> list[Block]:
    """The blocks of these languages, or of all, that are not marked."""
    return [one for one in blocks(path) if one.language in (languages or CODE) and one.reason is None]


def needs_spark(path: Path) -> bool:
    """Whether a document has something to run that only Spark can."""
    return any(one.needs_spark for one in to_run(path))
