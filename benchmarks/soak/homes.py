"""A home for Spark in a temporary folder: what its workers write goes there, and not beside the package.

And ways to leave nothing behind, whoever is ended first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path


def end_in_order() -> None:
    """From now on SIGTERM ends this process as an error would: what it has started is ended, its folders removed."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def end_with_parent() -> None:
    """From now on: when nobody has the other end of the standard input any more, end, with the JVM.

    For a process with a group of its own.
    """

    def wait() -> None:
        sys.stdin.read()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def spark_home(folder: Path) -> Path:
    """The folder, with links to all that the installed pyspark has but its folder for work."""
    import pyspark

    folder.mkdir(parents=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (folder / entry.name).symlink_to(entry)
    return folder
