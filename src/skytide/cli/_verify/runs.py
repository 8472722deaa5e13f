"""The commands' own runs: the command itself is called with the user's options, and what it writes is read.

Each method, index or engine that a command offers is one run, unless the user names some.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from click.core import ParameterSource

from skytide.cli._verify.comparing import Disagreement, Stream
from skytide.cli._verify.rows import Question, Rows, Unit
from skytide.errors import IdError, InputError, SkytideError
from skytide.streams.files.source import STANDARD_INPUT

CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "skyline": {"engine": ("local", "spark")},
    "window": {"method": ("auto", "lazy", "eager"), "index": ("auto", "list", "rtree")},
    "uncertain": {"method": ("auto", "tree", "scan")},
    "snapshots": {"method": ("auto", "mbr", "recompute")},
    "monitor": {"method": ("naive", "filter", "auto", "sampling", "hybrid")},
    "fragments": {"method": ("central", "pivot", "direct", "auto")},
}
SAMPLING = ("sampling", "hybrid")
_SILENT = ("plot", "plot_columns", "report", "history")
"""Options that write something else: they are not used here."""
_KNOWN = re.compile(
    "the (value|time|probability) is missing|is not a probability|the id of two rows that live"
    "|the instances of an object|the result of an update is not a number|a function has no value"
)
"""What is wrong with data where the definitions must know of it: of other reasons they know nothing."""

Choice = dict[str, str]


def choices_of(context: click.Context, kind: str) -> list[Choice]:
    """The runs to make: all that the command offers, or those that the user named."""
    offered = {}
    for option, values in CHOICES[kind].items():
        named = context.get_parameter_source(option) == ParameterSource.COMMANDLINE
        offered[option] = (context.params[option],) if named else values
    found = [dict(zip(offered, one, strict=True)) for one in itertools.product(*offered.values())]
    if kind == "window" and len(found) == 9:  # an automatic half beside a chosen one adds nothing
        found = [one for one in found if (one["method"] == "auto") == (one["index"] == "auto")]
    if context.params.get("object_column") and len(found) > 1:  # who names it is told by the command that it is none
        found = [one for one in found if one["method"] != "tree"]
    return found


def name_of(choice: Choice) -> str:
    """A choice for people."""
    return ", ".join(dict.fromkeys(choice.values()))


@dataclass(frozen=True)
class Told:
    """What a run wrote: its results, the rows that it did not take, what it cost; or how it failed."""

    table: pa.Table | None
    letters: list[dict[str, Any]]
    cost: dict[str, Any]
    refusal: SkytideError | None = None
    failure: Exception | None = None
    text: bytes = b""
    """The results as they are, where they are CSV."""

    def wrong(self, unusable: str = "") -> Disagreement | None:
        """Whether the run came to nothing, or took what is unusable; data that all runs refuse is another matter."""
        if unusable and self.failure is None:
            return None if self.refusal is not None else Disagreement(f"takes data that cannot be used: {unusable}")
        if self.refusal is not None:
            return Disagreement(f"refuses data that another run takes: {self.refusal}")
        if self.failure is not None:
            return Disagreement(f"fails: {type(self.failure).__name__}: {self.failure}")
        return None


def baseless(refusal: SkytideError, unusable: str) -> Disagreement | None:
    """Whether data is refused for a reason that the definitions would know of, if it were there."""
    known = isinstance(refusal, InputError | IdError) and _KNOWN.search(refusal.reason)
    return Disagreement(f"refuses data that can be used: {refusal}") if known and not unusable else None


class Commands:
    """Runs one command over DATA with changed options."""

    def __init__(self, command: click.Command, context: click.Context) -> None:
        self._command, self._context = command, context

    def told(self, data: str, **changed: Any) -> Told:
        """Run the command; an error of the input, or of ours, is what it told."""
        with tempfile.TemporaryDirectory(prefix="skytide-verify-") as folder:
            files = {name: str(Path(folder) / name) for name in ("told.parquet", "letters.parquet", "cost.json")}
            options = {name: None if name in _SILENT else value for name, value in self._context.params.items()}
            files["told"] = files["told.parquet"] if "dead_letters" in options else str(Path(folder) / "told.csv")
            options |= {"data": data, "output": files["told"], "dead_letters": files["letters.parquet"]}
            options |= {"cost": files["cost.json"], **changed}
            known = {name: value for name, value in options.items() if name in self._context.params}
            try:
                assert self._command.callback is not None
                self._context.invoke(self._command.callback, **known)
            except SkytideError as error:
                return Told(None, [], {}, refusal=error)
            except (click.ClickException, click.exceptions.Exit, click.Abort):
                raise
            except Exception as error:
                return Told(None, [], {}, failure=error)
            letters, cost = Path(files["letters.parquet"]), Path(files["cost.json"])
            told = Path(str(options["output"]))
            if told.suffix == ".csv":
                return Told(None, [], {}, text=told.read_bytes())
            return Told(
                pq.read_table(told),
                pq.read_table(letters).to_pylist() if letters.exists() else [],
                json.loads(cost.read_text()) if cost.exists() else {},
            )


def stream_of(table: pa.Table, unit: Unit) -> Stream:
    """What a run told as a change stream."""
    members = table.column("id").to_pylist()
    if "threshold" in table.column_names:
        members = list(zip(members, table.column("threshold").to_pylist(), strict=True))
    signs = np.array([1 if sign == "+" else -1 for sign in table.column("change").to_pylist()], np.int64)
    return Stream(unit.numbers(table.column("time")), signs, members)


def letters_wrong(rows: Rows, told: Told) -> Disagreement | None:
    """Whether the rows that a run did not take are the right ones."""
    expected = {(*rows.place(row), "late") for row in rows.late.tolist()}
    expected |= {(*rows.place(row), "missing") for row in rows.bad.tolist()}
    nowhere, due = Counter(one["reason"] for one in told.letters if one["row"] is None), _spoiled(rows, told)
    if nowhere != due:
        reason = f"{nowhere.total()} update(s) were left out for their results, but {due.total()} are due"
        return Disagreement(reason, missing=sorted(due - nowhere), wrong=sorted(nowhere - due))
    placed = [one for one in told.letters if one["row"] is not None]
    found = [(one["file"], one["row"], "missing" if "missing" in one["reason"] else "late") for one in placed]
    if len(found) == len(set(found)) and set(found) == expected:
        return None
    missing, wrong = sorted(expected - set(found)), sorted(set(found) - expected)
    return Disagreement("the rows that were not taken are others", missing=missing, wrong=wrong)


def _spoiled(rows: Rows, told: Told) -> Counter[str]:
    """What the letters say of updates whose results are no numbers."""
    if not rows.spoiled or told.table is None:
        return Counter()
    times = rows.unit.told([time for time, _ in rows.spoiled], told.table.schema.field("time").type)
    names = [one for _, one in rows.spoiled]
    reason = "the update of {} at {}: the result is not a number (as inf - inf)"
    return Counter(reason.format(name, time) for name, time in zip(names, times, strict=True))


def texts_of(question: Question) -> list[str]:
    """The columns that stay text, as the command reads them."""
    options = question.options
    named = [question.named, options.get("site_column"), *options["by"]]
    other: list[str | None] = [*question.columns, options.get("time_column"), options.get("prob")]
    if question.kind == "fragments":
        other = [options["time_column"]]
    return [name for name in named if name and name not in other]


@contextmanager
def spooled(data: str) -> Iterator[str]:
    """DATA as something that can be read again and again: standard input becomes a file, of which no error speaks."""
    if data != "-":
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="skytide-verify-") as folder:
        path = Path(folder) / "input.csv"
        path.write_bytes(sys.stdin.buffer.read())
        try:
            yield str(path)
        except SkytideError as error:
            error.file = STANDARD_INPUT if error.file == str(path) else error.file
            raise
