"""What a run reports of itself, in a small file of its checkpoint: for pages that watch it from another process.

The file is replaced in one step and holds the last micro-batches only, so that it stays small. It is written where the
checkpoint is a folder of this machine. A run must not fail because nobody can watch it: where it cannot be written, it
is not.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from skytide.errors import OutputError, SkytideError
from skytide.spark.pipeline.document import is_local
from skytide.spark.pipeline.faults import RunFailedError, is_sparks, one_line
from skytide.spark.pipeline.stopping import Stopped
from skytide.spark.sinks.storage import LocalFolder

NAME = "skytide-reports.json"
KEPT = 100
"""Micro-batches whose reports stay."""
ADDED = ("rows", "changes", "late", "bad", "pruned")
"""What is added up over all micro-batches, also over restarts."""
Status = Literal["running", "ended", "failed"]


@dataclass
class Report:
    """What the file says: whether the run goes on, numbers so far, and the last micro-batches."""

    status: str = "running"
    reason: str = ""
    host: str = ""
    process: int = 0
    began: float = 0.0
    totals: dict[str, float] = field(default_factory=dict)
    batches: list[dict[str, float]] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Whether the process that runs is there, as far as this machine can tell."""
        if self.host != socket.gethostname() or self.process <= 0:
            return True
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True


def read_report(checkpoint: str | None) -> Report | None:
    """What the run of a checkpoint last reported; None where nothing can be read. O(1)."""
    if checkpoint is None or not is_local(checkpoint):
        return None
    try:
        given = json.loads((Path(checkpoint) / NAME).read_bytes())
        report = Report(**{name: given[name] for name in Report.__dataclass_fields__})
        usable = isinstance(report.totals, dict) and all(isinstance(one["batch"], int) for one in report.batches)
        return report if usable else None
    except (OSError, ValueError, TypeError, LookupError):
        return None


class Reports:
    """Keeps the file while a run lasts."""

    def __init__(self, checkpoint: str | None, clock: Callable[[], float] = time.time) -> None:
        self._folder = LocalFolder(Path(checkpoint)) if checkpoint is not None and is_local(checkpoint) else None
        before = read_report(checkpoint)
        self._clock = clock
        self._totals = dict.fromkeys(ADDED, 0.0) | ({} if before is None else before.totals)
        self._last: deque[dict[str, float]] = deque(() if before is None else before.batches, KEPT)
        self._began = clock()

    def add(self, numbers: Mapping[str, float]) -> None:
        """A micro-batch is done, with these numbers, its own among them as `batch`."""
        for name in ADDED:
            self._totals[name] += numbers.get(name, 0)
        self._last.append({**numbers, "at": self._clock()})

    def put(self, status: Status = "running", reason: str = "") -> None:
        """Write the file anew."""
        if self._folder is None:
            return
        report = Report(
            status, reason, socket.gethostname(), os.getpid(), self._began, dict(self._totals), list(self._last)
        )
        with contextlib.suppress(OutputError):
            self._folder.put(NAME, json.dumps(vars(report), separators=(",", ":")).encode())

    @contextlib.contextmanager
    def kept(self) -> Iterator[Reports]:
        """While a run lasts: says at its end how it ended."""
        self.put()
        try:
            yield self
        except (SkytideError, RunFailedError) as problem:
            self.put("failed", str(problem))
            raise
        except (Stopped, KeyboardInterrupt):
            self.put("ended", "stopped")
            raise
        except BaseException as problem:
            self.put("failed", one_line(problem) if is_sparks(problem) else type(problem).__name__)
            raise
