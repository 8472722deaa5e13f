"""The live feed: a reader's answer is the writer's, whenever it looks, stops, comes back or is late."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError, StateError
from skytide.spark.sinks import CurrentTable, Event, Feed, FeedSink
from skytide.spark.sinks.keys import mark_groups
from skytide.spark.streaming.write import write_batch

Answer = set[tuple[str, int]]


class World:
    """A changing answer: ids in two groups, the same id possibly in both."""

    def __init__(self) -> None:
        self.answers: list[Answer] = [set()]

    def step(self, after: Answer) -> pa.Table:
        before = self.answers[-1]
        moves = [("-", *one) for one in sorted(before - after)] + [("+", *one) for one in sorted(after - before)]
        self.answers.append(after)
        return changes(moves, len(self.answers) - 2)


def changes(moves: list[tuple[str, str, int]], batch: int) -> pa.Table:
    return pa.table(
        {
            "time": pa.array([batch] * len(moves), pa.int64()),
            "change": pa.array([sign for sign, _, _ in moves], pa.string()),
            "id": pa.array([one for _, _, one in moves], pa.int64()),
            "group": pa.array([group for _, group, _ in moves], pa.string()),
        }
    )


def applied(known: Answer, events: list[Event]) -> Answer:
    known = set(known)
    for event in events:
        names = list(zip(event.rows["group"].to_pylist(), event.rows["id"].to_pylist(), strict=True))
        if event.kind == "answer":
            known = set(names)
            continue
        for sign, name in zip(event.rows["change"].to_pylist(), names, strict=True):
            (known.add if sign == "+" else known.remove)(name)
    return known


ANSWERS = st.lists(st.sets(st.tuples(st.sampled_from("gh"), st.integers(0, 3))), min_size=1, max_size=14)


@settings(max_examples=30)
@given(
    answers=ANSWERS,
    keep=st.integers(1, 6),
    every=st.integers(1, 6),
    again=st.sets(st.integers(0, 13)),
    looks=st.sets(st.integers(0, 13)),
)
@example(answers=[set(), set()], keep=1, every=1, again={0, 1}, looks={0, 1})
def test_a_reader_that_looks_now_and_then_knows_the_answer(
    answers: list[Answer], keep: int, every: int, again: set[int], looks: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as path:
        sink = FeedSink(path, keep=max(keep, every), snapshot_every=every, by=("group",))
        feed = Feed(path, by=("group",))
        world, after = World(), None
        known: Answer = set()
        for batch, answer in enumerate(answers):
            moves = world.step(answer)
            for _ in range(2 if batch in again else 1):
                sink.write(batch, moves)
            assert sink.last() == feed.last() == batch
            [now] = feed.read()
            assert (now.kind, now.batch, now.behind, applied(set(), [now])) == ("answer", batch, False, answer)
            if batch not in looks:
                continue
            events = feed.read(after)
            missed = 0 if after is None else batch - after
            assert [event.behind for event in events] == ([True] if missed > sink.keep else [False] * len(events))
            known = applied(known, events)
            assert known == answer and events[-1].batch == batch
            after = batch
            assert feed.read(after) == []
        assert len([path for path in Path(path).iterdir() if path.name.startswith("changes")]) <= sink.keep


@settings(max_examples=20)
@given(answers=ANSWERS, data=st.data())
def test_a_query_that_goes_back_takes_back_what_came_after(answers: list[Answer], data: st.DataObject) -> None:
    back = data.draw(st.integers(0, len(answers) - 1))
    with tempfile.TemporaryDirectory() as path:
        sink, feed = FeedSink(path, snapshot_every=3, by=("group",)), Feed(path, by=("group",))
        world = World()
        moves = [world.step(answer) for answer in answers]
        for batch, one in enumerate(moves):
            sink.write(batch, one)
        two_snapshots_ago = [batch for batch in range(len(moves)) if batch % 3 == 0 or batch == 0][-2:][0]
        if 0 < back <= two_snapshots_ago:
            with pytest.raises(StateError, match="no longer knows the answer before"):
                sink.write(back, moves[back])
            back = len(moves) - 1
        sink.write(back, moves[back])
        [now] = feed.read()
        assert (now.batch, applied(set(), [now])) == (back, answers[back])
        for batch in range(back + 1, len(moves)):
            sink.write(batch, moves[batch])
        [now] = feed.read()
        assert (now.batch, applied(set(), [now])) == (len(moves) - 1, answers[-1])


def test_going_back_further_than_the_feed_knows_is_refused(tmp_path: Path) -> None:
    sink = FeedSink(str(tmp_path), keep=2, snapshot_every=1)
    for batch in range(6):
        sink.write(batch, changes([("+", "g", batch)], batch))
    with pytest.raises(StateError, match="no longer knows the answer before micro-batch 1"):
        sink.write(1, changes([("+", "g", 1)], 1))
    assert sink.last() == 5


def test_groups_may_be_marked_in_the_rows(tmp_path: Path) -> None:
    sink = FeedSink(str(tmp_path), snapshot_every=2)
    sink.write(0, mark_groups(changes([("+", "g", 1), ("+", "h", 1)], 0), ["group"]))
    sink.write(1, mark_groups(changes([("-", "g", 1)], 1), ["group"]))
    assert applied(set(), Feed(str(tmp_path)).read()) == {("h", 1)}


@pytest.mark.parametrize(("after", "kinds"), [(2, ["answer"]), (3, ["changes"] * 3), (6, [])])
def test_a_reader_is_behind_from_the_first_batch_that_is_gone(tmp_path: Path, after: int, kinds: list[str]) -> None:
    sink = FeedSink(str(tmp_path), keep=3, snapshot_every=2)
    for batch in range(7):
        sink.write(batch, changes([("+", "g", batch)], batch))
    events = Feed(str(tmp_path)).read(after)
    assert [event.kind for event in events] == kinds and [event.behind for event in events] == [
        kind == "answer" for kind in kinds
    ]


def test_a_written_stream_tells_the_feed_its_groups(tmp_path: Path) -> None:
    current, sink = CurrentTable(str(tmp_path / "current")), FeedSink(str(tmp_path / "feed"), snapshot_every=1)
    for batch, moves in enumerate([[("+", "g", 1), ("+", "h", 1)], [("-", "g", 1)], []]):
        rows = changes(moves, batch)
        rows = rows.add_column(0, "kind", pa.array(["change"] * len(moves), pa.string()))
        for _ in range(2):
            write_batch(batch, rows, sink, None, current, ["group"])
    [event] = Feed(sink.path).read()
    assert applied(set(), [event]) == {("h", 1)}
    found = current.read()
    assert found is not None and found[0] == event.batch == 2 and found[1] == event.rows


def test_a_reader_follows_from_the_beginning_from_now_and_from_where_it_was(tmp_path: Path) -> None:
    sink, feed = FeedSink(str(tmp_path)), Feed(str(tmp_path))
    assert feed.read() == [] and feed.read(after=3) == []
    for batch in range(4):
        sink.write(batch, changes([("+", "g", batch)] if batch != 2 else [], batch))
    looks = iter([False, True])
    assert [(one.kind, one.batch) for one in feed.follow(stop=lambda: next(looks))] == [("answer", 3)]
    assert [(one.kind, one.batch, one.rows.num_rows) for one in feed.read(after=-1)] == [
        ("changes", batch, 0 if batch == 2 else 1) for batch in range(4)
    ]
    steps = iter([False, False, False, True])

    def stop() -> bool:
        done = next(steps)
        if not done and feed.last() == 3:
            sink.write(4, changes([("-", "g", 0)], 4))
        return done

    found = list(feed.follow(after=2, interval=0.001, stop=stop))
    assert [(one.kind, one.batch) for one in found] == [("changes", 3), ("changes", 4)]
    # A reader of another feed, or of one that was taken back.
    assert [(one.kind, one.batch, one.behind) for one in feed.read(after=99)] == [("answer", 4, True)]


def test_a_file_that_goes_while_it_is_read_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from skytide.spark.sinks.storage import LocalFolder

    sink, feed = FeedSink(str(tmp_path), keep=1, snapshot_every=1), Feed(str(tmp_path))
    sink.write(0, changes([("+", "g", 0)], 0))
    real = LocalFolder.get
    raced: list[str] = []

    def get(folder: LocalFolder, name: str) -> bytes:
        if not raced:
            raced.append(name)
            for batch in (1, 2):
                sink.write(batch, changes([("+", "g", batch)], batch))
        return real(folder, name)

    monkeypatch.setattr(LocalFolder, "get", get)
    [event] = feed.read()
    assert applied(set(), [event]) == {("g", 0), ("g", 1), ("g", 2)} and event.batch == 2


def test_reading_a_feed_needs_neither_spark_nor_compiled_code(tmp_path: Path) -> None:
    FeedSink(str(tmp_path)).write(0, changes([("+", "g", 0)], 0))
    probe = (
        "import sys; from skytide.spark import Feed; print(len(Feed(sys.argv[1]).read()[0].rows),"
        " sorted({'pyspark', 'numba', 'confluent_kafka', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1 []"


def test_keeping_less_than_an_answer_spans_is_refused() -> None:
    with pytest.raises(OptionError, match="keep at least as many"):
        FeedSink("x", keep=3, snapshot_every=4)
