"""Who watches a run: a picture, a report, a live page. The run tells them what passes and what changes.

`watch_options` gives a command --plot, --plot-columns and --report; `Watch.of` checks them before the work begins, and
adds whoever watches from outside (`skytide dashboard`). Without a watcher a run does nothing for them. Watchers that
want to know every instant (`fine`) get DATA in small pieces; what comes out is the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import click

from skytide.cli._completing import files
from skytide.cli._serving import page_packages

if TYPE_CHECKING:
    from skytide.cli._batch import Batch
    from skytide.model import Preference

Function = TypeVar("Function", bound=Callable[..., Any])
OUTSIDE = "skytide.watchers"
"""Under this name watchers from outside lie in click's context."""
FINE_ROWS = 4096
SELDOM = 0.2
"""Seconds between two looks at what takes long to know: what is kept, what was sent, probabilities."""


def _named(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """A shell variable that is not set names no file."""
    if value == "":
        raise click.BadParameter("an empty name is no file", context, parameter)
    return value


plot_option = click.option(
    "--plot", metavar="FILE", shell_complete=files, callback=_named, help="Draw the answer: a .png, .svg or .pdf file."
)
plot_columns_option = click.option(
    "--plot-columns", metavar="A,B[,C]", help="The columns to draw. Default: the preference columns."
)
report_option = click.option(
    "--report",
    metavar="FILE",
    shell_complete=files,
    callback=_named,
    help="Keep the run as a page to look at: an .html file that needs no server.",
)


def watch_options(function: Function) -> Function:
    """--plot, --plot-columns and --report."""
    for option in (report_option, plot_columns_option, plot_option):
        function = option(function)
    return function


@dataclass(frozen=True)
class About:
    """What is watched: a kind that boards know, a title, the preference, and options as they are shown."""

    kind: str
    title: str
    preference: Preference
    parameters: dict[str, Any] = field(default_factory=dict)
    thresholds: tuple[float, ...] = ()


def told(**options: Any) -> dict[str, Any]:
    """Those of the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


class Watcher:
    """Hears of a run from `began` to `ended` or `failed`; this one does nothing."""

    fine = False
    """Whether it wants to know every instant."""
    silent = False
    """Whether changes that nobody asked a file for are written nowhere."""

    def began(self, about: About) -> None:
        """The run begins; an error here ends it."""

    def pieces(self, times: Any, rows: int) -> list[int]:
        """Where rows that are about to go into the window are to be cut, as positions."""
        return []

    def wait(self, times: Any, rows: int) -> None:
        """A piece is about to go into the window."""

    def saw(self, rows: Any, ids: Any, times: Any = None, life: tuple[Any, float] | None = None) -> None:
        """Rows passed, or objects have these values from times on: a table with the preference and `by` columns.

        `life` is a key for each row, and up to which key rows have expired by now, where that is known.
        """

    def expired(self, bound: float) -> None:
        """Rows with keys up to this one have expired."""

    def gone(self, ids: Any) -> None:
        """Rows or objects live no more."""

    def changed(self, changes: Any) -> None:
        """The answer changed, as monitors say it."""

    def counted(self, numbers: dict[str, float]) -> None:
        """Numbers of the run so far."""

    def sent(self, ledger: dict[str, Any]) -> None:
        """What was sent so far."""

    def probable(self, ranking: Any) -> None:
        """Who is in the answer with which probability."""

    def clock(self, moment: Any) -> None:
        """Time has gone on to here."""

    def ended(self, window: Any) -> None:
        """The run has ended as it should; the window still has the answer."""

    def failed(self, reason: str) -> None:
        """The run has ended with an error."""


class Watch:
    """The watchers of one run, and what the run does for them."""

    def __init__(self, watchers: list[Watcher]) -> None:
        self.watchers = watchers
        self.rows = 0
        self._looked = 0.0

    @classmethod
    def of(cls, plot: str | None, plot_columns: str | None, report: str | None, **how: Any) -> Watch:
        """The watchers that options ask for, if they can do their work, and those from outside."""
        if plot_columns and not plot:
            raise click.UsageError("--plot-columns needs --plot FILE")
        watchers: list[Watcher] = []
        if plot:
            from skytide.cli._picture import StreamPicture

            watchers.append(StreamPicture(plot, plot_columns, **how))
        if report:
            with page_packages():
                from skytide.cli._boards import Report
            watchers.append(Report(report))
        context = click.get_current_context(silent=True)
        return cls([*watchers, *(() if context is None else context.meta.get(OUTSIDE, ()))])

    def __bool__(self) -> bool:
        return bool(self.watchers)

    @property
    def fine(self) -> bool:
        """Whether anybody wants to know every instant."""
        return any(watcher.fine for watcher in self.watchers)

    @property
    def silent(self) -> bool:
        """Whether changes that nobody asked a file for are written nowhere."""
        return any(watcher.silent for watcher in self.watchers)

    def tell(self, what: str, *arguments: Any) -> None:
        """Tell all watchers."""
        for watcher in self.watchers:
            getattr(watcher, what)(*arguments)

    def began(self, about: About) -> Watch:
        """The run begins."""
        self.tell("began", about)
        return self

    def pieces(self, batch: Batch, cuts: list[int], allowed: Callable[[list[int]], list[int]]) -> Iterator[Batch]:
        """The rows in the pieces in which they are to go into the window, when it is time for them.

        `cuts` are positions where they must be cut; `allowed` moves other positions to where they may be.
        """
        total = batch.rows.num_rows
        times = batch.beside.column("times") if "times" in batch.beside.column_names else None
        if not self.fine:
            yield batch
            return
        wished = [cut for watcher in self.watchers for cut in watcher.pieces(times, total)]
        wished += range(FINE_ROWS, total, FINE_ROWS)
        borders = sorted({0, total, *cuts, *(cut for cut in allowed(wished) if 0 < cut < total)})
        for start, stop in pairwise(borders):
            piece = batch.slice(start, stop)
            self.tell("wait", None if times is None else times.slice(start, stop - start), stop - start)
            yield piece

    def counted(self, window: Any, rows: int, seconds: float) -> bool:
        """Count rows that went into the window in so many seconds; whether it is time to look at what takes long."""
        self.rows += rows
        numbers: dict[str, float] = {"rows": self.rows, "latency": seconds}
        now = time.monotonic()
        look = now - self._looked >= SELDOM
        if look and self.fine:
            self._looked = now
            numbers |= kept_by(window)
        self.tell("counted", numbers)
        return look


def kept_by(window: Any) -> dict[str, float]:
    """How many rows or objects a window keeps, where it says so."""
    stats = window.stats() if hasattr(window, "stats") else {}
    found = [stats[name] for name in ("retained", "objects") if name in stats]
    return {"retained": found[0]} if found else {}
