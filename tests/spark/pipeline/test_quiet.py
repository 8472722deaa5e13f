"""What reaches standard error of what Spark says."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from skytide.spark.pipeline.quiet import quiet_loggers, stopping

pytest.importorskip("pyspark")

PROBE = """
import subprocess, sys, time
from skytide.spark.pipeline.quiet import filtered_stderr, stopping
child = "import sys, time; time.sleep({delay}); sys.stderr.write({text!r})"
text = ("WARNING: Using incubator modules: jdk.incubator.vector\\n"
        "Starting Streaming TransformWithStateInPandas Python worker.\\n\\n"
        "Streaming TransformWithStateInPandas Python worker received parameters.\\n\\n"
        "an error\\n\\nand its end\\n")
logged = "2026-01-01 00:00:00 ERROR Broadcast: failed\\n"
unwound = ('Exception in thread "stream execution thread for [id = 1, runId = 2]" java.lang.StackOverflowError\\n'
           "\\tat java.base/java.util.regex.Pattern$Loop.match(Pattern.java:4898)\\n\\t... 9 more\\n")
loose = "no log\\n\\tat all\\n"
with filtered_stderr():
    process = subprocess.Popen([sys.executable, "-c", child.format(delay=0.3, text=text)])
print("ours", file=sys.stderr, flush=True)
process.wait()
time.sleep(0.5)
with filtered_stderr():
    process = subprocess.Popen([sys.executable, "-c", child.format(delay=0, text=logged + unwound)])
process.wait()
time.sleep(0.5)
with filtered_stderr():
    process = subprocess.Popen([sys.executable, "-c", child.format(delay=0.3, text=logged + unwound + loose)])
stopping.set()
process.wait()
time.sleep(0.5)
try:
    with filtered_stderr():
        subprocess.run([sys.executable, "-c", child.format(delay=0, text="why it ended\\n")])
        raise OSError
except OSError:
    print("the complaint", file=sys.stderr, flush=True)
"""


def test_noise_is_dropped_and_all_else_arrives_also_after_the_start() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    before, while_stopping, after = done.stderr.partition("no log\n")
    said = before.splitlines()
    assert said[:4] == ["ours", "an error", "", "and its end"]
    assert said[4] == "2026-01-01 00:00:00 ERROR Broadcast: failed"
    assert said[5].endswith("StackOverflowError") and said[7:] == ["\t... 9 more"]
    assert while_stopping and after.splitlines() == ["\tat all", "why it ended", "the complaint"]


def test_calls_that_a_stop_cuts_short_are_no_errors_and_others_are(caplog: pytest.LogCaptureFixture) -> None:
    def told(text: str, name: str | None = None, file: str = "/somewhere/py4j/clientserver.py") -> None:
        logger = logging.getLogger(name)
        logger.handle(logger.makeRecord(logger.name, logging.ERROR, file, 1, text, (), None))

    with quiet_loggers():
        stopping.clear()
        told("before", "py4j.clientserver")
        stopping.set()
        told("cut short", "py4j.clientserver")
        told("cut short")
        told("of somebody else", file="/somewhere/else.py")
    told("after", "py4j.java_gateway")
    stopping.clear()
    assert caplog.messages == ["before", "of somebody else", "after"]


def test_a_run_does_not_begin_as_one_that_is_being_stopped() -> None:
    stopping.set()
    with quiet_loggers():
        assert not stopping.is_set()
