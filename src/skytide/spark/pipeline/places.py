"""On which line of a TOML file a key stands. tomllib reads values and forgets where they were.

The text has been read by tomllib before, so it is TOML: the scanner only has to know where a key, a string, an array or
an inline table ends, not whether it is right. It knows tables, arrays of tables, dotted and quoted keys, inline tables,
strings of several lines and comments.
"""

from __future__ import annotations

import re
import tomllib

Path = tuple[str | int, ...]
"""The way to a value: names of tables and keys, and places in arrays from 0."""

_SPACE = re.compile(r"[ \t]*")
_FILLER = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)


def lines_of(text: str) -> dict[Path, int]:
    """The line, from 1, of every table, key and array element of a TOML text; the first, where there are several. O(n).

    >>> lines_of('[query]\\nmin = ["a",\\n  "b"]  # two\\nspark.ui = false')
    {('query',): 1, ('query', 'min'): 2, ('query', 'min', 0): 2, ('query', 'min', 1): 3,
     ('query', 'spark'): 4, ('query', 'spark', 'ui'): 4}
    """
    scan = _Scan(text)
    scan.document()
    return scan.lines


class _Scan:
    """A walk over the text; `at` is where it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self._counted = (0, 1)
        self._elements: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        self._skip(_FILLER)
        while self.at < len(self.text):
            if self._sees("["):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_FILLER)

    def _header(self) -> Path:
        repeated = self._sees("[[")
        line = self._line()
        self.at += 2 if repeated else 1
        names = self._key()
        self.at += 2 if repeated else 1
        table: Path = ()
        for name in names[:-1]:
            table = self._inside((*table, name), line)
        table = (*table, names[-1])
        self.lines.setdefault(table, line)
        if repeated:
            self._elements[table] = self._elements.get(table, -1) + 1
            return self._inside(table, line)
        return table

    def _inside(self, table: Path, line: int) -> Path:
        """The table itself, or the latest element of an array of tables."""
        if table in self._elements:
            table = (*table, self._elements[table])
        self.lines.setdefault(table, line)
        return table

    def _pair(self, table: Path) -> None:
        line = self._line()
        path = table
        for name in self._key():
            path = (*path, name)
            self.lines.setdefault(path, line)
        self.at += 1  # the sign =
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> list[str]:
        names = []
        while True:
            self._skip(_SPACE)
            if self._sees('"') or self._sees("'"):
                names.append(str(tomllib.loads(f"key = {self._skip(_STRING)}")["key"]))
            else:
                names.append(self._skip(_BARE_KEY))
            self._skip(_SPACE)
            if not self._sees("."):
                return names
            self.at += 1

    def _value(self, path: Path) -> None:
        if self._sees("["):
            self._array(path)
        elif self._sees("{"):
            self._inline_table(path)
        elif not self._skip(_STRING):
            self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        self.at += 1
        place = 0
        while True:
            self._skip(_FILLER)
            if self._sees("]"):
                break
            if self._sees(","):
                self.at += 1
                continue
            self.lines.setdefault((*path, place), self._line())
            self._value((*path, place))
            place += 1
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while True:
            self._skip(_FILLER)
            if self._sees("}"):
                break
            if self._sees(","):
                self.at += 1
                continue
            self._pair(path)
        self.at += 1

    def _sees(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def _skip(self, what: re.Pattern[str]) -> str:
        """Go past what matches here, and return it."""
        found = what.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found.group()

    def _line(self) -> int:
        place, line = self._counted
        self._counted = (self.at, line + self.text.count("\n", place, self.at))
        return self._counted[1]
