"""What went to the driver and back, against what all rows would have been."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Traffic:
    """Counts of a micro-batch, or of a whole run. They add up.

    >>> Traffic(rows=1000, row_bytes=44_000, reached=20, reached_bytes=2_100).described()
    '20 of 1000 rows (2.1 kB of 44.0 kB) to the driver'
    """

    timestamps: int = 0
    jobs: int = 0
    rows: int = 0
    """Rows that were taken."""
    row_bytes: int = 0
    """What these would be as messages."""
    reached: int = 0
    """Messages that reached the driver: each is a client's row, or that it goes."""
    reached_bytes: int = 0
    """All bytes that reached the driver: messages, ids of new clients, times, names of new groups."""
    sent: int = 0
    """Messages that left the driver."""
    sent_bytes: int = 0
    """All bytes of messages that left the driver; what a task must be told again counts again."""
    changes: int = 0
    late: int = 0
    bad: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    def counts(self) -> dict[str, int]:
        """All of it by name."""
        return asdict(self)

    @classmethod
    def of(cls, counts: dict[str, Any]) -> Traffic:
        """The traffic with these counts."""
        return cls(**{one.name: int(counts[one.name]) for one in fields(cls)})

    def described(self) -> str:
        """How much reached the driver, for a reader."""
        sizes = f"{_size(self.reached_bytes)} of {_size(self.row_bytes)}"
        return f"{self.reached} of {self.rows} rows ({sizes}) to the driver"


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
