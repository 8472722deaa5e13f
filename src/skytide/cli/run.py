"""`skytide run`: a Spark job that a file describes."""

from __future__ import annotations

import click

from skytide.cli._completing import files
from skytide.cli._voice import Voice

FAILED = 1


@click.command("run", short_help="A Spark job: source, query, sink.")
@click.argument("pipeline", metavar="PIPELINE.toml", shell_complete=files)
@click.option("--once", is_flag=True, help="Process what is there, and end.")
@click.option("--master", metavar="URL", help="Where Spark runs: local[*], local-cluster[2,1,1024], spark://host:7077.")
@click.option("--remote", metavar="URL", help="A Spark Connect server: sc://host:15002.")
@click.option("--check", is_flag=True, help="Check the file, start nothing.")
def command(pipeline: str, once: bool, master: str | None, remote: str | None, check: bool) -> int:
    """Run the job that PIPELINE.toml describes: source, prepare, query, sink.

    A line per micro-batch goes to standard error. Ctrl-C and SIGTERM stop a stream after the micro-batch that is under
    way; the next run goes on from there. Exit status 2: the file or the data cannot be used; 1: the job failed.

    \b
      skytide run flights.toml --once
    """
    from skytide.spark.pipeline import Pipeline, RunFailedError, run

    if master is not None and remote is not None:
        raise click.UsageError("give either --master or --remote")
    voice = Voice.here()
    plan = Pipeline.load(pipeline, once=once, master=master, remote=remote)
    if check:
        voice.note(f"{pipeline}: {plan.described()}")
        return 0
    try:
        return run(plan, voice.note)
    except RunFailedError as failure:
        click.echo(f"skytide: the job failed: {failure}", err=True)
        return FAILED
