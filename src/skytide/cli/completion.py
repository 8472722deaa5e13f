"""`skytide completion`: lets a shell complete commands, options, files and columns."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Lets bash, zsh or fish complete commands.")
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
def command(shell: str) -> None:
    """Print the script with which SHELL completes commands, options, their values, files, and columns of DATA.

    \b
      echo 'eval "$(skytide completion bash)"' >> ~/.bashrc
      echo 'eval "$(skytide completion zsh)"' >> ~/.zshrc
      echo 'skytide completion fish | source' >> ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root()
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"this click cannot complete in {shell}")
    # Not `source()`: it would look for a bash on this machine, and the script may be for another.
    click.echo(made.source_template % made(root.command, {}, "skytide", "_SKYTIDE_COMPLETE").source_vars(), nl=False)
