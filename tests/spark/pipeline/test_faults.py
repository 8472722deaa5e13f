"""What Spark complains about, as one line."""

from __future__ import annotations

import pytest

from skytide.errors import InputError, MissingDependencyError, OutputError
from skytide.spark.pipeline import RunFailedError
from skytide.spark.pipeline.faults import failures, one_line

pyspark = pytest.importorskip("pyspark")

STREAM_FAILED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to failure: \
Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.write(FileOutputStream.java)
Driver stacktrace: SQLSTATE: XXKST
=== Streaming Query ==="""
PYTHON = """An exception was thrown from the Python worker: Traceback (most recent call last):
  File "worker.py", line 1, in main
    raise KeyError("x")
KeyError: 'x'

SQLSTATE: 38000"""
CALLED = """An error occurred while calling o65.load.
: org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data source: cvs. Make sure.
\tat org.apache.spark.sql.errors.X(Y.scala:1)"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            STREAM_FAILED,
            "Job aborted due to failure: Task 0 in stage 1.0 failed 1 times, most recent failure: "
            "Lost task 0.0: java.io.IOException: No space left on device",
        ),
        (PYTHON, "KeyError: 'x'"),
        (CALLED, "Failed to find the data source: cvs. Make sure"),
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601 (line 1)\n\n== SQL ==",
            "Syntax error at or near 'x'",
        ),
        ("plain", "plain"),
        ("", "RuntimeError"),
        ("a" * 1000, "a" * 397 + "..."),
    ],
)
def test_only_the_sentence_that_matters_is_left(text: str, line: str) -> None:
    assert one_line(RuntimeError(text)) == line


def test_our_errors_stay_and_sparks_become_a_failed_run() -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(InputError), failures():
        raise InputError("x")
    with pytest.raises(InputError, match="the value is missing"), failures():
        raise PySparkException("Traceback\nskytide.errors.InputError: column 'a': the value is missing\n")
    with pytest.raises(RunFailedError, match=r"^no luck$"), failures():
        raise PySparkException("no luck")
    with pytest.raises(ZeroDivisionError), failures():
        raise ZeroDivisionError


def test_a_server_without_skytide_is_told_what_to_install() -> None:
    from pyspark.errors import PySparkException

    text = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'skytide'\n"
    with pytest.raises(MissingDependencyError, match=r"pip install .skytide\[spark\]"), failures():
        raise PySparkException(text)


def test_results_that_cannot_be_written_are_a_failed_run_not_bad_input() -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(RunFailedError, match="the disk is full"), failures():
        raise OutputError("the disk is full")
    with pytest.raises(RunFailedError, match="the disk is full"), failures():
        raise PySparkException("Traceback\nskytide.errors.OutputError: the disk is full\n")
