"""`skytide generate`: rows and streams to try things on, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from skytide.cli._options import output_option
from skytide.cli._progress import Progress
from skytide.cli._watch import plot_option

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = ("independent", "correlated", "anti-correlated")
STREAMS = ("spikes", "uncertain", "walk", "jitter", "fragments")


@click.command("generate", short_help="Rows and streams to try things on.")
@click.argument("kind", type=click.Choice([*ROWS, *STREAMS]), metavar="KIND")
@click.option("-n", "--rows", type=click.IntRange(min=0), required=True, metavar="ROWS", help="How many rows.")
@click.option("-d", "--dimensions", type=click.IntRange(min=1), default=2, show_default=True, help="Columns x1 to xd.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same rows.")
@click.option("--deviation", type=float, help="Of anti-correlated rows from their plane.  [default: 0.05]")
@click.option(
    "--base", type=click.Choice(ROWS), default="independent", show_default=True, help="The rows a stream is made of."
)
@click.option(
    "--objects", type=click.IntRange(min=1), default=1000, show_default=True, help="Of walk, jitter, fragments."
)
@click.option("--sites", type=click.IntRange(min=1), default=10, show_default=True, help="Of fragments.")
@click.option(
    "--probabilities",
    type=click.Choice(["uniform", "normal"]),
    default="uniform",
    show_default=True,
    help="Of uncertain rows.",
)
@click.option("--mean", type=float, default=0.5, show_default=True, help="Of normal probabilities.")
@output_option
@plot_option
def command(kind: str, rows: int, output: str | None, plot: str | None, **settings: Any) -> None:
    """Rows of a KIND, with columns x1 to xd.

    \b
    independent, correlated, anti-correlated   id, x1 ... : rows in the unit cube (Börzsönyi et al., 2001)
    spikes                                     id, time, x1 ... : 29 calm seconds, then a burst, over and over
    uncertain                                  id, x1 ..., prob : rows that exist with a probability
    walk                                       id, time, x1 ... : objects in [0, 100], of which some move each time
    jitter                                     id, time, x1 ... : objects that move around their place each time
    fragments                                  time, site, id, x1 ... : local vectors of objects at many sites

    Ids count from 1, times of updates from 0.
    """

    from skytide.streams.files import Output, check_output

    check_output(output)
    picture = _picture(plot, kind, settings["dimensions"]) if plot else None
    chunks = _chunks(kind, rows, **settings)
    first = next(chunks)
    written = 0
    with Output(output, first.schema) as target, Progress("generate") as progress:
        for table in _chain(first, chunks):
            part: pa.Table = table.slice(0, rows - written)
            target.write(part)
            if picture is not None:
                picture.see(part)
            written += part.num_rows
            progress.update(written / max(1, rows))
            if written == rows:
                break
        if picture is not None:
            picture.draw()


def _picture(path: str, kind: str, dimensions: int) -> Any:
    from skytide.cli._picture import RowsPicture

    return RowsPicture(path, f"{kind} rows", tuple(f"x{place + 1}" for place in range(dimensions)))


def _chain(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest


def _chunks(
    kind: str,
    rows: int,
    *,
    dimensions: int,
    seed: int,
    deviation: float | None,
    base: str,
    objects: int,
    sites: int,
    probabilities: str,
    mean: float,
) -> Iterator[pa.Table]:
    """At least so many rows, if only an empty table."""
    from skytide.streams.fragments import fragments
    from skytide.streams.walks import jitter, random_walk

    plain = kind if kind in ROWS else base
    if kind in ROWS:
        return _rows(plain, rows, dimensions, seed, deviation)
    if kind == "spikes":
        return _spikes(plain, rows, dimensions, seed, deviation)
    if kind == "uncertain":
        return _uncertain(plain, rows, dimensions, seed, deviation, probabilities, mean)
    if kind == "walk":
        runs = random_walk(objects, dimensions, 2**62, seed)
        return (_table({"id": run.ids + 1, "time": run.times}, run.values) for run in runs)
    if kind == "jitter":
        runs = jitter(plain, objects, dimensions, 2**62, seed, deviation=deviation)
        return (_table({"id": run.ids + 1, "time": run.times}, run.values) for run in runs)
    updates = max(0, rows - objects * sites)
    parts = fragments(plain, objects, sites, dimensions, updates, seed, deviation=deviation)
    return (_table({"time": part.times, "site": part.sites + 1, "id": part.ids + 1}, part.values) for part in parts)


def _table(front: dict[str, Any], values: Any, back: dict[str, Any] | None = None) -> pa.Table:
    import pyarrow as pa

    middle = {f"x{place + 1}": values[:, place] for place in range(values.shape[1])}
    return pa.table({name: pa.array(column) for name, column in (front | middle | (back or {})).items()})


def _rows(kind: str, rows: int, dimensions: int, seed: int, deviation: float | None) -> Iterator[pa.Table]:
    import numpy as np

    from skytide.streams.generators import chunks

    start = 0
    for values in chunks(kind, max(1, rows), dimensions, seed, deviation=deviation):
        yield _table({"id": np.arange(start + 1, start + len(values) + 1)}, values)
        start += len(values)


def _spikes(kind: str, rows: int, dimensions: int, seed: int, deviation: float | None) -> Iterator[pa.Table]:
    import numpy as np

    from skytide.streams.arrivals import spike_times
    from skytide.streams.generators import generate

    start = period = 0
    while start <= rows:
        times = spike_times(1, seed, start=period)
        values = generate(kind, len(times), dimensions, seed, deviation=deviation, start=start)
        yield _table({"id": np.arange(start + 1, start + len(times) + 1), "time": times}, values)
        start += len(times)
        period += 1


def _uncertain(
    kind: str, rows: int, dimensions: int, seed: int, deviation: float | None, distribution: str, mean: float
) -> Iterator[pa.Table]:
    import pyarrow as pa

    from skytide.streams.uncertainty import probabilities

    start = 0
    for table in _rows(kind, rows, dimensions, seed, deviation):
        drawn = probabilities(table.num_rows, seed, distribution=distribution, mean=mean, start=start)
        yield table.append_column("prob", pa.array(drawn))
        start += table.num_rows
