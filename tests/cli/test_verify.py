"""`skytide verify`: right runs pass, wrong ones are caught, and what it tells of them really shows it."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skytide.cli import _engines, verify
from skytide.errors import MissingDependencyError
from skytide.monitors.sliding.window import SlidingWindow
from skytide.monitors.snapshots.changes import NONE_SPOILED
from skytide.monitors.snapshots.snapshots import Snapshots
from skytide.monitors.uncertain.window import UncertainWindow
from skytide.protocols.filtering import schedule
from skytide.protocols.filtering.answers import SampledAnswers
from skytide.runtime.fragments import Fragmented
from skytide.runtime.monitored import Monitored
from skytide.runtime.simulate import Simulation
from tests.cli.command import refused, run

WINDOW = ["--min", "a", "--max", "b", "--id", "id"]
UPDATES = [*WINDOW, "--time", "t"]
CALLS = {
    "skyline": ["--min", "a", "--max", "b", "--engine", "local"],
    "window": [*WINDOW, "--time", "t", "--duration", "4"],
    "uncertain": [*WINDOW, "--time", "t", "--duration", "4", "--prob", "p", "--threshold", "0.2", "--threshold", "0.5"],
    "snapshots": [*UPDATES, "--op", "add"],
    "monitor": UPDATES,
    "fragments": ["--min", "a", "--max", "norm(a, b)", "--site", "site", "--id", "id", "--time", "t"],
}
"""A call of each command over `rows.csv`."""


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """For those who want to know that a run is wrong, not on how few rows."""
    monkeypatch.setattr(verify, "_SHRINKING_SECONDS", 0.0)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Ties, duplicates and equal times; ids come again only when their rows have expired."""
    draw = np.random.default_rng(5)
    lines = ["id,t,a,b,g,p,site"]
    for row in range(90):
        a, b = draw.integers(0, 6, 2)
        lines.append(f"r{row % 17},{row // 4},{a},{b},{'xyz'[row % 3]},{draw.integers(1, 11) / 10},s{row % 2}")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def agreed(*arguments: str | Path, stdin: bytes | None = None) -> list[dict[str, Any]]:
    result = run("verify", *arguments, "--json", stdin=stdin)
    assert result.exit_code == 0, result.stdout + result.stderr
    record = json.loads(result.stdout)
    assert record["agrees"] and all(one["result"] == "agrees" for one in record["runs"])
    assert all(one["instants_checked"] == one["instants"] for one in record["runs"])
    return list(record["runs"])


# -- right runs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "more", "runs"),
    [
        ("skyline", ["--by", "g"], 1),
        ("window", [], 5),
        ("window", ["--by", "g", "--until", "99"], 5),
        ("window", ["--method", "lazy"], 3),
        ("window", ["--index", "rtree", "--method", "eager"], 1),
        ("uncertain", ["--by", "g"], 3),
        ("uncertain", ["--top", "2", "--method", "scan"], 1),
        ("uncertain", ["--final"], 3),
        ("uncertain", ["--final", "--top", "2", "--by", "g"], 3),
        ("snapshots", [], 3),
        ("snapshots", ["--by", "g", "--frequent", "0.5", "--over", "3"], 6),
        ("monitor", [], 5),
        ("monitor", ["--by", "g", "--theta", "0.5", "--over", "4"], 8),
        ("monitor", ["--theta", "0.5", "--over", "9", "--epsilon", "0.9", "--delta", "0.9", "--method", "sampling"], 1),
        ("fragments", [], 4),
        ("fragments", ["--by", "g", "--method", "pivot"], 1),
    ],
)
def test_all_runs_of_every_command_agree(rows: Path, kind: str, more: list[str], runs: int) -> None:
    found = agreed(kind, rows, *CALLS[kind], *more)
    assert len(found) == runs and all(one["rows"] == 90 for one in found)


@pytest.mark.parametrize("kind", [one for one in CALLS if one != "monitor"])
def test_the_options_say_which_command_is_meant(rows: Path, kind: str) -> None:
    result = run("verify", rows, *CALLS[kind], "--json")
    assert json.loads(result.stdout)["command"] == kind
    assert json.loads(run("verify", rows, *UPDATES, "--method", "filter", "--json").stdout)["command"] == "monitor"


HARD = {
    "infinities": ["inf", "-inf", "1.797e308", "5e-324", "-0.0", "0.0", "-1.797e308", "inf", "0"],
    "missing": ["", "1", "2", "", "1", "0", "", "3", "1"],
    "ties": ["1", "1", "1", "0", "0", "0", "1", "1", "0"],
}


@pytest.mark.parametrize("values", HARD)
@pytest.mark.parametrize("nulls", ["drop", "worst"])
@pytest.mark.parametrize("kind", CALLS)
def test_hard_values_and_both_policies_for_missing_ones(kind: str, nulls: str, values: str, tmp_path: Path) -> None:
    column = HARD[values]
    lines = [f"r{row},{row // 2},{one},{row % 2},{row % 2 + 1}e-1,s" for row, one in enumerate(column)]
    path = tmp_path / "hard.csv"
    path.write_text("id,t,a,b,p,site\n" + "\n".join(lines) + "\n")
    agreed(kind, path, *CALLS[kind], "--nulls", nulls)


@pytest.mark.parametrize("nulls", ["drop", "worst"])
@pytest.mark.parametrize("kind", CALLS)
def test_the_neighbours_that_are_equal_where_missing_values_are_the_worst(
    kind: str, nulls: str, tmp_path: Path
) -> None:
    seam = 1.2345678901234567e300
    above = math.nextafter(seam, math.inf)
    values = [(seam, 0.0), (above, 0.0), (math.nextafter(above, math.inf), 0.0), (5.0, -above), (5.0, -seam)]
    for times in (1, 3):  # more rows than the reference itself is asked about, too
        lines = [f"r{row},{row},{a!r},{b!r},0.5,s" for row, (a, b) in enumerate(values * times)]
        path = tmp_path / "seam.csv"
        path.write_text("id,t,a,b,p,site\n" + "\n".join(lines) + "\n")
        call = [one.replace("norm(a, b)", "b") for one in CALLS[kind]]
        agreed(kind, path, *call, "--nulls", nulls)


def test_times_of_all_kinds_lateness_and_late_rows(tmp_path: Path) -> None:
    stamps = [f"2024-01-0{1 + row % 4}T0{row % 5}:30:00.250" for row in range(12)]
    columns: dict[str, tuple[list[Any], list[str]]] = {
        "stamps": (stamps, ["--duration", "90m", "--lateness", "15h"]),
        "dates": ([stamp[:10] for stamp in stamps], ["--duration", "36h", "--lateness", "1d"]),
        "real": ([0.1 * (row % 5) for row in range(12)], ["--duration", "0.3", "--lateness", "0.2"]),
        "whole": ([row % 5 for row in range(12)], ["--duration", "1.5"]),
        "negative": ([row % 5 - 7 for row in range(12)], ["--duration", "2", "--until", "-1"]),
    }
    for name, (times, more) in columns.items():
        path = tmp_path / f"{name}.csv"
        path.write_text("t,a,b\n" + "\n".join(f"{time},{row % 3},{row % 4}" for row, time in enumerate(times)) + "\n")
        found = agreed("window", path, "--min", "a", "--max", "b", "--time", "t", *more)
        assert found[0]["instants"] > 1, name
    table = pa.table({"t": np.array(stamps, "datetime64[ms]"), "a": [1.0, 2.0, 0.0] * 4, "id": [1, 2, 3] * 4})
    pq.write_table(table, tmp_path / "stamps.parquet")
    agreed("snapshots", tmp_path / "stamps.parquet", "--min", "a", "--id", "id", "--time", "t", "--lateness", "1d")


def test_objects_with_several_places_and_count_windows_by_group(tmp_path: Path) -> None:
    lines = [f"o{row // 2},{row % 5},{(row * 7) % 5},{0.3 + 0.1 * (row % 3)},{'xy'[row // 2 % 2]}" for row in range(60)]
    path = tmp_path / "objects.csv"
    path.write_text("id,a,b,p,g\n" + "\n".join(lines) + "\n")
    call = ["--min", "a", "--max", "b", "--by", "g", "--count", "6"]
    assert len(agreed(path, *call, "--prob", "p", "--threshold", "0.2", "--object", "id")) == 2
    assert len(agreed(path, *call, "--prob", "p", "--threshold", "0.2", "--object", "id", "--top", "2")) == 2
    assert len(agreed(path, *call)) == 5


@pytest.mark.parametrize("parts", [[0.7, 0.2, 0.1], [0.15] * 6 + [0.1], [0.1] * 10], ids=str)
def test_what_is_left_of_1_behind_an_object_may_be_a_rounding_error_or_nothing(
    parts: list[float], tmp_path: Path
) -> None:
    path = tmp_path / "rest.csv"
    lines = [f"all,0,{part}" for part in parts] + [f"o{row},{row + 1},0.5" for row in range(12)]
    path.write_text("id,a,p\n" + "\n".join(lines) + "\n")
    call = ["--min", "a", "--prob", "p", "--object", "id", "--count", "20", "--threshold", "1e-300"]
    for more in ([], ["--final"], ["--top", "2"], ["--top", "2", "--final"]):
        agreed(path, *call, *more)


def test_standard_input_folders_and_empty_data(rows: Path, tmp_path: Path) -> None:
    agreed("-", *CALLS["window"], stdin=rows.read_bytes())
    head, *lines = rows.read_text().splitlines(keepends=True)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "1.csv").write_text(head + "".join(lines[:40]))
    (folder / "2.csv").write_text(head + "".join(lines[40:]))
    agreed(folder, *CALLS["window"])
    (tmp_path / "empty.csv").write_text(head)
    for kind in CALLS:
        agreed(kind, tmp_path / "empty.csv", *CALLS[kind])


def test_where_time_is_short_it_says_what_was_looked_at(rows: Path) -> None:
    result = run("verify", rows, *CALLS["window"], "--seconds", "0")
    assert result.exit_code == 0
    first = result.stdout.splitlines()[1]
    assert " of 23 " in first and first.endswith("agrees")


# -- wrong runs --------------------------------------------------------------------------------------------------------


def some(changes: Any, keep: Any) -> Any:
    """Some of the changes, or some twice."""
    whole = len(changes)
    parts = {
        part.name: getattr(changes, part.name)[keep]
        for part in dataclasses.fields(changes)
        if part.name not in ("late", "bad", "snapshots") and len(getattr(changes, part.name)) == whole
    }
    return dataclasses.replace(changes, **parts)


def drop(changes: Any) -> Any:
    return some(changes, np.arange(len(changes)) != len(changes) // 2)


def delay(changes: Any) -> Any:
    times = changes.times.copy()
    if len(times):
        times[-1] += 1
    return dataclasses.replace(changes, times=times)


def add(changes: Any) -> Any:
    ids = changes.ids.copy()
    if len(ids) < 2 or (ids == ids[0]).all():
        return changes
    ids[-1] = ids[0]
    return dataclasses.replace(changes, ids=ids)


def turn(changes: Any) -> Any:
    return some(changes, np.arange(len(changes))[::-1])


def early(changes: Any) -> Any:
    times = changes.times.copy()
    if len(times):
        times[0] -= 1
    return dataclasses.replace(changes, times=times)


FAULTS: list[Callable[[Any], Any]] = [drop, delay, add, turn, early]
MONITORS: dict[str, tuple[Any, str, Callable[[Any], bool]]] = {
    "window": (SlidingWindow, "lazy", lambda one: bool(one.method == "lazy")),
    "uncertain": (UncertainWindow, "scan", lambda one: bool(one.method == "scan")),
    "snapshots": (Snapshots, "mbr", lambda one: bool(one.method == "mbr")),
    "monitor": (Monitored, "filter", lambda one: "Filter" in type(one._simulation._server).__name__),
    "fragments": (Fragmented, "pivot", lambda one: bool(one._options["method"] == "pivot")),
}


def broken(monkeypatch: pytest.MonkeyPatch, kind: str, fault: Callable[[Any], Any]) -> str:
    """Break one method of a command; its name."""
    monitor, method, concerned = MONITORS[kind]
    for name in ("extend", "advance"):
        right = getattr(monitor, name)

        def wrong(self: Any, *rest: Any, right: Any = right, **more: Any) -> Any:
            found = right(self, *rest, **more)
            return fault(found) if concerned(self) else found

        monkeypatch.setattr(monitor, name, wrong)
    return method


@pytest.mark.parametrize(
    ("kind", "fault"),
    [(kind, fault) for kind in MONITORS for fault in (FAULTS if kind == "window" else FAULTS[:2])],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_a_broken_method_is_caught_and_the_rows_that_are_told_show_it(
    kind: str, fault: Callable[[Any], Any], rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = tmp_path / "small.csv"
    with monkeypatch.context() as patched:
        method = broken(patched, kind, fault)
        result = run("verify", kind, rows, *CALLS[kind], "-o", small, "--json")
        assert result.exit_code == 1, result.stdout
        record = json.loads(result.stdout)
        wrong = {one["method"] for one in record["runs"] if one["result"] == "disagrees"}
        assert wrong == {method} and not record["agrees"]
        told = record["reproduction"]
        assert told["rows"] < 20 and len(small.read_text().splitlines()) == told["rows"] + 1
        words = shlex.split(told["command"])
        assert words[0] == "skytide" and str(small) in words and method in words
        assert run(*words[1:]).exit_code == 1
    assert run(*words[1:]).exit_code == 0


@pytest.mark.usefixtures("briefly")
def test_people_are_told_what_is_wrong_and_how_to_see_it(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, "window", drop)
    result = run("verify", rows, *CALLS["window"])
    assert result.exit_code == 1
    assert "lazy, list    changes" in result.stdout and "DISAGREES" in result.stdout
    assert "lazy, list: the answer is another one (time " in result.stdout
    assert "This is a bug of skytide" in result.stdout
    assert f"  skytide verify window {rows} --min a --max b --id id --duration 4 --time t" in result.stdout


@pytest.mark.usefixtures("briefly")
def test_runs_that_differ_where_nobody_looked_are_told_apart(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = SlidingWindow.extend

    def wrong(self: SlidingWindow, *rest: Any, **more: Any) -> Any:
        found = right(self, *rest, **more)
        if self.method != "eager" or len(found) < 9:
            return found
        middle = found.times[len(found) // 2]
        members = [one for one in range(len(found)) if found.times[one] == middle]
        # The instant's changes come one instant late: only a look at that very instant shows it.
        times = found.times.copy()
        times[members] = found.times[found.times > middle][0]
        return type(found).of(times, found.signs, found.ids)

    monkeypatch.setattr(SlidingWindow, "extend", wrong)
    record = json.loads(run("verify", rows, *CALLS["window"], "--seconds", "0", "--json").stdout)
    assert {one["method"] for one in record["runs"] if one["result"] == "disagrees"} == {"eager"}
    assert record["runs"][0]["instants_checked"] < record["runs"][0]["instants"]


@pytest.mark.usefixtures("briefly")
def test_a_run_that_is_found_wrong_does_not_hide_that_others_differ(
    rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = SlidingWindow.extend

    def wrong(self: SlidingWindow, *rest: Any, **more: Any) -> Any:
        found = right(self, *rest, **more)
        if self.method != "eager" or len(found) < 9:
            return found
        if self.index == "list":  # seen without any look
            return some(found, np.arange(len(found)) != 0)
        times = found.times.copy()
        middle = times[len(found) // 2]
        times[times == middle] = times[times > middle][0]
        return type(found).of(times, found.signs, found.ids)

    monkeypatch.setattr(SlidingWindow, "extend", wrong)
    record = json.loads(run("verify", rows, *CALLS["window"], "--seconds", "0", "--json").stdout)
    results = {(one["method"], one["index"]): one["result"] for one in record["runs"]}
    assert results["eager", "list"] == results["eager", "rtree"] == "disagrees" and results["lazy", "list"] == "agrees"


def test_a_wrong_skyline_and_an_engine_that_is_not_there(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = _engines.local_skyline
    monkeypatch.setattr(_engines, "spark_skyline", lambda *rest, **more: right(*rest, **more).slice(1))
    record = json.loads(run("verify", rows, "--min", "a", "--max", "b", "--json").stdout)
    assert [(one["engine"], one["result"]) for one in record["runs"]] == [("local", "agrees"), ("spark", "disagrees")]
    assert record["reproduction"]["rows"] == 1 and record["reproduction"]["csv"].startswith("id,t,a,b")

    def absent(*rest: Any, **more: Any) -> Any:
        raise MissingDependencyError("no Spark", remedy="install it")

    monkeypatch.setattr(_engines, "spark_skyline", absent)
    result = run("verify", rows, "--min", "a", "--max", "b")
    assert result.exit_code == 0 and "not run" in result.stdout and "no Spark" in result.stdout


@pytest.mark.usefixtures("briefly")
def test_an_order_of_rows_that_is_not_that_of_the_input_is_wrong(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = _engines.local_skyline

    def turned(*rest: Any, **more: Any) -> pa.Table:
        table = right(*rest, **more)
        return table.take(pa.array(range(table.num_rows)[::-1]))

    monkeypatch.setattr(_engines, "local_skyline", turned)
    result = run("verify", "skyline", rows, "--min", "a", "--max", "b", "--engine", "local", "--by", "g")
    assert result.exit_code == 1 and "not in the order of the input" in result.stdout


@pytest.mark.parametrize("factor", [1 - 1e-6, math.nan])
@pytest.mark.usefixtures("briefly")
def test_wrong_probabilities_at_the_end_are_caught(factor: float, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = UncertainWindow.query

    def wrong(self: UncertainWindow, q: float | None = None) -> Any:
        found = right(self, q)
        return dataclasses.replace(found, probabilities=found.probabilities * factor)

    monkeypatch.setattr(UncertainWindow, "query", wrong)
    result = run("verify", rows, *CALLS["uncertain"], "--final")
    assert result.exit_code == 1 and "the probabilities are others" in result.stdout


@pytest.mark.parametrize("kind", ["window", "snapshots"])
@pytest.mark.usefixtures("briefly")
def test_rows_that_are_wrongly_left_out_are_caught(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "late.csv"
    path.write_text("id,t,a,b\nx,1,1,1\ny,5,2,2\nz,2,9,0\n")
    agreed(kind, path, *CALLS[kind])
    monitor = MONITORS[kind][0]
    right = monitor.extend

    def forgetful(self: Any, *rest: Any, **more: Any) -> Any:
        return dataclasses.replace(right(self, *rest, **more), late=np.zeros(0, np.int64))

    monkeypatch.setattr(monitor, "extend", forgetful)
    result = run("verify", kind, path, *CALLS[kind])
    assert result.exit_code == 1 and "the rows that were not taken are others" in result.stdout


@pytest.mark.usefixtures("briefly")
def test_updates_that_are_silently_left_out_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, call = tmp_path / "spoiled.csv", [*CALLS["snapshots"], "--op", "add", "--nulls", "drop"]
    path.write_text("id,t,a,b\nx,1,inf,1\nx,2,-inf,1\ny,2,1,1\ny,3,,1\nx,4,-inf,2\n")
    agreed("snapshots", path, *call)
    monkeypatch.setattr(Snapshots, "extend", _without_spoiled(Snapshots.extend))
    result = run("verify", "snapshots", path, *call)
    assert result.exit_code == 1
    assert "1 update(s) were left out for their results, but 2 are due" in result.stdout


def _without_spoiled(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *rest, **more: dataclasses.replace(right(self, *rest, **more), spoiled=NONE_SPOILED)


@pytest.mark.usefixtures("briefly")
def test_sampling_must_follow_its_samples_and_know_its_quality(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = [*UPDATES, "--theta", "0.5", "--over", "9", "--epsilon", "0.9", "--delta", "0.9", "--method", "hybrid"]
    (found,) = agreed("monitor", rows, *call)
    assert found["precision"] < 1 and 0 <= found["within_epsilon"] <= 1
    with monkeypatch.context() as patched:
        right = Simulation.cost
        patched.setattr(Simulation, "cost", lambda self: {**right(self), "recall": 0.123})
        result = run("verify", "monitor", rows, *call)
        assert result.exit_code == 1 and "its recall is 0.123" in result.stdout
    with monkeypatch.context() as patched:
        observe = SampledAnswers.observe
        patched.setattr(SampledAnswers, "observe", lambda self, skyline, time: drop(observe(self, skyline, time)))
        assert run("verify", "monitor", rows, *call).exit_code == 1


@pytest.mark.parametrize("part", ["rate", "numbers"])
@pytest.mark.usefixtures("briefly")
def test_a_sample_at_another_rate_or_of_other_numbers_is_wrong(
    part: str, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = [*UPDATES, "--theta", "0.5", "--over", "9", "--epsilon", "0.9", "--delta", "0.9", "--method", "sampling"]
    agreed("monitor", rows, *call)
    number = schedule.number_at
    if part == "rate":
        monkeypatch.setattr(schedule, "math", SimpleNamespace(log=lambda doubt: 4 * math.log(doubt), sqrt=math.sqrt))
    else:
        monkeypatch.setattr(schedule, "number_at", lambda seed, time: number(seed, time + 1))
    result = run("verify", "monitor", rows, *call)
    assert result.exit_code == 1 and "the answer is another one" in result.stdout


@pytest.mark.usefixtures("briefly")
def test_messages_that_the_theorem_does_not_know_are_caught(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Simulation.cost
    monkeypatch.setattr(Simulation, "cost", lambda self: {**right(self), "uplink": 7_000})
    result = run("verify", "monitor", rows, *CALLS["monitor"], "--method", "filter")
    assert result.exit_code == 1 and "7000 messages up" in result.stdout


@pytest.mark.usefixtures("briefly")
def test_a_run_that_fails_or_refuses_what_others_take_is_wrong(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, words in (
        (RuntimeError("boom"), "fails: RuntimeError: boom"),
        (MissingDependencyError("no"), "refuses"),
    ):
        with monkeypatch.context() as patched:

            def failing(changes: Any, error: Exception = error) -> Any:
                raise error

            broken(patched, "snapshots", failing)
            result = run("verify", rows, *CALLS["snapshots"])
            assert result.exit_code == 1 and f"mbr: {words}" in result.stdout


@pytest.mark.usefixtures("briefly")
def test_the_last_window_is_looked_at_with_its_order_and_the_rows_that_were_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "late.csv"
    path.write_text("id,t,a,b,p\nx,5,1,1,0.5\ny,5,1,1,0.5\nz,2,9,0,0.5\n")
    agreed(path, *CALLS["uncertain"], "--final")
    extend, query = UncertainWindow.extend, UncertainWindow.query
    with monkeypatch.context() as patched:
        none = np.zeros(0, np.int64)
        forgetful = lambda *rest, **more: dataclasses.replace(extend(*rest, **more), late=none)  # noqa: E731
        patched.setattr(UncertainWindow, "extend", forgetful)
        result = run("verify", path, *CALLS["uncertain"], "--final")
        assert result.exit_code == 1 and "the rows that were not taken are others" in result.stdout
    with monkeypatch.context() as patched:
        patched.setattr(UncertainWindow, "query", lambda *rest: some(query(*rest), slice(None, None, -1)))
        result = run("verify", path, *CALLS["uncertain"], "--final")
        assert result.exit_code == 1 and "not in the order of their ids" in result.stdout


@pytest.mark.parametrize("what", ["values", "ids"])
@pytest.mark.usefixtures("briefly")
def test_a_run_that_takes_what_must_be_refused_is_wrong_and_not_the_others(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "unusable.csv"
    path.write_text("id,t,a,b\nx,1,1,\ny,2,2,2\n" if what == "values" else "id,t,a,b\nx,1,1,1\nx,2,2,2\n")
    refused("verify", path, *CALLS["window"], "--nulls", "error")
    made, extend = SlidingWindow.__init__, SlidingWindow.extend

    def careless(self: SlidingWindow, *rest: Any, **more: Any) -> None:
        made(self, *rest, **{**more, "nulls": "worst" if more["method"] == "lazy" else more["nulls"]})

    def lenient(self: SlidingWindow, rows: Any, times: Any, ids: Any) -> Any:
        return extend(self, rows, times, np.array(["p", "q"]) if self.method == "lazy" else ids)

    monkeypatch.setattr(SlidingWindow, "__init__", careless)
    monkeypatch.setattr(SlidingWindow, "extend", lenient)
    record = json.loads(run("verify", path, *CALLS["window"], "--nulls", "error", "--json").stdout)
    wrong = [one for one in record["runs"] if one["result"] == "disagrees"]
    assert {one["method"] for one in wrong} == {"lazy"}
    assert all("takes data that cannot be used" in one["reason"] for one in wrong)


def test_of_sampled_skylines_it_says_how_many_were_looked_at(rows: Path) -> None:
    call = [*UPDATES, "--theta", "0.5", "--over", "9", "--method", "sampling", "--seconds", "0", "--json"]
    (found,) = json.loads(run("verify", "monitor", rows, *call).stdout)["runs"]
    assert found["instants_checked"] == 2 < found["instants"]


# -- wrong calls -------------------------------------------------------------------------------------------------------


def test_bad_input_is_one_line_and_exit_status_2(rows: Path, tmp_path: Path) -> None:
    assert "no such column" in refused("verify", rows, "--min", "nope", "--engine", "local")
    assert "no preference" in refused("verify", "window", rows, "--count", "3")
    assert "there is no such file" in refused("verify", tmp_path / "none.csv", "--min", "a", "--count", "3")
    assert "Missing argument" in refused("verify")
    assert "--frobnicate" in refused("verify", rows, "--min", "a", "--frobnicate")
    assert "extension" in refused("verify", rows, *CALLS["window"], "-o", tmp_path / "x.txt")
    (tmp_path / "nulls.csv").write_text("a,b\n1,\n")
    line = refused("verify", tmp_path / "nulls.csv", "--min", "a", "--max", "b", "--count", "3")
    assert "nulls.csv" in line and "missing" in line and "--nulls" in line


def test_a_word_that_is_no_command_and_a_method_that_does_not_fit_are_named(rows: Path) -> None:
    assert "'explain' cannot be verified" in refused("verify", "explain", rows, *CALLS["window"])
    objects = [one for one in CALLS["uncertain"] if one not in ("--id", "id")]
    line = refused("verify", rows, *objects, "--object", "id", "--method", "tree")
    assert "--method tree is for rows" in line


def test_what_is_kept_goes_neither_over_data_nor_to_standard_output(rows: Path) -> None:
    before = rows.read_bytes()
    assert "-o names a file of DATA" in refused("verify", rows, *CALLS["window"], "-o", rows)
    assert "-o names a file of DATA" in refused("verify", rows.parent, *CALLS["window"], "-o", rows.parent / "new.csv")
    assert "-o names a file" in refused("verify", rows, *CALLS["window"], "-o", "-")
    assert rows.read_bytes() == before


def test_errors_in_standard_input_are_said_to_be_there(rows: Path) -> None:
    line = refused("verify", "-", *CALLS["window"], stdin=b"id,t,a,b\nx,1,foo,2\n")
    assert "standard input, row 1, column 'a'" in line
    assert "standard input" in refused("verify", "-", *CALLS["window"], stdin=b"")
