"""The options that the commands over streams share, and whether they fit together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from skytide.cli._completing import columns, files

Function = TypeVar("Function", bound=Callable[..., Any])

letters_option = click.option(
    "--dead-letters",
    metavar="FILE",
    shell_complete=files,
    help="Where rows go that come too late or are left out: file, row, why.",
)
cost_option = click.option(
    "--cost", metavar="FILE", shell_complete=files, help="Also write what was sent: a .json file."
)


def window_options(function: Function) -> Function:
    """--count, --duration, --time, --lateness and --until; `check_window` says whether they fit together."""
    for option in (
        click.option("--until", metavar="TIME", help="Let time run on to this after the last row."),
        click.option("--lateness", metavar="TIME", help="How far rows may come out of order. Default: 0."),
        click.option(
            "--time",
            "time_column",
            metavar="COL",
            shell_complete=columns,
            help="The column with the rows' times, for --duration.",
        ),
        click.option("--duration", metavar="TIME", help="A row lives so long: a number, or like 90s, 15m, 2h, 1d."),
        click.option(
            "--count", type=click.IntRange(min=1), metavar="N", help="A row lives until N more rows have come."
        ),
    ):
        function = option(function)
    return function


def check_window(
    count: int | None, duration: str | None, time_column: str | None, lateness: str | None, until: str | None
) -> None:
    """A usage error where the options make no window, or more than one."""
    if (count is None) == (duration is None):
        raise click.UsageError("give either --count N or --duration TIME with --time COL")
    if count is not None and (time_column or until or lateness):
        raise click.UsageError("--time, --until and --lateness go with --duration, not with --count")
    if duration is not None and time_column is None:
        raise click.UsageError("--duration needs --time COL")


def check_outputs(output: str | None, dead_letters: str | None, history: str | None = None) -> None:
    """An error where the results, the dead letters or the history could not be written, or would go to one file."""
    from skytide.streams.files import check_output

    given = {"-o": output, "--dead-letters": dead_letters, "--history": history}
    files: dict[Path, str] = {}
    for option, file in given.items():
        if file is None:
            continue
        check_output(file)
        other = files.setdefault(Path(file).resolve(), option)
        if other != option:
            raise click.UsageError(f"{other} and {option} name the same file")


def check_cost(cost: str | None, *others: str | None) -> None:
    """A usage error where the cost could not be written, or would go to a file of another option."""
    if cost is None:
        return
    from skytide.streams.files import check_output

    check_output(cost, (".json",))
    if any(other is not None and Path(other).resolve() == Path(cost).resolve() for other in others):
        raise click.UsageError("--cost names the same file as another option")


def write_cost(file: str | None, cost: dict[str, Any]) -> None:
    """Write what was sent where `--cost` says."""
    if file is None:
        return
    from skytide.streams.files.output import publish, temporary_beside

    temporary = temporary_beside(Path(file))
    try:
        temporary.write_text(json.dumps(cost, indent=2) + "\n")
        publish(temporary, Path(file))
    finally:
        temporary.unlink(missing_ok=True)
