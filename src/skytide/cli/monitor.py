"""`skytide monitor`: the filtering protocol in simulation, one client for each id of DATA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skytide.cli._completing import columns
from skytide.cli._options import data_argument, nulls_option, output_option, preference_of, preference_options
from skytide.cli._progress import opened
from skytide.cli._stream import MovesRun
from skytide.cli._stream_options import check_cost, check_outputs, cost_option, letters_option, write_cost
from skytide.cli._watch import About, Watch, told, watch_options

if TYPE_CHECKING:
    from skytide.model import MissingPolicy

METHODS = ("naive", "filter", "auto", "sampling", "hybrid")


@click.command("monitor", short_help="The changes of the skyline of clients that say little, and what they say.")
@data_argument
@preference_options
@click.option(
    "--id", "id_column", metavar="COL", required=True, shell_complete=columns, help="The column that names clients."
)
@click.option(
    "--time",
    "time_column",
    metavar="COL",
    required=True,
    shell_complete=columns,
    help="Each distinct time is a timestamp.",
)
@click.option(
    "--method", type=click.Choice(METHODS), default="auto", show_default=True, help="Who tells what, and when."
)
@click.option("--theta", metavar="THETA", help="Instead: who is in the skyline in at least this share of timestamps.")
@click.option("--over", type=click.IntRange(min=1), metavar="S", help="The share is of the last S timestamps.")
@click.option("--epsilon", type=float, default=0.2, show_default=True, help="Sampling: how far theta may be missed.")
@click.option("--delta", type=float, default=0.1, show_default=True, help="Sampling: how often it may be.")
@click.option(
    "--seed", type=click.IntRange(0, 2**64 - 1), default=1, show_default=True, help="Of the sampled timestamps."
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
    id_column: str,
    time_column: str,
    method: str,
    theta: str | None,
    over: int | None,
    epsilon: float,
    delta: float,
    seed: int,
    cost: str | None,
    nulls: MissingPolicy,
    dead_letters: str | None,
    output: str | None,
    plot: str | None,
    plot_columns: str | None,
    report: str | None,
) -> None:
    """The changes of the skyline of clients that say as little as the method allows: time, change (+ or -), id.

    Each id is a client, each row its new point; a row whose preference columns are all empty takes it away. Rows are
    expected in the order of their times. `naive` tells every move, `filter` only what can change the skyline, and with
    `auto` each client does which of the two costs it less; the three are exact. `sampling` looks at some timestamps
    only, and `hybrid` at the same ones, but each client does what costs it least. With --theta 0.8 --over 1000 the
    changes are those of who was in at least 80 % of the last 1000 skylines. --cost writes messages and bytes, up and
    down, without those of the first timestamp, which are given apart.

    \b
      skytide monitor sensors.parquet --max heat --max dust --id sensor --time minute --method filter --cost cost.json
    """
    from skytide.runtime.monitored import Monitored

    preference = preference_of(minimize, maximize, by)
    if (theta is None) != (over is None):
        raise click.UsageError("--theta and --over go together")
    check_outputs(output, dead_letters)
    check_cost(cost, output, dead_letters)
    watch = Watch.of(plot, plot_columns, report, preference=preference)
    pairs: list[tuple[Any, int]] = [(1, 1) if theta is None or over is None else (theta, over)]
    options: dict[str, Any] = {"pairs": pairs, "epsilon": epsilon, "delta": delta, "seed": seed}
    options["everything"] = bool(watch)
    monitor = Monitored(preference, method, nulls=nulls, quality=cost is not None, **options)
    texts = [name for name in (id_column, *by) if name not in (*preference.names, time_column)]
    with opened("monitor", data, typed=True, text=texts) as source:
        run = MovesRun("monitor", monitor, source, id_column, time_column, watch=watch)
        shown = told(time=time_column, method=method, theta=theta, over=over)
        watch.began(About("monitor", data, preference, shown))
        run.to(output, dead_letters, None)
    write_cost(cost, monitor.cost())
