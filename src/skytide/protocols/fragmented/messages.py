"""What sites and the coordinator say to each other, and its one binary encoding.

All that one update causes at one site is one message. In memory the messages of one kind are a block: arrays with one
row for each pair of a site and an object. On the wire each site's rows are a message of its own, a header and records,
all numbers little-endian:

    version u8, kind u8, components u8, functions u8, site u32, time u64, records u32, then the records

A record is an object u32 and what `_layout` has for its kind. Zones are numbered, so that a site can ignore what is
older than the zone it has. `decode` checks all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cache
from typing import Any, ClassVar, get_args

import numpy as np

from skytide.errors import InputError
from skytide.kernel.fragmented import ALL
from skytide.model import Floats, Integers

VERSION = 1
MOST = 255
"""So many components and functions at most."""
MOST_BYTES = 1 << 26
"""The largest message that is encoded or decoded."""
HEAD: np.dtype[Any] = np.dtype(
    {
        "names": ["version", "kind", "components", "functions", "site", "time", "records"],
        "formats": ["u1", "u1", "u1", "u1", "<u4", "<u8", "<u4"],
    }
)


class Kind(IntEnum):
    """The kinds of messages: those of sites first, those of the coordinator from 16."""

    JOIN = 1
    LEAVE = 2
    VIOLATION = 3
    UPDATE = 4
    ZONE = 16
    RELEASE = 17
    SHIFT = 18
    CENTRE = 19
    PAIR = 20
    PART = 21

    @property
    def up(self) -> bool:
        """Whether sites send it to the coordinator."""
        return self < 16


@dataclass(frozen=True)
class Arrivals:
    """Sites have objects that are new to them; `weights` are what the sites count in the average."""

    time: int
    sites: Integers
    objects: Integers
    weights: Floats
    vectors: Floats
    kind: ClassVar[Kind] = Kind.JOIN


@dataclass(frozen=True)
class Departures:
    """Objects are not at sites any more."""

    time: int
    sites: Integers
    objects: Integers
    kind: ClassVar[Kind] = Kind.LEAVE


@dataclass(frozen=True)
class Updates:
    """Local vectors of which all updates are told."""

    time: int
    sites: Integers
    objects: Integers
    vectors: Floats
    kind: ClassVar[Kind] = Kind.UPDATE


@dataclass(frozen=True)
class Violations:
    """Local vectors whose drift vectors left their zones, with the updates since the site last spoke of them: how many,
    and the sum of their sizes.
    """

    time: int
    sites: Integers
    objects: Integers
    vectors: Floats
    updates: Integers
    moved: Floats
    kind: ClassVar[Kind] = Kind.VIOLATION


@dataclass(frozen=True)
class Zonings:
    """The coordinator gives centres and zones; `stretch` is by how much a difference from the base is multiplied."""

    time: int
    sites: Integers
    objects: Integers
    versions: Integers
    stretch: Floats
    centre: Floats
    low: Floats
    high: Floats
    kind: ClassVar[Kind] = Kind.ZONE


@dataclass(frozen=True)
class Releases:
    """The coordinator wants to hear every update."""

    time: int
    sites: Integers
    objects: Integers
    versions: Integers
    kind: ClassVar[Kind] = Kind.RELEASE


@dataclass(frozen=True)
class Shifts:
    """The coordinator takes so much off the bases: that much more drift is the site's."""

    time: int
    sites: Integers
    objects: Integers
    versions: Integers
    amounts: Floats
    kind: ClassVar[Kind] = Kind.SHIFT


@dataclass(frozen=True)
class Centrings:
    """The coordinator gives centres of objects that are watched in pairs; the sites may not have them."""

    time: int
    sites: Integers
    objects: Integers
    versions: Integers
    centre: Floats
    kind: ClassVar[Kind] = Kind.CENTRE


@dataclass(frozen=True)
class Pairings:
    """The coordinator has sites watch that objects stay better than others, and how; see `watched.Pair`."""

    time: int
    sites: Integers
    objects: Integers
    others: Integers
    columns: Integers
    strict: Integers
    stretches: Floats
    kind: ClassVar[Kind] = Kind.PAIR


@dataclass(frozen=True)
class Partings:
    """The coordinator has sites forget pairs."""

    time: int
    sites: Integers
    objects: Integers
    others: Integers
    columns: Integers
    kind: ClassVar[Kind] = Kind.PART


Report = Arrivals | Departures | Updates | Violations
Order = Zonings | Releases | Shifts | Centrings | Pairings | Partings
Message = Report | Order

_CLASSES: dict[Kind, type[Any]] = {one.kind: one for one in (*get_args(Report), *get_args(Order))}
_COLUMNS = (
    *("versions", "others", "columns", "strict", "updates", "stretch", "stretches", "weights", "vectors", "moved"),
    *("centre", "amounts", "low", "high"),
)


# -- bytes -------------------------------------------------------------------------------------------------------------


@cache
def _layout(kind: Kind, components: int, functions: int) -> np.dtype[Any]:
    there = {field.name for field in fields(_CLASSES[kind])}
    types: dict[str, tuple[Any, ...]] = {name: ("<u4",) for name in ("versions", "others", "updates")}
    types |= {"columns": ("<i2",), "strict": ("<i2",), "stretches": ("<f8", (2,))}
    types |= {name: ("<f8",) for name in ("stretch", "weights")}
    types |= {name: ("<f8", (components,)) for name in ("vectors", "centre", "amounts")}
    types |= {"moved": ("<f4", (components,)), "low": ("<f8", (functions,)), "high": ("<f8", (functions,))}
    return np.dtype([("objects", "<u4"), *((name, *types[name]) for name in _COLUMNS if name in there)])


def sizes(kind: Kind, components: int, functions: int) -> tuple[int, int]:
    """How many bytes a message takes: without records, and for each record.

    >>> sizes(Kind.UPDATE, 2, 2), sizes(Kind.ZONE, 2, 2)
    ((20, 20), (20, 64))
    """
    return HEAD.itemsize, _layout(kind, components, functions).itemsize


def encode(message: Message, components: int, functions: int) -> Iterator[bytes]:
    """The messages of a block as bytes, in the order of sites, as `sizes` says. O(rows)."""
    if not (1 <= components <= MOST and 1 <= functions <= MOST):
        raise InputError("components or functions are too many for a message", remedy=f"use 1 to {MOST}")
    if not 0 <= message.time < 1 << 63:
        raise InputError("is not a time of a message", value=message.time, remedy="count from 0")
    if not len(message.sites):
        return
    order = np.argsort(message.sites, kind="stable")
    rows = np.zeros(len(order), _layout(message.kind, components, functions))
    with np.errstate(over="ignore"):  # sizes are statistics: infinite if they do not fit
        for name in rows.dtype.names or ():
            rows[name] = getattr(message, name)[order]
    numbers = [getattr(message, name) for name in ("sites", "objects", "others", "versions") if hasattr(message, name)]
    if any(column.min(initial=0) < 0 or column.max(initial=0) >= 1 << 32 for column in numbers):
        raise InputError("a number of a site, object or version does not fit into a message", remedy="count from 0")
    sites, starts = np.unique(message.sites[order], return_index=True)
    for site, records in zip(sites.tolist(), np.split(rows, starts[1:]), strict=True):
        head = np.array([(VERSION, message.kind, components, functions, site, message.time, len(records))], HEAD)
        data = head.tobytes() + records.tobytes()
        if len(data) > MOST_BYTES:
            raise InputError("bytes are too many for a message", value=len(data), remedy="give a site fewer objects")
        yield data


def site_of(data: bytes) -> int:
    """The site that a message which `encode` made is from or for. O(1)."""
    return int.from_bytes(data[4:8], "little")


def decode(data: bytes) -> Message:
    """The message that `encode` made into bytes, of at least one record; an `InputError` for any other bytes.

    >>> (data,) = encode(Departures(7, np.array([3, 3]), np.array([5, 6])), components=2, functions=1)
    >>> asked = decode(data)
    >>> asked.kind.name, asked.time, asked.sites.tolist(), asked.objects.tolist()
    ('LEAVE', 7, [3, 3], [5, 6])
    """
    if not HEAD.itemsize < len(data) <= MOST_BYTES:
        raise _refused("its length is not that of a message")
    head = np.frombuffer(data, HEAD, 1)[0]
    if head["version"] != VERSION:
        raise _refused(f"its version is {head['version']}, not {VERSION}")
    if head["kind"] not in Kind.__members__.values() or not (head["components"] and head["functions"]):
        raise _refused("its kind or its columns are unknown")
    if head["time"] >= 1 << 63:
        raise _refused("its time is out of range")
    kind, layout = Kind(head["kind"]), _layout(head["kind"], int(head["components"]), int(head["functions"]))
    if len(data) != HEAD.itemsize + int(head["records"]) * layout.itemsize:
        raise _refused("its length is not that of its records")
    rows = np.frombuffer(data, layout, offset=HEAD.itemsize)
    columns: dict[str, Any] = {}
    for name in layout.names or ():
        form = np.float64 if layout[name].base.kind == "f" else np.int64
        with np.errstate(invalid="ignore"):  # what is not a number may signal it
            columns[name] = np.ascontiguousarray(rows[name]).astype(form)
        # Local values may be missing; of a zone it is checked that it is one.
        if name not in ("low", "high", "vectors") and form is np.float64 and np.isnan(columns[name]).any():
            raise _refused("a value is not a number")
    _check(columns, int(head["functions"]))
    sites = np.full(len(rows), int(head["site"]), np.int64)
    found: Message = _CLASSES[kind](time=int(head["time"]), sites=sites, **columns)
    return found


def _check(columns: dict[str, Any], functions: int) -> None:
    if "low" in columns and not (columns["low"] <= columns["high"]).all():
        raise _refused("a zone ends before it begins")
    for name in ("stretch", "stretches", "weights"):
        if name in columns and not ((columns[name] > 0.0) & (columns[name] < np.inf)).all():
            raise _refused("a stretch or a weight is not positive")
    if "columns" in columns and not ((columns["columns"] >= ALL) & (columns["columns"] < functions)).all():
        raise _refused("a pair is about no function")
    if "others" in columns and (columns["objects"] == columns["others"]).any():
        raise _refused("an object is in a pair with itself")
    if "moved" in columns and not (columns["moved"] >= 0.0).all():
        raise _refused("a size is negative")


def _refused(reason: str) -> InputError:
    return InputError(f"the message cannot be read: {reason}", remedy="use the same version of Skytide on both sides")


def merged(messages: Sequence[Any]) -> list[Any]:
    """Blocks of one time with those of one kind in one, so that a site has one message of a kind. O(rows)."""
    if len(messages) < 2:
        return list(messages)
    found = []
    for kind in sorted({block.kind for block in messages}):
        blocks = [block for block in messages if block.kind == kind]
        names = [field.name for field in fields(blocks[0]) if field.name != "time"]
        columns = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
        found.append(blocks[0] if len(blocks) == 1 else _CLASSES[kind](time=blocks[0].time, **columns))
    return found
