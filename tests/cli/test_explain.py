"""`skytide explain`: what it says of a row, in the file's own values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import run

CARS = """key,price,mpg,day
x,20,30,2020-01-05
y,25,40,2020-01-04
z,30,38.50,2020-01-03
w,31,10,2020-01-02
"""
OPTIONS = ["--min", "price", "--max", "mpg"]


@pytest.fixture
def cars(tmp_path: Path) -> Path:
    (tmp_path / "cars.csv").write_text(CARS)
    return tmp_path / "cars.csv"


def test_a_dominated_row_is_told_who_dominates_it_and_what_would_bring_it_in(cars: Path) -> None:
    text = run("explain", cars, *OPTIONS, "--id", "key", "--row", "z").stdout
    assert "not in the skyline: 1 row dominates it" in text
    assert "price: from 30 to less than 25" in text
    assert "mpg: from 38.50 to more than 40" in text
    answer = json.loads(run("explain", cars, *OPTIONS, "--id", "key", "--row", "z", "--json").stdout)
    assert answer["dominated_by"] == ["y"]
    assert answer["needs_alone"] == {"price": {"value": 25, "strict": True}, "mpg": {"value": 40, "strict": True}}
    assert answer["smallest_change"]["columns"] == {"mpg": {"value": 40, "strict": True}}
    assert answer["smallest_change"]["cost"] == pytest.approx(1.5 / 30)
    assert answer["smallest_change"]["exact"] is True


def test_a_row_of_the_skyline_is_told_what_it_dominates_and_how_far_it_may_worsen(cars: Path) -> None:
    text = run("explain", cars, *OPTIONS, "--id", "key", "--row", "y").stdout
    assert "is in the skyline. It dominates 2 rows." in text
    assert "price: without limit" in text
    assert "mpg: from 40 to anything above 30" in text
    answer = json.loads(run("explain", cars, *OPTIONS, "--id", "key", "--row", "y", "--json").stdout)
    assert (answer["in_skyline"], answer["dominates"]) == (True, 2)
    assert answer["may_worsen_to"] == {"price": None, "mpg": {"value": 30, "strict": True}}


def test_rows_go_by_number_without_an_id_column_and_the_list_has_a_limit(cars: Path) -> None:
    answer = json.loads(run("explain", cars, *OPTIONS, "--row", "4", "--limit", "2", "--json").stdout)
    assert answer["dominated_by"] == ["1", "2"]
    assert answer["dominated_by_count"] == 3
    assert "and 1 more" in run("explain", cars, *OPTIONS, "--row", "4", "--limit", "2").stdout


def test_times_are_shown_as_the_file_has_them(cars: Path) -> None:
    answer = json.loads(run("explain", cars, "--max", "day", "--row", "2", "--json").stdout)
    assert answer["needs_alone"] == {"day": {"value": "2020-01-05", "strict": False}}


def test_an_equal_row_leaves_no_room_to_worsen() -> None:
    text = run("explain", "-", "--min", "a", "--row", "1", stdin=b"a\n1\n1.0\n3\n").stdout
    assert "a: not at all from 1: another row is equal to it" in text


def test_missing_values_are_named_as_such() -> None:
    content = b"a,b\n,2\n,1\n"
    text = run("explain", "-", "--min", "a", "--min", "b", "--row", "1", "--nulls", "worst", stdin=content).stdout
    assert "a: from (missing) to any value" in text
