"""The options that commands share, each described once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from skytide.cli._completing import columns, files

if TYPE_CHECKING:
    from skytide.model import Preference

Function = TypeVar("Function", bound=Callable[..., Any])

data_argument = click.argument("data", metavar="DATA", shell_complete=files)
id_option = click.option(
    "--id",
    "id_column",
    metavar="COL",
    shell_complete=columns,
    help="The column that names rows. Default: the row's number, from 1.",
)
output_option = click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=files,
    help="A .csv, .parquet or .jsonl file. Default: CSV on standard output.",
)
nulls_option = click.option(
    "--nulls",
    type=click.Choice(["error", "drop", "worst"]),
    default="error",
    show_default=True,
    help="What a missing value (NULL, NaN) in a preference column is: an error, a reason to leave the row out, or "
    "worse than every value.",
)


def preference_options(function: Function) -> Function:
    """--min, --max and --by; `preference_of` makes the preference of them."""
    return _preferring(function, "COL")


def expression_options(function: Function) -> Function:
    """--min, --max and --by, where expressions are preferred."""
    return _preferring(function, "EXPR")


def _preferring(function: Function, what: str) -> Function:
    for names, metavar, text in (
        (["--by"], "COL", "A skyline of its own per value."),
        (["--max", "maximize"], what, "More is better."),
        (["--min", "minimize"], what, "Less is better."),
    ):
        option = click.option(
            *names, metavar=metavar, multiple=True, shell_complete=columns, help=f"{text} Repeatable."
        )
        function = option(function)
    return function


def preference_of(minimize: tuple[str, ...], maximize: tuple[str, ...], by: tuple[str, ...]) -> Preference:
    """The preference that the options say."""
    from skytide.model import Preference

    if not minimize and not maximize:
        raise click.UsageError("no preference is given; name a column with --min or --max")
    return Preference(minimize, maximize, by)
