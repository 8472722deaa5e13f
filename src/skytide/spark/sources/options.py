"""The options of a source: what there is, what a text means, and an error that names both where one is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skytide.errors import OptionError


@dataclass(frozen=True)
class Option:
    """One option: its name as it is written, how its text is read, what holds without it, and what it is for."""

    name: str
    read: Callable[[str], Any]
    default: Any
    help: str

    @property
    def key(self) -> str:
        """The name as it is compared."""
        return plain(self.name)


def plain(name: str) -> str:
    """A name without what writers differ in: Spark's options are in one case only, TOML's often have other joints.

    >>> plain("rowsPerBatch") == plain("rows_per_batch") == plain("rows-per-batch")
    True
    """
    return name.replace("_", "").replace("-", "").lower()


def read_options(given: Mapping[str, str], known: Iterable[Option], *, source: str) -> dict[str, Any]:
    """The value of every known option by its name; an error for one that is not known or has an unusable text.

    >>> size = Option("rowsPerBatch", whole(1), 10, "so many at a time")
    >>> read_options({"ROWSPERBATCH": "7"}, [size], source="skytide")
    {'rowsPerBatch': 7}
    >>> read_options({"rowPerBatch": "7"}, [size], source="skytide")
    Traceback (most recent call last):
    ...
    skytide.errors.OptionError: 'rowPerBatch' is not an option of skytide; the options are: rowsPerBatch
    """
    options = list(known)
    names = {option.key for option in options}
    for name in given:
        if plain(name) not in names:
            listed = ", ".join(option.name for option in options)
            raise OptionError(f"is not an option of {source}", value=name, remedy=f"the options are: {listed}")
    texts = {plain(name): text for name, text in given.items()}
    return {option.name: _value(option, texts) for option in options}


def _value(option: Option, texts: Mapping[str, str]) -> Any:
    if option.key not in texts:
        return option.default
    try:
        return option.read(str(texts[option.key]).strip())
    except OptionError as problem:
        problem.reason = f"is given for the option {option.name} and {problem.reason}"
        raise


# -- how texts are read ------------------------------------------------------------------------------------------------


def whole(least: int) -> Callable[[str], int]:
    """A reader of whole numbers from `least` on."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise OptionError("is not such a number", value=text, remedy=f"give a whole number from {least}")
        return number

    return read


def number(text: str) -> float:
    """A finite number."""
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not abs(found) < float("inf"):
        raise OptionError("is not a finite number", value=text, remedy="give one")
    return found


def positive(text: str) -> float:
    """A finite number above 0."""
    found = number(text)
    if found <= 0:
        raise OptionError("is not above 0", value=text, remedy="give a number above 0")
    return found


def one_of(*choices: str) -> Callable[[str], str]:
    """A reader of one of a few words."""

    def read(text: str) -> str:
        if text.lower() not in choices:
            raise OptionError("is not one of its values", value=text, remedy=f"use {' or '.join(choices)}")
        return text.lower()

    return read


def truth(text: str) -> bool:
    """`true` or `false`."""
    return one_of("true", "false")(text) == "true"


def words(text: str) -> str:
    """A text as it is; it must not be empty."""
    if not text:
        raise OptionError("is empty", value=text, remedy="give a text, or leave the option out")
    return text
