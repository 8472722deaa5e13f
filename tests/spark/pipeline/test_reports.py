"""What a run reports of itself for others, and what a pipeline says that it is about."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from skytide.errors import InputError, OutputError
from skytide.spark.pipeline import Pipeline, RunFailedError
from skytide.spark.pipeline.about import About
from skytide.spark.pipeline.reports import KEPT, NAME, Reports, read_report
from skytide.spark.pipeline.stopping import Stopped
from skytide.spark.sinks import Feed, FeedSink
from skytide.spark.sinks.storage import LocalFolder
from tests.spark.pipeline.files import STREAM, pipeline_file


def test_reports_are_the_last_ones_and_add_up_over_restarts(tmp_path: Path) -> None:
    place = str(tmp_path)
    for start in (0, 70):
        with Reports(place, clock=lambda: 5.0).kept() as reports:
            for number in range(start, start + 70):
                reports.add({"batch": number, "rows": 10, "seconds": 0.5, "late": 1})
            reports.put()
            found = read_report(place)
            assert found is not None and (found.status, found.process) == ("running", os.getpid()) and found.alive
            reports.put("ended")
    found = read_report(place)
    assert found is not None and (found.status, found.reason, found.began) == ("ended", "", 5.0)
    assert (found.totals["rows"], found.totals["late"], found.totals["changes"]) == (1400, 140, 0)
    assert [one["batch"] for one in found.batches] == list(range(140 - KEPT, 140))
    assert list(tmp_path.iterdir()) == [tmp_path / NAME] and (tmp_path / NAME).stat().st_size < 20_000


@pytest.mark.parametrize(
    ("problem", "status", "reason"),
    [
        (RunFailedError("no luck"), "failed", "no luck"),
        (InputError("is bad", value=3), "failed", "3 is bad"),
        (Stopped(15), "ended", "stopped"),
        (ZeroDivisionError("x"), "failed", "ZeroDivisionError"),
    ],
)
def test_how_a_run_ended_is_reported(tmp_path: Path, problem: BaseException, status: str, reason: str) -> None:
    with pytest.raises(type(problem)), Reports(str(tmp_path)).kept():
        raise problem
    found = read_report(str(tmp_path))
    assert found is not None and (found.status, found.reason) == (status, reason)


def test_a_run_does_not_fail_because_it_cannot_be_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OutputError("the disk is full")

    monkeypatch.setattr(LocalFolder, "put", full)
    for place in (None, "hdfs://name/checkpoint", str(tmp_path)):
        with Reports(place).kept() as reports:
            reports.add({"batch": 0})
            reports.put("ended")
        assert read_report(place) is None
    (tmp_path / NAME).write_text(json.dumps({"status": "running"}))
    assert read_report(str(tmp_path)) is None


def test_what_a_pipeline_is_about_is_in_its_file_and_in_its_feed(tmp_path: Path) -> None:
    text = STREAM.replace('id = "id"', 'id = "id"\nlateness = 5').replace("BIGINT", "INT")
    text += '[prepare]\nsql = "SELECT *, a + b AS total FROM input"\ncolumns.twice = "2 * a"\n'
    about = About.of(Pipeline.load(pipeline_file(tmp_path, text)))
    assert (about.title, about.kind, about.by, about.id) == ("pipeline.toml", "window", ("g",), "id")
    assert (about.minimize, about.maximize) == (("a",), ("b",))
    assert about.extra == ("ts", "total", "twice")
    assert about.parameters == {"id": "id", "time": "ts", "duration": "2h", "lateness": 5}
    picked = About.of(Pipeline.load(pipeline_file(tmp_path, text.replace("SELECT *,", "SELECT id, ts, a, b, g,"))))
    assert picked.extra == ("total", "twice")
    rows = pa.table({"time": [1], "change": ["+"], "id": ["x"]})
    feed = tmp_path / "feed"
    assert Feed(str(feed)).about() is None
    FeedSink(str(feed)).write(0, rows)
    assert Feed(str(feed)).about() is None
    FeedSink(str(feed), about=about.to_json()).write(1, rows)
    assert About.from_json(Feed(str(feed)).about() or "") == about
    assert [about.column(name) for name in ("id", "time", "price")] == ["id", "row_time", "price"]
