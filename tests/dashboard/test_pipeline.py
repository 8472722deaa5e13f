"""A board that follows a pipeline shows what its sink says: real Spark where that matters, sinks alone elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.dashboard.board import Board
from skytide.dashboard.following import follower_of, looks_followed
from skytide.dashboard.pipeline import PipelineFollower
from skytide.errors import InputError, PreferenceError
from skytide.spark.pipeline import Pipeline, PipelineError, run
from skytide.spark.pipeline.reports import NAME, read_report
from skytide.spark.sinks import CurrentTable, FeedSink, make_sink
from skytide.spark.sinks.keys import mark_groups
from tests.spark.conftest import spark
from tests.spark.pipeline.files import BATCH, STREAM, pipeline_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark"]

COLUMNS = ("time", "change", "id", "g", "a", "b")
Change = tuple[int, str, str, str, float, float]


def rows_of(board: Board) -> dict[tuple[str, str | None], tuple[Any, ...]]:
    """The answer that a page shows: the values that compete, by id and group."""
    return {(row[1], row[2]): tuple(row[4][:2]) for row in board.state()["rows"]}


def table_of(changes: list[Change]) -> pa.Table:
    kinds = [pa.int64(), pa.string(), pa.string(), pa.string(), pa.float64(), pa.float64()]
    columns = list(zip(*changes, strict=True)) if changes else [()] * len(kinds)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return mark_groups(pa.table(arrays, names=list(COLUMNS)), ["g"])


def answer_of(batches: list[list[Change]]) -> dict[tuple[str, str], tuple[float, float]]:
    """The answer by the definition: who entered last, and has not left."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for _, sign, one, group, a, b in (change for batch in batches for change in batch):
        found.pop((one, group), None)
        if sign == "+":
            found[one, group] = (a, b)
    return found


@st.composite
def histories(draw: st.DrawFn) -> list[list[Change]]:
    """Micro-batches of changes that can be: who is in leaves, who is not enters; time goes on."""
    inside: set[tuple[str, str]] = set()
    batches = []
    for time, size in enumerate(draw(st.lists(st.integers(0, 4), max_size=6))):
        batch: list[Change] = []
        names = st.tuples(st.sampled_from("pqr7"), st.sampled_from("xy"))
        for key in draw(st.lists(names, min_size=size, max_size=size, unique=True)):
            sign = "-" if key in inside else "+"
            (inside.discard if sign == "-" else inside.add)(key)
            batch.append((time, sign, *key, float(draw(st.integers(-2, 2))), 5e-324))
        batches.append(sorted(batch, key=lambda change: change[1:3]))
    return batches


@settings(max_examples=40)
@given(form=st.sampled_from(["parquet", "csv", "jsonl", "feed"]), history=histories(), data=st.data())
def test_the_board_is_the_answer_of_the_sink_over_restarts_of_the_query(
    form: str, history: list[list[Change]], data: st.DataObject
) -> None:
    """Micro-batches come again after a crash, and a reader looks whenever it likes."""
    with tempfile.TemporaryDirectory() as folder:
        text = STREAM.replace('format = "parquet"', f'format = "{form}"').replace("TIMESTAMP", "BIGINT")
        text = text.replace('dead_letters = "dead"\n', "").replace('"2h"', "2")
        follower = PipelineFollower.of(pipeline_file(Path(folder), text))
        sink: Any = make_sink(form, {"path": f"{folder}/out"})
        for number, batch in enumerate(history):
            again = data.draw(st.integers(0, 2))
            for _ in range(again + 1):
                sink.write(number, table_of(batch))
            if data.draw(st.booleans()):
                follower.catch_up()
                assert rows_of(follower.board) == answer_of(history[: number + 1])
        follower.catch_up()
        assert rows_of(follower.board) == answer_of(history)
        back = data.draw(st.integers(0, len(history)))
        other = data.draw(histories())
        if form != "feed":
            for number in range(back, len(history)):
                sink.write(number, table_of([]))
            for number, batch in enumerate(other, back):
                sink.write(number, table_of(batch))
            follower.catch_up()
            assert rows_of(follower.board) == answer_of([*history[:back], *other])


def test_a_feed_says_what_it_is_of_and_a_reader_that_was_away_sees_the_difference(tmp_path: Path) -> None:
    sink = FeedSink(str(tmp_path), keep=2, snapshot_every=1)
    history: list[list[Change]] = [[(n, "+", f"r{n}", "x", float(n), 0.0)] for n in range(4)]
    history += [[(4, "-", "r0", "x", 0.0, 0.0), (4, "-", "r2", "x", 2.0, 0.0)]]
    sink.write(0, table_of(history[0]))
    assert looks_followed(str(tmp_path))
    with pytest.raises(PreferenceError, match="name columns with --min and --max"):
        follower_of(str(tmp_path))
    follower = follower_of(str(tmp_path), minimize=["a"], maximize=["b"], by=["g"])
    follower.catch_up()
    for number, batch in enumerate(history[1:], 1):
        sink.write(number, table_of(batch))
    follower.catch_up()
    assert rows_of(follower.board) == answer_of(history)
    assert [change[:2] + change[3:4] for change in follower.board.state()["changes"][1:]] == [
        [0.0, "-", "r0"],
        [1.0, "+", "r1"],
        [3.0, "+", "r3"],
    ]


# -- on Spark ----------------------------------------------------------------------------------------------------------


def write_flights(folder: Path, files: range, rows: int = 120) -> None:
    """Rows a minute apart, in files that Spark reads in order."""
    (folder / "in").mkdir(exist_ok=True)
    for part in files:
        lines = [
            {
                "ts": f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z",
                "id": f"f{number:03}",
                "a": float(number * 7 % 11),
                "b": float(number * 5 % 13),
                "g": "pq"[number % 2],
            }
            for number in range(part * rows, part * rows + rows)
        ]
        path = folder / "in" / f"{part}.json"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        os.utime(path, (1_700_000_000 + part,) * 2)


def done(folder: Path, text: str) -> None:
    assert run(Pipeline.load(pipeline_file(folder, text)), lambda line: None) == 0


def current(folder: Path) -> dict[tuple[str, str], tuple[float, float]]:
    found = CurrentTable(str(folder / "now")).read()
    assert found is not None
    return {(row["id"], row["g"]): (row["a"], row["b"]) for row in found[1].to_pylist()}


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Board, Board]]:
    """A pipeline that ran twice, to the console and a feed beside it, and the boards that followed it and its feed."""
    folder = tmp_path_factory.mktemp("ran")
    text = STREAM.replace('"2h"', '"20m"\nparts = 1')
    feed = text.replace('current = { path = "now" }', 'current = "now"\nfeed = { path = "feed", options.keep = 99 }')
    write_flights(folder, range(1))
    follower = PipelineFollower.of(pipeline_file(folder, feed), fresh=True)
    follower.catch_up()
    assert follower.board.state()["status"] == "running" and rows_of(follower.board) == {}
    with follower:
        done(folder, feed)
        assert follower.wait(20) and follower.board.state()["status"] == "ended"
        assert rows_of(follower.board) == current(folder)
        live = follower_of(str(folder / "feed"))
        live.catch_up()
        write_flights(folder, range(1, 2))
        done(folder, feed)
        follower.close()
    live.catch_up()
    yield folder, follower.board, live.board


def test_on_spark_the_board_is_the_answer_after_a_restart(ran: tuple[Path, Board, Board]) -> None:
    folder, board, live = ran
    assert rows_of(board) == rows_of(live) == current(folder)
    state = board.state()
    assert state["meters"]["changes"] > 200 and state["meters"]["rows"] == 240
    assert state["meters"]["retained"] >= len(state["rows"]) and state["meters"]["latency"] > 0
    assert state["title"] == live.title == "pipeline.toml" and state["kind"] == live.kind == "window"
    assert state["parameters"] == live.parameters == {"id": "id", "time": "ts", "duration": "20m", "parts": 1}
    assert [(one["name"], one["goal"]) for one in state["columns"]] == [
        ("a", "min"),
        ("b", "max"),
        ("g", None),
        ("ts", None),
    ]
    assert state["clock"] == "time"


def test_on_spark_a_follower_that_comes_later_sees_the_same_history(ran: tuple[Path, Board, Board]) -> None:
    folder, board, _ = ran
    later = PipelineFollower.of(folder / "pipeline.toml")
    later.catch_up()
    assert later.board.state()["status"] == "ended"
    assert rows_of(later.board) == current(folder)
    assert later.board.state()["changes"] == board.state()["changes"]
    middle = board.state()["time"] - 3_600_000
    assert sorted(row[0] for row in later.board.at(middle)) == sorted(row[0] for row in board.at(middle)) != []


def test_a_run_that_is_gone_without_a_word_is_lost(ran: tuple[Path, Board, Board], tmp_path: Path) -> None:
    folder, _, _ = ran
    for name in ("out", "checkpoint"):
        shutil.copytree(folder / name, tmp_path / name)
    shutil.copy(folder / "pipeline.toml", tmp_path)
    report = read_report(str(tmp_path / "checkpoint"))
    assert report is not None and report.status == "ended" and report.totals["rows"] == 240
    gone = {**vars(report), "status": "running", "process": 2**22 + 1}
    (tmp_path / "checkpoint" / NAME).write_text(json.dumps(gone))
    follower = PipelineFollower.of(tmp_path / "pipeline.toml")
    follower.catch_up()
    assert follower.board.state()["status"] == "lost"
    assert "the run is gone without a word" in follower.board.state()["reason"]
    (tmp_path / "checkpoint" / NAME).write_text("{half of it")
    follower.catch_up()
    assert read_report(str(tmp_path / "checkpoint")) is None and follower.board.state()["status"] == "running"


def test_on_spark_the_rows_of_a_batch_are_the_answer(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.csv").write_text("1,3.0,1.0,x\n2,2.0,2.0,x\n3,3.0,2.0,x\n")
    follower = PipelineFollower.of(pipeline_file(tmp_path, BATCH))
    follower.catch_up()
    assert follower.board.state()["status"] == "running"
    done(tmp_path, BATCH)
    follower.catch_up()
    assert rows_of(follower.board) == {("1", None): (3.0, 1.0), ("2", None): (2.0, 2.0)}
    assert follower.board.state()["status"] == "ended" and follower.board.kind == "skyline"


# -- what cannot be followed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "remedy"),
    [
        ("console", 'add feed = "feed/" to [sink]: a live feed beside it'),
        ("orc", 'use parquet, csv, jsonl or feed; or console or kafka with feed = "feed/" beside it'),
    ],
)
def test_a_sink_that_cannot_be_followed_is_refused_with_the_remedy(tmp_path: Path, form: str, remedy: str) -> None:
    plain = STREAM.replace('dead_letters = "dead"\ncurrent = { path = "now" }\n', "")
    plain = plain.replace('format = "parquet"\npath = "out"', f'format = "{form}"')
    plain = plain if form == "console" else plain.replace("[run]", 'path = "out"\n[run]')
    with pytest.raises(PipelineError) as caught:
        follower_of(str(pipeline_file(tmp_path, plain)))
    assert str(caught.value).endswith(f"[sink] format: '{form}' cannot be followed by a page; {remedy}")
    with_feed = plain.replace("[run]", 'feed = "feed"\n[run]')
    if form == "console":
        assert rows_of(follower_of(str(pipeline_file(tmp_path, with_feed))).board) == {}
    else:
        with pytest.raises(PipelineError, match="the format orc has none"):
            Pipeline.load(pipeline_file(tmp_path, with_feed))


def test_a_feed_that_says_nonsense_of_itself_is_refused(tmp_path: Path) -> None:
    FeedSink(str(tmp_path), about='{"title": 1}').write(0, table_of([]))
    with pytest.raises(InputError, match="use the same version of Skytide on both sides"):
        follower_of(str(tmp_path))


# -- other kinds -------------------------------------------------------------------------------------------------------

MOVES = """\
[source]
format = "json"
path = "in"
stream = {stream}
schema = "t BIGINT, who STRING, at STRING, a DOUBLE, b DOUBLE, g STRING, p DOUBLE"
[query]
id = "who"
time = "t"
{query}
[sink]
format = "parquet"
path = "out"
feed = "feed"
[run]
trigger = "once"
checkpoint = "checkpoint"
"""


def write_moves(folder: Path) -> list[dict[str, Any]]:
    """Eight objects that move, each at every time."""
    (folder / "in").mkdir()
    rows = [
        {"t": t, "who": f"w{n}", "at": "ns"[n % 2], "a": n * 7 % 5 + t * n % 3, "b": n + t * 5 % 7, "g": "xy"[n % 2]}
        for t in range(6)
        for n in range(8)
    ]
    rows = [{**row, "p": 0.1 + 0.8 * (place * 7 % 10) / 10} for place, row in enumerate(rows)]
    (folder / "in" / "0.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


@pytest.mark.parametrize(
    "query",
    [
        'kind = "uncertain"\nmin = ["a", "b"]\ncount = 9\nprob = "p"\nthreshold = [0.5, 0.2]\nby = "g"',
        'kind = "frequent"\nmin = ["a", "b"]\ntheta = 0.5\nover = 3',
        'kind = "fragments"\nmin = ["a"]\nmax = ["norm(a, b)"]\nsite = "at"',
    ],
)
def test_on_spark_other_kinds_are_followed_from_the_changes_they_write(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    write_moves(tmp_path)
    text = MOVES.format(stream="false", query=query)
    follower = PipelineFollower.of(pipeline_file(tmp_path, text))
    done(tmp_path, text)
    follower.catch_up()
    inside: dict[tuple[str, str | None], None] = {}
    for row in pq.read_table(tmp_path / "out").to_pylist():
        if row.get("threshold", 0.2) == 0.2:
            key = (row["id"], row["g"] if "uncertain" in query else None)
            inside.pop(key, None)
            inside |= {key: None} if row["change"] == "+" else {}
    live = follower_of(str(tmp_path / "feed"))
    live.catch_up()
    assert set(rows_of(follower.board)) == set(rows_of(live.board)) == set(inside) != set()
    assert follower.board.state()["status"] == "ended"
    assert follower.board.state()["thresholds"] == ([0.2, 0.5] if "uncertain" in query else [])


def test_on_spark_rounds_are_shown_with_what_the_driver_was_told(spark: SparkSession, tmp_path: Path) -> None:
    rows = write_moves(tmp_path)
    query = 'kind = "monitor"\nmethod = "naive"\nby = "g"\nmax = ["a"]\nmin = ["b"]\nbuckets = 2'
    text = MOVES.format(stream="true", query=query)
    done(tmp_path, text)
    follower = PipelineFollower.of(tmp_path / "pipeline.toml")
    follower.catch_up()
    last = {row["who"]: row for row in rows if row["t"] == 4}  # the last time is not over: rows may still come
    shown = rows_of(follower.board)
    assert shown == {(one, last[one]["g"]): (last[one]["b"], last[one]["a"]) for one, _ in shown} != {}
    expected = {
        one["who"]
        for one in last.values()
        if not any(
            other["g"] == one["g"]
            and (other["b"], -other["a"]) != (one["b"], -one["a"])
            and other["b"] <= one["b"]
            and other["a"] >= one["a"]
            for other in last.values()
        )
    }
    assert {one for one, _ in shown} == expected
    ledger = follower.board.state()["ledger"]
    assert ledger["naive_messages"] == 48 and ledger["naive_bytes"] > 0 and ledger["messages"] == 40
    assert {kind["way"] for kind in ledger["kinds"]} == {"up"}
