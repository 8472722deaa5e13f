"""Finds the commands, and turns whatever goes wrong into one line on standard error and an exit status."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pkgutil
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from skytide import __version__
from skytide.cli._voice import LEVELS, Voice, log_to_standard_error
from skytide.errors import SkytideError

BAD_INPUT = 2
INTERRUPTED = 130
CLOSED_PIPE = 141
"""As a shell reports a process that the signal SIGPIPE ended."""


class Commands(click.Group):
    """The commands are the modules beside this one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands that exist."""
        modules = pkgutil.iter_modules([str(Path(__file__).parent)])
        return sorted(module.name.replace("_", "-") for module in modules if not module.name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, loaded now."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"skytide.cli.{cmd_name.replace('-', '_')}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader that has seen enough of the output ends it without a word."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            ctx.exit(CLOSED_PIPE)
        except Exception as error:
            if isinstance(error, click.UsageError) and error.ctx is None and ctx.invoked_subcommand:
                # An option without its value: click does not say whose.
                command = self.get_command(ctx, ctx.invoked_subcommand)
                error.ctx = None if command is None else click.Context(command, ctx, ctx.invoked_subcommand)
            if Voice.here().shows_origins and not isinstance(error, click.exceptions.Exit | click.Abort):
                click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
            raise
        return result

    def _is_own(self, option: str) -> bool:
        """Whether it is an option of the whole program."""
        return any(option in parameter.opts for parameter in self.params)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run the command line; always ends with SystemExit."""
        _open_streams()
        try:
            status = super().main(args, "skytide", complete_var, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.ctx.get_help() if error.ctx else "")
            status = 0
        except click.Abort:
            status = INTERRUPTED
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else "skytide"
            if isinstance(error, click.NoSuchOption) and self._is_own(error.option_name):
                _fail(f"{path}: {error.option_name} goes before the command, after skytide (see skytide --help)")
            _fail(f"{path}: {error.format_message()} (see {path} --help)")
        except click.ClickException as error:
            _fail(f"skytide: {error.format_message()}")
        except SkytideError as error:
            _fail(f"skytide: {error}")
        except MemoryError:
            _fail("skytide: there is not enough memory")
        except io.UnsupportedOperation:
            _fail("skytide: standard output is closed")
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            _fail(f"skytide: {place}{error.strerror or error}")
        except Exception as error:
            if not _is_arrow(error):
                raise
            _fail(f"skytide: the data cannot be used: {error}")
        sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str) -> NoReturn:
    click.echo(" ".join(message.split()), err=True)
    sys.exit(BAD_INPUT)


def _is_arrow(error: Exception) -> bool:
    # Asked without an import: an error of Arrow's can only come from an Arrow that is loaded.
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(error, arrow.ArrowException)


def _open_streams() -> None:
    """Something in place of standard streams that were closed before the start.

    Input is empty, what is said on standard error is lost, and results that nobody can get are an error.
    """
    nothing = Path(os.devnull)
    sys.stdin = sys.stdin or nothing.open(encoding="utf-8")
    sys.stdout = sys.stdout or nothing.open(encoding="utf-8")
    sys.stderr = sys.stderr or nothing.open("w", encoding="utf-8")


def _drop_output() -> None:
    """Send what is still in the buffers nowhere, or the interpreter would complain about it at its end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="skytide", message="%(prog)s %(version)s")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors: no progress, no notes, no warnings.")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS, case_sensitive=False),
    help="Say what is at least this grave; with debug, also where in the code an error arose. Default: info; in the "
    "log of a coordinator or a site: warning.",
)
def app(quiet: bool, log_level: str | None) -> None:
    """Keeps Pareto-optimal answers (skylines) true while the data moves.

    DATA is a .csv, .parquet or .jsonl file, a folder of them, or - (CSV on standard input). Results go to standard
    output, all else to standard error. Bad input: one line on standard error, exit status 2, no partial file.
    """
    if quiet and log_level is not None:
        raise click.UsageError("give either --quiet or --log-level")
    if quiet or log_level is not None:
        log_to_standard_error()
