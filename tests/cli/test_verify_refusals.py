"""`skytide verify` and data that cannot be used: who takes it is wrong, and so is who refuses other data."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skytide.cli import verify
from skytide.errors import InputError
from skytide.monitors.sliding.window import SlidingWindow
from skytide.monitors.snapshots.snapshots import Snapshots
from skytide.monitors.uncertain.reading import Instances
from skytide.monitors.uncertain.window import UncertainWindow
from skytide.runtime.fragments import Fragmented
from tests.cli.command import refused, run

PLAIN = ["--min", "a", "--max", "b"]
UPDATES = ["snapshots", *PLAIN, "--id", "id", "--time", "t", "--op", "add"]
FRAGMENTS = ["fragments", "--min", "a", "--max", "a / b", "--site", "s", "--id", "id", "--time", "t"]
CHANCES = ["uncertain", *PLAIN, "--prob", "p", "--threshold", "0.2", "--time", "t", "--duration", "4"]
PLACES = [*CHANCES, "--object", "id", "--by", "s"]
HEAD = "id,t,a,b,p,s\n"
SPOILED = HEAD + "x,1,inf,1,1,s\nx,2,-inf,1,1,s\ny,2,1,1,1,s\ny,3,-inf,1,1,s\nx,4,-inf,2,1,s\n"

pytestmark = pytest.mark.usefixtures("briefly")


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """For those who want to know that a run is wrong, not on how few rows."""
    monkeypatch.setattr(verify, "_SHRINKING_SECONDS", 0.0)


def data(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return path


def call(words: list[str], path: Path, *more: str) -> list[str]:
    return ["verify", words[0], str(path), *words[1:], *more]


def careless(monitor: Any, method: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Let one method leave out what the policy refuses."""
    made = monitor.__init__

    def init(self: Any, *rest: Any, **more: Any) -> None:
        mine = method in (*rest, more.get("method"))
        made(self, *rest, **{**more, **({"nulls": "drop"} if mine else {})})

    return lambda patched: patched.setattr(monitor, "__init__", init)


def clipped(patched: pytest.MonkeyPatch) -> None:
    """Let one method take any number for a probability."""
    right = UncertainWindow.extend

    def extend(self: UncertainWindow, rows: Any, *, probabilities: Any, **more: Any) -> Any:
        chances = np.array(probabilities.to_pylist(), np.float64)
        return right(self, rows, probabilities=chances.clip(0, 1) if self.method == "scan" else chances, **more)

    patched.setattr(UncertainWindow, "extend", extend)


def unchecked(patched: pytest.MonkeyPatch) -> None:
    """Let all methods take any objects."""
    for name in ("check_times", "check_kept"):
        patched.setattr(Instances, name, lambda *rest: None)


UNUSABLE: dict[str, tuple[list[str], str, Callable[[pytest.MonkeyPatch], None], set[str]]] = {
    "an object has a function without a value": (
        FRAGMENTS,
        "x,1,1,1,1,s\nx,2,1,0,1,r\nx,3,0,-1,1,s\nx,3,0,1,1,r\ny,4,1,1,1,s",
        careless(Fragmented, "pivot"),
        {"pivot"},
    ),
    "the result of an update is not a number": (
        UPDATES,
        "x,1,inf,1,1,s\ny,1,1,1,1,s\nx,2,-inf,1,1,s",
        careless(Snapshots, "mbr"),
        {"mbr"},
    ),
    "a probability is not between 0 and 1": (CHANCES, "x,1,1,1,0.5,s\ny,2,1,1,2,s", clipped, {"scan"}),
    "an object has several times": (PLACES, "x,1,1,1,0.5,s\nx,2,2,1,0.5,s", unchecked, {"auto", "scan"}),
    "an object has several groups": (PLACES, "x,1,1,1,0.5,s\nx,1,2,1,0.5,r", unchecked, {"auto", "scan"}),
    "the probabilities of an object sum to more than 1": (
        PLACES,
        "x,1,1,1,0.5,s\nx,1,2,1,0.75,s\ny,1,1,1,0.5,s",
        unchecked,
        {"auto", "scan"},
    ),
}


@pytest.mark.parametrize("reason", UNUSABLE)
def test_who_takes_data_that_must_be_refused_is_wrong(
    reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, rows, fault, wrong = UNUSABLE[reason]
    arguments = call(words, data(tmp_path, f"{HEAD}{rows}\n"))
    refused(*arguments)
    fault(monkeypatch)
    result = run(*arguments, "--json")
    assert result.exit_code == 1, result.stdout + result.stderr
    found = [one for one in json.loads(result.stdout)["runs"] if one["result"] == "disagrees"]
    assert {one["method"] for one in found} == wrong
    assert all(one["reason"] == f"takes data that cannot be used: {reason}" for one in found)


@pytest.mark.parametrize("more", [[], ["--nulls", "drop"]])
def test_objects_that_are_nowhere_else_and_functions_that_come_to_have_values_are_usable(
    more: list[str], tmp_path: Path
) -> None:
    # Only the end of an instant counts, and only who is at a site then.
    path = data(tmp_path, f"{HEAD}x,1,1,0,1,s\nx,1,1,2,1,r\ny,1,1,0,1,s\ny,1,,,1,s\n")
    assert run(*call(FRAGMENTS, path, *more)).exit_code == 0
    path = data(tmp_path, f"{HEAD}x,1,1,1,0.7,s\nx,1,2,1,0.2,s\nx,1,2,1,0.1,s\ny,2,1,1,1,s\n")
    assert run(*call(PLACES, path, *more)).exit_code == 0


@pytest.mark.parametrize(
    ("reason", "status"), [("the value is missing (NULL or NaN)", 1), ("is stranger than all others", 2)]
)
def test_to_refuse_data_that_can_be_used_is_wrong_where_the_definitions_know_the_reason(
    reason: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fussy(*rest: Any, **more: Any) -> Any:
        raise InputError(reason, row=1)

    monkeypatch.setattr(SlidingWindow, "extend", fussy)
    words = ["window", *PLAIN, "--id", "id", "--count", "3"]
    result = run(*call(words, data(tmp_path, f"{HEAD}x,1,1,1,1,s\n")))
    assert result.exit_code == status
    assert ("refuses data that can be used: " in result.stdout) == (status == 1)


def test_updates_that_later_ones_make_usable_are_refused_as_they_come(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text(f"{HEAD}x,1,inf,1,1,s\nx,3,-inf,1,1,s\n")
    (tmp_path / "2.csv").write_text(f"{HEAD}x,2,,,1,s\n")
    assert "is not a number" in refused(*call(UPDATES, tmp_path, "--lateness", "5"))


def test_a_lateness_beyond_all_times_is_one(tmp_path: Path) -> None:
    path = data(tmp_path, f"{HEAD}x,5,1,1,1,s\ny,{2**62 - 1},2,2,1,s\nz,-7,0,0,1,s\n")
    assert run(*call(UPDATES, path, "--lateness", "9" * 30)).exit_code == 0


@pytest.mark.parametrize("theta", ["80%", "1e-999999999", "2"])
def test_what_is_no_share_is_for_the_command_to_refuse(theta: str, tmp_path: Path) -> None:
    path = data(tmp_path, f"{HEAD}x,1,1,1,1,s\n")
    assert theta in refused(*call(UPDATES, path, "--frequent", theta, "--over", "3"))
    moves = ["monitor", *PLAIN, "--id", "id", "--time", "t", "--method", "sampling"]
    assert theta in refused(*call(moves, path, "--theta", theta, "--over", "3"))


@pytest.mark.parametrize("day", ["", "2024-01-0", "2024-01-01T00:0{}:00.5", "0."])
def test_updates_that_are_left_out_are_known_by_object_and_time(
    day: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [line.split(",") for line in SPOILED.splitlines()[1:]]
    lines = [",".join((one, day.format(t) if "{" in day else day + t, *rest)) for one, t, *rest in rows]
    arguments = call(UPDATES, data(tmp_path, HEAD + "\n".join(lines) + "\n"), "--nulls", "drop")
    assert run(*arguments).exit_code == 0, run(*arguments).stdout
    right = Snapshots.extend

    def confused(self: Snapshots, *rest: Any, **more: Any) -> Any:
        found = right(self, *rest, **more)
        spoiled = found.spoiled._replace(ids=np.array(["y"] * len(found.spoiled.ids), object))
        return dataclasses.replace(found, spoiled=spoiled)

    monkeypatch.setattr(Snapshots, "extend", confused)
    result = run(*arguments)
    assert result.exit_code == 1
    assert "2 update(s) were left out for their results, but 2 are due" in result.stdout
