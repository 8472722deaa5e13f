"""`skytide fragments`: objects in fragments over many sites, in simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skytide.cli._completing import columns
from skytide.cli._options import data_argument, expression_options, nulls_option, output_option
from skytide.cli._progress import opened
from skytide.cli._stream import MovesRun, names_of
from skytide.cli._stream_options import check_cost, check_outputs, cost_option, letters_option, write_cost
from skytide.cli._watch import About, Watch, told, watch_options

if TYPE_CHECKING:
    from skytide.model import MissingPolicy
    from skytide.streams.files import Chunk

METHODS = ("central", "pivot", "direct", "auto")


@click.command("fragments", short_help="The changes of the skyline of objects that lie in fragments on many sites.")
@data_argument
@expression_options
@click.option(
    "--site", "site_column", metavar="COL", required=True, shell_complete=columns, help="The column that names sites."
)
@click.option(
    "--id", "id_column", metavar="COL", required=True, shell_complete=columns, help="The column that names objects."
)
@click.option(
    "--time",
    "time_column",
    metavar="COL",
    required=True,
    shell_complete=columns,
    help="Each distinct time is an instant.",
)
@click.option(
    "--method", type=click.Choice(METHODS), default="auto", show_default=True, help="What sites watch, and tell."
)
@cost_option
@nulls_option
@letters_option
@output_option
@watch_options
def command(
    data: str,
    minimize: tuple[str, ...],
    maximize: tuple[str, ...],
    by: tuple[str, ...],
    site_column: str,
    id_column: str,
    time_column: str,
    method: str,
    cost: str | None,
    nulls: MissingPolicy,
    dead_letters: str | None,
    output: str | None,
    plot: str | None,
    plot_columns: str | None,
    report: str | None,
) -> None:
    """The changes of the skyline of functions of averages over sites: time, change (+ or -), id.

    Each row is the new local vector of one object at one site; a row whose used columns are all empty takes the site
    out. Rows are expected in the order of their times. EXPR speaks of the means over the object's sites: a column,
    norm(a,b), distance(a,b,c,d), var(v), or arithmetic with + - * / ** and sqrt abs exp log min max pow; a column with
    an odd name stands in backticks. With `central` sites tell everything, with `pivot` and `direct` what may change the
    skyline, and `auto` is the better of the two; all are exact. --cost writes messages and bytes, up and down, without
    those of the first instant, which are given apart.

    \b
      skytide fragments traffic.csv --site router --id target --time second --max packets --max "var(volume)"
    """
    from skytide.errors import SkytideError
    from skytide.protocols.fragmented.functions import Functions
    from skytide.runtime.fragments import Fragmented

    if not minimize and not maximize:
        raise click.UsageError("no preference is given; name an expression with --min or --max")
    check_outputs(output, dead_letters)
    check_cost(cost, output, dead_letters)
    watch = Watch.of(plot, plot_columns, report)
    texts = [name for name in (id_column, site_column, *by) if name != time_column]
    with opened("fragments", data, typed=True, text=texts) as source:
        try:
            functions = Functions(minimize, maximize, columns=source.names)
        except SkytideError as error:
            raise error.at(file=source.label) from None
        monitor = Fragmented(functions, method, by=by, nulls=nulls, everything=bool(watch))
        run = _Run(site_column, watch, "fragments", monitor, source, id_column, time_column)
        shown = told(site=site_column, time=time_column, method=method)
        watch.began(About("fragments", data, monitor.told_preference, shown))
        run.to(output, dead_letters, None)
    write_cost(cost, monitor.cost())


class _Run(MovesRun):
    """A pass over local vectors."""

    def __init__(self, site_column: str, watch: Watch, *arguments: Any) -> None:
        self._site = site_column
        super().__init__(*arguments, site_column, watch=watch)

    def _roles(self) -> dict[str, str | None]:
        return super()._roles() | {"site": self._site}

    def _beside(self, chunk: Chunk) -> dict[str, Any]:
        return super()._beside(chunk) | {"sites": names_of(chunk.table.column(self._site))}
