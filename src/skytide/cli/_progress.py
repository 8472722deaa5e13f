"""A progress bar for runs that last, on a terminal only; and DATA, which may take long to open."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from skytide.cli._voice import Voice

if TYPE_CHECKING:
    from skytide.streams.files import Source

PATIENCE_SECONDS = 1.0
_STEPS = 1000


class Progress:
    """Shows the share done on standard error once a run has lasted a second.

    Off a terminal it shows nothing, and nothing where notes are not wanted.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._wanted = Voice.here().shows_progress and sys.stderr.isatty()
        self._started = time.monotonic()
        self._shown = 0
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def update(self, share: float) -> None:
        """Say that this share, from 0 to 1, is done."""
        if not self._wanted or time.monotonic() - self._started < PATIENCE_SECONDS:
            return
        if self._bar is None:
            self._bar = click.progressbar(length=_STEPS, label=self._label, file=sys.stderr)
            self._bar.__enter__()
        step = min(_STEPS, round(share * _STEPS))
        self._bar.update(max(0, step - self._shown))
        self._shown = max(step, self._shown)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)


@contextmanager
def opened(label: str, data: str, *, typed: bool = False, text: Sequence[str] = ()) -> Iterator[Source]:
    """DATA, opened. Types may take a look at all rows, which is shown; files of no use in a folder are told of."""
    from skytide.streams.files import open_data

    with Progress(f"{label}: types") as progress:
        source = open_data(data, typed=typed, text=text, watch=progress.update)
    with source:
        for file in source.skipped:
            Voice.here().warn(f"skytide: {file}: not a .csv, .parquet or .jsonl file, skipped")
        yield source
