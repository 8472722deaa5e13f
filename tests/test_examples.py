"""Every example is run, and what it says is checked against what its data says by the plain definition."""

from __future__ import annotations

import math
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skytide as sk
from skytide.reference.batch import by_group, dominates, skyline

FOLDER = Path(__file__).parent.parent / "examples"
SMALL = sorted(set(FOLDER.glob("*.py")) - {FOLDER / "demo.py", FOLDER / "flights.py"})
Example = Callable[[str], tuple[dict[str, Any], str]]


@pytest.fixture
def example(capsys: pytest.CaptureFixture[str]) -> Example:
    """Runs an example of this name: the names that it leaves behind, and what it printed."""

    def run(name: str) -> tuple[dict[str, Any], str]:
        names = runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        printed = capsys.readouterr()
        assert printed.err == ""
        return names, printed.out

    return run


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_an_example_is_short_and_is_told_of(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 50
    assert f"examples/{path.name}" in (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"test_{path.stem}_" in Path(__file__).read_text(encoding="utf-8")


def test_what_the_readme_of_the_examples_names_is_there() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\(([^)]+)\)|`python examples/(\S+)`", text)
    assert named and all((FOLDER / (link or file)).exists() for link, file in named)


def test_used_cars_that_are_listed_are_beaten_by_nobody_and_the_price_to_offer_is_the_limit(example: Example) -> None:
    names, printed = example("used_cars")
    cars: list[dict[str, Any]] = names["cars"].to_pylist()
    brand = [(car["price"], car["kilometres"]) for car in cars if car["brand"] == "Borea"]
    best = sorted(brand[place] for place in skyline(brand))
    shown = re.findall(r"^ +([\d,]+) +([\d,]+) km$", printed.split("\n\n")[0], re.MULTILINE)
    assert [tuple(float(one.replace(",", "")) for one in row) for row in shown] == best
    (limit,) = (float(text.replace(",", "")) for text in re.findall(r"Offer less than ([\d,]+)", printed))
    for price, worth in ((limit, False), (limit - 0.01, True)):
        cars[names["wish"]]["price"] = price
        assert sk.skyline(pa.Table.from_pylist(cars), names["BEST"])[names["wish"]] == worth


def test_stocks_tells_the_best_of_the_last_ten_minutes_and_stays_that_its_changes_make(example: Example) -> None:
    names, printed = example("stocks")
    live = np.flatnonzero(names["at"] > names["at"][-1] - 600)
    points = np.column_stack((names["price"], -names["size"]))[live].tolist()
    best = [names["ids"][live[place]] for place in skyline(points)]
    shown = printed.split("\n\n")[1].splitlines()[1:]
    assert sorted(line.strip() for line in shown) == sorted(best)
    entered: dict[str, Any] = {}
    longest = 0.0
    for time, sign, one in names["changes"]:
        if sign == "+":
            entered[one] = time
        else:
            longest = max(longest, (time - entered.pop(one)).total_seconds())
    assert f"{longest // 60:2.0f} min {longest % 60:02.0f} s from" in printed


def test_sensors_have_the_probabilities_of_the_definition_and_the_broken_one_is_not_believed(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: dict[str, list[float]] = {}
    taken = sk.UncertainWindow.extend

    def extend(window: sk.UncertainWindow, rows: dict[str, Any], **beside: Any) -> Any:
        read.update(zip(beside["ids"], np.column_stack((-rows["heat"], -rows["dust"])).tolist(), strict=True))
        return taken(window, rows, **beside)

    monkeypatch.setattr(sk.UncertainWindow, "extend", extend)
    names, printed = example("sensors")
    chances = dict(zip(sorted(read), names["battery"].tolist(), strict=True))
    told = dict(names["window"].query())
    for sensor, reading in read.items():
        rivals = [chances[other] for other, values in read.items() if dominates(values, reading)]
        chance = chances[sensor] * math.prod(1 - one for one in rivals)
        assert told[sensor] == pytest.approx(chance) if chance > 0.021 else told.get(sensor, 0.0) < 0.021
    assert f"{battery(names):4.0%}   (the broken one)" in printed
    assert f"{len(names['alarms'])} times" in printed and {one.threshold for one in names["alarms"]} == {0.8}


def battery(names: dict[str, Any]) -> float:
    return float(names["battery"][names["BROKEN"]])


def test_ratings_lists_whom_nobody_in_town_beats_in_both(example: Example) -> None:
    names, printed = example("ratings")
    home, guide = names["HOME"], names["guide"]
    places = list(home)
    points = [[-value for value in guide.values(place)] for place in places]
    best = {places[place] for place in by_group(points, [home[place] for place in places], skyline)}
    assert set(re.findall(r"^  \w+ +(\w+) +food", printed, re.MULTILINE)) == best
    listed: set[str] = set()
    for on, off in re.findall(r"^week +\d+  on: (.*?)  +off: (.*)$", printed, re.MULTILINE):
        listed = (listed | set(re.findall(r"(\w+) \(", on))) - set(re.findall(r"(\w+) \(", off))
    assert listed == best
    assert re.search(r"^week  7  on: Horta", printed, re.MULTILINE)


def test_network_monitoring_sees_the_attack_to_the_second_with_a_tenth_of_the_messages(example: Example) -> None:
    names, printed = example("network_monitoring")
    victim = f"10.0.{(names['TARGETS'] - 1) // 100}.{(names['TARGETS'] - 1) % 100}"
    seen = re.findall(rf"second +(\d+)  (suspicious|calm again)  {re.escape(victim)}$", printed, re.MULTILINE)
    assert seen == [(str(names["BEGIN"]), "suspicious"), (str(names["END"]), "calm again")]
    assert 0 < names["told"] < names["everything"] / 10
