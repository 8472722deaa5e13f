"""`skytide verify`: a command's runs over the user's own data, compared with the definitions."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skytide.cli._completing import files
from skytide.cli._kinds import KINDS, deduced
from skytide.cli._voice import Voice

if TYPE_CHECKING:
    from skytide.cli._verify.rows import Question
    from skytide.cli._verify.telling import Reproduction
    from skytide.cli._verify.verifying import Result

DISAGREES = 1
_SHRINKING_SECONDS = 20.0


@click.command(
    "verify",
    short_help="A command's runs over your data, compared with the definitions.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument(
    "arguments", metavar="[COMMAND] DATA [OPTIONS OF COMMAND]", nargs=-1, type=click.UNPROCESSED, shell_complete=files
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="How long the definitions may take; where that is not enough, a part of the instants is looked at.",
)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=files,
    help="Where to write the rows on which a run is wrong: a .csv, .parquet or .jsonl file.",
)
def command(arguments: tuple[str, ...], seconds: float, as_json: bool, output: str | None) -> int:
    """Check the answers of COMMAND over DATA: skyline, window, uncertain, snapshots, monitor, fragments or run.

    The options are those of COMMAND; without COMMAND they say which one is meant. All methods, indexes and engines are
    run, or those that are named. After every instant each answer is compared with the one that follows from the
    definitions, by slow code that shares nothing with what it checks, and all runs are compared with each other. Large
    data is looked at in stretches, and the table says so. Exit status 1: a run is wrong, which is a bug of skytide;
    then a small part of DATA on which it shows is searched for and told. 2: the data or the options cannot be used.
    `run PIPELINE.toml` runs a pipeline over files on Spark, once, into a folder of its own.

    \b
      skytide verify cars.csv --min price --max mpg
      skytide verify window flights.parquet --min delay --max distance --time ts --duration 2h --seconds 300
      skytide verify run flights.toml
    """
    from skytide.cli import app
    from skytide.cli._progress import Progress
    from skytide.cli._verify.comparing import Pace
    from skytide.cli._verify.runs import Commands, choices_of, spooled
    from skytide.cli._verify.verifying import Verification
    from skytide.streams.files import check_output

    check_output(output)
    if output == "-":
        raise click.UsageError("-o names a file: what is told goes to standard output")
    given = list(arguments)
    if given[:1] == ["run"]:
        if output is not None:
            raise click.UsageError("-o is for commands over DATA: of a pipeline no rows are searched for")
        return _pipeline(given[1:], seconds, as_json)
    _check_command(given)
    kind = given.pop(0) if given and given[0] in KINDS else deduced(given)
    parent = click.get_current_context()
    asked = app.get_command(parent, kind)
    assert asked is not None
    context = asked.make_context(f"verify {kind}", given, parent.parent)
    _check_apart(output, context.params["data"])
    with context, spooled(context.params["data"]) as data:
        commands, choices = Commands(asked, context), choices_of(context, kind)
        question = _question(kind, context, data)
        with Progress("verify") as progress:
            checked = Verification(question, commands, choices, lambda: Pace(seconds), progress.update)
            results = checked.results(data)
        wrong = [one for one in results if one.finding is not None]
        found = None
        if wrong:
            found = _reproduction(question, commands, context, data, wrong[0], output)
    return _told(kind, results, found, as_json)


def _check_command(given: list[str]) -> None:
    """A word before DATA that is no command is an error of its own: what follows it is not one too many."""
    words = list(itertools.takewhile(lambda one: one == "-" or not one.startswith("-"), given))
    if len(words) > 1 and words[0] not in KINDS and not Path(words[0]).exists():
        raise click.UsageError(f"{words[0]!r} cannot be verified; give one of: {', '.join((*KINDS, 'run'))}")


def _check_apart(output: str | None, data: str) -> None:
    """What is kept of DATA must not take its place, nor become a part of it."""
    if output is None or data == "-":
        return
    kept, given = Path(output).resolve(), Path(data).resolve()
    if given in (kept, kept.parent):
        raise click.UsageError("-o names a file of DATA, which stays as it is: name another one")


def _told(kind: str, results: list[Result], found: Reproduction | None, as_json: bool) -> int:
    """Say what was found; the exit status."""
    import json

    from skytide.cli._verify import telling

    wrong = [one for one in results if one.finding is not None]
    if as_json:
        click.echo(json.dumps(telling.as_record(kind, results, found), ensure_ascii=False))
    else:
        click.echo(telling.table_of(results))
        for line in (one.skipped for one in results if one.skipped):
            click.echo(f"\n{line}")
        for one in wrong:
            click.echo(f"\n{telling.finding_text(one)}")
        if found is not None:
            click.echo(f"\n{telling.reproduction_text(found)}")
    return DISAGREES if wrong else 0


def _pipeline(given: list[str], seconds: float, as_json: bool) -> int:
    """A pipeline instead of a command over data."""
    if len(given) != 1 or given[0].startswith("-"):
        raise click.UsageError("give one pipeline: skytide verify run PIPELINE.toml")
    from skytide.cli._progress import Progress
    from skytide.cli._verify.comparing import Pace
    from skytide.errors import MissingDependencyError

    try:
        from skytide.cli._verify.pipelines import pipeline_results
    except ImportError as error:
        raise MissingDependencyError(
            f"Spark is not usable here ({error})", remedy="pip install 'skytide[spark]'; skytide doctor says more"
        ) from None
    with Progress("verify") as progress:
        results = pipeline_results(given[0], Pace(seconds), progress.update, Voice.here().note)
    return results if isinstance(results, int) else _told("run", results, None, as_json)


def _question(kind: str, context: click.Context, data: str) -> Question:
    from skytide.cli._verify.rows import Question

    options = {"by": (), **context.params}
    if kind != "fragments":
        return Question(kind, options, (*options["minimize"], *options["maximize"]))
    from skytide.expressions import columns_of, parse
    from skytide.streams.files import open_data

    with open_data(data) as source:
        trees = [parse(text, source.names) for text in (*options["minimize"], *options["maximize"])]
        used = dict.fromkeys(name for tree in trees for name in columns_of(tree))
        return Question(kind, {**options, "known": source.names}, tuple(used))


def _reproduction(
    question: Question, commands: Any, context: click.Context, data: str, result: Result, output: str | None
) -> Reproduction:
    """A small part of DATA on which the run is still wrong; written where -o says."""
    from skytide.cli._verify.comparing import Pace
    from skytide.cli._verify.shrinking import Shrinking
    from skytide.cli._verify.telling import Reproduction, command_line
    from skytide.cli._verify.verifying import Verification
    from skytide.errors import SkytideError
    from skytide.streams.files import write_table

    def fails(file: str) -> bool:
        try:
            found = Verification(question, commands, [result.choice], lambda: Pace(5.0)).results(file)
        except SkytideError:
            return False
        return any(one.finding is not None for one in found)

    rows = Shrinking(data, fails, _SHRINKING_SECONDS).rows()
    write_table(output, rows) if output is not None else None
    if output is not None and not fails(output):
        Voice.here().warn(f"skytide: {output}: the rows are right in this form; write them to a .parquet file")
    line = command_line(question.kind, context, output or context.params["data"], result.choice)
    return Reproduction(rows, line, output)
