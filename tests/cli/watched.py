"""What tests of watched commands share: data of every kind, and the answer that a change stream says."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.cli.command import rows_of, run

WORDS = {"Infinity": math.inf, "-Infinity": -math.inf, None: math.nan}


@dataclass(frozen=True)
class Case:
    """A command over a table: its options, and the columns that its answer has."""

    name: str
    options: tuple[str, ...]
    columns: tuple[str, ...] = ("x", "y")
    by: tuple[str, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)

    def changes(self, data: Path, *more: str) -> list[dict[str, str]]:
        """What the command prints without anybody watching."""
        result = run(self.name, data, *self.options, *more)
        assert result.exit_code == 0, result.stderr
        return rows_of(result.stdout)


XY = ("--min", "x", "--max", "y")
OBJECTS = (*XY, "--id", "id", "--time", "t")
CASES = {
    "count": Case("window", (*XY, "--count", "4")),
    "duration": Case("window", (*XY, "--id", "row", "--time", "t", "--duration", "3")),
    "tardy": Case("window", (*XY, "--id", "row", "--time", "t", "--duration", "2", "--lateness", "1")),
    "groups": Case("window", (*XY, "--id", "row", "--by", "g", "--count", "3"), by=("g",)),
    "uncertain": Case("uncertain", (*XY, "--prob", "p", "--count", "5", "--threshold", "0.5", "--threshold", "0.2")),
    "objects": Case("uncertain", (*XY, "--prob", "q", "--object", "row", "--count", "5", "--threshold", "0.2")),
    "snapshots": Case("snapshots", OBJECTS),
    "late": Case("snapshots", (*OBJECTS, "--lateness", "2")),
    "added": Case("snapshots", (*OBJECTS, "--op", "average", "--nulls", "drop")),
    "placed": Case("snapshots", (*OBJECTS, "--by", "g"), by=("g",)),
    "frequent": Case("snapshots", (*OBJECTS, "--frequent", "0.5", "--over", "3")),
    "monitor": Case("monitor", (*OBJECTS, "--method", "filter")),
    "theta": Case("monitor", (*OBJECTS, "--by", "g", "--theta", "0.5", "--over", "3"), by=("g",)),
    "fragments": Case("fragments", (*OBJECTS, "--site", "s"), columns=("x", "y")),
}


def write_csv(path: Path, rows: list[tuple[Any, ...]]) -> Path:
    """Rows of (t, id, g, x, y, s); `row` counts them, `p` and `q` are probabilities made of them."""
    lines = ["row,t,id,g,x,y,s,p,q"]
    for at, (t, one, group, x, y, site) in enumerate(rows, 1):
        values = ["" if value is None else repr(float(value)) for value in (x, y)]
        lines.append(",".join([str(at), str(t), one, group, *values, site, str((at % 10 + 1) / 11), "0.5"]))
    path.write_text("\n".join(lines) + "\n")
    return path


def answers(changes: list[dict[str, str]]) -> dict[float, set[str]]:
    """Who is in the answer after each instant that changed it; of several thresholds the smallest."""
    least = min((float(change["threshold"]) for change in changes if "threshold" in change), default=None)
    found: dict[float, set[str]] = {}
    members: set[str] = set()
    for change in changes:
        if least is not None and float(change["threshold"]) != least:
            continue
        (members.add if change["change"] == "+" else members.remove)(change["id"])
        found[moment(change["time"])] = set(members)
    return found


def moment(text: str) -> float:
    """A time of the change stream as a board has it."""
    try:
        return float(text)
    except ValueError:
        return float(np.datetime64(text.replace(" ", "T"), "ms").astype(np.int64))


def at(recording: dict[str, Any], time: float) -> dict[str, list[float]]:
    """The answer of a recording at a time, with values."""
    found = {}
    for key, _, _, _, start, end, values, _ in recording["versions"]:
        if start <= time and (end is None or time < end):
            assert key not in found, "a row is there twice"
            found[key] = numbers(values)
    return found


def numbers(values: list[Any]) -> list[float]:
    """The numbers of a row; words for what JSON cannot say."""
    return [float(WORDS.get(value, value)) for value in values if value is None or not _is_text(value)]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value not in WORDS


def recording_of(report: Path) -> dict[str, Any]:
    """What a report holds."""
    text = report.read_text(encoding="utf-8")
    inlined = re.search(r'<script id="recording" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert inlined is not None
    found: dict[str, Any] = json.loads(inlined[1])
    return found


def check(recording: dict[str, Any], changes: list[dict[str, str]]) -> None:
    """The history of a recording is what the change stream says, instant by instant."""
    expected = answers(changes)
    last = list(expected.values())[-1] if expected else set()
    assert {row[0] for row in recording["state"]["rows"]} == last
    sizes = dict(zip(recording["sizes"]["time"], recording["sizes"]["size"], strict=True))
    assert sizes == {time: len(members) for time, members in expected.items()}
    for time, members in expected.items():
        assert set(at(recording, time)) == members, time
    assert recording["state"]["status"] == "ended" and recording["state"]["reason"] == ""
    assert recording["state"]["meters"]["changes"] == len(changes)
    assert not {row[0] for row in recording["rest"]} & last
