"""`skytide run --plot --report`: the board that followed the job, drawn and kept; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skytide.plots import Scene
from skytide.plots import picture as picture_of
from skytide.spark.sinks import make_sink
from skytide.spark.sinks.keys import mark_groups
from tests.cli.command import refused, run
from tests.cli.watched import recording_of
from tests.spark.pipeline.files import STREAM, pipeline_file

CHANGES = [
    [(1, "+", "p", "x", 1.0, 2.0), (1, "+", "q", "y", 2.0, 1.0)],
    [(2, "-", "p", "x", 1.0, 2.0), (3, "+", "r", "x", 0.5, float("inf"))],
]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline file whose job, in place of Spark, writes what its sink would hold."""
    text = STREAM.replace("TIMESTAMP", "BIGINT").replace('dead_letters = "dead"\n', "").replace('"2h"', "2")
    file = pipeline_file(tmp_path, text)

    def write(plan: Any, say: Callable[[str], None]) -> int:
        sink: Any = make_sink("parquet", {"path": str(tmp_path / "out")})
        for number, batch in enumerate(CHANGES):
            columns = dict(zip(("time", "change", "id", "g", "a", "b"), zip(*batch, strict=True), strict=True))
            table = pa.table({name: list(column) for name, column in columns.items()})
            sink.write(number, mark_groups(table, ["g"]))
        return 0

    monkeypatch.setattr("skytide.spark.pipeline.run", write)
    return file


def test_a_run_is_drawn_and_kept(job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenes: list[Scene] = []

    def draw(scene: Scene, path: Path) -> None:
        scenes.append(scene)
        picture_of(scene, path)

    monkeypatch.setattr("skytide.cli._picture.picture", draw)
    picture, report = tmp_path / "out.png", tmp_path / "out.html"
    result = run("run", job, "--plot", picture, "--report", report)
    assert result.exit_code == 0, result.stderr
    state = recording_of(report)["state"]
    assert {row[1]: row[4][:2] for row in state["rows"]} == {"q": [2.0, 1.0], "r": [0.5, "Infinity"]}
    assert state["status"] == "ended"
    assert picture.read_bytes().startswith(b"\x89PNG")
    [scene] = scenes
    assert scene.answer is not None
    assert sorted(scene.answer.inside.tolist()) == [[0.5, np.inf], [2.0, 1.0]]
    assert sorted(scene.answer.groups or []) == ["x", "y"]
    assert scene.sizes["skyline"].sizes.tolist() == [2, 1, 2]


def test_what_cannot_be_written_is_refused_before_the_job(job: Path, tmp_path: Path) -> None:
    for option, file in {"--plot": "x.gif", "--report": "x.txt"}.items():
        assert file in refused("run", job, option, tmp_path / file)
    assert "--plot FILE" in refused("run", job, "--plot-columns", "a,b")
    assert not (tmp_path / "out").exists()
