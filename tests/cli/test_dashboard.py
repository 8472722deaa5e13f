"""`skytide dashboard`: after a replay the page says what the plain command says; it ends as it should."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skytide.cli import _serving
from skytide.cli._pace import Pace
from tests.cli.command import refused, rows_of, run
from tests.cli.test_completion import values
from tests.cli.watched import CASES, answers, check, write_csv

ROWS = [(at // 2, "abcdef"[at % 6], "gh"[at % 2], at * 7 % 11, at * 5 % 9, "st"[at % 2]) for at in range(80)]
FREE = ("--listen", "127.0.0.1:0")


def asked(url: str, what: str) -> Any:
    with urllib.request.urlopen(f"{url}api/{what}", timeout=10) as answer:
        return json.load(answer)


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What pages that are served in this process say over HTTP when they end."""
    found: list[dict[str, Any]] = []
    serving = _serving.serving

    @contextlib.contextmanager
    def looked_at(*arguments: Any) -> Iterator[Any]:
        with serving(*arguments) as page:
            yield page
            found.append(asked(page.url, "recording"))

    monkeypatch.setattr("skytide.cli.dashboard.serving", looked_at)
    return found


@pytest.mark.parametrize("name", CASES)
def test_after_a_replay_the_page_says_what_the_command_says(
    name: str, pages: list[dict[str, Any]], tmp_path: Path
) -> None:
    data, case = write_csv(tmp_path / "in.csv", ROWS), CASES[name]
    kind = [] if name != "theta" else ["--kind", "monitor"]
    result = run("dashboard", data, *case.options, "--rate", "0", "--end", *FREE, *kind)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert result.stderr.splitlines()[0].startswith("watch it at http://127.0.0.1:")
    check(pages[-1], case.changes(data))
    state = pages[-1]["state"]
    assert state["title"] == str(data) and state["kind"] == ("frequent" if name == "frequent" else case.name)
    assert state["meters"]["rows"] == len(ROWS)


def test_a_paced_replay_is_the_same(pages: list[dict[str, Any]], tmp_path: Path) -> None:
    data = write_csv(tmp_path / "in.csv", ROWS)
    for pace in (("--rate", "400"), ("--speed", "200")):
        out = tmp_path / "out.csv"
        began = time.monotonic()
        result = run("dashboard", data, *CASES["duration"].options, *pace, "--end", *FREE, "-o", out)
        assert result.exit_code == 0 and time.monotonic() - began > 0.15
        assert out.read_text() == run("window", data, *CASES["duration"].options).stdout
        check(pages[-1], CASES["duration"].changes(data))


def test_rows_are_due_by_rate_or_by_their_times() -> None:
    now, naps = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        now[0] += seconds

    pace = Pace(10, clock=lambda: now[0], sleep=sleep)
    assert pace.pieces(None, 4) == [1, 2, 3]
    for _ in range(5):
        pace.wait(None, 1)
    assert naps == pytest.approx([0.1] * 4)
    naps.clear()
    pace = Pace(speed=2, clock=lambda: now[0], sleep=sleep)
    times = [10, 10, 10.05, 14, 13]
    assert pace.pieces(times, 5) == [3]
    pace.wait(times[:3], 3)
    pace.wait(times[3:], 2)
    assert naps == pytest.approx([2.0])


def test_an_error_in_the_data_comes_out_as_it_does_and_the_page_says_so(
    pages: list[dict[str, Any]], tmp_path: Path
) -> None:
    data = tmp_path / "in.csv"
    data.write_text("x,y\n1,2\nno,3\n")
    result = run("dashboard", data, "--min", "x", "--max", "y", "--count", "2", *FREE)
    assert result.exit_code == 2
    said = result.stderr.splitlines()
    assert said[0].startswith("watch it at") and len(said) == 2 and "'no'" in said[1]
    assert pages[-1]["state"]["status"] == "ended" and pages[-1]["state"]["reason"] in said[1]


BAD = {
    "nothing": ([], "say what to watch"),
    "no file": (["missing.csv", "--min", "x", "--count", "3"], "no such file"),
    "two paces": (["in.csv", "--min", "x", "--count", "3", "--rate", "3", "--speed", "3"], "--speed"),
    "no times": (["in.csv", "--min", "x", "--count", "3", "--speed", "3"], "--rate"),
    "no such column": (["in.csv", "--min", "nix", "--count", "3"], "nix"),
    "no such option": (["in.csv", "--min", "x", "--count", "3", "--nope", "1"], "--nope"),
    "no time": (["in.csv", "--min", "x"], "--id"),
    "no kind": (["in.csv", "--min", "x", "--kind", "skyline"], "--kind"),
    "no address": (["in.csv", "--min", "x", "--count", "3", "--listen", "nowhere"], "nowhere"),
    "no rate": (["in.csv", "--min", "x", "--count", "3", "--rate", "-1"], "--rate"),
    "no pipeline": (["missing.toml"], "missing.toml"),
    "a paced pipeline": (["missing.toml", "--rate", "3"], "--rate"),
    "a word too many": (["missing.toml", "more"], "more"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_give_one_line_and_status_2(case: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "in.csv", ROWS)
    options, words = BAD[case]
    assert words in refused("dashboard", *options)


def test_a_shell_is_offered_the_options_of_what_is_replayed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "in.csv", ROWS)
    assert values("dashboard", "in.csv", "--ra") == ["--rate"]
    assert values("dashboard", "in.csv", "--count", "5", "--dur") == ["--duration"]
    assert values("dashboard", "in.csv", "--prob", "p", "--thr") == ["--threshold"]
    assert "--until" not in values("dashboard", "in.csv", "--site", "s", "--")


class Process:
    """`skytide dashboard` as a process of its own."""

    def __init__(self, *arguments: str | Path) -> None:
        call = [sys.executable, "-m", "skytide.cli", "dashboard", *map(str, arguments), *FREE]
        self.child = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.child.stderr is not None
        self.url = self.child.stderr.readline().rpartition(" ")[2].strip()

    def state(self, until: str) -> dict[str, Any]:
        """The state once it has this status, or rows."""
        for _ in range(600):
            state: dict[str, Any] = asked(self.url, "state")
            if state["status"] == until or (until == "rows" and state["rows"]):
                return state
            time.sleep(0.05)
        raise AssertionError(f"it is never {until}")

    def interrupt(self) -> tuple[int, str, str]:
        self.child.send_signal(signal.SIGINT)
        out, err = self.child.communicate(timeout=30)
        return self.child.returncode, out, err


def test_a_process_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    data, case = write_csv(tmp_path / "in.csv", ROWS), CASES["snapshots"]
    process = Process(data, *case.options, "--rate", "2000")
    try:
        state = process.state("ended")
        assert {row[0] for row in state["rows"]} == list(answers(case.changes(data)).values())[-1]
        assert asked(process.url, "sizes")["size"] == [len(one) for one in answers(case.changes(data)).values()]
        assert process.interrupt() == (0, "", "the query has ended; the page is served until Ctrl-C\n")
    finally:
        process.child.kill()


def test_a_replay_can_be_interrupted(tmp_path: Path) -> None:
    process = Process(write_csv(tmp_path / "in.csv", ROWS), *CASES["count"].options, "--rate", "2")
    try:
        assert process.state("rows")["status"] == "running"
        assert process.interrupt() == (130, "", "")
    finally:
        process.child.kill()


def test_options_may_come_before_the_data(pages: list[dict[str, Any]], tmp_path: Path) -> None:
    data = write_csv(tmp_path / "in.csv", ROWS)
    result = run("dashboard", "--end", "--rate=0", *CASES["count"].options, *FREE, data)
    assert result.exit_code == 0, result.stderr
    check(pages[-1], rows_of(run("window", data, *CASES["count"].options).stdout))


@pytest.mark.parametrize("pace", [("--rate", "nan"), ("--rate", "inf"), ("--speed", "nan"), ("--speed", "inf")])
def test_a_pace_that_is_no_number_is_refused(pace: tuple[str, str], tmp_path: Path) -> None:
    data = write_csv(tmp_path / "in.csv", ROWS)
    assert "is not a pace" in refused("dashboard", data, *CASES["duration"].options, *pace)


def test_a_pause_of_centuries_is_slept_in_parts() -> None:
    class EnoughError(Exception):
        pass

    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise EnoughError

    pace = Pace(rate=5e-324, clock=lambda: 0.0, sleep=sleep)
    pace.wait(None, 1)
    with pytest.raises(EnoughError):
        pace.wait(None, 1)
    assert max(naps) <= 3600


def test_a_browser_is_opened_where_that_is_asked_for(tmp_path: Path) -> None:
    data, opened = write_csv(tmp_path / "in.csv", ROWS), tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    command = [sys.executable, "-m", "skytide.cli", "dashboard", str(data), *CASES["count"].options, "--rate", "0"]
    for asked_for in ((), ("--open",)):
        said = subprocess.run(
            [*command, "--end", *FREE, *asked_for],
            env={**os.environ, "BROWSER": str(browser)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stderr
        url = said.splitlines()[0].removeprefix("watch it at ")
        assert opened.exists() == bool(asked_for)
        assert not asked_for or opened.read_text().strip() == url
