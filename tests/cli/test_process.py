"""The command as a process: what it loads, and how it ends when interrupted or cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SKYTIDE = [sys.executable, "-m", "skytide.cli"]


def skytide(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*SKYTIDE, *arguments], input=stdin, capture_output=True, check=False)


def test_help_loads_neither_compiled_code_nor_arrow_nor_spark_nor_plotting() -> None:
    probe = (
        "import sys, skytide.cli\n"
        "try: skytide.cli.app(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(set(sys.modules) & {'numpy', 'numba', 'pyarrow', 'pyspark', 'matplotlib', 'pandas'}))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_results_go_to_standard_output_and_all_else_to_standard_error() -> None:
    done = skytide("skyline", "-", "--min", "a", stdin=b"a\n2\n1\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a\n1\n", b"")
    done = skytide("skyline", "-", "--min", "a", stdin=b"a\nx\n")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


def test_a_reader_that_closes_the_pipe_ends_the_command_without_a_word() -> None:
    process = subprocess.Popen(
        [*SKYTIDE, "generate", "independent", "-n", "3000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == b"id,x1,x2\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 141
    process.stderr.close()


def test_an_interrupt_ends_the_command_without_a_traceback_and_without_a_file(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*SKYTIDE, "generate", "independent", "-n", "2000000000", "-o", str(tmp_path / "out.csv")],
        stderr=subprocess.PIPE,
    )
    while not any(file.stat().st_size for file in tmp_path.iterdir()):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in complaint
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_sees_a_progress_bar_and_a_file_does_not(tmp_path: Path) -> None:
    probe = (
        "import skytide.cli._progress as p; p.PATIENCE_SECONDS = 0.0\n"
        f"from skytide.cli import app; app(['generate', 'independent', '-n', '9', '-o', {str(tmp_path / 'o.csv')!r}])"
    )
    ours, theirs = os.openpty()
    subprocess.run([sys.executable, "-c", probe], stderr=theirs, check=True)
    os.close(theirs)
    assert b"generate" in os.read(ours, 10_000)
    os.close(ours)
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True).stderr == b""
