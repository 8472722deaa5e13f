"""The examples of the documents are run: Python sessions by doctest, console sessions by a shell."""

import doctest
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
ALL = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
LIVE = [path for path in ALL if re.search(r"^\$ .* &$", path.read_text(encoding="utf-8"), re.MULTILINE)]
"""Documents with commands that run on beside the others: these are run from top to bottom."""
DOCUMENTS = [path for path in ALL if path not in LIVE]
SECONDS = 30.0


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_sessions_give_what_they_show(path: Path) -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=flags, encoding="utf-8")
    assert failed == 0


def sessions(path: Path) -> list[list[tuple[str, str]]]:
    """The console blocks of a document: each a list of commands with the output they show."""
    return list(map(steps_of, re.findall(r"```console\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)))


def steps_of(block: str) -> list[tuple[str, str]]:
    """The commands of a console block."""
    steps: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        else:
            steps[-1] = (steps[-1][0], steps[-1][1] + line + "\n")
    return steps


@pytest.mark.parametrize("path", [one for one in DOCUMENTS if sessions(one)], ids=lambda path: path.name)
def test_console_sessions_give_what_they_show(path: Path, tmp_path: Path) -> None:
    """`cat FILE` shows a file that the later commands use; every other command is run."""
    environment = with_commands()
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


def with_commands() -> dict[str, str]:
    """The environment, where `skytide` is this one."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("path", LIVE, ids=lambda path: path.name)
def test_a_live_document_gives_what_it_shows(path: Path, tmp_path: Path) -> None:
    """A command that ends in & runs on until the end. What is shown comes within seconds; `...` is anything."""
    text, running = on_free_ports(path.read_text(encoding="utf-8")), list[subprocess.Popen[bytes]]()
    memory: dict[str, object] = {}
    try:
        for kind, block in re.findall(r"```(console|python)\n(.*?)```", text, re.DOTALL):
            if kind == "python":
                session = doctest.DocTestParser().get_doctest(block, memory, path.name, str(path), 0)
                runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
                assert runner.run(session, clear_globs=False).failed == 0
                memory |= session.globs
                continue
            for command, shown in steps_of(block):
                if command.startswith("cat "):
                    (tmp_path / command.removeprefix("cat ")).write_text(shown, encoding="utf-8")
                elif command.endswith(" &"):
                    own = ["bash", "-c", f"exec {command.removesuffix(' &')} 2>> running.log"]
                    running.append(subprocess.Popen(own, cwd=tmp_path, env=with_commands()))
                else:
                    comes(command, shown, tmp_path)
        assert all(one.poll() is None for one in running), (tmp_path / "running.log").read_text()
    finally:
        for one in reversed(running):
            one.terminate()
        assert [one.wait(SECONDS) for one in running] == [0] * len(running)


def on_free_ports(text: str) -> str:
    """The document with ports that nobody uses in place of its own."""
    text = re.sub(r"^(\$ skytide coordinator --data .*) &$", r"\1 --listen 127.0.0.1:8750 &", text, flags=re.MULTILINE)
    for port in sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", text))):
        with socket.create_server(("127.0.0.1", 0)) as free:
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free.getsockname()[1]}")
    return text


def comes(command: str, shown: str, folder: Path) -> None:
    """A command gives what it shows, if not at once then soon."""
    pattern = ".*?".join(map(re.escape, shown.rstrip("\n").split("...")))
    limit = time.monotonic() + SECONDS
    while True:
        own: dict[str, Any] = {"cwd": folder, "env": with_commands(), "timeout": SECONDS}
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, **own)
        if done.returncode == 0 and (not shown or re.fullmatch(pattern, done.stdout.rstrip("\n"))):
            return
        if not shown or time.monotonic() > limit:
            pytest.fail(f"{command}: {done.stdout}{done.stderr}")
        time.sleep(0.1)


def test_links_between_documents_lead_somewhere() -> None:
    for path in ALL:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} links to {target}"
