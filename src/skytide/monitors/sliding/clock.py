"""Event time as int64 keys that keep the order of the times, so that compiled code knows only one kind of time.

Times are whole numbers, real numbers or timestamps, chosen by the first times that come. Sums with the window's length
and the lateness are taken in the times' own arithmetic before they become keys.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from skytide.errors import WindowError
from skytide.model import Booleans, Integers, duration_value
from skytide.tables import as_array

LOWEST = -(2**63)
HIGHEST = 2**63 - 1
"""A key beyond all times."""
_FAR = 2**62 - 1
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
KINDS = ("whole", "real", *_UNITS)
_FLIP = np.int64(HIGHEST)


class Lengths(Protocol):
    """What a clock wants to know of a window, or of whatever else has times."""

    @property
    def duration(self) -> float | int | str | None:
        """How long a row lives."""
        ...

    @property
    def lateness(self) -> float | int | str:
        """How late a row may be."""
        ...

    @property
    def fractional(self) -> bool:
        """Whether one of them is a plain number with a fraction."""
        ...


class Clock:
    """Turns the times of one window into keys and back.

    >>> from skytide.model import Window
    >>> clock = Clock(Window(duration=2.5))
    >>> keys = clock.keys(np.array([1.0, 3.0]))
    >>> clock.times(clock.expiries(keys)).tolist()
    [3.5, 5.5]
    """

    def __init__(self, window: Lengths) -> None:
        assert window.duration is not None
        self._duration, self._allowed, self._fractional = window.duration, window.lateness, window.fractional
        self.kind: str | None = None  # "whole", "real" or a timestamp's unit
        self._length: Any = None
        self._lateness: Any = None

    @property
    def lateness(self) -> float | int:
        """The allowed lateness in the unit of the times, once their kind is settled."""
        return self._lateness  # type: ignore[no-any-return]

    # -- one kind of time ----------------------------------------------------------------------------------------------

    def settle(self, kind: str) -> None:
        """Fix the kind of time; a window's length that does not fit it is refused."""
        textual = isinstance(self._duration, str)
        lengths = (self._duration, self._allowed)
        if kind in _UNITS:
            for one in lengths:
                if not isinstance(one, str) and one != 0:
                    raise WindowError(
                        "is a plain number, but the times are timestamps",
                        value=one,
                        remedy="write durations like 90s, 15m, 2h, 1d",
                    )
            self._length, self._lateness = (duration_value(one) // _UNITS[kind] for one in lengths)
        else:
            if textual or (isinstance(self._allowed, str)):
                raise WindowError(
                    "has a unit, but the times are plain numbers",
                    value=self._duration if textual else self._allowed,
                    remedy="give a number in the unit of the times",
                )
            convert = int if kind == "whole" else float
            self._length, self._lateness = (convert(duration_value(one)) for one in lengths)
        self.kind = kind

    def reset(self, kind: str | None) -> None:
        """Go back to the kind of before: the rows that fixed it were not taken."""
        self.kind = kind

    def holds(self, keys: Integers) -> bool:
        """Whether these are keys of times that a window takes."""
        if self.kind == "real":
            return bool(np.isfinite(_key_floats(keys)).all())
        return not len(keys) or (int(keys.max()) <= _FAR and int(keys.min()) >= -_FAR)

    def kind_of(self, form: np.dtype[Any]) -> str:
        """The kind that times of this form have: timestamps take a unit fine enough for the window's lengths."""
        if form.kind == "M":
            finest = _UNITS.get(np.datetime_data(form)[0], 10**9)
            for one in (self._duration, self._allowed):
                if isinstance(one, str):
                    while finest > 1 and duration_value(one) % finest:
                        finest //= 1000
            return next(name for name, size in _UNITS.items() if size == finest)
        return "real" if form.kind == "f" or self._fractional else "whole"

    def form_of(self, form: np.dtype[Any]) -> np.dtype[Any]:
        """The form of the times that come out, where those that come in have this form."""
        kind = self.kind_of(form)
        return np.dtype(f"datetime64[{kind}]" if kind in _UNITS else np.float64 if kind == "real" else np.int64)

    def prepare(self, times: Any) -> npt.NDArray[Any]:
        """Times of any form as one array of numbers or timestamps (NaN or NaT where missing)."""
        values = as_array(times, exact=True)
        if values.dtype.kind not in "iufM" or values.ndim != 1:
            raise WindowError(
                f"times of type {values.dtype} are not times", remedy="give numbers or timestamps, one per row"
            )
        if values.dtype.kind == "u":
            if len(values) and values.max() > HIGHEST:
                raise WindowError("is too large a time", value=int(values.max()), remedy="use a later origin")
            values = values.astype(np.int64)
        return values

    def keys(self, values: npt.NDArray[Any]) -> Integers:
        """The keys of prepared times; nothing may be missing. The first ones fix the kind of time."""
        if not len(values):
            return np.zeros(0, np.int64)
        kind = self.kind_of(values.dtype) if self.kind is None else self.kind
        if kind in _UNITS:
            if values.dtype.kind != "M":
                raise WindowError("the window's times are timestamps", remedy="give timestamps throughout")
            converted = values.astype(f"datetime64[{kind}]")
            if len(values) and (converted.astype(values.dtype) != values).any():
                raise WindowError(
                    f"times finer than the window's unit ({kind}), or out of its range", remedy="give times of one unit"
                )
            keys = _in_range(converted.view(np.int64))
        elif values.dtype.kind == "M":
            raise WindowError("the window's times are numbers", remedy="give numbers throughout")
        elif kind == "whole":
            if values.dtype.kind == "f" and len(values):
                with np.errstate(invalid="ignore"):
                    whole = values.astype(np.int64)
                if (whole != values).any():
                    raise WindowError(
                        "the window's times are whole numbers", remedy="give floating-point times from the first row on"
                    )
            keys = _in_range(values.astype(np.int64))
        else:
            real = values.astype(np.float64)
            with np.errstate(invalid="ignore"):
                exact = values.dtype.kind != "i" or bool((real.astype(np.int64) == values).all())
            if not exact or (values.dtype.kind == "i" and real.max() >= 2.0**63):
                raise WindowError("a time is beyond 2^53, which is not exact in float64", remedy="use a later origin")
            if not np.isfinite(real).all():
                raise WindowError("a time is infinite", remedy="give finite times")
            keys = _float_keys(real)
        if self.kind is None:
            self.settle(kind)
        return keys

    def times(self, keys: Integers) -> npt.NDArray[Any]:
        """The times of keys, in the form in which times came in."""
        if self.kind in _UNITS:
            return keys.view(f"datetime64[{self.kind}]")
        return _key_floats(keys) if self.kind == "real" else keys

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def expiries(self, keys: Integers) -> Integers:
        """When rows that arrive at the keys expire; a time beyond the range is never reached."""
        return self._shifted(keys, self._length)

    def _shifted(self, keys: Integers, by: Any) -> Integers:
        if self.kind == "real":
            return _float_keys(_key_floats(keys) + by)
        return keys + np.int64(min(by, _FAR))  # times are at most _FAR: there is room, and a later expiry never comes

    def too_late(self, keys: Integers, seen_before: Integers) -> Booleans:
        """Which rows are for an instant that was closed by the latest time seen before each of them."""
        return self._shifted(keys, self._lateness) < seen_before

    def closed_by(self, latest: int) -> int:
        """The last instant that is closed once a row at `latest` has been seen: instant + lateness < latest."""
        if self._lateness == 0:
            return latest - 1
        if self.kind != "real":
            return max(LOWEST, latest - int(self._lateness) - 1)
        # Float sums are monotone but not exact, so the bound is searched, not computed.
        low, high = int(_float_keys(np.array([-np.inf]))[0]), latest
        while high - low > 1:
            middle = (low + high) // 2
            inside = self._shifted(np.array([middle]), self._lateness)[0] < latest
            low, high = (middle, high) if inside else (low, middle)
        return low


def _in_range(keys: Integers) -> Integers:
    if len(keys) and (int(keys.max()) > _FAR or int(keys.min()) < -_FAR):
        raise WindowError("a time is 2^62 units or more from its origin", remedy="use a later origin or a larger unit")
    return keys


def _float_keys(values: npt.NDArray[np.float64]) -> Integers:
    bits = (values + 0.0).view(np.int64)  # adding 0.0 turns -0.0 into 0.0
    return np.where(bits < 0, bits ^ _FLIP, bits)


def _key_floats(keys: Integers) -> npt.NDArray[np.float64]:
    return np.where(keys < 0, keys ^ _FLIP, keys).view(np.float64)
