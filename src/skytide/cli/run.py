"""`skytide run`: a Spark job that a file describes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from skytide.cli._completing import files
from skytide.cli._serving import listen_option, open_option, page_packages, serving
from skytide.cli._voice import Voice
from skytide.cli._watch import watch_options

if TYPE_CHECKING:
    from skytide.dashboard import Board
    from skytide.spark.pipeline import Pipeline

FAILED = 1


@click.command("run", short_help="A Spark job: source, query, sink.")
@click.argument("pipeline", metavar="PIPELINE.toml", shell_complete=files)
@click.option("--once", is_flag=True, help="Process what is there, and end.")
@click.option("--master", metavar="URL", help="Where Spark runs: local[*], local-cluster[2,1,1024], spark://host:7077.")
@click.option("--remote", metavar="URL", help="A Spark Connect server: sc://host:15002.")
@click.option("--check", is_flag=True, help="Check the file, start nothing.")
@click.option("--dashboard", is_flag=True, help="Serve a live page of the answer meanwhile.")
@listen_option
@open_option
@click.option("--stay", is_flag=True, help="Serve the page on when the job has ended, until Ctrl-C.")
@watch_options
def command(
    pipeline: str,
    once: bool,
    master: str | None,
    remote: str | None,
    check: bool,
    dashboard: bool,
    listen: str | None,
    open_browser: bool,
    stay: bool,
    plot: str | None,
    plot_columns: str | None,
    report: str | None,
) -> int:
    """Run the job that PIPELINE.toml describes: source, prepare, query, sink.

    A line per micro-batch goes to standard error. Ctrl-C and SIGTERM stop a stream after the micro-batch that is under
    way; the next run goes on from there. Exit status 2: the file or the data cannot be used; 1: the job failed.

    \b
      skytide run flights.toml --once
      skytide run flights.toml --dashboard
    """
    from skytide.spark.pipeline import Pipeline, RunFailedError, run

    if master is not None and remote is not None:
        raise click.UsageError("give either --master or --remote")
    if not dashboard and (listen is not None or open_browser or stay):
        raise click.UsageError("--listen, --open and --stay are of the page: give --dashboard, too")
    keep = _kept(plot, plot_columns, report)
    voice = Voice.here()
    plan = Pipeline.load(pipeline, once=once, master=master, remote=remote)
    if check:
        voice.note(f"{pipeline}: {plan.described()}")
        return 0
    page = _page(plan, listen, open_browser, stay, voice) if dashboard else contextlib.nullcontext()
    with page, _keeping(plan, keep):
        try:
            return run(plan, voice.note)
        except RunFailedError as failure:
            click.echo(f"skytide: the job failed: {failure}", err=True)
            return FAILED


@contextlib.contextmanager
def _page(plan: Pipeline, listen: str | None, open_browser: bool, stay: bool, voice: Voice) -> Iterator[None]:
    """The page of the run, which goes with it unless it is to stay."""
    with page_packages():
        from skytide.dashboard.pipeline import PipelineFollower
    follower = PipelineFollower(plan, fresh=True)
    with serving(follower.board, listen, open_browser, voice.note):
        with follower:
            yield
        follower.close()
        if stay:
            voice.note("the page is served until Ctrl-C")
            with contextlib.suppress(KeyboardInterrupt):
                threading.Event().wait()


def _kept(plot: str | None, plot_columns: str | None, report: str | None) -> list[Callable[[Board], None]]:
    """What is to be made of the board of the run when it has ended; an error where that cannot be done."""
    if plot_columns and not plot:
        raise click.UsageError("--plot-columns needs --plot FILE")
    kept: list[Callable[[Board], None]] = []
    if plot:
        from skytide.cli._picture import check_picture, draw_board

        check_picture(plot)
        kept.append(partial(draw_board, path=plot, columns=plot_columns))
    if report:
        with page_packages():
            from skytide.cli._boards import check_page
            from skytide.dashboard import write_report

        check_page(report)
        kept.append(partial(write_report, path=report))
    return kept


@contextlib.contextmanager
def _keeping(plan: Pipeline, keep: list[Callable[[Board], None]]) -> Iterator[None]:
    """Follow the run, and keep what it was."""
    if not keep:
        yield
        return
    with page_packages():
        from skytide.dashboard.pipeline import PipelineFollower
    follower = PipelineFollower(plan, fresh=True)
    with follower:
        yield
    follower.close()
    for make in keep:
        make(follower.board)
