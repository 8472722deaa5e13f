"""What Spark complains about, as one line at its place in the pipeline file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from skytide.errors import SkytideError
from skytide.spark.faults import plain_error
from skytide.spark.pipeline.document import Document
from skytide.spark.pipeline.places import Path as Way

_LONGEST = 400
_CONDITION = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_END = re.compile(r"\s*SQLSTATE: \w{5};?|\n\s*(?:== |JVM stacktrace|'?[A-Z]\w+ [\[(]|\+- |at \S+\()|\n\n")
_WRAPPING = re.compile(r".*?terminated with exception: ", re.DOTALL)
_PYTHON = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Interrupt|Exit)): (.+)$", re.MULTILINE)


class RunFailedError(Exception):
    """A job failed for a reason that neither the file nor the data explain; its text is one line."""


def one_line(problem: BaseException) -> str:
    """The first sentence of what Spark says: no name of a condition, no plan, no stack.

    >>> one_line(ValueError("[TABLE_NOT_FOUND] There is no table `x`.\\nVerify it. SQLSTATE: 42P01; line 1\\n'Project"))
    'There is no table `x`. Verify it'
    """
    text = str(problem)
    raised = _PYTHON.findall(text) if "Traceback (most recent call last)" in text else []
    if raised:
        kind, said = raised[-1]
        return _short(f"{kind}: {said}")
    wrapped = _WRAPPING.match(text)
    if wrapped:
        text = text[wrapped.end() :]
    text = _CONDITION.sub("", text)
    end = _END.search(text)
    return _short(text[: end.start()] if end else text) or type(problem).__name__


def _short(text: str) -> str:
    line = " ".join(text.split()).rstrip(".;: ")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


@contextmanager
def blamed_on(document: Document, *way: str) -> Iterator[None]:
    """Whatever Spark refuses inside is the fault of this key of the file."""
    from pyspark.errors import PySparkException

    place: Way = way
    try:
        yield
    except SkytideError as problem:
        raise document.about(place, problem) from None
    except PySparkException as problem:
        ours = plain_error(problem)
        raise (document.about(place, ours) if ours else document.problem(place, one_line(problem))) from None


@contextmanager
def failures() -> Iterator[None]:
    """Errors of a job as one line: ours as they were meant, others as a failed run."""
    from pyspark.errors import PySparkException

    try:
        yield
    except SkytideError:
        raise
    except Exception as problem:
        # Asked by name: a client of Spark Connect needs no py4j.
        if not isinstance(problem, PySparkException) and not type(problem).__module__.startswith("py4j"):
            raise
        ours = plain_error(problem)
        raise (ours if ours else RunFailedError(one_line(problem))) from None
