"""Runs a document from top to bottom, in a folder of its own."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skytide.cli import app
from tests.documents.blocks import Block, to_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 60.0
INTERRUPTED = 130
_PLAIN = re.compile(r"skytide (?!site|coordinator|dashboard|run)[^|&;<>$`]*")
"""A call of ours that needs neither a shell nor a process of its own."""
_PLACES = re.compile(
    r"""(\.(?:csv|parquet|json|start)\(|Sink\(|CurrentTable\(|Feed\(|checkpoint=|"checkpointLocation",\s)"([\w./-]+)\""""
)


_DEFAULTS = {"coordinator --data": "8750", "dashboard": "8760"}
"""Commands that listen, and where they do so if nothing is said."""


class Session:
    """A folder with the document's files, the names that its Python has made, and the programs that run beside it.

    In a console block `cat FILE` shows a file that is there from then on; a command that ends in & runs on until the
    end. What is shown must come, `...` is anything; where programs run beside it, it must come soon.
    """

    def __init__(self, folder: Path, spark: SparkSession | None = None) -> None:
        self.folder = folder
        self.spark = spark
        self.names: dict[str, Any] = {}
        self.running = list[subprocess.Popen[bytes]]()

    def run(self, path: Path) -> None:
        """All blocks of a document that are to be run; one that calls a program that is not there is skipped."""
        if shutil.which("curl") is None and any("curl " in block.text for block in to_run(path, "console")):
            pytest.skip(f"{path.name} asks a server by curl, which this machine does not have")
        text_of = on_free_ports(path)
        with contextlib.chdir(self.folder):
            try:
                for block in to_run(path, "console", "python", "sql"):
                    self._block(block, text_of(block.text))
                log = self.folder / "running.log"
                assert all(one.poll() is None for one in self.running), log.read_text(encoding="utf-8")
            finally:
                self._end()

    def _block(self, block: Block, text: str) -> None:
        if block.language == "console":
            for command, shown in steps_of(text):
                self._command(block, command, shown)
        elif block.language == "sql":
            self._sql(text)
        elif block.is_session:
            self._python(block, text)
        else:
            # Spark looks for files where it was started, which is not here; and tests do not wait for ten seconds.
            text = text.replace('trigger="10s"', 'trigger="100ms"')
            placed = _PLACES.sub(lambda found: f'{found[1]}"{self.folder / found[2]}"', text)
            exec(compile(placed, str(block), "exec"), self.names)  # noqa: S102

    def _python(self, block: Block, text: str) -> None:
        if self.spark is not None:
            text = _PLACES.sub(lambda found: f'{found[1]}"{self.folder / found[2]}"', text)
        test = doctest.DocTestParser().get_doctest(text, self.names, str(block), str(block.path), block.line)
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        said = io.StringIO()
        failed = runner.run(test, out=said.write, clear_globs=False).failed
        self.names |= test.globs
        assert failed == 0, said.getvalue()

    def _sql(self, text: str) -> None:
        """The tables are the document's CSV files."""
        import skytide.spark

        assert self.spark is not None
        skytide.spark.register(self.spark)
        for path in self.folder.glob("*.csv"):
            table = self.spark.read.csv(str(path), header=True, inferSchema=True)
            table.createOrReplaceTempView(path.stem)
        assert self.spark.sql(text).count() > 0

    def _command(self, block: Block, command: str, shown: str) -> None:
        if command.startswith("cat ") and not Path(command[4:]).exists():
            Path(command[4:]).write_text(shown, encoding="utf-8")
        elif command.endswith(" &"):
            own = ["bash", "-c", f"exec {command.removesuffix(' &')} 2>> running.log"]
            self.running.append(subprocess.Popen(own, env=with_commands()))
        else:
            pattern = ".*?".join(map(re.escape, shown.rstrip("\n").split("...")))
            limit = time.monotonic() + (SECONDS if self.running else 0)
            while True:
                status, out, err = self._called(command)
                right = status == 0 and (not shown or re.fullmatch(pattern, out.rstrip("\n"), re.DOTALL))
                if right:
                    return
                if not shown or time.monotonic() > limit:
                    pytest.fail(f"{block}: {command}: exit status {status}\n{out}{err}")
                time.sleep(0.1)

    def _called(self, command: str) -> tuple[int, str, str]:
        if _PLAIN.fullmatch(command):
            return called_here(shlex.split(command)[1:])
        own = ["bash", "-c", command]
        done = subprocess.run(own, capture_output=True, text=True, check=False, env=with_commands(), timeout=SECONDS)
        return done.returncode, done.stdout, done.stderr

    def _end(self) -> None:
        for one in reversed(self.running):
            one.send_signal(signal.SIGINT)
        ends = {one.args[-1]: one.wait(SECONDS) for one in self.running if isinstance(one.args, list)}
        assert [f"{command}: {status}" for command, status in ends.items() if status not in (0, INTERRUPTED)] == []


def called_here(arguments: list[str]) -> tuple[int, str, str]:
    """Our command line, called in this process: what it compiles and loads is there for the next call."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app.main(arguments)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    texts = [stream.detach().getvalue().decode() for stream in (out, err)]
    return status, texts[0], texts[1]


def steps_of(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it shows."""
    steps: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        else:
            steps[-1] = (steps[-1][0], steps[-1][1] + line + "\n")
    return steps


def with_commands() -> dict[str, str]:
    """The environment, where `skytide` is this one."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def on_free_ports(path: Path) -> Any:
    """Gives a text of the document with ports that nobody uses in place of its own."""
    ports: dict[str, int] = {}
    for port in sorted(set(re.findall(r"127\.0\.0\.1:(\d{4,})", path.read_text(encoding="utf-8")))):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports[port] = free.getsockname()[1]

    def moved(text: str) -> str:
        for begin, port in _DEFAULTS.items():
            if port in ports:
                line = rf"^(\$ skytide {begin} (?!.*--listen).*) &$"
                text = re.sub(line, rf"\1 --listen 127.0.0.1:{port} &", text, flags=re.MULTILINE)
        for port, free in ports.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
        return text

    return moved
