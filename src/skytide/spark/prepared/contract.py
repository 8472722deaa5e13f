"""What a prepared pipeline says of itself: what it reads, what it can be told, what comes out."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from skytide.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Build = Callable[..., "DataFrame"]
Kind = Literal["whole", "names", "text", "choice", "flag"]


@dataclass(frozen=True)
class Input:
    """A table that a pipeline reads: its columns with what they mean, and how its files in a folder of many are called.

    The first input of a pipeline is DATA; the others are found beside it, or named.
    """

    name: str
    columns: Mapping[str, str]
    files: str
    doc: str = ""


@dataclass(frozen=True)
class Option:
    """A keyword of a pipeline's `build`, as the command line offers it; the default is that of the keyword."""

    name: str
    kind: Kind
    doc: str
    choices: tuple[str, ...] = ()

    def read(self, text: Any) -> Any:
        """The value that a text from the command line means: for `names`, the parts between commas.

        >>> Option("stats", "names", "").read("pts, fgm/fga")
        ('pts', 'fgm/fga')
        """
        if self.kind == "names" and isinstance(text, str):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return text


@dataclass(frozen=True)
class Pipeline:
    """One way from raw rows to updates: `build(spark, inputs, **options)`, and all that is worth saying about it."""

    name: str
    title: str
    stands_for: str
    build: Build
    inputs: tuple[Input, ...]
    options: tuple[Option, ...]
    output: Mapping[str, str]
    rules: str
    remedy: str = "give more rows"
    """What helps where no update comes out of rows that are there."""

    def default(self, option: Option) -> Any:
        """What `build` takes where the option is not given."""
        return inspect.signature(self.build).parameters[option.name].default

    def check_options(self, given: Mapping[str, Any]) -> None:
        """An error that names an option which the pipeline does not have."""
        known = [option.name for option in self.options]
        for name in given:
            if name not in known:
                raise OptionError(
                    f"is no option of {self.name}", value=name, remedy=f"choose one of: {', '.join(known)}"
                )


def names_of(value: str | tuple[str, ...] | list[str], option: str, *, reserved: tuple[str, ...] = ()) -> list[str]:
    """The names in a list of columns, at least one, all different, none that the output uses itself.

    >>> names_of("temp_c", "values", reserved=("time", "site", "id"))
    ['temp_c']
    """
    names = [value] if isinstance(value, str) else list(value)
    if not names or not all(names):
        raise OptionError(f"a list of columns is empty ({option})", remedy="name at least one")
    # Spark tells columns apart without regard to case.
    folded = [name.lower() for name in names]
    for position, name in enumerate(folded):
        if name in folded[:position]:
            raise OptionError(f"is named twice ({option})", value=names[position], remedy="name each once")
        if name in reserved:
            raise OptionError(
                f"is a column that the updates have for another purpose ({option})",
                value=names[position],
                remedy="rename the column first",
            )
    return names


def chosen(value: str, option: str, choices: tuple[str, ...]) -> str:
    """One of the values that an option may have."""
    if value not in choices:
        raise OptionError(f"is not a value of {option}", value=value, remedy=f"choose one of: {', '.join(choices)}")
    return value


def whole(value: Any, option: str, least: int) -> int:
    """A whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"is not a value of {option}", value=value, remedy=f"give a whole number from {least} on")
    return value


def pipeline_of(module: types.ModuleType) -> Pipeline | None:
    """What a module of this package says it is, if it is a pipeline."""
    return typing.cast("Pipeline | None", getattr(module, "PIPELINE", None))
