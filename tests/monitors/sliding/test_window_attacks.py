"""What a hostile user, a long run or a forged file may try on a sliding window."""

import copy
import datetime
import json
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import IdError, InputError, PreferenceError, SkytideError, StateError, WindowError
from skytide.monitors.sliding.waiting import Arrivals, Waiting
from skytide.monitors.storage import pack, unpack

ONE = sk.Preference.columns(1)
GROUPED = sk.Preference(minimize=["v"], by=["g"])
NOON = datetime.datetime(2024, 1, 1, 12)


def listed(changes: sk.Changes) -> list[tuple[Any, str, Any]]:
    return [tuple(change) for change in changes]


# -- a refused call leaves nothing behind ------------------------------------------------------------------------------


def test_a_first_batch_that_is_refused_does_not_fix_the_kind_of_time() -> None:
    window = sk.SlidingWindow(ONE, duration=5)
    with pytest.raises(IdError):
        window.extend(np.zeros((2, 1)), times=[1, 2], ids=["a", "a"])
    window.extend(np.zeros((1, 1)), times=[1.5], ids=["a"])
    assert listed(window.advance(2.5)) == [(1.5, "+", "a")]


def test_a_first_batch_without_a_single_time_does_not_fix_the_kind_of_time() -> None:
    window = sk.SlidingWindow(ONE, duration="5s", nulls="drop")
    assert window.extend(np.zeros((2, 1)), times=[None, None]).bad.tolist() == [0, 1]
    window.extend(np.zeros((1, 1)), times=[NOON])
    assert listed(window.advance(NOON)) == [(NOON, "+", 3)]


@pytest.mark.parametrize("ids", [[[1], [2]], [{}, {}], [(1, 2), (1, 2)]])
def test_ids_that_are_not_hashable_are_refused_before_anything_changes(ids: list[Any]) -> None:
    window = sk.SlidingWindow(ONE, count=3, check_ids=False)
    with pytest.raises(IdError, match="hashable"):
        window.extend(np.zeros((2, 1)), ids=ids)
    assert window.stats()["rows"] == 0


def test_groups_of_rows_that_were_not_taken_are_not_remembered() -> None:
    window = sk.SlidingWindow(GROUPED, duration=5, nulls="drop")
    window.extend({"v": [1.0], "g": ["a"]}, times=[100], ids=["x"])
    window.extend({"v": [1.0, 2.0], "g": ["late", "later"]}, times=[1, 2], ids=["y", "z"])
    window.extend({"v": [None], "g": ["bad"]}, times=[101], ids=["y"])
    with pytest.raises(IdError):
        window.extend({"v": [1.0], "g": ["refused"]}, times=[101], ids=["x"])
    assert list(window._groups.codes) == [("a",)]


# -- long runs ---------------------------------------------------------------------------------------------------------


def test_an_id_that_comes_again_for_ever_takes_no_more_memory_and_no_more_work() -> None:
    window = sk.SlidingWindow(ONE, duration=5)
    for start in range(0, 30_000, 3_000):
        window.extend(np.zeros((300, 1)), times=np.arange(start, start + 3_000, 10), ids=[7] * 300)
        window.advance(start + 2_999)
    window.insert([0.0], time=30_000, id=7)
    window.insert([0.0], time=30_010, id=7)
    held = window._live.arrivals[7]
    assert not isinstance(held, list) or len(held) <= 2


def test_a_group_waits_for_one_wake_however_often_its_next_expiry_moves() -> None:
    window = sk.SlidingWindow(ONE, duration=10**6)
    for step in range(200):
        window.insert([-float(step)], time=step)
    assert len(window._flow._wakes) == 1  # type: ignore[union-attr]
    assert listed(window.advance(10**7))[-1] == (199 + 10**6, "-", 200)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.lists(st.integers(0, 40), max_size=6), st.integers(-5, 5)), max_size=14),
    st.booleans(),
)
def test_waiting_rows_go_in_the_order_of_their_times_and_then_of_their_coming(
    steps: list[tuple[list[int], int]], large: bool
) -> None:
    repeat = 700 if large else 1
    held: list[tuple[int, int]] = []
    waiting, number, bound = Waiting(1), 0, -1
    for keys, ahead in steps:
        new = [(key, number + place) for place, key in enumerate(keys * repeat) if key > bound]
        number += len(keys) * repeat
        moments = np.array([key for key, _ in new], dtype=np.int64)
        handles = np.array([handle for _, handle in new], dtype=np.int64)
        bound = max(bound, bound + ahead)
        rows = Arrivals(moments[:, None].astype(float), np.zeros(len(new), np.int64), handles, moments)
        waiting.add(rows, bound)
        held += new
        due = waiting.release(bound)
        expected = sorted(one for one in held if one[0] <= bound)
        held = [one for one in held if one[0] > bound]
        assert list(zip(due.keys.tolist(), due.handles.tolist(), strict=True)) == expected
        moments[:] = -99  # the caller's array is the caller's
        left = waiting.all()
        assert len(waiting) == len(held)
        assert sorted(zip(left.keys.tolist(), left.handles.tolist(), strict=True)) == sorted(held)


def test_one_very_long_id_does_not_widen_all_the_others() -> None:
    ids = ["b", "a" * 2_000_000, "a\0", "a", *(f"c{place:04d}" for place in range(3_000))]
    window = sk.SlidingWindow(ONE, duration=5)
    window.extend(np.zeros((len(ids), 1)), times=[1] * len(ids), ids=ids)
    tracemalloc.start()
    changes = window.advance(1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert changes.ids.tolist() == sorted(ids) and peak < 10**8


# -- lengths and times -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [float("inf"), float("nan"), datetime.timedelta(1), [1], 10**400, 0, -1, True, "x"])
def test_lengths_that_are_none_are_refused_in_our_words(length: Any) -> None:
    with pytest.raises(WindowError):
        sk.SlidingWindow(ONE, duration=length)


@pytest.mark.parametrize("count", [float("inf"), float("nan"), "abc", "5", 1.5, 0, True])
def test_counts_that_are_none_are_refused_in_our_words(count: Any) -> None:
    with pytest.raises(WindowError):
        sk.SlidingWindow(ONE, count=count)


def test_a_plain_lateness_beside_timestamps_is_refused_and_not_read_as_nanoseconds() -> None:
    window = sk.SlidingWindow(ONE, duration="15m", lateness=5)
    with pytest.raises(WindowError, match="5 is a plain number"):
        window.extend(np.zeros((1, 1)), times=[NOON])


def test_a_whole_length_beyond_float64_keeps_whole_times_whole() -> None:
    window = sk.SlidingWindow(ONE, duration=10**33)
    window.extend(np.zeros((1, 1)), times=[1])
    assert listed(window.advance(1)) == [(1, "+", 1)] and window.skyline().times.dtype == np.int64


@pytest.mark.parametrize("count", [2**62, 2**63 - 1, 10**30])
def test_a_count_that_no_stream_reaches_keeps_every_row(count: int) -> None:
    window = sk.SlidingWindow(ONE, count=count)
    assert listed(window.extend(np.array([[1.0], [0.0]]))) == [(1, "+", 1), (2, "-", 1), (2, "+", 2)]


def test_whole_times_that_missing_ones_would_round_are_refused() -> None:
    window = sk.SlidingWindow(ONE, duration=1, nulls="drop")
    with pytest.raises(InputError, match="beyond 2\\^53"):
        window.extend(np.zeros((3, 1)), times=pa.array([2**60 + 1, None, 2**60 + 2]))


def test_a_whole_time_beyond_float64_in_a_window_of_real_times_is_refused() -> None:
    window = sk.SlidingWindow(ONE, duration=0.5)
    with pytest.raises(WindowError, match="2\\^53"):
        window.extend(np.zeros((1, 1)), times=np.array([2**63 - 1]))


def test_before_the_first_row_there_is_no_latest_time_even_when_time_has_run() -> None:
    window = sk.SlidingWindow(ONE, duration=0.5)
    window.advance(7.0)
    assert window.latest is None


# -- groups and tables -------------------------------------------------------------------------------------------------


def test_negative_zero_and_zero_are_one_group_at_rest_and_in_a_window() -> None:
    data = {"v": [1.0, 2.0], "g": [0.0, -0.0]}
    window = sk.SlidingWindow(GROUPED, count=3)
    window.extend(data)
    assert sk.skyline(data, GROUPED).tolist() == [True, False] and list(window.skyline()) == [1]


@pytest.mark.parametrize(
    "data",
    [
        {"v": [1.0, 2.0], "g": [[1], [2]]},
        {"v": [1.0, 2.0], "g": [{"a": 1}, {"a": 2}]},
        {"v": [1.0, "x"], "g": [1, 2]},
        {"v": [1.0, 2.0], "g": [1]},
        {"v": [2**70, 1], "g": [1, 2]},
        [[1.0, 2.0], [3.0]],
    ],
)
def test_tables_that_are_none_are_refused_in_our_words(data: Any) -> None:
    for ask in (lambda: sk.skyline(data, GROUPED), lambda: sk.SlidingWindow(GROUPED, count=3).extend(data)):
        with pytest.raises(InputError):
            ask()


def test_columns_are_names_or_positions() -> None:
    for wrong in ([1.5], [None], [("a",)], [True]):
        with pytest.raises(PreferenceError):
            sk.Preference(minimize=wrong)  # type: ignore[arg-type]
    assert sk.Preference(minimize=np.arange(2)).names == (0, 1)  # type: ignore[arg-type]


# -- stored windows ----------------------------------------------------------------------------------------------------


def test_windows_with_lengths_of_numpy_can_be_stored() -> None:
    for options in ({"count": np.int64(5)}, {"duration": np.float32(2.5)}, {"duration": np.int32(2), "lateness": 1}):
        window = sk.SlidingWindow(ONE, **options)
        assert sk.SlidingWindow.from_bytes(window.to_bytes()).window == window.window


@pytest.mark.parametrize(
    "group",
    [
        pa.array([1, 2], pa.timestamp("ns")),
        pa.array([1, 2], pa.duration("ns")),
        pa.array([float("nan"), 1.0]),
        pa.array([None, "x"]),
    ],
)
def test_groups_are_the_same_after_storage(group: pa.Array) -> None:
    window = sk.SlidingWindow(GROUPED, count=3)
    window.extend({"v": [1.0, 1.0], "g": group})
    again = sk.SlidingWindow.from_bytes(window.to_bytes())
    again.extend({"v": [0.0, 0.0], "g": group})
    assert again.stats()["groups"] == 2 and sorted(again.skyline()) == [3, 4]


@pytest.mark.parametrize("ids", [["a", 1], [2**70, 2**71], ["\ud800", "b"]])
def test_ids_that_would_not_come_back_as_they_are_are_not_stored(ids: list[Any]) -> None:
    window = sk.SlidingWindow(ONE, count=3)
    window.extend(np.zeros((2, 1)), ids=ids)
    assert sorted(map(repr, window.skyline())) == sorted(map(repr, ids))
    with pytest.raises(StateError, match="cannot be stored"):
        window.to_bytes()


def _halves(blob: bytes) -> tuple[dict[str, Any], bytes]:
    size = struct.unpack_from("<Q", blob, 24)[0]
    return json.loads(blob[32 : 32 + size]), blob[32 + size :]


def _forged(header: bytes, payload: bytes = b"", size: int | None = None) -> bytes:
    body = struct.pack("<Q", len(header) if size is None else size) + header + payload
    return struct.pack("<8sIIQ", b"SKYTIDE\n", 1, zlib.crc32(body), len(body)) + body


def _stored(timed: bool) -> bytes:
    options: dict[str, Any] = {"duration": 5, "lateness": 2} if timed else {"count": 5}
    window = sk.SlidingWindow(sk.Preference(minimize=["a", "b"], by=["g"]), **options)
    values = np.random.default_rng(1).random((2, 8))
    window.extend(
        {"a": values[0], "b": values[1], "g": ["x", "y"] * 4},
        times=np.arange(8) if timed else None,
        ids=[f"i{one}" for one in range(8)],
    )
    return window.to_bytes()


@pytest.mark.parametrize(
    "header",
    [
        *(b"", b"[", b"[]", b"1", b"null", b"{}", b"[" * 200_000, b"\xff\xfe", b"1" * 5000, b'{"kind":1}'),
        b'{"kind":"SlidingWindow","version":1,"meta":{},"parts":[]}',
        b'{"kind":"SlidingWindow","version":1}',
    ],
    ids=range(12),
)
def test_a_forged_header_with_a_right_checksum_is_refused(header: bytes) -> None:
    with pytest.raises(StateError):
        sk.SlidingWindow.from_bytes(_forged(header))
    with pytest.raises(StateError):
        sk.SlidingWindow.from_bytes(_forged(header, size=2**63))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for step in steps:
        yield (*path, step)
        yield from _places(value[step], (*path, step))


TYPES = ["|O", "O8", "|V8", "<U1", "arrow", "<f8", "<i8", "<i4", ">i8", "|b1", "<M8[s]", "<c16", "i4,f8", "real", "ns"]
SHAPES = [[], [-1], [-1, -1], [[1]], [2**31, 2**31]]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, -1, 0, 1, 7, 2**62, 2**80, 1.5, float("nan"), True, "x", "", {}, *SHAPES, *TYPES]
)


@settings(max_examples=400, deadline=None)
@given(st.booleans(), st.data())
def test_a_forged_window_is_refused_or_works_and_never_crashes(timed: bool, data: st.DataObject) -> None:
    header, payload = _halves(_stored(timed))
    forged = copy.deepcopy(header)
    for _ in range(data.draw(st.integers(1, 2))):
        *path, last = data.draw(st.sampled_from(list(_places(forged))))
        target = forged
        for step in path:
            target = target[step]
        target[last] = copy.deepcopy(data.draw(ODD))
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(payload) - 1))
        payload = payload[:place] + bytes([payload[place] ^ data.draw(st.integers(1, 255))]) + payload[place + 1 :]
    try:
        window = sk.SlidingWindow.from_bytes(_forged(json.dumps(forged).encode(), payload))
    except StateError:
        return
    window.skyline()
    window.stats()
    try:
        sk.SlidingWindow.from_bytes(window.to_bytes())
    except SkytideError:
        assert window.score is None


def _rows(change: Callable[[dict[str, Any]], None]) -> bytes:
    meta, parts = unpack(_stored(timed=True), "SlidingWindow", 1)
    change(parts)
    return pack("SlidingWindow", 1, meta, parts)


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.update(arrivals=parts["arrivals"][::-1] + np.arange(len(parts["arrivals"]))[::-1]),
        lambda parts: parts.update(arrivals=parts["arrivals"] + 2**62),
        lambda parts: parts.update(values=parts["values"] * np.nan),
        lambda parts: parts.update(values=parts["values"][:, :1]),
        lambda parts: parts.update(codes=parts["codes"] + 5),
        lambda parts: parts.update(handles=parts["handles"] + 100),
        lambda parts: parts.update(pending_keys=parts["pending_keys"] - 100),
        lambda parts: parts.update(pending_values=parts["pending_values"].ravel()),
    ],
)
def test_rows_that_no_window_holds_are_refused_before_compiled_code_sees_them(change: Any) -> None:
    sk.SlidingWindow.from_bytes(_rows(lambda parts: None))
    with pytest.raises(StateError):
        sk.SlidingWindow.from_bytes(_rows(change))


def test_an_arrow_part_with_more_rows_than_bytes_is_refused() -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([pa.nulls(10**9)], names=["values"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    bomb = sink.getvalue().to_pybytes()
    header, payload = _halves(_stored(timed=True))
    entry = next(entry for entry in header["parts"] if entry["name"] == "known_ids")
    entry |= {"offset": len(payload), "size": len(bomb)}
    with pytest.raises(StateError, match="more rows than bytes"):
        sk.SlidingWindow.from_bytes(_forged(json.dumps(header).encode(), payload + bomb))
