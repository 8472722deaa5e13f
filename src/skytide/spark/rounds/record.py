"""What makes a micro-batch durable: one file that names the files of all buckets and holds the coordinator's state.

It appears in one step, after the results are written. Before it does, the micro-batch before is the truth, and a run
that begins anew does the micro-batch again from there; afterwards the micro-batch is done, whatever Spark knows of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skytide.errors import StateError
from skytide.monitors.sliding.clock import LOWEST
from skytide.monitors.storage import HOSTILE, pack, unpack
from skytide.spark.rounds.traffic import Traffic
from skytide.spark.sinks.storage import Folder, batch_name, batches, open_folder

FOLDER = "skytide-rounds"
"""The folder in the checkpoint."""
KEPT = 100
"""The traffic of so many micro-batches is remembered one by one."""
_PREFIX, _EXTENSION = "record", ".skytide"
_KIND, _VERSION = "Rounds", 1
_NEW = "give another place for checkpoint and results, to begin anew"


@dataclass(frozen=True)
class Record:
    """The state after a micro-batch."""

    fingerprint: dict[str, Any]
    batch: int = -1
    states: tuple[str | None, ...] = ()
    rows: tuple[str | None, ...] = ()
    latest: int = LOWEST
    """The latest time seen, as a key."""
    closed: int = LOWEST
    """The last instant that is over."""
    timestamps: int = 0
    """How many have been run."""
    total: Traffic = field(default_factory=Traffic)
    recent: dict[int, Traffic] = field(default_factory=dict)
    """By micro-batch, the last ones."""
    messages: dict[str, int] = field(default_factory=dict)
    """From the beginning, by way and kind."""
    coordinator: bytes | None = None

    def to_bytes(self) -> bytes:
        """As bytes."""
        meta = {
            **{name: getattr(self, name) for name in _META},
            "total": self.total.counts(),
            "recent": [[batch, traffic.counts()] for batch, traffic in self.recent.items()],
        }
        state = np.frombuffer(self.coordinator or b"", np.uint8)
        return pack(_KIND, _VERSION, meta, {"coordinator": state})

    @classmethod
    def from_bytes(cls, blob: bytes) -> Record:
        """And back; a `StateError` for any other bytes."""
        meta, parts = unpack(blob, _KIND, _VERSION)
        try:
            given = {name: meta[name] for name in _META}
            return cls(
                **{**given, "states": tuple(given["states"]), "rows": tuple(given["rows"])},
                total=Traffic.of(meta["total"]),
                recent={int(batch): Traffic.of(counts) for batch, counts in meta["recent"]},
                coordinator=parts["coordinator"].tobytes() or None,
            )
        except HOSTILE as reason:
            raise StateError(f"the record is not in order ({str(reason)[:80]})", remedy=_NEW) from None

    def after(self, batch: int, traffic: Traffic, **changed: Any) -> Record:
        """The record of the next micro-batch."""
        recent = dict([*self.recent.items(), (batch, traffic)][-KEPT:])
        return replace(self, batch=batch, total=self.total + traffic, recent=recent, **changed)


_META = ("fingerprint", "batch", "states", "rows", "latest", "closed", "timestamps", "messages")


class Records:
    """The records of a checkpoint."""

    def __init__(self, folder: str) -> None:
        self._folder: Folder = open_folder(folder)

    def last(self) -> Record | None:
        """The last one, if there is any."""
        for _ in range(10):
            found = batches(self._folder.names(), _PREFIX, _EXTENSION)
            if not found:
                return None
            try:
                return Record.from_bytes(self._folder.get(batch_name(_PREFIX, found[-1], _EXTENSION)))
            except FileNotFoundError:
                continue  # a later one has come
        raise StateError("records come faster than they are read", remedy="try again")

    def commit(self, record: Record) -> None:
        """Make a record the last one, in one step; then remove what it does not need."""
        mine = batch_name(_PREFIX, record.batch, _EXTENSION)
        self._folder.put(mine, record.to_bytes())
        needed = {mine, *record.states, *record.rows}
        for name in self._folder.names():
            if name not in needed:
                self._folder.delete(name)


def checked(record: Record | None, batch: int, fingerprint: dict[str, Any]) -> Record:
    """The record that a micro-batch goes on from, or is; an error where it belongs to something else."""
    if record is None:
        if batch > 0:
            raise StateError(f"the clients' state before micro-batch {batch} is gone", remedy=_NEW)
        return Record(fingerprint)
    for name, value in fingerprint.items():
        if record.fingerprint.get(name) != value:
            raise StateError(
                f"the checkpoint belongs to a query with {name} {record.fingerprint.get(name)!r}, not {value!r}",
                remedy="ask the same as before, or " + _NEW,
            )
    if not record.batch - 1 < batch <= record.batch + 1:
        raise StateError(
            f"micro-batch {batch} does not follow the clients' state, which is that after micro-batch {record.batch}",
            remedy=_NEW,
        )
    return record
