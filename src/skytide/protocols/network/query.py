"""What is asked over the network: the protocol, the method, and the columns or expressions to compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skytide.errors import InputError, OptionError
from skytide.missing import with_worst, without_worst
from skytide.model import Floats
from skytide.protocols.fragmented.functions import Functions

PROTOCOLS = ("filtering", "fragmented")
METHODS = {"filtering": ("naive", "filter", "auto"), "fragmented": ("central", "pivot", "direct", "auto")}
"""The methods of each protocol that need no clock which all sites share; with the first everything is told.

`auto` of the filtering protocol counts messages by timestamps, which a network does not have; here it is `filter`.
"""
MOST_COLUMNS = 255


@dataclass(frozen=True)
class Query:
    """A continuous question to many sites.

    With `filtering` an object is at one site, and its columns are compared. With `fragmented` it is at many, and
    expressions over the averages of its columns are. `every` is how many seconds a timestamp takes; by timestamps the
    recent reach of objects fades.

    >>> query = Query("fragmented", minimize=("load / cores",), maximize=("free",))
    >>> query.columns, query.method, Query.read(query.plain()) == query
    (('load', 'cores', 'free'), 'auto', True)
    """

    protocol: str
    minimize: tuple[str, ...] = ()
    maximize: tuple[str, ...] = ()
    method: str = "auto"
    nulls: str = "drop"
    every: float = 1.0

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise OptionError("is not a protocol", value=self.protocol, remedy="use filtering or fragmented")
        if (self.protocol, self.method) == ("filtering", "auto"):
            object.__setattr__(self, "method", "filter")
        if self.method not in METHODS[self.protocol]:
            raise OptionError(
                f"is not a method of {self.protocol} over a network",
                value=self.method,
                remedy="use " + ", ".join(METHODS[self.protocol]),
            )
        if self.nulls not in ("drop", "worst"):
            raise OptionError("is not a policy for streams", value=self.nulls, remedy="use drop or worst")
        if not (isinstance(self.every, int | float) and 0.001 <= self.every <= 86400.0):
            raise OptionError("is not a length of a timestamp", value=self.every, remedy="use 0.001 to 86400 seconds")
        names = (*self.minimize, *self.maximize)
        if not 1 <= len(names) <= MOST_COLUMNS or len(set(names)) < len(names):
            raise OptionError("columns are none, too many or named twice", value=names, remedy="name each once")
        if self.protocol == "fragmented" and max(self.functions.d, self.functions.k) > MOST_COLUMNS:
            raise OptionError(f"the functions use more than {MOST_COLUMNS} columns", remedy="leave some of them out")

    @cached_property
    def functions(self) -> Functions:
        """The functions of a fragmented query."""
        return Functions(self.minimize, self.maximize)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows of sites have."""
        return self.functions.columns if self.protocol == "fragmented" else (*self.minimize, *self.maximize)

    @cached_property
    def _signs(self) -> Floats:
        return np.repeat([1.0, -1.0], [len(self.minimize), len(self.maximize)])

    def vectors(self, values: Floats) -> Floats:
        """What a site's block takes of rows with the query's columns: points, or components of vectors. O(n d)."""
        if self.protocol == "fragmented":
            return self.functions.local(values)
        points: Floats = np.ascontiguousarray(values * self._signs)
        return with_worst(points) if self.nulls == "worst" else points

    def rows(self, points: Floats) -> Floats:
        """The rows that `vectors` made points of; NaN where a value is missing. O(n d).

        >>> query = Query("filtering", ("a",), ("b",), nulls="worst")
        >>> query.rows(query.vectors(np.array([[np.nan, 2.0]])))
        array([[nan,  2.]])
        """
        return self.turned(without_worst(points) if self.nulls == "worst" else points)

    def turned(self, compared: Floats) -> Floats:
        """What is compared, where smaller is better, as it was named: more is better where it is maximised. O(n d)."""
        found: Floats = compared * self._signs + 0.0  # and no negative zeros
        return found

    def row(self, values: Mapping[str, Any] | Sequence[Any] | None) -> tuple[float, ...] | None:
        """A row's values in the order of the columns; None where all are missing: the object leaves.

        >>> Query("filtering", ("a",), ("b",)).row({"b": 2, "a": None, "c": "x"})
        (nan, 2.0)
        """
        if values is None:
            return None
        if isinstance(values, Mapping):
            found = tuple(_number(values.get(name), name) for name in self.columns)
        elif len(values) == len(self.columns):
            found = tuple(map(_number, values, self.columns))
        else:
            raise InputError("values are not one for each column", value=len(values), remedy="give " + self._order)
        return None if all(map(math.isnan, found)) else found

    @property
    def _order(self) -> str:
        return ", ".join(self.columns)

    def refused(self, row: tuple[float, ...]) -> bool:
        """Whether a row cannot compete: with the policy `drop`, a value is missing where each is compared."""
        return self.protocol == "filtering" and self.nulls == "drop" and any(map(math.isnan, row))

    def plain(self) -> dict[str, Any]:
        """The query as JSON has it."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Query:
        """The query that `plain` gave; an `InputError` for anything else."""
        try:
            given: dict[str, Any] = {
                name: tuple(map(str, v)) if isinstance(v, list) else v for name, v in plain.items()
            }
            return cls(**given)
        except (AttributeError, TypeError, OptionError) as error:
            raise InputError(
                f"the query cannot be read ({error})", remedy="use the same version on both sides"
            ) from None


def _number(value: Any, column: str) -> float:
    if value is None or value == "":
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"is not a number, in column {column}", value=str(value)[:80], remedy="give numbers, or nothing"
        ) from None
