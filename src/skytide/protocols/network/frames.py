"""What a site and the coordinator send each other: frames, and their one binary encoding.

A frame carries messages of a protocol as they are (`skytide.protocols.*.messages`) and says where they belong. All
numbers are little-endian; every frame begins with version u8 and kind u8:

    HELLO    key 16 bytes, then the site's name
    WELCOME  site u32, now f64, paired u8, then the query as JSON
    NAMES    ids: count u32, and for each a tag u8, a length u16 and bytes
    NUMBERS  count u32, then u32 each
    SAY      number u32, heard u32, flags u8, rows u64, messages
    REPLY    number u32, messages
    TELL     number u32, taken u32, time u32, messages
    SETTLED  taken u32

Messages are a count u32, and for each a length u32 and bytes. `decode` checks all of it and raises `InputError`.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from skytide.errors import InputError

VERSION = 1
MOST_BYTES = 1 << 24
"""The largest frame that is decoded, unless less is allowed."""
MOST_ID = 1 << 10
"""Bytes of an id that is a text."""
NOBODY = (1 << 32) - 1
"""In place of an object's number: the site may not speak of it."""
KEY_BYTES = 16

Id = int | str


@dataclass(frozen=True)
class Hello:
    """A site comes; the key says that it is the one that came under the name before, where no token does."""

    site: str
    key: bytes


@dataclass(frozen=True)
class Welcome:
    """The coordinator's answer: the site's number, the coordinator's time in timestamps, and what is asked.

    `paired`: objects in fragments are watched in pairs.
    """

    site: int
    now: float
    query: dict[str, Any]
    paired: bool = False


@dataclass(frozen=True)
class Names:
    """A site asks for the numbers of objects."""

    ids: tuple[Id, ...]


@dataclass(frozen=True)
class Numbers:
    """The numbers of the objects that a site asked for, in its order."""

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Say:
    """What a site has to say of its own accord. `heard` is the last TELL before it; `fresh`: this is all it has, and
    what it had before is void; `last`: these are the last words, and its values are final. `rows` is how many rows it
    has taken since it began, for the account of what was not sent.
    """

    number: int
    heard: int
    messages: tuple[bytes, ...]
    fresh: bool = False
    last: bool = False
    rows: int = 0


@dataclass(frozen=True)
class Reply:
    """What a site says to a TELL."""

    number: int
    messages: tuple[bytes, ...]


@dataclass(frozen=True)
class Tell:
    """Orders and questions; `taken` is the last SAY that they reckon with."""

    number: int
    taken: int
    time: int
    messages: tuple[bytes, ...]


@dataclass(frozen=True)
class Settled:
    """The dialogue is over and its outcome durable and published; `taken` is the last SAY that is part of it."""

    taken: int


Up = Hello | Names | Say | Reply
Down = Welcome | Numbers | Tell | Settled
Frame = Up | Down

_KINDS: dict[type[Any], int] = {Hello: 1, Names: 2, Say: 3, Reply: 4, Welcome: 16, Numbers: 17, Tell: 18, Settled: 19}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_FRESH, _LAST = 1, 2
_WHOLE, _TEXT = 0, 1


def usable_name(name: str) -> bool:
    """Whether a site may be called so: 1 to 100 letters, digits, - and _ of ASCII.

    >>> usable_name("shop-7"), usable_name("shop 7"), usable_name("")
    (True, False, False)
    """
    return _NAME.fullmatch(name) is not None


def usable_id(one: object) -> bool:
    """Whether an object may be called so: a whole number of 64 bits, or a text.

    >>> usable_id("a"), usable_id(-3), usable_id(1.5), usable_id(True)
    (True, True, False, False)
    """
    if isinstance(one, str):
        return 0 < len(one.encode("utf-8", "surrogatepass")) <= MOST_ID and _encodable(one)
    return type(one) is int and -(1 << 63) <= one < 1 << 63


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# -- to bytes ----------------------------------------------------------------------------------------------------------


def _packed(messages: Sequence[bytes]) -> bytes:
    parts = [struct.pack("<I", len(messages))]
    for message in messages:
        parts += (struct.pack("<I", len(message)), message)
    return b"".join(parts)


def _packed_id(one: Id) -> bytes:
    if isinstance(one, str):
        data = one.encode()
        return struct.pack("<BH", _TEXT, len(data)) + data
    return struct.pack("<BHq", _WHOLE, 8, one)


def encode(frame: Frame) -> bytes:
    """A frame as bytes. O(bytes).

    >>> decode(encode(Say(3, 2, (b"abc", b""), fresh=True)))
    Say(number=3, heard=2, messages=(b'abc', b''), fresh=True, last=False, rows=0)
    """
    return bytes((VERSION, _KINDS[type(frame)])) + _body(frame)


def _body(frame: Frame) -> bytes:
    match frame:
        case Hello(site, key):
            return key + site.encode("ascii")
        case Welcome(site, now, query, paired):
            return struct.pack("<Id?", site, now, paired) + json.dumps(query, allow_nan=False).encode()
        case Names(ids):
            return struct.pack("<I", len(ids)) + b"".join(map(_packed_id, ids))
        case Numbers(numbers):
            return struct.pack(f"<I{len(numbers)}I", len(numbers), *numbers)
        case Say(number, heard, messages, fresh, last, rows):
            return struct.pack("<IIBQ", number, heard, fresh * _FRESH + last * _LAST, rows) + _packed(messages)
        case Reply(number, messages):
            return struct.pack("<I", number) + _packed(messages)
        case Tell(number, taken, time, messages):
            return struct.pack("<III", number, taken, time) + _packed(messages)
        case Settled(taken):
            return struct.pack("<I", taken)


# -- from bytes --------------------------------------------------------------------------------------------------------


class _Reader:
    """Bytes, read from the front."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 2

    def numbers(self, form: str) -> tuple[Any, ...]:
        size = struct.calcsize(form)
        return struct.unpack(form, self.piece(size))

    def piece(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            refuse("it ends too early")
        found = self._data[self._at : self._at + size]
        self._at += size
        return found

    def rest(self) -> bytes:
        return self.piece(len(self._data) - self._at)

    def count(self, least: int) -> int:
        """How many of something follow, each of which takes at least so many bytes."""
        (found,) = self.numbers("<I")
        if found * least > len(self._data) - self._at:
            refuse("it ends too early")
        return int(found)

    def messages(self) -> tuple[bytes, ...]:
        return tuple(self.piece(*self.numbers("<I")) for _ in range(self.count(4)))

    def end(self) -> None:
        if self._at != len(self._data):
            refuse("something follows its end")


def refuse(reason: str) -> NoReturn:
    """Raise the error for a frame that cannot be read."""
    raise InputError(f"the frame cannot be read: {reason}", remedy="use the same version of Skytide on both sides")


def decode(data: bytes, most: int = MOST_BYTES) -> Frame:
    """The frame that `encode` made into bytes, of so many bytes at most; an `InputError` for any other bytes.

    >>> decode(b"junk")
    Traceback (most recent call last):
    ...
    skytide.errors.InputError: the frame cannot be read: its version is 106, not 1; use the same version ...
    """
    if not 2 <= len(data) <= most:
        refuse("its length is not that of a frame")
    if data[0] != VERSION:
        refuse(f"its version is {data[0]}, not {VERSION}")
    read = _READERS.get(data[1])
    if read is None:
        refuse("its kind is unknown")
    reader = _Reader(data)
    found: Frame = read(reader)
    reader.end()
    return found


def _hello(reader: _Reader) -> Hello:
    key, name = reader.piece(KEY_BYTES), reader.rest().decode("latin-1")
    if not usable_name(name):
        refuse("its site has no usable name")
    return Hello(name, key)


def _welcome(reader: _Reader) -> Welcome:
    site, now, paired = reader.numbers("<Id?")
    if not (math.isfinite(now) and now >= 0.0):
        refuse("its time is none")
    try:
        query = json.loads(reader.rest(), parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        refuse("its query is not JSON")
    if not isinstance(query, dict):
        refuse("its query is not an object")
    return Welcome(site, now, query, paired)


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(text)
    return found


def _names(reader: _Reader) -> Names:
    return Names(tuple(_id(reader) for _ in range(reader.count(3))))


def _id(reader: _Reader) -> Id:
    tag, length = reader.numbers("<BH")
    data = reader.piece(length)
    if tag == _WHOLE and length == 8:
        return int(struct.unpack("<q", data)[0])
    if tag != _TEXT or not 0 < length <= MOST_ID:
        refuse("an id is neither a whole number nor a text")
    try:
        return data.decode()
    except UnicodeDecodeError:
        refuse("an id is not a text")


def _numbers(reader: _Reader) -> Numbers:
    return Numbers(reader.numbers(f"<{reader.count(4)}I"))


def _say(reader: _Reader) -> Say:
    number, heard, flags, rows = reader.numbers("<IIBQ")
    if flags > _FRESH + _LAST:
        refuse("its flags are unknown")
    return Say(number, heard, reader.messages(), bool(flags & _FRESH), bool(flags & _LAST), rows)


def _reply(reader: _Reader) -> Reply:
    (number,) = reader.numbers("<I")
    return Reply(number, reader.messages())


def _tell(reader: _Reader) -> Tell:
    number, taken, time = reader.numbers("<III")
    return Tell(number, taken, time, reader.messages())


def _settled(reader: _Reader) -> Settled:
    return Settled(*reader.numbers("<I"))


_READERS: dict[int, Any] = {1: _hello, 2: _names, 3: _say, 4: _reply} | {
    16: _welcome,
    17: _numbers,
    18: _tell,
    19: _settled,
}
