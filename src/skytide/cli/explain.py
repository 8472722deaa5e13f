"""`skytide explain`: who dominates a row, and the smallest change that would bring it in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skytide.cli._options import data_argument, id_option, nulls_option, preference_of, preference_options
from skytide.cli._progress import Progress, opened
from skytide.cli._watch import plot_option

if TYPE_CHECKING:
    from skytide.model import MissingPolicy


@click.command("explain", short_help="Why a row is not in the skyline, and what would bring it in.")
@data_argument
@preference_options
@id_option
@nulls_option
@click.option("--row", "wanted", metavar="ID", required=True, help="The row: its id, or its number from 1.")
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="Rows to list at most.")
@plot_option
@click.option("--json", "as_json", is_flag=True, help="For machines: one JSON object.")
def command(
    data: str,
    minimize: tuple[str, ...],
    maximize: tuple[str, ...],
    by: tuple[str, ...],
    id_column: str | None,
    nulls: MissingPolicy,
    wanted: str,
    limit: int,
    plot: str | None,
    as_json: bool,
) -> None:
    """Who dominates the row, and the smallest change that would bring it in.

    The bound of a single column is exact. The smallest change over several columns is the sum of the changes, each
    divided by the range of its column; it is proven to be the least unless the answer says otherwise. For a row of the
    skyline: how many rows it dominates, and how far each column may worsen before it leaves.

    \b
      skytide explain cars.csv --min price --max mpg --row 17 --plot why.png
    """
    from skytide.cli._explanation import Report

    preference = preference_of(minimize, maximize, by)
    if plot:
        from skytide.cli._picture import check_picture

        check_picture(plot)
    with opened("explain", data) as source, Progress("explain") as progress:
        report = Report.of(source, preference, nulls, wanted, id_column, limit, progress)
        if plot:
            report.draw(plot)
        click.echo(report.as_json() if as_json else report.as_text())
