"""Errors of Spark jobs, brought back to the one line that the task meant to say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from skytide import errors
from skytide.errors import MissingDependencyError, SkytideError

# The last line of a Python traceback names the class with its module; Spark's message holds it among many others, and
# adds a code of its own and the place in a query.
_RAISED = re.compile(r"^(?:\S+: )?skytide\.errors\.(\w+): (.+?)(?: SQLSTATE: \w{5}\b.*)?$", re.MULTILINE)


def need_pyspark() -> None:
    """An error with the remedy where pyspark is not installed."""
    try:
        import pyspark  # noqa: F401
    except ImportError as missing:
        raise MissingDependencyError(
            f"Spark functions need a package that is not installed ({missing.name})",
            remedy='install it with: pip install "skytide[spark]"',
        ) from None


def plain_error(problem: BaseException) -> SkytideError | None:
    """The Skytide error that a Spark task raised, out of the long message of the exception that arrived; or None.

    >>> text = "An exception was thrown: Traceback ...\\nskytide.errors.InputError: column 'a': the value is missing\\n"
    >>> plain_error(RuntimeError(text))
    InputError("column 'a': the value is missing")
    """
    if isinstance(problem, SkytideError):
        return problem
    found = _RAISED.findall(str(problem))
    if not found:
        return None
    name, line = found[-1]
    kind = getattr(errors, name, None)
    return kind(line.strip()) if isinstance(kind, type) and issubclass(kind, SkytideError) else None


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise what a Spark task complained about as the Skytide error it was, one line long.

    Spark evaluates late, so the complaint comes with the action, not with the function that built the table:

    ```python
    with skytide.spark.plain_errors():
        skytide.spark.skyline(df, preference).write.parquet("best")
    ```
    """
    try:
        yield
    except SkytideError:
        raise
    except Exception as problem:
        plain = plain_error(problem)
        if plain is None:
            raise
        raise plain from None
