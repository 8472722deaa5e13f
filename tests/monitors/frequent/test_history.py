"""The durable questions against brute force: who stayed for how long, and who was in when."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.monitors.frequent.log import StayLog
from tests.monitors.frequent.series import Series, brute_stays, plain, series


def _monitor(drawn: Series, data: st.DataObject, history: bool | int = True) -> sk.Frequent:
    """A monitor that has seen the series, in two runs, perhaps restored between them."""
    monitor = sk.Frequent(theta=0.5, over=data.draw(st.integers(1, 5)), history=history)
    cut = data.draw(st.integers(0, len(drawn)))
    monitor.extend(drawn.changes(0, cut), snapshots=drawn.times[:cut])
    if data.draw(st.booleans()):
        monitor = sk.Frequent.from_bytes(monitor.to_bytes())
    monitor.extend(drawn.changes(cut, len(drawn)), snapshots=drawn.times[cut:])
    return monitor


@settings(max_examples=80)
@given(series(), st.data())
def test_stays_are_those_of_the_series(drawn: Series, data: st.DataObject) -> None:
    monitor, truth = _monitor(drawn, data), brute_stays(drawn)
    for name in set().union(*drawn.answers):
        own = sorted((stay[1:3] for stay in truth if stay[0] == name), key=lambda stay: stay[0])
        assert monitor.stays(name) == own
    assert monitor.stays("nobody") == []
    for time, answer in drawn.timed:
        assert plain(monitor.at(time)) == sorted(answer, key=str)


@settings(max_examples=80)
@given(series(), st.integers(1, 12), st.data())
def test_the_longest_stays_and_the_table_are_in_order(drawn: Series, k: int, data: st.DataObject) -> None:
    monitor, truth = _monitor(drawn, data), [stay[:4] for stay in brute_stays(drawn)]
    longest = sorted(truth, key=lambda stay: (-stay[3], stay[1], str(stay[0])))
    assert [tuple(stay) for stay in monitor.longest(k)] == longest[:k]
    rows = sorted(truth, key=lambda stay: (stay[1], str(stay[0])))
    table = monitor.history()
    assert table.column_names == ["id", "entered", "left", "snapshots"]
    assert [tuple(row.values()) for row in table.to_pylist()] == rows


@settings(max_examples=80)
@given(series(), st.integers(1, 9), st.data())
def test_a_bounded_history_knows_the_stays_that_touch_the_last_snapshots(
    drawn: Series, bound: int, data: st.DataObject
) -> None:
    monitor = _monitor(drawn, data, bound)
    first = len(drawn) - bound
    kept = [stay for stay in brute_stays(drawn) if stay[4] > first]
    rows = sorted((stay[:4] for stay in kept), key=lambda stay: (stay[1], str(stay[0])))
    assert [tuple(row.values()) for row in monitor.history().to_pylist()] == rows
    for time, answer in drawn.timed[max(first, 0) :]:
        assert plain(monitor.at(time)) == sorted(answer, key=str)
    for time, answer in drawn.timed[: max(first, 0)]:
        try:
            found = monitor.at(time)
        except sk.SkytideError as error:
            assert "before what is remembered" in str(error)
        else:
            assert plain(found) == sorted(answer, key=str)


def test_between_two_snapshots_the_first_one_holds_and_before_all_nobody_was_in() -> None:
    monitor = sk.Frequent(1, 1)
    for time, members in ((1.5, ["a"]), (2.5, ["a", "b"]), (4.0, [])):
        monitor.observe(members, time)
    assert [plain(monitor.at(time)) for time in (1, 1.5, 2, 3.9, 4)] == [[], ["a"], ["a"], ["a", "b"], []]


def test_times_and_ids_come_back_as_they_came() -> None:
    monitor = sk.Frequent(1, 1)
    day = dt.datetime(2024, 5, 1, 12)
    monitor.observe([dt.date(2020, 1, 1)], day)
    assert monitor.stays(dt.datetime(2020, 1, 1)) == [(day, None)]
    assert monitor.history().schema.field("left").type == pa.timestamp("us")
    assert monitor.at(day).tolist() == [dt.datetime(2020, 1, 1)]


def test_an_answer_of_long_ago_is_found_among_many_stays() -> None:
    log, rng, left = StayLog(), np.random.default_rng(2), 0
    entered, ends = [], []
    for _ in range(3_000):
        left += int(rng.integers(0, 2))
        ends.append(left)
        entered.append(left - 1 - int(rng.exponential(40)) * int(rng.integers(0, 9) == 0))
    start = np.array(entered) + 2_000
    stop = np.array(ends) + 2_000
    for part in np.array_split(np.arange(3_000), 7):
        log.add(np.array([start[part], stop[part], start[part] * 10, stop[part] * 10]), part)
    for forgotten in (0, 2_300, 2_900):
        log.forget(forgotten)
        alive = stop > forgotten
        for key in range(max(20_000, forgotten * 10), 10 * int(stop[-1]) + 20, 170):
            truth = np.flatnonzero(alive & (start * 10 <= key) & (key < stop * 10))
            assert sorted(log.at(key).tolist()) == truth.tolist()
        log.add(np.zeros((4, 0), np.int64), np.zeros(0, np.int64))


def test_forgotten_stays_give_their_memory_back() -> None:
    monitor, held = sk.Frequent(theta=0.5, over=2, history=5), []
    for start in range(0, 20_000, 100):
        times = np.arange(start, start + 100)
        monitor.extend(sk.Changes.of(times, np.tile([1, -1], 50), np.repeat(times[::2], 2)), snapshots=times)
        held.append(monitor.stats())
        assert held[-1]["known_ids"] <= 4 and held[-1]["stays"] <= 3
    assert max(one["memory_bytes"] for one in held) < 2**16  # of 10,000 stays, which would take more than 2^18


@pytest.mark.parametrize("name", ["stays.parquet", "stays.csv", "stays.jsonl"])
def test_the_history_is_written_as_a_file(tmp_path: Path, name: str) -> None:
    monitor = sk.Frequent(1, 1)
    monitor.observe([3], 1)
    monitor.observe([4], 2)
    monitor.write(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    if name.endswith("parquet"):
        assert pq.read_table(tmp_path / name).equals(monitor.history())


def test_a_history_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path, monkeypatch: Any) -> None:
    monitor = sk.Frequent(1, 1)
    for wrong in (tmp_path / "x.txt", tmp_path / "no folder" / "x.parquet", tmp_path):
        with pytest.raises(sk.SkytideError):
            monitor.write(wrong)

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("skytide.streams.files.output.write_table", full)
    with pytest.raises(sk.SkytideError, match="no space left"):
        monitor.write(tmp_path / "x.parquet")


def test_without_history_the_durable_questions_are_refused() -> None:
    monitor = sk.Frequent(theta=0.5, over=2, history=False)
    monitor.observe(["a"], 1)
    questions: list[Any] = [
        lambda: monitor.stays("a"),
        monitor.longest,
        lambda: monitor.at(1),
        monitor.history,
        lambda: monitor.write("x.parquet"),
    ]
    for question in questions:
        with pytest.raises(sk.SkytideError, match="no history"):
            question()


def test_ids_of_mixed_kinds_are_no_column() -> None:
    monitor = sk.Frequent(1, 1)
    monitor.observe(["a", 1], 1)
    assert monitor.stays(1) == [(1, None)]
    with pytest.raises(sk.SkytideError, match="mixed kinds"):
        monitor.history()
    with pytest.raises(sk.SkytideError, match="mixed kinds"):
        monitor.to_bytes()
