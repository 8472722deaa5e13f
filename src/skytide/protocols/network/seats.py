"""What the coordinator's table is made of: seats of sites, a dialogue, what is to be done, and records for the log."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any

from skytide.protocols.network.frames import Id, Say, decode, encode

SITE, NAMES, DIALOGUE = 1, 2, 3
"""The kinds of records."""


# -- what is to be done ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Send:
    """Send a frame to a site."""

    site: int
    data: bytes


@dataclass(frozen=True)
class Close:
    """End a site's connection: it said what it cannot. `again`: when it comes again, it can say what it has."""

    site: int
    reason: str
    again: bool = False


@dataclass(frozen=True)
class Record:
    """Append a record to the log; it need not be durable yet."""

    kind: int
    data: bytes


@dataclass(frozen=True)
class Commit:
    """Append a record, make the log durable, then call `committed`."""

    data: bytes


@dataclass(frozen=True)
class Publish:
    """The answer after a dialogue: who left it and who entered it, as ids."""

    left: tuple[Id, ...]
    entered: tuple[Id, ...]


Action = Send | Close | Record | Commit | Publish


# -- who is there, and what is going on --------------------------------------------------------------------------------


@dataclass
class Seat:
    """A site, as the coordinator knows it."""

    name: str
    key: bytes
    number: int
    here: bool = False
    synced: bool = False
    """Whether it has told all that it has since it came."""
    done: bool = False
    """Whether its values are final."""
    told: int = 0
    """The number of the last TELL."""
    spoken: int = 0
    """The number of the last SAY, and of the last that was taken."""
    taken: int = 0
    rows: int = 0
    """How many rows it had taken when it last said so."""
    said: Say | None = None
    messages: list[Any] = field(default_factory=list)
    """What it said, read."""

    def record(self) -> bytes:
        """What the log says of a new site."""
        return json.dumps({"name": self.name, "key": self.key.hex()}).encode()


@dataclass(frozen=True)
class Stale:
    """A site that is out of touch, since when, and its objects."""

    site: str
    since: float
    objects: tuple[Id, ...]


@dataclass
class Dialogue:
    """A dialogue: who takes part, what was said in each step, and who has yet to reply."""

    time: int
    parties: set[int]
    lasting: set[int]
    """Sites whose last words these are."""
    fresh: set[int]
    steps: list[dict[int, tuple[bytes, ...]]]
    awaited: dict[int, float] = field(default_factory=dict)
    """The sites that have not replied, and until when they may."""
    replies: dict[int, list[Any]] = field(default_factory=dict)
    raw: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    over: bool = False

    def record(self) -> bytes:
        """Time, how many steps, and for each who says what; of the first also if it is fresh and last. O(bytes)."""
        parts = [struct.pack("<II", self.time, len(self.steps))]
        for step in self.steps:
            parts.append(struct.pack("<I", len(step)))
            for site, messages in step.items():
                flags = (site in self.fresh) + 2 * (site in self.lasting)
                say = encode(Say(0, 0, messages))
                parts += (struct.pack("<IBI", site, flags, len(say)), say)
        return b"".join(parts)


def read_seat(data: bytes, number: int) -> Seat:
    """The site of a record."""
    plain = json.loads(data)
    return Seat(str(plain["name"]), bytes.fromhex(plain["key"]), number)


def read_dialogue(data: bytes) -> tuple[int, dict[int, int], list[dict[int, tuple[bytes, ...]]]]:
    """Of a record: the time, the flags of who began (1: fresh, 2: last), and who says what in each step."""
    time, count = struct.unpack_from("<II", data)
    steps: list[dict[int, tuple[bytes, ...]]] = []
    flags: dict[int, int] = {}
    at = 8
    for _ in range(count):
        (sites,) = struct.unpack_from("<I", data, at)
        at += 4
        steps.append({})
        for _ in range(sites):
            site, flag, size = struct.unpack_from("<IBI", data, at)
            say = decode(data[at + 9 : at + 9 + size], most=1 << 40)
            assert isinstance(say, Say)
            at += 9 + size
            steps[-1][site] = say.messages
            if len(steps) == 1:
                flags[site] = flag
    return time, flags, steps
