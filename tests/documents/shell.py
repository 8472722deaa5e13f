"""Shell lines that are shown, and not run: whether each calls something that is there, with options that it has."""

from __future__ import annotations

import importlib.util
import re
import shlex
from functools import cache

import click

from skytide.cli import app
from tests.documents.blocks import ROOT
from tests.documents.session import called_here

OTHERS = {"curl", "umask", "cd", "git"}
"""Programs of others: what they are called with is not looked at."""


def complaint(line: str) -> str | None:
    """What is wrong with a line, if anything."""
    for part in re.split(r"\s\|\s|\s&&\s|;\s", re.sub(r"(^|\s)#\s.*$", "", line)):
        words = shlex.split(re.sub(r"\s+(2?>>?|<)\s*\S+|\s+&$", "", part))
        while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            del words[0]
        if not words:
            continue
        found = _called(words)
        if found is not None:
            return f"{part}: {found}"
    return None


def _called(words: list[str]) -> str | None:
    match words:
        case ["skytide", "bench", name, *_]:
            return None if name in _benchmarks() else "there is no such benchmark"
        case ["skytide", *arguments]:
            return _ours(arguments)
        case ["make", target, *_]:
            rules = (ROOT / "Makefile").read_text(encoding="utf-8")
            return None if re.search(rf"^{target}:", rules, re.MULTILINE) else "there is no such target"
        case ["python", "-m", module, *_]:
            return None if importlib.util.find_spec(module) else "there is no such module"
        case ["python", path, *_]:
            return None if (ROOT / path).exists() else "there is no such file"
        case [name, *_]:
            return None if name in OTHERS else "this must be run, or marked"
    return None


@cache
def _benchmarks() -> list[str]:
    return called_here(["bench"])[1].split()


def _ours(arguments: list[str]) -> str | None:
    """Whether our command line understands it; files need not be there."""
    context = app.make_context("skytide", list(arguments))
    command: click.Command = app
    rest = [*context._protected_args, *context.args]
    while isinstance(command, click.Group) and rest:
        found = command.get_command(context, rest[0])
        if found is None:
            return f"there is no command {rest[0]}"
        try:
            context = found.make_context(rest[0], rest[1:], parent=context)
        except click.exceptions.Exit:
            return None
        except click.BadParameter as error:
            return None if "exist" in error.message else error.format_message()
        except click.UsageError as error:
            return error.format_message()
        command, rest = found, [*context._protected_args, *context.args]
    return None


def lines_of(text: str) -> list[str]:
    """The commands of a block; one may go over several lines."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]
