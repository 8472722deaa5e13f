"""What a protocol must offer to be run in rounds: clients in buckets, a coordinator, bytes between them.

All of it is deterministic, so that a task that is tried again, or a micro-batch that is done again after a crash, says
and does the same. A timestamp is a dialogue: buckets speak of their own accord, the coordinator tells some of them
something, these answer, and so on until it has nothing more to ask; then it gives its last orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from skytide.model import Booleans, Changes, Integers
from skytide.spark.streaming.query import Query, Read

KEY = "key"
"""The column of a bucket's rows with the time of each as a key."""

Said = Mapping[int, Sequence[bytes]]
"""Messages by bucket."""


@dataclass(frozen=True)
class Run:
    """A run of timestamps: the number of the first, the time keys of all, and what the coordinator says to begin."""

    first: int
    keys: Integers
    shared: bytes = b""

    @property
    def end(self) -> int:
        """The number of the timestamp after the last."""
        return self.first + len(self.keys)


class Bucket(Protocol):
    """Some of the clients, with their rows of a run of timestamps."""

    def advance(self, time: int, until: int) -> tuple[int, list[bytes]]:
        """Let timestamps come, from this one on, up to the first in which anybody speaks; it, and what is said.

        Each comes once and in order. Where all keep quiet up to and including `until`: the timestamp after it, and
        nothing.
        """
        ...

    def tell(self, message: bytes) -> list[bytes]:
        """Take a message in the timestamp that came last; what is answered."""
        ...

    def copy(self) -> Bucket:
        """The same again, to look ahead with."""
        ...

    def to_bytes(self) -> bytes:
        """What the clients know between two timestamps."""
        ...


class Coordinator(Protocol):
    """The server's side."""

    def prepare(self, surveys: Sequence[bytes]) -> bytes:
        """Before a run: take what the buckets' rows are like; what all buckets are to know."""
        ...

    def begin(self, time: int, said: Said) -> Said:
        """Take what was said in a timestamp; questions, whose answers come by `answered`."""
        ...

    def answered(self, said: Said) -> Said:
        """Take answers; further questions."""
        ...

    def settle(self) -> Said:
        """After the last answer: orders, which nobody answers."""
        ...

    def changes(self) -> Changes:
        """What this timestamp changed, after `settle`; ids are those of the rows."""
        ...

    def counts(self) -> dict[str, int]:
        """How many messages so far, by name, from the first run on."""
        ...

    def to_bytes(self) -> bytes:
        """All that it knows between two timestamps."""
        ...


class Rules(Protocol):
    """A protocol with the query it serves: a plain value that travels to tasks."""

    @property
    def query(self) -> Query:
        """How rows are read, and what must stay the same from one run to the next."""
        ...

    @property
    def owner(self) -> str:
        """The column that says whose a row is: all rows with one value of it go to one bucket."""
        ...

    @property
    def buckets(self) -> int:
        """How many buckets there are."""
        ...

    @property
    def row_bytes(self) -> int:
        """How many bytes a row takes as a message, if all were sent."""
        ...

    def kept(self, table: pa.Table, read: Read) -> pa.Table:
        """Of rows that were read, what a bucket wants of the good ones; without the key, which is added."""
        ...

    def merged(self, rows: pa.Table) -> pa.Table:
        """The kept rows of a bucket in the order of their keys; the same for the same rows in any order."""
        ...

    def survey(self, rows: pa.Table) -> bytes:
        """What the coordinator wants to know of a bucket's rows before a run."""
        ...

    def bucket(self, number: int, state: bytes | None, rows: pa.Table | None, run: Run) -> Bucket:
        """A bucket as it was stored, with its merged rows; a new one where nothing was."""
        ...

    def coordinator(self, state: bytes | None, schema: Any = None) -> Coordinator:
        """The coordinator as it was stored, or a new one."""
        ...


Block = TypeVar("Block", bound=Any)


def picked(block: Block, which: Booleans) -> Block:
    """Some of the messages of a block: those rows of all its arrays. O(rows)."""
    arrays = {field.name: getattr(block, field.name) for field in fields(block)}
    mine = {name: given[which] for name, given in arrays.items() if isinstance(given, np.ndarray)}
    found: Block = replace(block, **mine)
    return found
