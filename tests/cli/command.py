"""Runs the command line in this process, as the tests of all commands need it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from click.testing import CliRunner, Result

from skytide.cli import app


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    """What the command printed on each stream, and its exit status; a traceback is an error of the test."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def rows_of(text: str) -> list[dict[str, str]]:
    """CSV with a header as records."""
    return list(csv.DictReader(io.StringIO(text)))


def reasons(letters: Path) -> list[tuple[str, str]]:
    """The rows in a file of dead letters, each with the first part of why it is there."""
    return [(row["row"], row["reason"].split(";")[0]) for row in rows_of(letters.read_text())]


def refused(*arguments: str | Path, stdin: bytes | None = None) -> str:
    """The one line that a command prints when it refuses its input."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 2, (result.exit_code, result.stdout, result.stderr)
    assert result.stdout == ""
    assert result.stderr.endswith("\n")
    assert result.stderr.count("\n") == 1, result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr.rstrip("\n")
