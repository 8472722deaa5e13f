"""`make demo` on two days of its data: what it says and writes is what the flights say by the definition."""

from __future__ import annotations

import datetime as dt
import re
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from skytide.reference.window import skyline_at
from tests.spark.conftest import spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark"]
EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def demo(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Any:
    """What the demo printed, and the folder that it wrote."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", ["demo.py", "--days", "2", "--seconds", "1"])
    runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
    return capfd.readouterr().out, tmp_path / "demo-output"


def test_the_demo_shows_the_flights_that_no_other_beats(demo: tuple[str, Path]) -> None:
    printed, folder = demo
    taken = pq.read_table(folder / "flights")
    dead = pq.read_table(folder / "dead-letters")
    left_out = dead["id"].to_pylist()
    bad = dead.filter(pc.equal(dead["kind"], "bad"))["id"].to_pylist()
    assert bad and set(bad) == set(
        taken.filter(pc.or_(pc.is_null(taken["arr_delay"]), pc.is_null(taken["air_time"])))["flight"].to_pylist()
    )
    rows = [row for row in taken.to_pylist() if row["flight"] not in left_out]
    points = [(row["dep_delay"] + row["arr_delay"], row["air_time"], -row["distance"]) for row in rows]
    times, ids = [row["scheduled"] for row in rows], [row["flight"] for row in rows]
    changes = pq.read_table(folder / "changes").to_pylist()
    last = changes[-1]["time"]
    assert max(times) - last < dt.timedelta(hours=4)
    for hours in (0, 3, 11, 26):
        at = last - dt.timedelta(hours=hours)
        inside: set[str] = set()
        for change in changes:
            if change["time"] <= at:
                (inside.add if change["change"] == "+" else inside.remove)(change["id"])
        airports = [row["origin"] for row in rows]
        assert inside == skyline_at(at, points, times, ids, duration=dt.timedelta(days=1), by=airports)
    assert f"{len(changes):,} changes of the answer" in printed
    assert re.search(r"^Watch it at http://127\.0\.0\.1:\d+/$", printed.splitlines()[0])
    assert re.search(r"^Not in it: \S+-\d{4}\. Dominated by", printed, re.MULTILINE)
    assert re.search(r"^Longest in it: (\S+-\d{4}), \d+\.\d hours", printed, re.MULTILINE)
    for name in ("answer.csv", "answer.png", "report.html"):
        assert (folder / name).stat().st_size > 5_000


def test_flights_are_all_of_the_year_each_once_in_the_order_in_which_they_took_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    names = runpy.run_path(str(EXAMPLES / "flights.py"))
    table = names["flights"](366)
    assert table.num_rows == 336_776 and pc.count_distinct(table["flight"]).as_py() == 336_776
    assert table["took_off"].to_pylist() == sorted(table["took_off"].to_pylist())
