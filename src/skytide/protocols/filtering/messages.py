"""What clients and server say to each other, and its one binary encoding.

Messages of one kind and timestamp travel as a block: arrays, one row for each client; a single message is a block of
one. Every message is encoded alone, with a header of its own, and a block is its messages in a row, so that bytes add
up as on a network. All numbers are little-endian:

    version u8, kind u8, dimensions u16, client u32, time u32, then by kind: seed u64, rate f64, points f64 each

Values may be infinite, but are numbers; a box ends where it begins or above. `decode` checks all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from skytide.errors import InputError
from skytide.model import Floats, Integers
from skytide.protocols.filtering.schedule import Schedule

VERSION = 1
MOST_DIMENSIONS = 1024
MOST_CLIENTS = 1 << 32
MOST_TIMESTAMPS = 1 << 32
MOST_BYTES = 1 << 30
"""The largest block that is encoded or decoded."""


class Kind(IntEnum):
    """The kinds of messages: those of clients first, those of the server from 16."""

    INSERT = 1
    DELETE = 2
    FAILURE = 3
    ANSWER = 4
    UPDATE = 5
    SAMPLE = 6
    QUESTION = 16
    FILTER = 17
    SCHEDULE = 18
    MIXED = 19
    RELEASE = 20

    @property
    def up(self) -> bool:
        """Whether clients send it to the server."""
        return self < 16


_MATRICES = {Kind.INSERT: 1, Kind.FAILURE: 3, Kind.ANSWER: 3, Kind.UPDATE: 1, Kind.SAMPLE: 1, Kind.FILTER: 2} | {
    Kind.MIXED: 2
}
_SCHEDULED = (Kind.SCHEDULE, Kind.MIXED)


@dataclass(frozen=True)
class Reports:
    """Clients tell their points: because they are new (INSERT), have left their boxes (FAILURE), were asked (ANSWER),
    have moved (UPDATE), or the timestamp is sampled (SAMPLE). After a failure and when asked they tell their recent
    reach too, between what their values were lately; else it is the point.
    """

    kind: Kind
    time: int
    clients: Integers
    points: Floats
    floor: Floats
    roof: Floats


@dataclass(frozen=True)
class Departures:
    """Clients say that they go."""

    time: int
    clients: Integers
    kind: ClassVar[Kind] = Kind.DELETE


@dataclass(frozen=True)
class Questions:
    """The server asks where clients are."""

    time: int
    clients: Integers
    kind: ClassVar[Kind] = Kind.QUESTION


@dataclass(frozen=True)
class Boxes:
    """The server gives clients new boxes; with a schedule (MIXED) they tell their points when sampled, too."""

    time: int
    clients: Integers
    low: Floats
    high: Floats
    schedule: Schedule | None = None

    @property
    def kind(self) -> Kind:
        """FILTER or MIXED."""
        return Kind.FILTER if self.schedule is None else Kind.MIXED


@dataclass(frozen=True)
class Schedules:
    """The server has clients tell their points when sampled, and only then."""

    time: int
    clients: Integers
    schedule: Schedule
    kind: ClassVar[Kind] = Kind.SCHEDULE


@dataclass(frozen=True)
class Releases:
    """The server has clients tell every move, as they do before they hear from it."""

    time: int
    clients: Integers
    kind: ClassVar[Kind] = Kind.RELEASE


Message = Reports | Departures | Questions | Boxes | Schedules | Releases
Order = Boxes | Schedules | Releases


# -- bytes -------------------------------------------------------------------------------------------------------------


def _layout(kind: Kind, dimensions: int) -> np.dtype[Any]:
    head = [("version", "u1"), ("kind", "u1"), ("dimensions", "<u2"), ("client", "<u4"), ("time", "<u4")]
    schedule = [("seed", "<u8"), ("rate", "<f8")] if kind in _SCHEDULED else []
    matrices = [("values", "<f8", (_MATRICES.get(kind, 0), dimensions))] if kind in _MATRICES else []
    return np.dtype([*head, *schedule, *matrices])


def size_of(kind: Kind, dimensions: int) -> int:
    """How many bytes a message takes.

    >>> size_of(Kind.QUESTION, 4), size_of(Kind.FAILURE, 4), size_of(Kind.FILTER, 4)
    (12, 108, 76)
    """
    return _layout(kind, dimensions).itemsize


def _matrices(message: Message) -> tuple[Floats, ...]:
    if isinstance(message, Reports):
        return (message.points, message.floor, message.roof)[: _MATRICES[message.kind]]
    return (message.low, message.high) if isinstance(message, Boxes) else ()


def encode(message: Message, dimensions: int) -> bytes:
    """A block of messages as bytes, size_of(...) for each. O(clients d)."""
    rows = np.zeros(len(message.clients), _layout(message.kind, dimensions))
    _check_limits(message, dimensions, rows.nbytes)
    rows["version"], rows["kind"], rows["dimensions"] = VERSION, message.kind, dimensions
    rows["client"], rows["time"] = message.clients, message.time
    if isinstance(message, Boxes | Schedules) and message.schedule is not None:
        rows["seed"], rows["rate"] = message.schedule
    for position, matrix in enumerate(_matrices(message)):
        rows["values"][:, position] = matrix
    return rows.tobytes()


def _check_limits(message: Message, dimensions: int, size: int) -> None:
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise InputError("is not a number of columns for a message", value=dimensions, remedy="use 1 to 1024")
    if size > MOST_BYTES:
        raise InputError("bytes are too many for a block of messages", value=size, remedy="send fewer at a time")
    clients = message.clients
    if len(clients) and not (clients.min() >= 0 and clients.max() < MOST_CLIENTS):
        raise InputError("a client's number does not fit", remedy="number clients from 0 to 2^32 - 1")
    if not 0 <= message.time < MOST_TIMESTAMPS:
        raise InputError("is not a timestamp", value=message.time, remedy="count timestamps from 0 to 2^32 - 1")


def decode(data: bytes) -> Message:
    """The block that `encode` made into bytes, of at least one message; an `InputError` for any other bytes.

    >>> asked = decode(encode(Questions(7, np.array([3, 5])), dimensions=2))
    >>> asked.kind.name, asked.time, asked.clients.tolist()
    ('QUESTION', 7, [3, 5])
    """
    head = _layout(Kind.QUESTION, 1)
    if not head.itemsize <= len(data) <= MOST_BYTES:
        raise _refused("its length is not that of a message")
    version, kind, dimensions = (int(data[0]), int(data[1]), int.from_bytes(data[2:4], "little"))
    if version != VERSION:
        raise _refused(f"its version is {version}, not {VERSION}")
    if kind not in Kind.__members__.values() or not 1 <= dimensions <= MOST_DIMENSIONS:
        raise _refused("its kind or number of columns is unknown")
    layout = _layout(Kind(kind), dimensions)
    if len(data) % layout.itemsize:
        raise _refused("its length is not that of its kind")
    rows = np.frombuffer(data, layout)
    if any((rows[name] != rows[name][0]).any() for name in ("version", "kind", "dimensions", "time")):
        raise _refused("the messages of a block are of several kinds or timestamps")
    return _message(Kind(kind), rows)


def _message(kind: Kind, rows: Any) -> Message:
    clients, time = rows["client"].astype(np.int64), int(rows["time"][0])
    values = [rows["values"][:, position].astype(np.float64) for position in range(_MATRICES.get(kind, 0))]
    if any(np.isnan(matrix).any() for matrix in values):
        raise _refused("a value is not a number")
    if kind in (Kind.INSERT, Kind.UPDATE, Kind.SAMPLE):
        return Reports(kind, time, clients, values[0], values[0], values[0])
    if kind in (Kind.FAILURE, Kind.ANSWER):
        if not ((values[1] <= values[0]) & (values[0] <= values[2])).all():
            raise _refused("a point is not in its reach")
        return Reports(kind, time, clients, values[0], values[1], values[2])
    if kind in (Kind.FILTER, Kind.MIXED):
        if not (values[0] <= values[1]).all():
            raise _refused("a box ends before it begins")
        return Boxes(time, clients, values[0], values[1], _schedule(rows) if kind == Kind.MIXED else None)
    if kind == Kind.SCHEDULE:
        return Schedules(time, clients, _schedule(rows))
    bare: dict[Kind, Callable[[int, Integers], Message]] = {
        Kind.DELETE: Departures,
        Kind.QUESTION: Questions,
        Kind.RELEASE: Releases,
    }
    return bare[kind](time, clients)


def _schedule(rows: Any) -> Schedule:
    seed, rate = int(rows["seed"][0]), float(rows["rate"][0])
    if not 0.0 < rate <= 1.0 or (rows["seed"] != seed).any() or (rows["rate"] != rate).any():
        raise _refused("its schedule is none, or several")
    return Schedule(seed, rate)


def _refused(reason: str) -> InputError:
    return InputError(f"the message cannot be read: {reason}", remedy="use the same version of Skytide on both sides")
