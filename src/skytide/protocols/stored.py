"""What the protocols keep, as bytes: versioned, checked, without pickle.

Stored is what is needed between two timestamps: everything else is made anew in the next one. Rows beyond the last
client that is here are left out, so that arrays with room to grow do not take it along. Whoever restores gets a
`StateError` for bytes that no `to_bytes` wrote; compiled code trusts what is checked here.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from skytide.errors import StateError
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.storage import HOSTILE, Parts, pack, unpack

VERSION = 1
_MOST = 1 << 62
_REMEDY = "restore from bytes that to_bytes() gave"


class Contents(NamedTuple):
    """What is stored: plain values, and arrays by name."""

    meta: dict[str, Any]
    parts: Parts

    def within(self, name: str, inner: Contents) -> Contents:
        """These contents with others in them, under a name."""
        parts = {f"{name}.{part}": array for part, array in inner.parts.items()}
        return Contents({**self.meta, name: inner.meta}, {**self.parts, **parts})

    def inner(self, name: str) -> Contents:
        """The contents that `within` put under a name."""
        start = f"{name}."
        return Contents(
            self.meta[name], {part[len(start) :]: array for part, array in self.parts.items() if part.startswith(start)}
        )

    def inner_parts(self, name: str) -> Contents:
        """The arrays whose names begin with a name and a dot, without them."""
        start = f"{name}."
        return Contents({}, {part[len(start) :]: array for part, array in self.parts.items() if part.startswith(start)})

    # -- checked reading -----------------------------------------------------------------------------------------------

    def whole(self, name: str, least: int = 0) -> int:
        """A whole number."""
        found = self.meta[name]
        must(type(found) is int and least <= found < _MOST, name)
        return int(found)

    def floats(self, name: str, *shape: int) -> Floats:
        """Numbers, of this shape; a length of -1 may be any."""
        found = self._array(name, np.float64, shape)
        must(not np.isnan(found).any(), name)
        return found

    def reals(self, name: str, *shape: int) -> Floats:
        """Numbers and what is none, of this shape; a length of -1 may be any."""
        return self._array(name, np.float64, shape)

    def flags(self, name: str, length: int) -> Booleans:
        """Truth values."""
        return self._array(name, np.bool_, (length,))

    def modes(self, name: str, length: int) -> npt.NDArray[np.int8]:
        """What keeps clients quiet."""
        found = self._array(name, np.int8, (length,))
        must(not len(found) or bool(found.min() >= 0 and found.max() <= 3), name)
        return found

    def integers(self, name: str, length: int, least: int, most: int) -> Integers:
        """Whole numbers from the least up to and including the most."""
        found = self._array(name, np.int64, (length,))
        must(not len(found) or bool(least <= found.min() and found.max() <= most), name)
        return found

    def members(self, name: str, room: int) -> Integers:
        """Clients, rising."""
        found = self.integers(name, -1, 0, room - 1)
        must(bool((np.diff(found) > 0).all()), name)
        return found

    def blob(self, name: str) -> bytes:
        """Bytes."""
        return self._array(name, np.uint8, (-1,)).tobytes()

    def _array(self, name: str, form: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        found = self.parts[name]
        same = found.dtype == form and found.ndim == len(shape)
        must(same and all(want in (-1, got) for want, got in zip(shape, found.shape, strict=True)), name)
        return found


def must(holds: bool, what: str) -> None:
    """A `StateError` that says what is wrong, unless it holds."""
    if not holds:
        raise StateError(f"the stored protocol's {what} is not in order", remedy=_REMEDY)


def used(here: npt.NDArray[Any]) -> int:
    """How many rows there are up to the last client that is here.

    >>> used(np.array([True, False, True, False]))
    3
    """
    found = np.flatnonzero(here)
    return int(found[-1]) + 1 if len(found) else 0


class Storable(Protocol):
    """Has contents, and can be made of them."""

    def _contents(self) -> Contents: ...

    @classmethod
    def _restored(cls, contents: Contents) -> Self: ...


Made = TypeVar("Made", bound=Storable)


def dump(thing: Storable) -> bytes:
    """A server, answers or clients as bytes. O(what is stored)."""
    return pack(type(thing).__name__, VERSION, *thing._contents())


def restore(blob: bytes, make: type[Made]) -> Made:
    """What `dump` wrote; a `StateError` for any other bytes."""
    contents = Contents(*unpack(blob, make.__name__, VERSION))
    try:
        return make._restored(contents)
    except StateError:
        raise
    except HOSTILE as reason:
        line = " ".join(str(reason).split())[:120]
        raise StateError(f"the stored protocol is not in order ({line})", remedy=_REMEDY) from None
