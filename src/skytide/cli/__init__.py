"""The command line: `skytide`. One module per command; a module whose name begins with `_` is shared by commands.

A command module has a click command named `command`. It imports what it needs when it runs, so that `skytide --help`
loads click and nothing else.
"""

from __future__ import annotations

from skytide.cli._app import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line and end the process with its exit status."""
    app()
