"""The examples of the documents are run: Python sessions by doctest, console sessions by a shell."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_sessions_give_what_they_show(path: Path) -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=flags, encoding="utf-8")
    assert failed == 0


def sessions(path: Path) -> list[list[tuple[str, str]]]:
    """The console blocks of a document: each a list of commands with the output they show."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
        steps: list[tuple[str, str]] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], ""))
            else:
                steps[-1] = (steps[-1][0], steps[-1][1] + line + "\n")
        found.append(steps)
    return found


@pytest.mark.parametrize("path", [one for one in DOCUMENTS if sessions(one)], ids=lambda path: path.name)
def test_console_sessions_give_what_they_show(path: Path, tmp_path: Path) -> None:
    """`cat FILE` shows a file that the later commands use; every other command is run."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for steps in sessions(path):
        for command, shown in steps:
            if command.startswith("cat "):
                (tmp_path / command.removeprefix("cat ")).write_text(shown, encoding="utf-8")
                continue
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{command}: {done.stderr}"
            if shown:
                assert done.stdout == shown, command


def test_links_between_documents_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} links to {target}"
