"""What a shell offers while a value is typed: files, folders, and the columns of the DATA that was named before."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

_HEAD = 2**16


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell's own completion of files."""
    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell's own completion of folders."""
    return [CompletionItem(incomplete, type="dir")]


def columns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The columns of DATA, as far as they can be seen at once; nothing where DATA is not there yet."""
    # An option that still lacks its value ends the reading of the line: then arguments are left over.
    data = ctx.params.get("data") or next(iter(ctx.args), None)
    try:
        names = [] if data is None else list(_names(Path(data)))
    except Exception:
        # Nobody has pressed enter yet: what is wrong with DATA is told by the command.
        names = []
    # Shells take apart what has blanks in it.
    return [CompletionItem(name) for name in names if name.startswith(incomplete) and not set(name) & set(" \t\n'\"`")]


def _names(path: Path) -> Iterable[str]:
    """The columns of a file, or of the first usable one of a folder; of JSON lines those of the first line."""
    if path.is_dir():
        path = min(one for one in path.iterdir() if one.suffix.lower() in (".csv", ".parquet", ".jsonl"))
    kind = path.suffix.lower()
    if kind == ".parquet":
        import pyarrow.parquet as pq

        names: list[str] = pq.read_schema(path).names
        return names
    with path.open(encoding="utf-8-sig") as stream:
        head = stream.read(_HEAD).lstrip("\r\n").splitlines()[0]
    return next(csv.reader([head])) if kind == ".csv" else json.loads(head)
