"""The column names of a schema written as Spark's DDL, read without Spark.

Only as far as needed to find a misspelt column before anything starts: types are not looked at, and a text that is not
understood gives no names rather than wrong ones.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[<(]|[>)]|,|[^`'\"<>(),]+", re.DOTALL)
_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([A-Za-z_0-9]+))\s*:?\s*(\S.*)?", re.DOTALL)


def column_names(ddl: str) -> list[str] | None:
    """The top-level columns of a DDL schema, or None where the text is not understood.

    >>> column_names("ts TIMESTAMP NOT NULL, `a b` DECIMAL(10, 2), s STRUCT<x: INT, y: MAP<STRING, INT>>")
    ['ts', 'a b', 's']
    >>> column_names("STRUCT<") is None
    True
    """
    parts = _split(ddl)
    if parts is None:
        return None
    names = []
    for part in parts:
        found = _NAME.fullmatch(part)
        if found is None or not found[3] or found[3].startswith("<"):  # the last: STRUCT<...> around all columns
            return None
        names.append(found[1].replace("``", "`") if found[1] else found[2])
    return names


def _split(text: str) -> list[str] | None:
    """The text cut at the commas that stand in no bracket and no quotes."""
    parts, depth, end = [""], 0, 0
    for token in _TOKEN.finditer(text):
        if token.start() != end:
            return None
        end = token.end()
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(token.group(), 0)
        if token.group() == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token.group()
    return parts if depth == 0 and end == len(text) else None
