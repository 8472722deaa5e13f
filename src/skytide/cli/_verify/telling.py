"""What `skytide verify` says: a small table for people, JSON for machines, and how to see a disagreement again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import click
import pyarrow as pa
from click.core import ParameterSource

from skytide.cli._verify.runs import CHOICES, Choice, name_of
from skytide.cli._verify.verifying import Result
from skytide.streams.files import csv_bytes

_SHOWN = 5
_FEW_ROWS = 40
_NOT_REPEATED = ("output", "dead_letters", "cost", "plot", "plot_columns", "report", "history")


@dataclass(frozen=True)
class Reproduction:
    """A small input on which a run is wrong, and the command that shows it."""

    rows: pa.Table
    command: str
    file: str | None


def command_line(kind: str, context: click.Context, data: str, choice: Choice) -> str:
    """The call of `skytide verify` for one run over other data, with the user's options."""
    words = ["skytide", "verify", kind, data]
    for parameter in context.command.params:
        name, value = str(parameter.name), context.params.get(str(parameter.name))
        given = context.get_parameter_source(name) == ParameterSource.COMMANDLINE
        if not given or not isinstance(parameter, click.Option) or name in (*_NOT_REPEATED, *CHOICES[kind]):
            continue
        option = max(parameter.opts, key=len)
        if parameter.is_flag:
            words.append(option)
        else:
            for one in (value or ()) if parameter.multiple else (value,):
                words += [option, str(one)]
    for option, one in choice.items():
        words += [f"--{option}", one]
    return shlex.join(words)


def table_of(results: list[Result]) -> str:
    """The results as a table."""
    lines = [("run", "looked at", "rows", "instants", "result")]
    for one in results:
        looked = f"{one.checked:,}" if one.checked == one.instants else f"{one.checked:,} of {one.instants:,}"
        word = "agrees" if one.finding is None else "DISAGREES"
        word = "not run" if one.skipped else word
        word += "".join(f", {name.replace('_', ' ')} {value:.4f}" for name, value in one.figures.items())
        lines.append((name_of(one.choice), one.what, f"{one.rows:,}", looked, word))
    widths = [max(len(line[at]) for line in lines) for at in range(4)]
    return "\n".join(
        f"{line[0]:<{widths[0]}}  {line[1]:<{widths[1]}}  {line[2]:>{widths[2]}}  {line[3]:>{widths[3]}}  {line[4]}"
        for line in lines
    )


def finding_text(result: Result) -> str:
    """What is wrong with a run, in a sentence."""
    finding = result.finding
    assert finding is not None
    text = f"{name_of(result.choice)}: {finding.reason}"
    if finding.time is not None:
        text += f" (time {finding.time})"
    for word, whom in (("missing", finding.missing), ("wrong", finding.wrong)):
        if whom:
            more = ", ..." if len(whom) > _SHOWN else ""
            text += f"; {word}: {', '.join(_member(one) for one in whom[:_SHOWN])}{more}"
    return text


def _member(one: Any) -> str:
    return " ".join(map(str, one)) if isinstance(one, tuple) else str(one)


def reproduction_text(found: Reproduction) -> str:
    """The small input, where it is small enough to be shown, and the command."""
    rows = "1 row" if found.rows.num_rows == 1 else f"{found.rows.num_rows:,} rows"
    lines = [f"This is a bug of skytide. It shows with {rows}" + (f", now in {found.file}:" if found.file else ":")]
    if found.rows.num_rows <= _FEW_ROWS:
        text = csv_bytes(found.rows).decode()
        lines += ["", *(f"  {line}" for line in text.splitlines()), ""]
    elif found.file is None:
        lines.append("  (-o FILE keeps them)")
    return "\n".join([*lines, f"  {found.command}"])


def as_record(kind: str, results: list[Result], found: Reproduction | None) -> dict[str, Any]:
    """The same for machines."""
    record: dict[str, Any] = {
        "command": kind,
        "agrees": all(one.finding is None for one in results),
        "runs": [_run(one) for one in results],
    }
    if found is not None:
        record["reproduction"] = {
            "rows": found.rows.num_rows,
            "file": found.file,
            "command": found.command,
            "csv": csv_bytes(found.rows).decode() if found.rows.num_rows <= _FEW_ROWS else None,
        }
    return record


def _run(one: Result) -> dict[str, Any]:
    found: dict[str, Any] = {
        **one.choice,
        "looked_at": one.what,
        "rows": one.rows,
        "instants": one.instants,
        "instants_checked": one.checked,
        "result": "not run" if one.skipped else "agrees" if one.finding is None else "disagrees",
        **one.figures,
    }
    if one.skipped:
        found["reason"] = one.skipped
    if one.finding is not None:
        time = one.finding.time
        found |= {
            "reason": one.finding.reason,
            "time": time.item() if hasattr(time, "item") else time,
            "missing": [_member(each) for each in one.finding.missing],
            "wrong": [_member(each) for each in one.finding.wrong],
        }
    return found
