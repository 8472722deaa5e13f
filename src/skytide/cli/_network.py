"""What the commands of the network share: packages that may be missing, signals, the log on standard error."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import click

from skytide.errors import MissingDependencyError

__all__ = ["needing", "stop_at_signals", "verbose_option"]

verbose_option = click.option("-v", "--verbose", is_flag=True, help="Say more on standard error.")


@contextmanager
def needing(what: str, packages: str) -> Iterator[None]:
    """Around imports: a package that is missing is one of these, and the remedy is told."""
    try:
        yield
    except ModuleNotFoundError as problem:
        if problem.name is None or problem.name.partition(".")[0] == "skytide":
            raise
        reason = f"{what} needs {packages}; {problem.name} is missing"
        raise MissingDependencyError(reason, remedy="pip install 'skytide[network]'") from None


def stop_at_signals(stop: asyncio.Event) -> None:
    """SIGINT and SIGTERM set the event; a second one ends the process at once. Called on the running loop."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        stop.set()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, first)
