"""Bytes that are no frequent-skyline monitor: cut, foreign, damaged or forged."""

from __future__ import annotations

import copy
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import SkytideError, StateError
from skytide.monitors.storage import pack, unpack
from tests.monitors.frequent.series import listed


def _monitor(history: bool | int = True, whole: bool = False) -> sk.Frequent:
    monitor = sk.Frequent(pairs=[(0.5, 4), ("1/3", 6)], history=history)
    answers = ["ab", "abc", "bc", "c", "cd", "d", "ad", "a", "ab", "b"]
    for time, answer in enumerate(answers):
        monitor.observe([ord(one) for one in answer] if whole else list(answer), time)
    return monitor


def _forged(header: bytes, payload: bytes = b"") -> bytes:
    body = struct.pack("<Q", len(header)) + header + payload
    return struct.pack("<8sIIQ", b"SKYTIDE\n", 1, zlib.crc32(body), len(body)) + body


@pytest.mark.parametrize("history", [True, False, 4])
@pytest.mark.parametrize("whole", [True, False])
def test_a_stored_monitor_is_the_same_when_stored_again(history: bool | int, whole: bool) -> None:
    monitor = _monitor(history, whole)
    again = sk.Frequent.from_bytes(monitor.to_bytes())
    assert again.to_bytes() == monitor.to_bytes()
    assert {**again.stats(), "memory_bytes": 0} == {**monitor.stats(), "memory_bytes": 0}
    assert again.options() == monitor.options() and again.pairs == monitor.pairs
    fresh = sk.Frequent.from_bytes(sk.Frequent(0.5, 3, history=history).to_bytes())
    assert listed(fresh.observe([], 1)) == []


def test_bytes_that_are_not_a_frequent_monitor_are_refused() -> None:
    blob = _monitor().to_bytes()
    for wrong in (b"", b"hello", blob[:-1], blob[:50], blob + b"x", bytes([*blob[:60], blob[60] ^ 1, *blob[61:]])):
        with pytest.raises(StateError):
            sk.Frequent.from_bytes(wrong)
    with pytest.raises(StateError, match="Frequent"):
        sk.SlidingWindow.from_bytes(blob)
    with pytest.raises(StateError, match="SlidingWindow"):
        sk.Frequent.from_bytes(sk.SlidingWindow(sk.Preference.columns(1), count=3).to_bytes())


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for step in steps:
        yield (*path, step)
        yield from _places(value[step], (*path, step))


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, -1, 0, 1, 7, 2**62, 2**80, 0.5, float("nan"), True, False, "x", "", {}, [], [-1], [2**31], [[1]]),
        *("arrow", "<f8", "<i8", ">i8", "|b1", "<M8[s]", "|O", "other", "integer", "real", "us", "1e999999999", "1/0"),
    ]
)


@settings(max_examples=250)
@given(st.sampled_from([True, False, 4]), st.booleans(), st.data())
def test_a_forged_monitor_is_refused_or_works_and_never_crashes(
    history: bool | int, whole: bool, data: st.DataObject
) -> None:
    blob = _monitor(history, whole).to_bytes()
    size = struct.unpack_from("<Q", blob, 24)[0]
    forged, payload = copy.deepcopy(json.loads(blob[32 : 32 + size])), blob[32 + size :]
    for _ in range(data.draw(st.integers(0, 2))):
        *path, last = data.draw(st.sampled_from(list(_places(forged))))
        target = forged
        for step in path:
            target = target[step]
        target[last] = copy.deepcopy(data.draw(ODD))
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(0, len(payload) - 1))
        payload = payload[:place] + bytes([payload[place] ^ data.draw(st.integers(1, 255))]) + payload[place + 1 :]
    try:
        monitor = sk.Frequent.from_bytes(_forged(json.dumps(forged).encode(), payload))
    except StateError:
        return
    monitor._counts._check()
    monitor.frequent()
    monitor.stats()
    try:
        monitor.history()
        monitor.longest(3)
        monitor.at(7)
        monitor.observe([1], 100)
        monitor.extend(sk.Changes.of([120], [1], [2]), snapshots=range(101, 140))
        monitor._counts._check()
        sk.Frequent.from_bytes(monitor.to_bytes())
    except SkytideError:
        pass


def _put(name: str, row: int, value: Any, at: int = 0) -> Callable[[dict[str, Any]], None]:
    def change(parts: dict[str, Any]) -> None:
        parts[name] = parts[name].copy()
        parts[name][row, at] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(_put("queue", 0, number) for number in (-3, 0, 2, 11, 2**62)),
        *(_put("queue", 1, slot) for slot in (-1, 4, 2**40)),
        *(_put("queue", 2, sign) for sign in (0, 2, -(2**60))),
        lambda parts: _put("queue", 2, -parts["queue"][2, 0])(parts),
        lambda parts: _put("queue", 2, -parts["queue"][2, -1], at=-1)(parts),
        lambda parts: _put("queue", 0, parts["queue"][0, -1] + 1)(parts),
        *(_put("members", 0, slot) for slot in (-1, 4, 2**40, 2)),
        *(_put("members", 1, number) for number in (-1, 0, 11, 3)),
        *(_put("members", 2, key) for key in (99, 2**63 - 1, -(2**63))),
        *(_put("stays", 0, number) for number in (-1, 0, 11)),
        *(_put("stays", 1, number) for number in (-1, 0, 1, 9, 11)),
        *(_put("stays", 2, key) for key in (99, 2**63 - 1, -(2**63))),
        *(_put("stays", 3, key) for key in (-5, 99, 2**63 - 1)),
        *(_put("stays", 4, slot) for slot in (-1, 4, 2**40)),
        lambda parts: parts.update(members=np.repeat(parts["members"], 2, axis=1)),
        lambda parts: parts.update(members=parts["members"][:, :0]),
        lambda parts: parts.update(members=parts["members"][:2]),
        lambda parts: parts.update(queue=parts["queue"][:, ::-1]),
        lambda parts: parts.update(queue=parts["queue"].astype(np.int32)),
        lambda parts: parts.update(queue=parts["queue"][:, 1:]),
        lambda parts: parts.update(stays=np.repeat(parts["stays"], 2, axis=1)),
        lambda parts: parts.update(ids=np.array(["a", "b", "c", "c"], dtype=object)),
        lambda parts: parts.update(ids=np.array(["a", "b", None, "c"], dtype=object)),
        lambda parts: parts.update(ids=np.array(["a", "b", "c", "d", "e"], dtype=object)),
        lambda parts: parts.update(ids=np.array([1, 2, 3, 4])),
        lambda parts: parts.pop("queue"),
    ],
)
def test_a_past_that_no_series_has_is_refused_before_compiled_code_sees_it(change: Any) -> None:
    meta, parts = unpack(_monitor().to_bytes(), "Frequent", 1)
    sk.Frequent.from_bytes(pack("Frequent", 1, meta, parts))
    change(parts)
    with pytest.raises(StateError):
        sk.Frequent.from_bytes(pack("Frequent", 1, meta, parts))


@pytest.mark.parametrize(
    "wrong",
    [
        {"now": 9},
        {"now": -1},
        {"now": 0},
        {"ids": None},
        {"ids": "integer"},
        {"work": [1, 2]},
        {"time": {"kind": "odd", "latest": 9, "horizon": None}},
        {"time": {"kind": None, "latest": 9, "horizon": None}},
        {"time": {"kind": "whole", "latest": 2**62, "horizon": None}},
        {"time": {"kind": "whole", "latest": 3, "horizon": None}},
        {"time": {"kind": "whole", "latest": 9, "horizon": 1}},
        {"options": {"pairs": [["1/2", 4]], "history": False}},
        {"options": {"pairs": [["1/2", 4]], "history": 2}},
        {"options": {"pairs": [["1e999999999", 4]], "history": True}},
        {"options": {"pairs": [[0.5, 4], ["1/3", 6]], "history": True}},
    ],
)
def test_a_header_that_does_not_fit_is_refused(wrong: dict[str, Any]) -> None:
    meta, parts = unpack(_monitor().to_bytes(), "Frequent", 1)
    with pytest.raises(StateError):
        sk.Frequent.from_bytes(pack("Frequent", 1, meta | wrong, parts))
