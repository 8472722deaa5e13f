"""What the program says on standard error beside errors, and how much of it: `--quiet` and `--log-level`.

Progress and notes are said at the level info, what went wrong without ending the command at the level warning, and
errors always. The log of the library, in which coordinators and sites write, is at warning unless more is asked for.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import click

LEVELS = ("debug", "info", "warning", "error")

_NUMBERS = {name: logging.getLevelNamesMapping()[name.upper()] for name in LEVELS}


@dataclass(frozen=True)
class Voice:
    """How much is said; `asked` is whether somebody chose so."""

    level: int = logging.INFO
    asked: bool = False

    @classmethod
    def here(cls) -> Voice:
        """As the options before the command say; on the thread that runs the command."""
        context = click.get_current_context(silent=True)
        given = {} if context is None else context.find_root().params
        if given.get("quiet"):
            return cls(logging.ERROR, True)
        name = given.get("log_level")
        return cls() if name is None else cls(_NUMBERS[name], True)

    @property
    def shows_progress(self) -> bool:
        """Whether progress may be shown, where there is a terminal."""
        return self.level <= logging.INFO

    @property
    def shows_origins(self) -> bool:
        """Whether errors come with the place in the code where they arose."""
        return self.level <= logging.DEBUG

    def note(self, text: str) -> None:
        """Say what somebody may want to know."""
        if self.level <= logging.INFO:
            click.echo(text, err=True)

    def warn(self, text: str) -> None:
        """Say what somebody should know, though the command goes on."""
        if self.level <= logging.WARNING:
            click.echo(text, err=True)


def log_to_standard_error(verbose: bool = False) -> None:
    """The log of the library as lines with the time: warnings, with `verbose` what else there is, or as asked for."""
    voice = Voice.here()
    level = voice.level if voice.asked else logging.WARNING

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            click.echo(self.format(record), err=True)

    handler, logger = Lines(), logging.getLogger("skytide")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.handlers = [handler]
    logger.setLevel(min(level, logging.INFO) if verbose else level)
