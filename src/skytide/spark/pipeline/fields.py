"""What a table of the pipeline file may hold: fields, each with the form of its value, all checked in one place."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from skytide.errors import SkytideError
from skytide.spark.pipeline.document import Document, PipelineError
from skytide.spark.pipeline.places import Path as Way

Options = dict[str, Any]
"""The checked values of a table, by key; keys that were left out are not in it."""

TEXT = "text"
TEXTS = "text or an array of texts"
WHOLE = "a whole number"
NUMBER = "a number"
NUMBERS = "a number or an array of numbers"
BOOLEAN = "true or false"
LENGTH = "a number, or text like 90s, 15m, 2h, 1d"
MOMENT = "a number or a time"
SETTINGS = "a table of plain values"
EXPRESSIONS = "a table of texts"
TEXT_OR_TABLE = "text or a table"


class Refuse(Protocol):
    """Makes the complaint about one key of a table."""

    def __call__(self, key: str, reason: str, *, value: Any = None, remedy: str = "") -> PipelineError:
        """The complaint, to be raised."""
        ...


@dataclass(frozen=True)
class Field:
    """One key of a table: its name, the form of its value, what it means, and what else is asked of it."""

    name: str
    form: str
    about: str
    required: bool = False
    choices: tuple[str, ...] = ()
    least: int | None = None
    columns: bool = False
    """Whether the value names columns of the rows that the query sees."""
    expressions: bool = False
    """Whether the value is an expression over such columns, or several."""
    check: Callable[[Any], object] | None = None
    """Raises a SkytideError where the value is not allowed."""


def checked(document: Document, way: Way, fields: Sequence[Field], *, whose: str = "") -> Options:
    """The values of one table of the file, each in its form, or the first complaint in the order of the file."""
    table = _table_at(document, way)
    known = {field.name: field for field in fields}
    values: Options = {}
    for name, value in table.items():
        if name not in known:
            raise document.problem(
                (*way, name), f"there is no such key{whose}", remedy=suggestion(name, [field.name for field in fields])
            )
        values[name] = checked_value(document, (*way, name), known[name], value)
    for field in fields:
        if field.required and field.name not in values:
            raise document.problem((*way, field.name), "the key is missing", remedy=f"expected: {field.about}")
    return values


def refuser(document: Document, way: Way) -> Refuse:
    """Complaints about the keys of one table."""

    def refuse(key: str, reason: str, *, value: Any = None, remedy: str = "") -> PipelineError:
        return document.problem((*way, key), reason, value=value, remedy=remedy)

    return refuse


def _table_at(document: Document, way: Way) -> dict[str, Any]:
    table: Any = document.data
    for place, name in enumerate(way):
        table = table.get(name, {})
        if not isinstance(table, dict):
            wrong = way[: place + 1]
            raise document.problem(
                wrong, "is not a table", value=table, remedy=f"begin it with [{'.'.join(map(str, wrong))}]"
            )
    return dict(table)


def checked_value(document: Document, way: Way, field: Field, value: Any) -> Any:
    """One value in the form that the field asks for, or the complaint about it."""
    formed = _FORMS[field.form](value)
    if formed is None:
        raise document.problem(way, f"is not {field.form}", value=value, remedy=f"expected: {field.about}")
    if field.choices and formed not in field.choices:
        raise document.problem(way, "is not allowed", value=value, remedy=suggestion(str(value), field.choices))
    if field.least is not None and formed < field.least:
        raise document.problem(way, "is too small", value=value, remedy=f"give {field.least} or more")
    if field.check is not None:
        try:
            field.check(formed)
        except SkytideError as problem:
            raise document.about(way, problem) from None
    return formed


def suggestion(wrong: str, names: Iterable[str]) -> str:
    """What may have been meant, or all there is."""
    names = list(names)
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"use {one_of(names)}"


def one_of(names: Iterable[str], most: int = 20) -> str:
    """Names to choose from, for a remedy.

    >>> one_of(["a"]), one_of(["a", "b", "c"])
    ('a', 'one of: a, b, c')
    """
    listed = list(names)
    if len(listed) == 1:
        return listed[0]
    return "one of: " + ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")


# -- forms: each gives the value as it is used, or None where it has another form --------------------------------------


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _number(value: Any) -> float | int | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


def _numbers(value: Any) -> tuple[float, ...] | None:
    values = value if isinstance(value, list) else [value]
    if not values or any(isinstance(one, bool) or not isinstance(one, int | float) for one in values):
        return None
    return tuple(map(float, values))


def _texts(value: Any) -> tuple[str, ...] | None:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or any(_text(one) is None for one in values):
        return None
    return tuple(values)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _length(value: Any) -> float | int | str | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float | str) else value


def _moment(value: Any) -> Any:
    """A number, or a time as TOML has it or as text; times of a zone are in UTC, without it, from then on."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
    return value if isinstance(value, int | float | datetime.date) and not isinstance(value, bool) else None


def setting_text(value: Any) -> str | None:
    """A setting as Spark wants it: `True` is `true`."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None


def _settings(value: Any) -> dict[str, str] | None:
    """Names with dots may stand in quotes or not: without them TOML makes tables in tables, which are joined again."""
    if not isinstance(value, dict):
        return None
    found: dict[str, str] = {}
    for name, one in value.items():
        if isinstance(one, dict):
            inner = _settings(one)
            if inner is None:
                return None
            found |= {f"{name}.{rest}": text for rest, text in inner.items()}
            continue
        text = setting_text(one)
        if text is None:
            return None
        found[name] = text
    return found


def _expressions(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict) or any(_text(one) is None for one in value.values()):
        return None
    return dict(value)


def _text_or_table(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else _text(value)


_FORMS: dict[str, Callable[[Any], Any]] = {
    TEXT: _text,
    TEXTS: _texts,
    NUMBER: _number,
    NUMBERS: _numbers,
    WHOLE: _whole,
    BOOLEAN: _boolean,
    LENGTH: _length,
    MOMENT: _moment,
    SETTINGS: _settings,
    EXPRESSIONS: _expressions,
    TEXT_OR_TABLE: _text_or_table,
}
