"""`skytide dashboard`: a live page of a query: a coordinator's, a Spark pipeline's, or a replay of DATA."""

from __future__ import annotations

import contextlib
import importlib
import math
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from skytide.cli._completing import files
from skytide.cli._kinds import KINDS, deduced
from skytide.cli._options import preference_options
from skytide.cli._serving import listen_option, open_option, page_packages, serving
from skytide.cli._voice import Voice
from skytide.cli._watch import OUTSIDE

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from skytide.dashboard import Board

REPLAYED = tuple(kind for kind in KINDS if kind != "skyline")
RATE = 500.0
LAST_WORDS = 0.5
"""Seconds for which a page is served on after an error, so that it can show it."""
_INTERRUPTED = 130


class _WithOptionsOfOthers(click.Command):
    """Offers the options of the command that is replayed, too."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Own options and arguments, and those of the command that the words so far mean."""
        own = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return own
        replayed = _command(ctx.params.get("kind"), list(ctx.params.get("words") or ()))
        known = {item.value for item in own}
        more = replayed.shell_complete(click.Context(replayed, ctx.parent), incomplete)
        return own + [item for item in more if item.value not in known]


@click.command(
    "dashboard",
    cls=_WithOptionsOfOthers,
    short_help="A live page of a query.",
    options_metavar="",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="WHAT [OPTIONS]", shell_complete=files)
@click.option(
    "--kind", type=click.Choice(REPLAYED), help="The command that is replayed. Default: what the options say."
)
@click.option(
    "--rate", type=click.FloatRange(min=0), metavar="ROWS", help="Rows per second; 0: all at once.  [default: 500]"
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    metavar="FACTOR",
    help="As fast as the times in DATA, times this; times without a unit are seconds.",
)
@listen_option
@open_option
@click.option("--end", is_flag=True, help="End when the query has ended. Default: the page is served until Ctrl-C.")
@click.pass_context
def command(
    context: click.Context,
    words: tuple[str, ...],
    kind: str | None,
    rate: float | None,
    speed: float | None,
    listen: str | None,
    open_browser: bool,
    end: bool,
) -> int:
    """Serve a page that shows the answer, its history and its changes, live.

    WHAT is http(s)://HOST:PORT, a coordinator; PIPELINE.toml, a Spark pipeline that runs elsewhere; a folder with a
    live feed; or DATA with the options of window, uncertain, snapshots, monitor or fragments, which is replayed. A
    coordinator may want --token-file or --certificate, a live feed --min, --max and --by. Changes of a replay are not
    printed, but -o writes them.

    \b
      skytide dashboard flights.parquet --min delay --max distance --id flight --time ts --duration 2h --speed 600
      skytide dashboard sensors.csv --max heat --max dust --id sensor --time minute --method filter --rate 2000
      skytide dashboard flights.toml
      skytide dashboard http://127.0.0.1:8750 --token-file token
    """
    if not words:
        raise click.UsageError("say what to watch: DATA with options, PIPELINE.toml, a folder, or http://HOST:PORT")
    if rate is not None and speed is not None:
        raise click.UsageError("give either --rate or --speed")
    for name, value in (("--rate", rate), ("--speed", speed)):
        if value is not None and not math.isfinite(value):
            raise click.UsageError(f"{name} {value} is not a pace; give a number, and --rate 0 for all at once")
    with page_packages():
        from skytide.dashboard.following import looks_followed

    show = _Show(listen, open_browser, end)
    if kind is None and looks_followed(words[0]):
        if rate is not None or speed is not None:
            raise click.UsageError("--rate and --speed are for a replay of DATA")
        return _followed(context, words, show)
    return _replayed(context, words, kind, _pace(rate, speed), show)


class _Show:
    """Where and how long a board is shown."""

    def __init__(self, listen: str | None, open_browser: bool, end: bool) -> None:
        self._listen, self._open, self.end = listen, open_browser, end
        self._stack = contextlib.ExitStack()
        self.begun = False

    def __enter__(self) -> _Show:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def serve(self, board: Board) -> None:
        """Serve from now on."""
        self._stack.enter_context(serving(board, self._listen, self._open, Voice.here().note))
        self.begun = True

    def go_on(self) -> None:
        """The query has ended: serve until Ctrl-C, unless that is to be the end."""
        if not self.end:
            Voice.here().note("the query has ended; the page is served until Ctrl-C")
            with contextlib.suppress(KeyboardInterrupt):
                threading.Event().wait()


# -- replays -----------------------------------------------------------------------------------------------------------


def _command(kind: str | None, words: list[str]) -> click.Command:
    """The command that is replayed."""
    found = kind or deduced(words)
    # Rows without a time are no stream; who lacks it learns so from the command.
    module = importlib.import_module(f"skytide.cli.{'snapshots' if found == 'skyline' else found}")
    replayed: click.Command = module.command
    return replayed


def _pace(rate: float | None, speed: float | None) -> Any:
    from skytide.cli._pace import Pace

    return Pace(RATE if rate is None and speed is None else rate or 0, speed)


def _replayed(context: click.Context, words: tuple[str, ...], kind: str | None, pace: Any, show: _Show) -> int:
    from skytide.cli._live import Live

    replayed = _command(kind, list(words))
    with show, _watched_by(context, Live(context, pace, show.serve)):
        try:
            # As if the command had been called itself, so that errors speak of it.
            with replayed.make_context(replayed.name, list(words), parent=context.parent) as inner:
                replayed.invoke(inner)
        except KeyboardInterrupt:
            return _INTERRUPTED
        except click.exceptions.Exit:
            raise
        except Exception:
            if show.begun:
                time.sleep(LAST_WORDS)
            raise
        show.go_on()
    return 0


@contextlib.contextmanager
def _watched_by(context: click.Context, watcher: Any) -> Iterator[None]:
    context.meta[OUTSIDE] = [watcher]
    try:
        yield
    finally:
        del context.meta[OUTSIDE]


# -- what runs elsewhere -----------------------------------------------------------------------------------------------


@click.command()
@click.argument("what")
@preference_options
@click.option("--token-file")
@click.option("--certificate")
def _elsewhere(**given: Any) -> dict[str, Any]:
    return given


def _followed(context: click.Context, words: tuple[str, ...], show: _Show) -> int:
    with page_packages():
        from skytide.dashboard.following import follower_of

    with _elsewhere.make_context("dashboard", list(words), parent=context.parent) as inner:
        given: dict[str, Any] = _elsewhere.invoke(inner)
    follower = follower_of(given.pop("what"), **given)
    with show:
        show.serve(follower.board)
        try:
            with follower:
                while not (follower.wait(0.2) and show.end):
                    pass
        except KeyboardInterrupt:
            return 0
    return 0
