"""`skytide skyline`: the rows of DATA that no other row dominates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skytide.cli._options import data_argument, nulls_option, output_option, preference_of, preference_options
from skytide.cli._progress import Progress, opened
from skytide.cli._serving import page_packages
from skytide.cli._watch import watch_options

if TYPE_CHECKING:
    import pyarrow as pa

    from skytide.model import MissingPolicy
    from skytide.streams.files import Chunk, Source, TypeGuess


@click.command("skyline", short_help="The rows of DATA in the skyline.")
@data_argument
@preference_options
@nulls_option
@click.option(
    "--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True, help="Who does the work."
)
@output_option
@watch_options
def command(
    data: str,
    minimize: tuple[str, ...],
    maximize: tuple[str, ...],
    by: tuple[str, ...],
    nulls: MissingPolicy,
    engine: str,
    output: str | None,
    plot: str | None,
    plot_columns: str | None,
    report: str | None,
) -> None:
    """The rows of DATA in the skyline, in input order, all columns.

    A row is in the skyline if no other row is at least as good in every --min and --max column and better in one. A
    file may be larger than memory; the skyline and a chunk must fit.

    \b
      skytide skyline cars.parquet --min price --max mpg --by brand -o best.csv --plot best.png
    """
    from skytide.cli._engines import local_skyline, spark_skyline
    from skytide.streams.files import TypeGuess, check_output, write_table

    preference = preference_of(minimize, maximize, by)
    check_output(output)
    if plot_columns and not plot:
        raise click.UsageError("--plot-columns needs --plot FILE")
    picture = None
    if plot:
        from skytide.cli._picture import Picture

        picture = Picture(plot, plot_columns, preference)
    kept = None
    if report:
        with page_packages():
            from skytide.cli._boards import TableReport
        kept = TableReport(report, data, preference)
    with opened("skyline", data) as source, Progress("skyline") as progress:
        typed = source.verbatim and output is not None and output.lower().endswith((".parquet", ".jsonl"))
        guess = TypeGuess(source.names) if typed else None

        def watch(chunk: Chunk) -> None:
            progress.update(chunk.done)
            if guess is not None:
                guess.see(chunk.table)
            if picture is not None:
                picture.see(chunk)
            if kept is not None:
                kept.see(chunk)

        find = spark_skyline if engine == "spark" else local_skyline
        more = tuple(picture.columns) if picture is not None else ()
        table = find(source, preference, nulls, watch=watch, more=source_columns(source, guess, more))
        if picture is not None:
            picture.draw(table, source)
        if kept is not None:
            kept.write(table, source)
        write_table(output, typed_table(table, guess, output))


def source_columns(source: Source, guess: TypeGuess | None, more: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that must pass: all of them where types are to be found out."""
    return more if guess is None else tuple(source.names)


def typed_table(table: pa.Table, guess: TypeGuess | None, output: str | None) -> pa.Table:
    """The table with the types that all rows of DATA allow; JSON has no times, so they stay as they were written."""
    if guess is None or output is None:
        return table
    return guess.cast(table, times=not output.lower().endswith(".jsonl"))
