"""Keeps what Spark says that helps nobody away from standard error, where a run says how it goes."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

# Spark's worker for state announces itself whatever the log level, and a Java names every module that is not final.
NOISE = re.compile(
    rb"(Starting )?Streaming TransformWithStateInPandas Python worker|WARNING: Using incubator modules: "
)
_LOGGED = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ERROR ")
# A query that is stopped within a micro-batch learns it from a long message, and looks for the reason in it with a
# regular expression that Java runs out of stack on. The query ends all the same; only its thread complains.
_OVERFLOW = re.compile(rb'Exception in thread "stream execution thread for .*java\.lang\.StackOverflowError')
_FRAME = re.compile(rb"\s+at |\s+\.\.\. \d+ |Caused by: ")
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_CALLERS = (None, "py4j.clientserver", "py4j.java_gateway")
"""Loggers under which py4j tells of calls between Python and Java that failed; the first is the root."""
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
    dropped = unwinding = False
    with open(reading, "rb") as lines:
        for line in lines:
            unwinding = (unwinding and bool(_FRAME.match(line))) or (stopping.is_set() and bool(_OVERFLOW.match(line)))
            noise = unwinding or bool(NOISE.match(line)) or (stopping.is_set() and bool(_LOGGED.match(line)))
            # Each of Spark's announcements is followed by an empty line.
            if not noise and not (dropped and not line.strip()):
                with contextlib.suppress(OSError):
                    os.write(writing, line)
            dropped = noise


@contextlib.contextmanager
def quiet_loggers() -> Iterator[None]:
    """PySpark logs every refused query with all its stack, in addition to the exception.

    And py4j every call that a stop cuts short, be it ours or that of a micro-batch.
    """
    from pyspark.logger import PySparkLogger

    stopping.clear()  # where a session is there already, nobody else begins anew
    # Asked of PySpark, so that they are loggers of its own class where they are new.
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    callers = [logging.getLogger(name) for name in _CALLERS]
    for caller in callers:
        caller.addFilter(_unless_cut_short)
    try:
        yield
    finally:
        for caller in callers:
            caller.removeFilter(_unless_cut_short)
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _unless_cut_short(record: logging.LogRecord) -> bool:
    return not (stopping.is_set() and Path(record.pathname).parent.name == "py4j")
