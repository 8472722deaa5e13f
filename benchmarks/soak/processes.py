"""The processes below one of ours, by what they are for; how much memory each holds; and how to end one of them.

All of it is read from /proc. A process is known by its id and by when it started, since ids are used again.
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

DRIVER, DRIVER_JVM, EXECUTOR, WORKER = "driver", "driver's JVM", "executor's JVM", "Python worker"
BESIDE, COORDINATOR, SITES, OTHER = "Python beside the driver", "coordinator", "sites", "other"
_MARKS = (
    ("CoarseGrainedExecutorBackend", EXECUTOR),
    ("org.apache.spark.deploy", DRIVER_JVM),
    ("benchmarks.soak.job", DRIVER),
    ("pyspark.daemon pyspark.worker", WORKER),
    ("pyspark.", BESIDE),
    ("benchmarks.network.serve", COORDINATOR),
    ("benchmarks.network.fault_site", SITES),
)
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """A process that runs, or has run."""

    id: int
    parent: int
    started: int
    role: str

    def resident(self) -> int:
        """Bytes of memory that it holds; 0 where it has ended."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            if _stat(self.id)[1] == self.started:
                return int(Path(f"/proc/{self.id}/statm").read_text().split()[1]) * _PAGE
        return 0

    def kill(self) -> bool:
        """End it at once, if it is still the same process; whether it was."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            if _stat(self.id)[1] == self.started:
                os.kill(self.id, signal.SIGKILL)
                return True
        return False


def below(ancestor: int) -> list[Process]:
    """All that a process has started, directly or not, and that still runs."""
    parents: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parents[int(entry.name)] = _stat(int(entry.name))
    found, known = [], {ancestor}
    grown = True
    while grown:
        grown = False
        for one, (parent, started) in parents.items():
            if parent in known and one not in known:
                known.add(one)
                found.append(Process(one, parent, started, _role(one)))
                grown = True
    return found


def _stat(process: int) -> tuple[int, int]:
    """The parent of a process, and when it started in ticks of the system; a zombie has ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    if fields[0] == "Z":
        raise ValueError("has ended")
    return int(fields[1]), int(fields[19])


def _role(process: int) -> str:
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return next((role for mark, role in _MARKS if mark in command), OTHER)
    return OTHER
