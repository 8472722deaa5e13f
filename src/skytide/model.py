"""The words that all parts share: preference, window, change, ledger. docs/semantics.md says what they mean."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.errors import OptionError, PreferenceError, WindowError

Column = str | int
"""A column by name, or by position in a bare array."""
MissingPolicy = Literal["error", "drop", "worst"]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


# -- preference --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preference:
    """Which columns are minimised, which are maximised, and which split the data into independent skylines.

    >>> pref = Preference(minimize=["price"], maximize=["rating"], by=["city"])
    >>> pref.names, pref.dimensions
    (('price', 'rating'), 2)
    >>> Preference.columns(3).names
    (0, 1, 2)
    """

    minimize: Sequence[Column] = ()
    maximize: Sequence[Column] = ()
    by: Sequence[Column] = ()

    def __post_init__(self) -> None:
        for role in ("minimize", "maximize", "by"):
            given = getattr(self, role)
            names = (given,) if isinstance(given, str | int) else tuple(given)
            for name in names:
                if isinstance(name, bool) or not isinstance(name, str | int | np.integer):
                    raise PreferenceError("is not a column", value=name, remedy="give a name or a position")
            plain = tuple(name if isinstance(name, str) else int(name) for name in names)
            object.__setattr__(self, role, plain)
        if not self.names:
            raise PreferenceError(
                "a preference needs at least one column", remedy="name a column to minimise or maximise"
            )
        for name, times in Counter(self.names).items():
            if times > 1:
                raise PreferenceError(
                    "is named more than once", value=name, remedy="minimise or maximise each column once"
                )
        for name in self.by:
            if name in self.names:
                raise PreferenceError(
                    "is both a preference and a `by` column", value=name, remedy="choose one of the two"
                )

    @classmethod
    def columns(cls, dimensions: int) -> Preference:
        """The preference of a bare array with so many columns, all minimised."""
        if dimensions < 1:
            raise PreferenceError("is not a number of columns", value=dimensions, remedy="give 1 or more")
        return cls(minimize=tuple(range(dimensions)))

    @property
    def names(self) -> tuple[Column, ...]:
        """The preference columns: the minimised, then the maximised ones. Matrices have their columns in this order."""
        return (*self.minimize, *self.maximize)

    @property
    def dimensions(self) -> int:
        """How many columns compete."""
        return len(self.minimize) + len(self.maximize)

    @property
    def signs(self) -> Floats:
        """1 for a minimised column and -1 for a maximised one: values times signs are better when smaller."""
        return np.array([1.0] * len(self.minimize) + [-1.0] * len(self.maximize))


def check_missing_policy(policy: str) -> MissingPolicy:
    """The policy itself, or an error that names the three."""
    if policy not in ("error", "drop", "worst"):
        raise OptionError("is not a missing-value policy", value=policy, remedy="use error, drop or worst")
    return policy  # type: ignore[return-value]


# -- window ------------------------------------------------------------------------------------------------------------

_UNIT_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_LONGEST = sys.float_info.max
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m|h|d)\s*")


@dataclass(frozen=True)
class Window:
    """How long a row lives: until `count` more rows have come, or for `duration`; and how late a row may be.

    Durations are numbers in the unit of the times, or text like `90s`, `15m`, `2h`, `1d` for timestamps.

    >>> Window(duration="15m").duration
    '15m'
    >>> Window()
    Traceback (most recent call last):
    ...
    skytide.errors.WindowError: a window needs a length; give either count or duration
    """

    count: int | None = None
    duration: float | int | str | None = None
    lateness: float | int | str = 0

    def __post_init__(self) -> None:
        if (self.count is None) == (self.duration is None):
            both = "a window has one length" if self.count is not None else "a window needs a length"
            raise WindowError(both, remedy="give either count or duration")
        for role in ("count", "duration", "lateness"):
            given = getattr(self, role)
            if isinstance(given, np.integer | np.floating):  # a window can be stored: plain numbers only
                object.__setattr__(self, role, given.item())
        if self.count is not None and not _is_count(self.count):
            raise WindowError("is not a number of rows", value=self.count, remedy="give a whole number from 1")
        if self.duration is not None and not 0 < duration_value(self.duration) <= _LONGEST:
            raise WindowError("is not a length of time", value=self.duration, remedy="give more than 0, and finite")
        if not 0 <= duration_value(self.lateness) <= _LONGEST:
            raise WindowError("is not a lateness", value=self.lateness, remedy="give 0 or more, and finite")

    @property
    def fractional(self) -> bool:
        """Whether a length is a plain number with a fraction, so that sums with whole times are not whole."""
        return any(isinstance(one, float) and not one.is_integer() for one in (self.duration, self.lateness))


def _is_count(count: object) -> bool:
    if isinstance(count, bool) or not isinstance(count, int | float):
        return False
    return count >= 1 and (isinstance(count, int) or count.is_integer())


def duration_value(duration: float | int | str) -> float | int:
    """A duration as a number: itself, or the nanoseconds of a text.

    >>> duration_value("1.5s"), duration_value(7)
    (1500000000, 7)
    """
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        return duration
    match = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if match is None:
        raise WindowError("is not a duration", value=duration, remedy="write a number, or text like 90s, 15m, 2h, 1d")
    number, unit = match.groups()
    whole, _, fraction = number.partition(".")
    scaled = int(whole + fraction) * _UNIT_NANOSECONDS[unit]
    nanoseconds, rest = divmod(scaled, int(10 ** len(fraction)))
    if rest:
        raise WindowError("is finer than a nanosecond", value=duration, remedy="round it")
    return nanoseconds


# -- changes -----------------------------------------------------------------------------------------------------------


class Change(NamedTuple):
    """One row entering (`+`) or leaving (`-`) the answer at one time."""

    time: Any
    change: str
    id: Any


@dataclass(frozen=True)
class Changes:
    """A run of the change stream as columns: ordered by time, `-` before `+`, then id as text.

    >>> changes = Changes.of(times=[3, 1, 3], signs=[1, 1, -1], ids=["b", "a", "a"])
    >>> [tuple(change) for change in changes]
    [(1, '+', 'a'), (3, '-', 'a'), (3, '+', 'b')]
    """

    times: npt.NDArray[Any]
    signs: npt.NDArray[np.int8]
    ids: npt.NDArray[Any]
    late: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Positions of the rows of the call that came too late and were not taken."""
    bad: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Positions of the rows of the call that the missing-value policy left out."""

    def beside(self, late: Integers, bad: Integers) -> Changes:
        """The same changes, together with the rows of the call that were not taken."""
        return Changes(self.times, self.signs, self.ids, late, bad)

    @classmethod
    def of(cls, times: npt.ArrayLike, signs: npt.ArrayLike, ids: npt.ArrayLike) -> Changes:
        """Columns in any order, put in the order of the change stream. O(n log n)."""
        times, signs, ids = np.asarray(times), np.asarray(signs, dtype=np.int8), np.asarray(ids)
        order = change_order(times, signs, ids)
        return cls(times[order], signs[order], ids[order])

    @classmethod
    def concatenate(cls, parts: Sequence[Changes]) -> Changes:
        """Runs that follow each other in time, as one run."""
        if not parts:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int64))
        return cls(
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.signs for part in parts]),
            np.concatenate([part.ids for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[Change]:
        symbols = ("-", "?", "+")
        for time, sign, one in zip(self.times.tolist(), self.signs.tolist(), self.ids.tolist(), strict=True):
            yield Change(time, symbols[sign + 1], one)

    def plot(self, path: str | Path | None = None) -> Any:
        """The size of the answer over time, as a matplotlib figure; with `path` it is also written there.

        The changes must be those from the beginning. Needs matplotlib.

        >>> changes = Changes.of(times=[1, 1, 3], signs=[1, 1, -1], ids=["a", "b", "a"])
        >>> changes.plot().axes[0].lines[0].get_ydata().tolist()
        [2, 1]
        """
        from skytide.plots import Sizes, sizes_picture

        return sizes_picture({"skyline": Sizes.of(self.times, self.signs)}, path)

    @property
    def symbols(self) -> npt.NDArray[np.str_]:
        """The signs as `+` and `-`."""
        return np.where(self.signs > 0, "+", "-")


def change_order(times: npt.NDArray[Any], signs: npt.NDArray[Any], ids: npt.NDArray[Any]) -> Integers:
    """The positions of changes in the order of the change stream; what is equal keeps its order. O(n log n)."""
    order = np.lexsort((signs, times))
    times, signs = times[order], signs[order]
    # Ids are compared as text, which is slow to make; only runs of one time and sign need it.
    same = (times[1:] == times[:-1]) & (signs[1:] == signs[:-1]) if len(times) else np.zeros(0, bool)
    tied = np.zeros(len(times), dtype=bool)
    tied[1:] |= same
    tied[:-1] |= same
    if tied.any():
        where = np.flatnonzero(tied)
        texts = _sortable([str(one) for one in ids[order[where]].tolist()])
        order[where] = order[where][np.lexsort((texts, signs[where], times[where]))]
    return order


def _sortable(texts: list[str]) -> npt.NDArray[Any]:
    """Keys in the order of the texts: the texts, or ranks where an array of texts would be too wide or cut them."""
    if max(map(len, texts)) <= 64 and not any(text.endswith("\0") for text in texts):
        return np.array(texts)
    ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
    return np.array([ranks[text] for text in texts])


# -- cost --------------------------------------------------------------------------------------------------------------

Direction = Literal["up", "down"]


@dataclass
class Ledger:
    """What was sent: messages and encoded bytes, up and down, by kind and per receiver. Initialisation is kept apart.

    >>> ledger = Ledger()
    >>> ledger.record("up", "failure", receiver="server", size=24)
    >>> ledger.record("down", "filter", receiver="c1", size=40, initial=True)
    >>> ledger.messages("up"), ledger.bytes("up"), ledger.messages("down"), ledger.messages("down", initial=True)
    (1, 24, 0, 1)
    """

    entries: dict[tuple[bool, str, str, str], list[int]] = field(default_factory=dict)

    def record(self, direction: Direction, kind: str, *, receiver: str, size: int, initial: bool = False) -> None:
        """Count one message of `size` encoded bytes. O(1)."""
        if direction not in ("up", "down"):
            raise OptionError("is not a direction", value=direction, remedy="use up or down")
        if size < 0:
            raise OptionError("is not a size in bytes", value=size, remedy="give 0 or more")
        entry = self.entries.setdefault((initial, direction, kind, receiver), [0, 0])
        entry[0] += 1
        entry[1] += size

    def _sum(self, which: int, direction: str | None, kind: str | None, receiver: str | None, initial: bool) -> int:
        return sum(
            counts[which]
            for (start, way, what, whom), counts in self.entries.items()
            if start == initial and direction in (None, way) and kind in (None, what) and receiver in (None, whom)
        )

    def messages(
        self,
        direction: Direction | None = None,
        *,
        kind: str | None = None,
        receiver: str | None = None,
        initial: bool = False,
    ) -> int:
        """How many messages, of those that match. O(distinct kinds and receivers)."""
        return self._sum(0, direction, kind, receiver, initial)

    def bytes(
        self,
        direction: Direction | None = None,
        *,
        kind: str | None = None,
        receiver: str | None = None,
        initial: bool = False,
    ) -> int:
        """How many encoded bytes, of those that match. O(distinct kinds and receivers)."""
        return self._sum(1, direction, kind, receiver, initial)

    def plot(self, path: str | Path | None = None, *, everything: int | None = None) -> Any:
        """Messages by kind after the initialisation, as a matplotlib figure; with `path` it is also written there.

        `everything` is how many messages it takes to send everything, to compare with. Needs matplotlib.

        >>> ledger = Ledger()
        >>> ledger.record("up", "failure", receiver="server", size=24)
        >>> ledger.plot(everything=20).axes[0].get_title(loc="left")
        '1 message, 5 % of sending everything'
        """
        from skytide.plots import ledger_picture

        kinds = [
            {"way": way, "kind": kind, "messages": count}
            for way, told in self.by_kind().items()
            for kind, count in told.items()
        ]
        return ledger_picture({"messages": self.messages(), "naive_messages": everything, "kinds": kinds}, path)

    def by_kind(self, *, initial: bool = False, sizes: bool = False) -> dict[str, dict[str, int]]:
        """Messages by direction and kind, or their bytes."""
        table: dict[str, dict[str, int]] = {"up": {}, "down": {}}
        for (start, way, what, _), counts in self.entries.items():
            if start == initial:
                table[way][what] = table[way].get(what, 0) + counts[1 if sizes else 0]
        return table
