"""What Spark complains about, as one line at its place in the pipeline file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from skytide.errors import MissingDependencyError, OutputError, SkytideError
from skytide.spark.faults import plain_error
from skytide.spark.pipeline.document import Document
from skytide.spark.pipeline.places import Path as Way

_LONGEST = 400
_CONDITION = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_END = re.compile(r"\s*SQLSTATE: \w{5};?|\n\s*(?:== |JVM stacktrace|'?[A-Z]\w+ [\[(]|\+- |at \S+\()|\n\n")
_WRAPPING = re.compile(
    r".*?terminated with exception: |An error occurred while calling \S+\s*: (?:[a-z]\w*\.)+\w+: ", re.DOTALL
)
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


def ours(problem: BaseException) -> SkytideError | None:
    """What Skytide itself had to say, somewhere in the cluster; or None."""
    if "ModuleNotFoundError: No module named 'skytide'" in str(problem):
        return MissingDependencyError(
            "the Spark Connect server has no Skytide beside its driver, and Spark sends it to executors only",
            remedy='install it there with: pip install "skytide[spark]"',
        )
    return plain_error(problem)


def is_sparks(problem: BaseException) -> bool:
    """Whether Spark raised it. Asked by name: a client of Spark Connect needs no py4j."""
    from pyspark.errors import PySparkException

    return isinstance(problem, PySparkException) or type(problem).__module__.startswith("py4j")


def is_unknown_format(problem: BaseException) -> bool:
    """Whether Spark does not know the format of a source or a sink."""
    return is_sparks(problem) and re.search(r"Failed to find (?:the )?data source", str(problem)) is not None


@contextmanager
def blamed_on(document: Document, *way: str) -> Iterator[None]:
    """Whatever Spark refuses inside is the fault of this key of the file, or of the format where it is unknown."""
    place: Way = way
    try:
        yield
    except SkytideError as problem:
        raise document.about(place, problem) from None
    except Exception as problem:
        if not is_sparks(problem):
            raise
        if is_unknown_format(problem):
            place = (way[0], "format")
        said = ours(problem)
        if isinstance(said, MissingDependencyError):
            raise said from None
        raise (document.about(place, said) if said else document.problem(place, one_line(problem))) from None


@contextmanager
def failures() -> Iterator[None]:
    """Errors of a job as one line: ours as they were meant, others as a failed run."""
    try:
        yield
    except OutputError as problem:
        raise RunFailedError(str(problem)) from None
    except SkytideError:
        raise
    except Exception as problem:
        if not is_sparks(problem):
            raise
        said = ours(problem)
        if said is None or isinstance(said, OutputError):
            raise RunFailedError(one_line(problem) if said is None else str(said)) from None
        raise said from None
