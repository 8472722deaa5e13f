"""`format("skytide")` with a url, in Spark, on a real coordinator: every event once, whoever stops in between."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from pyspark.sql.types import StructType

from skytide.errors import InputError, OptionError
from skytide.runtime.network.secrets import issue, new_secret
from skytide.spark import plain_errors
from skytide.spark.pipeline import Pipeline
from skytide.spark.pipeline import run as run_pipeline
from skytide.spark.sources import changes
from skytide.spark.sources.changes import COLUMNS, OPTIONS
from skytide.spark.sources.generator import SkytideSource
from tests.spark.sources.coordinators import Running, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CERTIFICATE = Path("tests/runtime/network/certificate.pem").absolute()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path / "coordinator") as running:
        yield running


class Collector:
    """What each micro-batch held; `crash` names one that fails when it is done for the first time."""

    def __init__(self, crash: int | None = None) -> None:
        self.seen: dict[int, list[dict[str, Any]]] = {}
        self.failed: list[dict[str, Any]] | None = None
        self.crash = crash

    def __call__(self, batch: DataFrame, number: int) -> None:
        rows = batch.toArrow().to_pylist()
        if number == self.crash and self.failed is None:
            self.failed = rows
            raise RuntimeError("the machine stops here")
        self.seen[number] = rows

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for _, rows in sorted(self.seen.items()) for row in rows]


def run(stream: DataFrame, checkpoint: Path, each: Callable[[DataFrame, int], None]) -> None:
    query = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()


def test_a_table_is_all_that_the_coordinator_keeps_in_order(spark: SparkSession, running: Running) -> None:
    running.move(range(4))
    running.move(range(4, 5))
    df = spark.read.format("skytide").option("url", running.url).load()
    found, events = df.toArrow().to_pylist(), running.events()
    assert found == rows_of(events)
    assert {"change", "stale", "fresh"} == {row["kind"] for row in found}
    changes = [tuple(row) for row in df.where("kind = 'change'").select("change", "id", "id_number").collect()]
    assert changes[:4] == [("+", "7", 7), ("-", "7", 7), ("+", "7", None), ("-", "7", None)]


def test_each_event_comes_once_whoever_crashes_or_starts_again(
    spark: SparkSession, running: Running, tmp_path: Path
) -> None:
    running.move(range(4))
    stream = spark.readStream.format("skytide").options(url=running.url, maxPerBatch=3).load()
    each = Collector(crash=1)
    with pytest.raises(Exception, match="the machine stops here"):
        run(stream, tmp_path / "checkpoint", each)
    running.stop()
    running.start()  # the same folder and port: all that it knew before has the numbers of before
    running.move(range(4, 6))
    run(stream, tmp_path / "checkpoint", each)
    assert each.seen[1] == each.failed
    assert each.rows == rows_of(running.events())
    assert all(0 < len(rows) <= 3 for rows in each.seen.values())
    batches = len(each.seen)
    run(stream, tmp_path / "checkpoint", each)
    assert len(each.seen) == batches


def test_a_query_that_runs_waits_for_a_coordinator_that_starts_again(
    spark: SparkSession, running: Running, tmp_path: Path
) -> None:
    running.move(range(2))
    stream = spark.readStream.format("skytide").options(url=running.url, timeout=30).load()
    each = Collector()
    query = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        _until(lambda: len(each.rows) == running.newest())
        running.stop()
        time.sleep(0.3)
        running.start()
        running.move(range(2, 4))
        _until(lambda: len(each.rows) == running.newest())
    finally:
        query.stop()
    assert each.rows == rows_of(running.events())


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come")


def test_with_tls_and_a_token_in_a_file_a_pipeline_reads_and_nobody_sees_the_token(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = new_secret(tmp_path / "secret")
    token = issue(secret, "reader", "spark")
    proof = token.rpartition(".")[2][:-1]
    (tmp_path / "token").write_text(f"{token}\n")
    (tmp_path / "trusted.pem").write_text(f"# Főtanúsítvány\n{CERTIFICATE.read_text()}", encoding="utf-8")
    tls = {"certificate": CERTIFICATE, "key": CERTIFICATE.with_name("key.pem")}
    with Running(tmp_path / "coordinator", secret_file=tmp_path / "secret", **tls) as running:
        running.move(range(4), token=issue(secret, "site", "one"), certificate=CERTIFICATE)
        (tmp_path / "pipeline.toml").write_text(PIPELINE.replace("URL", running.url))
        said: list[str] = []
        assert run_pipeline(Pipeline.load(tmp_path / "pipeline.toml"), said.append) == 0
        found = pq.read_table(tmp_path / "out").to_pylist()
        assert sorted((row["kind"], row["number"], row["id"]) for row in found) == [
            ("change", 7, "é3"),
            ("stale", 8, None),
        ]
        given = {"url": running.url, "certificate": str(CERTIFICATE)}
        df = spark.read.format("skytide").options(**given, token=token).load()
        df.explain(True)
        spark.readStream.format("skytide").options(**given, token=token).load().explain(True)
        assert df.count() == running.newest()
        for wrong, reason in (
            ({"token": token[:-1] + "?"}, "refuses the token; give a reader's token"),
            ({"token": token + "\nx"}, "the token is not one; give it as it was issued"),
            ({}, "asks for a token; give a reader's token"),
        ):
            with pytest.raises((InputError, OptionError), match=reason) as caught:
                table(running, certificate=CERTIFICATE, **wrong)
            assert proof not in str(caught.value)
        with pytest.raises(InputError, match="certificate that is not trusted"):
            table(running, token=token)
    captured = capfd.readouterr()
    assert proof not in captured.out + captured.err + "".join(said)
    assert "BatchScan" in captured.out and "StreamingRelation" in captured.out


PIPELINE = """
[source]
format = "skytide"
options = { url = "URL", tokenFile = "token", certificate = "trusted.pem" }
[query]
kind = "skyline"
max = ["number"]
by = ["kind"]
[sink]
format = "parquet"
path = "out"
"""


def test_events_that_are_gone_are_one_clear_line(spark: SparkSession, tmp_path: Path) -> None:
    with Running(tmp_path / "coordinator", keep=4) as running:
        running.move(range(2))
        stream = spark.readStream.format("skytide").options(url=running.url).load()
        run(stream, tmp_path / "checkpoint", Collector())
        running.move(range(2, 8))
        with pytest.raises(InputError) as caught, plain_errors():
            run(stream, tmp_path / "checkpoint", Collector())
    assert "does not have the events after 4 any more (the newest is 18); begin anew" in str(caught.value)
    assert "\n" not in str(caught.value)


# -- offsets and limits: without Spark ---------------------------------------------------------------------------------


Make = Callable[..., Any]


@pytest.fixture
def reader() -> Iterator[Make]:
    """Makes readers of streams, and stops them at the end."""
    made = []

    def make(running: Running, **options: Any) -> Any:
        given = {name: str(value) for name, value in options.items()}
        made.append(SkytideSource({"url": running.url, "timeout": "30", **given}).streamReader(COLUMNS))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def read(stream: Any, start: Any, end: Any) -> list[int]:
    # As it comes to a task.
    parts, stream = pickle.loads(pickle.dumps((stream.partitions(start, end), stream)))  # noqa: S301
    return [number for part in parts for batch in stream.read(part) for number in batch.column("number").to_pylist()]


def test_the_first_batch_is_the_same_when_it_is_run_again_and_the_beginning_has_moved(
    running: Running, reader: Make
) -> None:
    running.move(range(2))
    stream = reader(running, startingOffset="latest")
    start = stream.initialOffset()
    assert start["number"] == 4 and stream.latestOffset(start, ReadAllAvailable()) is start
    running.move(range(2, 4))
    end = stream.latestOffset(start, ReadMaxRows(3))
    again = reader(running, startingOffset="latest")
    later = again.initialOffset()
    assert later["number"] == running.newest() > end["number"] == 7
    assert read(stream, start, end) == read(again, later, end) == [5, 6, 7]
    assert read(again, later, start) == [] and read(again, end, end) == []
    after = again.latestOffset(end, ReadAllAvailable())
    assert after["number"] == running.newest() and "since" not in after
    assert read(again, end, after) == list(range(8, running.newest() + 1))


def table(running: Running, **options: Any) -> list[int]:
    given = {name: str(value) for name, value in options.items()}
    reader = SkytideSource({"url": running.url, **given}).reader(COLUMNS)
    batches: Any = [batch for part in reader.partitions() for batch in reader.read(part)]
    return [number for batch in batches for number in batch.column("number").to_pylist()]


def test_a_table_may_begin_anywhere(running: Running) -> None:
    running.move(range(3))
    numbers = list(range(1, running.newest() + 1))
    assert table(running) == table(running, startingOffset=0) == numbers
    assert table(running, startingOffset=4) == numbers[4:]
    assert table(running, startingOffset=len(numbers)) == table(running, startingOffset="latest") == []


def test_limits_of_spark_are_kept(running: Running, reader: Make) -> None:
    running.move(range(3))
    stream = reader(running, maxPerBatch=2)
    start = stream.initialOffset()
    assert start == {"number": 0, "time": None, "initial": True}
    assert stream.latestOffset(start, stream.getDefaultReadLimit())["number"] == 2
    assert stream.latestOffset(start, ReadMinRows(7)) is start
    assert stream.latestOffset(start, ReadMinRows(6))["number"] == 6
    assert stream.reportLatestOffset()["number"] == 6
    stream.prepareForTriggerAvailableNow()
    running.move(range(3, 4))
    end = stream.latestOffset(start, ReadMinRows(100))
    assert end["number"] == 6 and stream.latestOffset(end, ReadAllAvailable()) is end
    stream.stop()


def test_a_quiet_coordinator_is_not_asked_again_at_once(
    running: Running, monkeypatch: pytest.MonkeyPatch, reader: Make
) -> None:
    running.move(range(1))
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append, monotonic=time.monotonic)
    monkeypatch.setattr(changes, "time", clock)  # of this module alone: other threads sleep, too
    stream = reader(running)
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    stream.latestOffset(end, ReadAllAvailable())
    stream.latestOffset(end, ReadAllAvailable())
    assert slept[:2] == [0, 0] and 0 < slept[2] <= 0.1


@pytest.mark.parametrize(
    ("steps", "reading", "going_on"),
    [
        (1, "does not have the events after 2 any more", "does not have the events after 4 any more"),
        (2, "has another event of number 4 than before", None),
        (5, "has another event of number 4 than before", "has another event of number 4 than before"),
    ],
)
def test_a_coordinator_that_counts_anew_is_found_out(
    tmp_path: Path, reader: Make, steps: int, reading: str, going_on: str | None
) -> None:
    with Running(tmp_path / "before") as before:
        before.move(range(2))
        stream = reader(before)
        middle = stream.latestOffset(stream.initialOffset(), ReadMaxRows(2))
        end = stream.latestOffset(middle, ReadAllAvailable())
    after = Running(tmp_path / "after")
    after.port = before.port
    with after:
        after.move(range(steps))
        assert after.newest() == 2 * steps and end["number"] == 4
        with pytest.raises(InputError, match=reading):
            read(stream, middle, end)
        if going_on is None:
            assert stream.latestOffset(end, ReadAllAvailable()) is end
            after.move(range(steps, steps + 1))
        with pytest.raises(InputError, match=going_on or reading):
            stream.latestOffset(end, ReadAllAvailable())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": 3}, "'rows' is not an option of the format skytide with a url; the options are: url, token"),
        ({"startingOffset": "first"}, "'first' is given for the option startingOffset and is not a place"),
        ({"startingOffset": "-1"}, "'-1' is given for the option startingOffset and is not a place"),
        ({"maxPerBatch": "0"}, "'0' is given for the option maxPerBatch and is not such a number"),
        ({"url": "localhost:8750"}, "'localhost:8750' is not the address of a coordinator; write http://host:port"),
        ({"url": "http://h:99999"}, "is not the address of a coordinator"),
        ({"url": "http://a b:8750"}, "is not the address of a coordinator"),
        ({"url": f"http://{'a' * 64}:8750"}, "is not the address of a coordinator"),
        ({"url": "http://:8750"}, "is not the address of a coordinator"),
        ({"url": "http://h/skyline?x"}, "is not the address of a coordinator"),
        (
            {"url": "http://me:hunter2@h"},
            "the url holds a name or a password; leave it out, and give token or tokenFile",
        ),
        ({"certificate": "c.pem"}, "a certificate is given, and the url is without TLS"),
        ({"url": "https://h", "certificate": "missing.pem"}, "missing.pem: the certificate cannot be read: No such"),
        ({"url": "https://h", "certificate": __file__}, "holds no certificate; give a PEM file"),
        ({"url": "https://h", "certificate": "/dev/null"}, "holds no certificate; give a PEM file"),
        ({"url": "https://h", "certificate": "/dev/zero"}, "is too large for the certificate"),
        ({"url": "https://h", "certificate": "damaged.pem"}, "the certificate cannot be used"),
        ({"tokenFile": "missing"}, "missing: the token cannot be read: No such file"),
        ({"token": "a", "tokenFile": "b"}, "token and tokenFile are both given; give one of them"),
    ],
)
def test_wrong_options_are_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("damaged.pem").write_text(CERTIFICATE.read_text().replace("M", "N"))
    source = SkytideSource({"url": "http://127.0.0.1:1", **{name: str(value) for name, value in options.items()}})
    for made in (source.streamReader, source.reader):
        with pytest.raises((OptionError, InputError)) as caught:
            made(source.schema())
        assert said in str(caught.value) and "\n" not in str(caught.value) and "hunter2" not in str(caught.value)


def test_a_beginning_that_is_not_kept_is_refused_with_those_that_are(running: Running, reader: Make) -> None:
    running.move(range(2))
    with pytest.raises(
        OptionError, match=r"9 is given .*, and events 1 to 4 are kept; give 0 to 4, earliest or latest"
    ):
        reader(running, startingOffset=9).initialOffset()
    assert reader(running, startingOffset=4).initialOffset()["number"] == 4


def test_another_schema_or_checkpoint_is_refused(running: Running, reader: Make) -> None:
    with pytest.raises(InputError, match="leave the schema out"):
        SkytideSource({"url": running.url}).reader(StructType(COLUMNS.fields[:3]))
    with pytest.raises(InputError, match="the checkpoint is not that of a coordinator's events"):
        reader(running).latestOffset({"row": 7}, ReadAllAvailable())


def test_what_travels_to_tasks_shows_no_token_and_holds_no_connection(running: Running, reader: Make) -> None:
    stream = reader(running, token="reader.anna.secret")
    stream.initialOffset()
    assert "secret" not in repr(stream.access)
    assert pickle.loads(pickle.dumps(stream))._coordinator is None  # noqa: S301
    assert list(stream.read(None)) == []


def test_every_option_says_what_it_is_for() -> None:
    assert all(option.help for option in OPTIONS)
