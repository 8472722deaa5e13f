"""The command line as sphinx-click reads it: all commands loaded, all options made.

Our commands are modules that are loaded when they are called, and some make their options only then; sphinx-click looks
at what a command has from the start.
"""

from __future__ import annotations

import click
from sphinx.application import Sphinx

from skytide.cli import app as lazy


def settled(command: click.Command, context: click.Context) -> click.Command:
    """The same command, with all its options, and as a group with all its commands."""
    own = [one for one in command.get_params(context) if "--help" not in one.opts]
    if not isinstance(command, click.Group):
        return click.Command(command.name, params=own, help=command.help, short_help=command.short_help)
    below = {}
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        if found is not None:
            below[name] = settled(found, click.Context(found, context, name))
    return click.Group(command.name, commands=below, params=own, help=command.help, short_help=command.short_help)


app = settled(lazy, click.Context(lazy, info_name="skytide"))


def examples(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """Lines that are to stay as they are become code."""
    found = list[str]()
    for line in lines:
        if not line.startswith("| "):
            found.append(line)
            continue
        if not found or not found[-1].startswith("   "):
            found += ["", ".. code-block:: none", ""]
        found.append(f"   {line[2:].strip()}")
    lines[:] = found


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("sphinx-click-process-description", examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
