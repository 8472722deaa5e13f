"""Errors that carry fields: where it happened, the value, the reason and the remedy.

Every error a user can cause is a `SkytideError`. Its text is one line, so that the command line can print it as it is.
"""

from __future__ import annotations

from typing import Any


class SkytideError(Exception):
    """The base of all errors that a user can cause and mend.

    >>> raise InputError("is not a number", value="abc", file="cars.csv", row=3, column="price",
    ...                  remedy="clean the column or leave it out")
    Traceback (most recent call last):
    ...
    skytide.errors.InputError: cars.csv, row 3, column 'price': 'abc' is not a number; clean the column or leave it out
    """

    def __init__(
        self,
        reason: str,
        *,
        value: Any = None,
        remedy: str = "",
        file: str | None = None,
        row: int | None = None,
        column: str | int | None = None,
    ) -> None:
        self.reason = reason
        self.value = value
        self.remedy = remedy
        self.file = file
        self.row = row
        self.column = column
        super().__init__(reason)

    def at(self, *, file: str | None = None, row: int | None = None) -> SkytideError:
        """The same error with the place filled in that only the caller knows."""
        self.file = self.file or file
        self.row = self.row if self.row is not None else row
        return self

    def __str__(self) -> str:
        places = []
        if self.file is not None:
            places.append(self.file)
        if self.row is not None:
            places.append(f"row {self.row}")
        if self.column is not None:
            places.append(f"column {self.column!r}")
        where = ", ".join(places) + ": " if places else ""
        what = "" if self.value is None else _short(self.value) + " "
        remedy = f"; {self.remedy}" if self.remedy else ""
        return " ".join(f"{where}{what}{self.reason}{remedy}".split("\n"))


class InputError(SkytideError, ValueError):
    """The data cannot be used as asked: a missing column, text where numbers belong, an unreadable file."""


class PreferenceError(SkytideError, ValueError):
    """The preference is not one: no column, a column named twice, a column both minimised and maximised."""


class WindowError(SkytideError, ValueError):
    """The window or its time is not usable: no length, two lengths, a length that is not positive."""


class IdError(SkytideError, ValueError):
    """Two live rows share an id."""


class StateError(SkytideError, ValueError):
    """A stored monitor cannot be restored: it is truncated, foreign, damaged or of another version."""


class OptionError(SkytideError, ValueError):
    """An option or argument has a value that is not allowed."""


class OutputError(SkytideError, RuntimeError):
    """Results cannot be written where they should go: a full disk, no right to write, a broker that does not answer."""


class MissingDependencyError(SkytideError, ImportError):
    """A part of Skytide needs a package or a program that is not on this machine."""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
