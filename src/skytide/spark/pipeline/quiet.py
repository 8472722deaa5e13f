"""Keeps what Spark says that helps nobody away from standard error, where a run says how it goes."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterator

# Spark's worker for state announces itself whatever the log level, and a Java names every module that is not final.
NOISE = re.compile(
    rb"(Starting )?Streaming TransformWithStateInPandas Python worker|WARNING: Using incubator modules: "
)
_LOGGED = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ERROR ")
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_PATIENCE_SECONDS = 2.0

stopping = threading.Event()
"""Set while a run is being stopped: Spark then logs as errors what the stop itself interrupts."""


@contextlib.contextmanager
def filtered_stderr() -> Iterator[None]:
    """What processes that are started inside write to standard error goes through a filter, as long as they live."""
    stopping.clear()
    reading, writing = os.pipe()
    ours = os.dup(2)
    os.dup2(writing, 2)
    os.close(writing)
    thread = threading.Thread(target=_pass_on, args=(reading, ours), daemon=True, name="skytide-stderr")
    thread.start()
    try:
        yield
    except BaseException:
        os.dup2(ours, 2)
        thread.join(_PATIENCE_SECONDS)  # what a process said that ended at once comes before the complaint about it
        raise
    else:
        os.dup2(ours, 2)


def _pass_on(reading: int, writing: int) -> None:
    dropped = False
    with open(reading, "rb") as lines:
        for line in lines:
            noise = NOISE.match(line) is not None or (stopping.is_set() and _LOGGED.match(line) is not None)
            # Each of Spark's announcements is followed by an empty line.
            if not noise and not (dropped and not line.strip()):
                with contextlib.suppress(OSError):
                    os.write(writing, line)
            dropped = noise


@contextlib.contextmanager
def quiet_loggers() -> Iterator[None]:
    """PySpark logs every refused query with all its stack, in addition to the exception."""
    from pyspark.logger import PySparkLogger

    # Asked of PySpark, so that they are loggers of its own class where they are new.
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
