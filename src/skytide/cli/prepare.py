"""`skytide prepare`: from raw rows to the updates that queries read as streams, by Spark."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skytide.cli._completing import files, folders
from skytide.cli._voice import Voice

if TYPE_CHECKING:
    from skytide.spark.prepared import Option, Pipeline


class Pipelines(click.Group):
    """A command per pipeline, made from what the pipeline says of itself."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all pipelines."""
        from skytide.spark.prepared import pipelines

        return list(pipelines())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command that runs this pipeline."""
        from skytide.spark.prepared import pipelines

        found = pipelines().get(cmd_name)
        return None if found is None else _command(found)


def _list(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from skytide.spark.prepared import pipelines

    for one in pipelines().values():
        click.echo(f"{one.name:12}  {one.title} ({one.stands_for})")
    ctx.exit()


@click.command("prepare", cls=Pipelines, short_help="Real data as updates, by Spark.")
@click.option(
    "--list", "wanted", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="Name all pipelines."
)
def command() -> None:
    """From raw rows to the updates that queries read as streams: a folder of Parquet files in order of time.

    \b
      skytide prepare box-scores games/ -o updates --per 36 --over season
      skytide prepare prices prices.parquet -o updates --days 200

    Updates have the columns time, site (where vectors are local), id and the values; `skytide prepare NAME --help`
    says which and how they are made.
    """


def _command(pipeline: Pipeline) -> click.Command:
    def run(**given: Any) -> None:
        _run(pipeline, **given)

    options: list[click.Parameter] = [
        click.Argument(["data"], metavar="DATA", shell_complete=files),
        click.Option(
            ["-o", "--output"], required=True, metavar="FOLDER", shell_complete=folders, help="Where the updates go."
        ),
        *(_option(pipeline, option) for option in pipeline.options),
        click.Option(["--changes"], is_flag=True, help="Leave out updates that change nothing."),
        click.Option(
            ["--column", "columns"], multiple=True, metavar="NAME=ACTUAL", help="What a column is called here."
        ),
        click.Option(["--files"], type=click.IntRange(min=1), default=1, show_default=True, help="How many files."),
        click.Option(["--overwrite"], is_flag=True, help="Replace the updates in FOLDER."),
    ]
    if len(pipeline.inputs) > 1:
        words = "Another table to read. Default: beside DATA."
        options.append(click.Option(["--with", "others"], multiple=True, metavar="TABLE=PATH", help=words))
    return click.Command(pipeline.name, params=options, callback=run, help=_help(pipeline), short_help=pipeline.title)


def _option(pipeline: Pipeline, option: Option) -> click.Option:
    flag = f"--{option.name.replace('_', '-')}"
    default = pipeline.default(option)
    if option.kind == "flag":
        return click.Option([flag, option.name], is_flag=True, default=default, help=option.doc)
    kinds: dict[str, Any] = {"whole": click.INT, "choice": click.Choice(option.choices)}
    shown = ",".join(default) if isinstance(default, tuple) else default
    return click.Option(
        [flag, option.name],
        type=kinds.get(option.kind, click.STRING),
        default=shown,
        show_default=shown not in (None, ""),
        metavar={"names": "A,B", "text": "TEXT", "whole": "N"}.get(option.kind),
        help=option.doc,
    )


def _help(pipeline: Pipeline) -> str:
    """What goes in, what comes out and by which rules; stands for the data of a paper."""
    parts = [f"{pipeline.title[0].upper()}{pipeline.title[1:]}; stands for {pipeline.stands_for}."]
    parts += [_listed(f"In, the {one.name}:", one.columns) for one in pipeline.inputs]
    parts += [_listed("Out:", pipeline.output), pipeline.rules]
    return "\n\n".join(parts)


def _listed(title: str, columns: Mapping[str, str]) -> str:
    return "\b\n" + "\n".join([title, *(f"  {name}: {text}" for name, text in columns.items())])


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, stroke, value = text.partition("=")
        if not (name and stroke and value):
            raise click.UsageError(f"{option} wants NAME=VALUE, not '{text}'")
        pairs[name] = value
    return pairs


def _run(
    pipeline: Pipeline,
    data: str,
    output: str,
    changes: bool,
    columns: tuple[str, ...],
    files: int,
    overwrite: bool,
    others: tuple[str, ...] = (),
    **given: Any,
) -> None:
    from skytide.spark.faults import need_pyspark, plain_errors
    from skytide.spark.prepared.files import find_files, replaced

    need_pyspark()
    named = _pairs(columns, "--column")
    options = {option.name: option.read(given[option.name]) for option in pipeline.options}
    found = find_files(pipeline, data, _pairs(others, "--with"))
    started = time.monotonic()
    reads = [file for some in found.values() for file in some]
    with replaced(Path(output), overwrite=overwrite, reads=reads) as place, one_line(), plain_errors():
        _progress(f"{pipeline.name}: starting Spark")
        rows = _write(pipeline, found, named, options, changes, files, place)
    seconds = time.monotonic() - started
    Voice.here().note(f"skytide: {output}: {rows:,} updates in {seconds:.0f} s")


def _write(
    pipeline: Pipeline,
    found: dict[str, list[Path]],
    columns: Mapping[str, str],
    options: Mapping[str, Any],
    changes: bool,
    files: int,
    place: Path,
) -> int:
    """Run the pipeline and write its updates; how many there are."""
    import pyarrow.parquet as pq

    from skytide.errors import InputError
    from skytide.spark.prepared import prepare, write_updates
    from skytide.spark.prepared.files import check_columns, read_table
    from skytide.spark.session import local_session

    watched = sys.stderr.isatty() and Voice.here().shows_progress
    bars: dict[str, Any] = {"spark.ui.showConsoleProgress": True} if watched else {}
    spark = local_session(**bars)
    _progress(f"{pipeline.name}: reading {', '.join(str(file) for some in found.values() for file in some)}")
    tables = {name: read_table(spark, some, columns) for name, some in found.items()}
    check_columns(tables, columns)
    updates = prepare(spark, pipeline.name, tables, changes=changes, **options)
    _progress(f"{pipeline.name}: writing")
    write_updates(updates, str(place), files=files)
    rows: int = sum(pq.read_metadata(part).num_rows for part in place.glob("*.parquet"))
    if not rows:
        raise InputError("no update comes out of the rows", remedy=pipeline.remedy)
    return rows


def _progress(text: str) -> None:
    """What is going on, for those who watch."""
    if sys.stderr.isatty():
        Voice.here().note(f"skytide: {text}")


@contextmanager
def one_line() -> Iterator[None]:
    """What Spark complains about as one line of bad input; its own text runs over pages."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from skytide.errors import InputError

    try:
        yield
    except (PySparkException, Py4JJavaError) as problem:
        raise InputError(f"Spark cannot use the data: {_cause(str(problem))}") from None


def _cause(text: str) -> str:
    """What is behind an error of Spark's: the last cause it names, or else its first line.

    >>> _cause("An error occurred.\\n at a.B\\nCaused by: a.b.C: [BAD_CSV] Malformed: 1,2 SQLSTATE: KD000\\n at c.D")
    'Malformed: 1,2'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["it does not say why"]
    causes = [line.partition(": ")[2].partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    line = next((cause for cause in reversed(causes) if cause), lines[0])
    return re.sub(r"^\[[A-Z0-9_.]+\] | SQLSTATE: \w+$", "", line)
