"""Bytes that are no monitor of snapshots: cut, foreign, damaged or forged; and those that are one."""

from __future__ import annotations

import copy
import datetime as dt
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
from tests.monitors.snapshots.streams import listed

NAN = float("nan")


def _monitor(kind: str = "grouped") -> sk.Snapshots:
    """With objects that are there, that have gone and that are only awaited, and rows that wait."""
    by = ["g"] if kind == "grouped" else []
    preference = sk.Preference(minimize=["a"], maximize=["b"], by=by)
    monitor = sk.Snapshots(
        preference, op="average", nulls="worst" if kind == "worst" else "drop", cfp=2, lateness=3, method="mbr"
    )
    ids: Any = [7, 1, 2, 3, 7, 9, 1, 3] if kind == "integer" else list("habchxac")
    rows = {
        "a": [1.0, 2.0, 3.0, 2.0, NAN, 1.0, NAN, 5.0],
        "b": [4.0, 4.0, 1.0, 9.0, NAN, 2.0, NAN, NAN if kind == "worst" else 5.0],
        "g": ["x", "y", "x", "y", None, "z", None, "x"],
    }
    monitor.extend(rows, [0, 0, 1, 2, 4, 6, 7, 7], ids=ids)
    assert monitor.stats()["pending"] == 4 and len(monitor) == 4
    return monitor


KINDS = ("grouped", "integer", "worst")


def _forged(header: bytes, payload: bytes = b"") -> bytes:
    body = struct.pack("<Q", len(header)) + header + payload
    return struct.pack("<8sIIQ", b"SKYTIDE\n", 1, zlib.crc32(body), len(body)) + body


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_monitor_is_the_same_when_stored_again(kind: str) -> None:
    monitor = _monitor(kind)
    again = sk.Snapshots.from_bytes(monitor.to_bytes())
    assert again.to_bytes() == monitor.to_bytes()
    assert {**again.stats(), "memory_bytes": 0, "candidates": 0} == {
        **monitor.stats(), "memory_bytes": 0, "candidates": 0
    }  # fmt: skip
    assert again.options() == monitor.options() and again.latest == monitor.latest and len(again) == len(monitor)
    for one in (monitor, again):
        assert sk.Snapshots.from_bytes(one.to_bytes()).options() == one.options()
    assert listed(again.advance(50)) == listed(monitor.advance(50))
    # The work that follows may differ: links are not stored, and are found anew.
    assert sorted(again.skyline(), key=str) == sorted(monitor.skyline(), key=str) and len(again) == len(monitor)


@pytest.mark.parametrize("by", [[], ["g"]])
def test_a_monitor_without_rows_can_be_stored(by: list[str]) -> None:
    empty = sk.Snapshots.from_bytes(sk.Snapshots(sk.Preference(minimize=["a"], by=by), lateness="3s").to_bytes())
    assert len(empty) == 0 and empty.latest is None and empty.lateness == "3s"
    found = empty.apply([("x", {"a": 1.0, "g": 3})], dt.datetime(2024, 1, 1))
    assert listed(found) == [(dt.datetime(2024, 1, 1), "+", "x")]


@pytest.mark.parametrize(
    "ids",
    [
        ["a", "b", "é\n"],
        [1, -5, 2**62],
        [1.5, 2.5, -0.5],
        [dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1), dt.datetime(2024, 1, 2)],
        [b"x", b"y", b""],
    ],
    ids=["text", "integer", "real", "stamps", "bytes"],
)
@pytest.mark.parametrize("groups", [["x", None, "x"], [1, 2, 1], [1.5, NAN, 1.5]], ids=["text", "integer", "real"])
def test_ids_and_groups_come_back_as_they_were(ids: list[Any], groups: list[Any]) -> None:
    monitor = sk.Snapshots(sk.Preference(minimize=["a"], by=["g"]))
    monitor.apply({"a": [1.0, 1.0, 1.0], "g": groups}, 1, ids=ids)
    again = sk.Snapshots.from_bytes(monitor.to_bytes())
    assert list(again.skyline()) == list(monitor.skyline()) and set(again.skyline()) == set(ids)
    assert str(again.skyline().groups) == str(monitor.skyline().groups)
    # The same object again, in the same group: nothing has changed.
    assert listed(again.apply({"a": [1.0], "g": groups[1:2]}, 2, ids=ids[1:2])) == []
    assert again.stats()["groups"] == 2


def test_ids_that_cannot_be_stored_say_so() -> None:
    monitor = sk.Snapshots(sk.Preference.columns(1))
    monitor.apply([("a", [1.0]), (1.5, [2.0])], 1)
    with pytest.raises(StateError, match="mixed kinds cannot be stored; use numbers or text"):
        monitor.to_bytes()


def test_bytes_that_are_not_a_monitor_are_refused() -> None:
    blob = _monitor().to_bytes()
    for wrong in (b"", b"hello", blob[:-1], blob[:50], blob + b"x", bytes([*blob[:60], blob[60] ^ 1, *blob[61:]])):
        with pytest.raises(StateError):
            sk.Snapshots.from_bytes(wrong)
    with pytest.raises(StateError, match="Snapshots"):
        sk.SlidingWindow.from_bytes(blob)
    with pytest.raises(StateError, match="SlidingWindow"):
        sk.Snapshots.from_bytes(sk.SlidingWindow(sk.Preference.columns(1), count=3).to_bytes())
    meta, parts = unpack(blob, "Snapshots", 1)
    with pytest.raises(StateError, match="version 2"):
        sk.Snapshots.from_bytes(pack("Snapshots", 2, meta, parts))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for step in steps:
        yield (*path, step)
        yield from _places(value[step], (*path, step))


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, -1, 0, 1, 7, 2**62, 2**80, 0.5, NAN, True, False, "x", "", {}, [], [-1], [2**31], [[1]], ["a"]),
        *("arrow", "<f8", "<i8", ">i8", "|b1", "<M8[s]", "|O", "other", "integer", "real", "us", "whole", "add", "3s"),
    ]
)


@settings(max_examples=250)
@given(st.sampled_from(KINDS), st.data())
def test_a_forged_monitor_is_refused_or_works_and_never_crashes(kind: str, data: st.DataObject) -> None:
    blob = _monitor(kind).to_bytes()
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
        monitor = sk.Snapshots.from_bytes(_forged(json.dumps(forged).encode(), payload))
    except StateError:
        return
    # What is taken is a monitor: it can be asked, stored and used like any other.
    assert sk.Snapshots.from_bytes(monitor.to_bytes()).to_bytes() == monitor.to_bytes()
    monitor.skyline()
    monitor.stats()
    str(monitor.latest)
    try:
        monitor.advance(100)
        monitor.apply({"a": [1.0], "b": [2.0], "g": ["x"]}, 200, ids=[3])
    except SkytideError:
        pass
    assert sk.Snapshots.from_bytes(monitor.to_bytes()).to_bytes() == monitor.to_bytes()


def _put(name: str, place: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(parts: dict[str, Any]) -> None:
        parts[name] = parts[name].copy()
        parts[name][place] = value

    return change


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.update(values=parts["values"][:, :1]),
        lambda parts: parts.update(values=parts["values"][1:]),
        lambda parts: parts.update(values=parts["values"].astype(np.float32)),
        lambda parts: parts.update(present=parts["present"].astype(np.int64)),
        lambda parts: parts.update(present=parts["present"][1:]),
        lambda parts: parts.update(home=parts["home"].astype(np.int32)),
        *(_put("home", 0, code) for code in (-1, 99, -(2**40))),
        lambda parts: parts.update(ids=parts["ids"][:-1]),
        lambda parts: parts.update(ids=np.repeat(parts["ids"][:1], len(parts["ids"]))),
        lambda parts: parts.update(ids=np.array([None, *parts["ids"][1:]], object)),
        lambda parts: parts.update(ids=np.array([NAN, *parts["ids"][1:]], object)),
        *(_put("pending_objects", 0, number) for number in (-1, 99, 2**40)),
        *(_put("pending_keys", 0, key) for key in (-5, 3, 2**62, -(2**63))),
        *(_put("pending_codes", 0, code << 2) for code in (77, -9)),
        lambda parts: parts.update(pending_values=parts["pending_values"][:, :1]),
        lambda parts: parts.update(pending_codes=parts["pending_codes"][1:]),
        lambda parts: parts.update(pending_keys=parts["pending_keys"].astype(np.float64)),
        lambda parts: parts.pop("present"),
        lambda parts: parts.pop("pending_values"),
    ],
)
def test_parts_that_no_monitor_has_are_refused_before_compiled_code_sees_them(change: Any, kind: str) -> None:
    meta, parts = unpack(_monitor(kind).to_bytes(), "Snapshots", 1)
    sk.Snapshots.from_bytes(pack("Snapshots", 1, meta, parts))
    change(parts)
    with pytest.raises(StateError):
        sk.Snapshots.from_bytes(pack("Snapshots", 1, meta, parts))


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: _put("pending_codes", np.isnan(parts["pending_values"]).all(axis=1), 0)(parts),
        lambda parts: _put("pending_codes", ~np.isnan(parts["pending_values"]).all(axis=1), -1 << 2)(parts),
        lambda parts: _put("home", ~parts["present"], 0)(parts),
        lambda parts: _put("values", (0, 0), NAN)(parts),
        lambda parts: _put("pending_values", (0, 1), 1.0)(parts) or _put("pending_values", (0, 0), NAN)(parts),
        lambda parts: parts.update(group_0=np.array(["x", "x", "y"], object)),
        lambda parts: parts.update(group_0=np.array(["x", "y"], object)),
        lambda parts: parts.pop("group_0"),
    ],
)
def test_groups_and_gaps_that_do_not_fit_are_refused(change: Any) -> None:
    meta, parts = unpack(_monitor().to_bytes(), "Snapshots", 1)
    change(parts)
    with pytest.raises(StateError):
        sk.Snapshots.from_bytes(pack("Snapshots", 1, meta, parts))


@pytest.mark.parametrize(
    "wrong",
    [
        {"ids": None},
        {"ids": "number"},
        {"ids": "integer"},
        {"work": [1, 2]},
        {"work": {"pre_tests": -1}},
        {"tallies": {}},
        {"time": {"kind": "odd", "latest": 7, "closed": 3}},
        {"time": {"kind": None, "latest": 7, "closed": 3}},
        {"time": {"kind": "whole", "latest": 2, "closed": 3}},
        {"time": {"kind": "whole", "latest": 7, "closed": 7}},
        {"time": {"kind": "whole", "latest": 5, "closed": 3}},
        {"time": {"kind": "whole", "latest": 2**62, "closed": 3}},
        {"time": {"kind": "real", "latest": 2**63 - 1, "closed": 3}},
        {"time": {"kind": "whole", "latest": 7.0, "closed": 3}},
        {"time": {"kind": "s", "latest": 7, "closed": 3}},
        {"groups": {"codes": [0, 1], "next": 3}},
        {"groups": {"codes": [0, 1, 1], "next": 3}},
        {"groups": {"codes": [0, 1, 2], "next": 2}},
        {"groups": {"codes": [0, 1, -2], "next": 3}},
        *({"options": {name: value}} for name, value in {
            "method": "odd", "op": "divide", "nulls": "keep", "cfp": 0, "lateness": -1, "minimize": [], "by": ["a"],
        }.items()),
    ],
)  # fmt: skip
def test_a_header_that_does_not_fit_is_refused(wrong: dict[str, Any]) -> None:
    meta, parts = unpack(_monitor().to_bytes(), "Snapshots", 1)
    if "options" in wrong:
        wrong = {"options": {**meta["options"], **wrong["options"]}}
    with pytest.raises(StateError):
        sk.Snapshots.from_bytes(pack("Snapshots", 1, meta | wrong, parts))
