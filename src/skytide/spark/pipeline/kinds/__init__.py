"""The kinds of queries that a pipeline can ask. Each is a module of this package that holds a `KIND`.

To add one, add a module: it names the keys of `[query]` that it takes, checks them, and builds the table of answers.
Nothing else has to know of it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from skytide.errors import PreferenceError, SkytideError
from skytide.model import Preference, check_missing_policy
from skytide.spark.pipeline.fields import TEXT, TEXTS, Field, Options, Refuse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from skytide.spark.rounds.operator import Rounds


@dataclass(frozen=True)
class Context:
    """What a query may want to know of the run: where its checkpoint lies, if it has one."""

    checkpoint: str | None = None


@dataclass(frozen=True)
class Kind:
    """One kind of query."""

    name: str
    about: str
    fields: tuple[Field, ...]
    check: Callable[[Options, Refuse], None]
    """Raises what `refuse` makes where keys do not go together; each by itself has been checked."""
    build: Callable[[DataFrame, Options, Context], DataFrame | Rounds]
    streams: bool
    """Whether it takes a stream; every kind takes a whole table."""
    changes: bool
    """Whether the answer is a change stream with dead letters, for `skytide.spark.write`; otherwise it is rows."""
    rounds: bool = False
    """Whether what it builds is a protocol to be run in rounds, and not a DataFrame."""


@cache
def kinds() -> dict[str, Kind]:
    """All kinds there are, by name."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        kind: Kind = importlib.import_module(f"{__name__}.{module.name}").KIND
        found[kind.name] = kind
    return found


PREFERENCE = (
    Field("min", TEXTS, "columns where less is better", columns=True),
    Field("max", TEXTS, "columns where more is better", columns=True),
    Field("by", TEXTS, "columns that split the rows into independent skylines", columns=True),
)
NULLS = Field(
    "nulls", TEXT, "what a missing value means", choices=("error", "drop", "worst"), check=check_missing_policy
)


def preference_of(options: Options) -> Preference:
    """The preference that the keys `min`, `max` and `by` say."""
    return Preference(options.get("min", ()), options.get("max", ()), options.get("by", ()))


def check_preference(options: Options, refuse: Refuse) -> None:
    """A complaint at the key that makes the preference impossible."""
    try:
        preference_of(options)
    except PreferenceError as problem:
        keys = [key for key in ("by", "max", "min") if problem.value in options.get(key, ())]
        raise refuse(keys[0] if keys else "min", problem.reason, value=problem.value, remedy=problem.remedy) from None
    except SkytideError as problem:
        raise refuse("min", problem.reason, value=problem.value, remedy=problem.remedy) from None
