"""--quiet and --log-level: what is said on standard error, and what is not."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from skytide.cli._voice import LEVELS, Voice, log_to_standard_error
from tests.cli.command import refused, run

WINDOW = ["window", "folder", "--min", "a", "--time", "t", "--duration", "9", "--nulls", "drop"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a row without a value, and one that is not for us."""
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("folder/1.csv").write_text("t,a\n1,2\n2,\n")
    Path("folder/notes.txt").write_text("nothing")
    return Path("folder")


@pytest.fixture(autouse=True)
def log() -> Iterator[logging.Logger]:
    """The library's log, as it was before when the test is over."""
    logger = logging.getLogger("skytide")
    handlers, level = logger.handlers, logger.level
    yield logger
    logger.handlers = handlers
    logger.setLevel(level)


def test_warnings_are_said_unless_errors_alone_are_wanted(folder: Path) -> None:
    for options in ([], ["--log-level", "debug"], ["--log-level", "INFO"], ["--log-level", "warning"]):
        told = run(*options, *WINDOW)
        assert told.exit_code == 0
        assert "notes.txt" in told.stderr and "1 row(s) not taken" in told.stderr
    for options in (["--quiet"], ["-q"], ["--log-level", "error"]):
        told = run(*options, *WINDOW)
        assert (told.exit_code, told.stderr) == (0, "")
        assert told.stdout == run(*WINDOW).stdout != ""


@pytest.mark.parametrize("command", ["skyline", "explain", "window"])
def test_every_command_tells_which_files_of_a_folder_it_does_not_read(command: str, folder: Path) -> None:
    more = {"explain": ["--row", "1"], "window": ["--count", "3"]}.get(command, [])
    told = run(command, folder, "--min", "a", "--nulls", "drop", *more)
    assert told.exit_code == 0
    assert told.stderr.count("notes.txt: not a .csv, .parquet or .jsonl file, skipped") == 1


def test_notes_are_said_at_info_and_not_above() -> None:
    assert run("doctor").stderr == "The core works.\n"
    assert run("--log-level", "warning", "doctor").stderr == ""


def test_errors_are_said_whatever_is_wanted(folder: Path) -> None:
    for options in (["-q"], ["--log-level", "error"], ["--log-level", "warning"]):
        assert "'b'" in refused(*options, "skyline", folder / "1.csv", "--min", "b")


def test_with_debug_an_error_comes_with_its_origin_and_ends_with_the_same_line(folder: Path) -> None:
    arguments = ["skyline", str(folder / "1.csv"), "--min", "b"]
    told = run("--log-level", "debug", *arguments)
    assert told.exit_code == 2
    assert told.stderr.startswith("Traceback")
    assert told.stderr.splitlines()[-1] == refused(*arguments)


def test_what_cannot_be_meant_is_refused() -> None:
    assert "either" in refused("--quiet", "--log-level", "info", "doctor")
    assert "loud" in refused("--log-level", "loud", "doctor")
    for option in ("--quiet", "-q", "--log-level"):
        assert f"{option} goes before the command" in refused("skyline", "x.csv", option, "info")


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("asked", [None, *LEVELS])
def test_the_log_is_at_warning_at_info_when_verbose_or_as_asked_for(
    asked: str | None, verbose: bool, log: logging.Logger
) -> None:
    context = click.Context(click.Command("skytide"))
    context.params = {"quiet": False, "log_level": asked}
    with context:
        log_to_standard_error(verbose)
    wanted = logging.getLevelNamesMapping()[(asked or "warning").upper()]
    assert log.level == (min(wanted, logging.INFO) if verbose else wanted)


def test_outside_of_a_command_notes_are_said() -> None:
    assert Voice.here() == Voice(logging.INFO, False)


@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_a_terminal_sees_progress_unless_it_is_to_be_quiet(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("id,t,s,a\n" + "".join(f"x{n % 3},{n},z,0.{n}\n" for n in range(20)))
    named = ["--id", "id", "--time", "t"]
    commands = [
        ["skyline", "data.csv", "--min", "a"],
        ["explain", "data.csv", "--min", "a", "--row", "2"],
        ["window", "data.csv", "--min", "a", "--count", "5"],
        ["uncertain", "data.csv", "--min", "a", "--prob", "a", "--count", "5", "--threshold", "0.5"],
        ["snapshots", "data.csv", "--min", "a", *named],
        ["monitor", "data.csv", "--min", "a", *named],
        ["fragments", "data.csv", "--min", "a", "--site", "s", *named],
        ["generate", "independent", "-n", "9"],
    ]
    probe = (
        "import skytide.cli._progress as p; p.PATIENCE_SECONDS = 0.0\n"
        "from skytide.cli import app\n"
        f"for command in {commands!r}:\n"
        f"    try: app([*{options!r}, *command])\n"
        "    except SystemExit as end: assert not end.code, command\n"
    )
    ours, theirs = os.openpty()
    subprocess.run([sys.executable, "-c", probe], stdout=subprocess.DEVNULL, stderr=theirs, cwd=tmp_path, check=True)
    os.write(theirs, b"the end")
    seen = b""
    while not seen.endswith(b"the end"):
        seen += os.read(ours, 100_000)
    os.close(theirs)
    os.close(ours)
    assert (b"snapshots: types" in seen) == (not options)
    assert [command[0] for command in commands if command[0].encode() in seen] == (
        [] if options else [command[0] for command in commands]
    )
