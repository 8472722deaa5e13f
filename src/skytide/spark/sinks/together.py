"""Several sinks as one: what a live feed gets beside the sink that a pipeline names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Together:
    """Writes each micro-batch to several sinks, one after the other.

    A crash in between leaves some of them a micro-batch behind; it is done again, and replaces what the others have.
    """

    sinks: tuple[Any, ...]

    def write(self, batch: int, rows: pa.Table) -> None:
        """Write a micro-batch to all of them."""
        for sink in self.sinks:
            sink.write(batch, rows)

    def last(self) -> int | None:
        """The last micro-batch that any of them has."""
        return max((last for sink in self.sinks if (last := sink.last()) is not None), default=None)
