"""`skytide bench`: the benchmarks of a checkout."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click


@click.command(
    "bench",
    short_help="Benchmarks against peers, and the figures of papers, in a checkout.",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
)
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(name: str | None, arguments: tuple[str, ...]) -> int | None:
    """Run the benchmark NAME with its own ARGUMENTS; without a NAME, list them.

    `papers` runs the figures and tables of the five papers on Spark, beside what the papers say: all of them, or those
    of one paper, as in `skytide bench papers tao06 --figure 12`. `evidence` runs all that the README claims and
    writes one report. `--list` says what there is, `--size` how large it is.

    Benchmarks are part of the source tree, not of the installed package.
    """
    folder = _checkout() / "benchmarks"
    modules = {path.stem: f"benchmarks.peers.{path.stem}" for path in sorted((folder / "peers").glob("[!_]*.py"))}
    modules |= {path.parent.name: f"benchmarks.{path.parent.name}.command" for path in folder.glob("*/command.py")}
    if name is None:
        for one in sorted(modules):
            click.echo(one)
        return None
    if name not in modules:
        raise click.UsageError(f"'{name}' is not a benchmark; there are: {', '.join(sorted(modules)) or 'none'}")
    root = str(folder.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    status = importlib.import_module(modules[name]).main(list(arguments))
    return status if isinstance(status, int) else None


def _checkout() -> Path:
    """The source tree that this package runs from, or the one that the command is called in."""
    for start in (Path(__file__).resolve(), Path.cwd() / "here"):
        for folder in start.parents:
            if (folder / "benchmarks" / "peers").is_dir() and (folder / "src" / "skytide").is_dir():
                return folder
    raise click.UsageError("benchmarks lie in the source tree; run this in a checkout of Skytide")
