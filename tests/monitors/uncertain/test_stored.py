"""Bytes that are no uncertain window: cut, foreign, damaged or forged."""

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


def _window(timed: bool, objects: bool) -> sk.UncertainWindow:
    options: dict[str, Any] = {"duration": 6, "lateness": 3} if timed else {"count": 5}
    pref = sk.Preference(minimize=["a", "b"], by=["g"])
    window = sk.UncertainWindow(pref, thresholds=[0.2, 0.6], **options)
    values = np.random.default_rng(1).random((2, 8))
    names = [f"i{one // 2 if objects else one}" for one in range(8)]
    window.extend(
        {"a": values[0], "b": values[1], "g": ["x", "x", "y", "y"] * 2},
        times=np.arange(8) // 2 * 2 if timed else None,
        probabilities=np.linspace(0.3, 0.5, 8),
        **{"objects" if objects else "ids": names},
    )
    return window


def _forged(header: bytes, payload: bytes = b"") -> bytes:
    body = struct.pack("<Q", len(header)) + header + payload
    return struct.pack("<8sIIQ", b"SKYTIDE\n", 1, zlib.crc32(body), len(body)) + body


def test_bytes_that_are_not_an_uncertain_window_are_refused() -> None:
    blob = _window(True, False).to_bytes()
    for wrong in (b"", b"hello", blob[:-1], blob[:50], blob + b"x", bytes([*blob[:60], blob[60] ^ 1, *blob[61:]])):
        with pytest.raises(StateError):
            sk.UncertainWindow.from_bytes(wrong)
    with pytest.raises(StateError, match="UncertainWindow"):
        sk.SlidingWindow.from_bytes(blob)
    with pytest.raises(StateError, match="SlidingWindow"):
        sk.UncertainWindow.from_bytes(sk.SlidingWindow(sk.Preference.columns(1), count=3).to_bytes())


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for step in steps:
        yield (*path, step)
        yield from _places(value[step], (*path, step))


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, -1, 0, 1, 7, 2**62, 2**80, 0.5, float("nan"), True, False, "x", "", {}, [], [-1], [2**31], [[1]]),
        *("arrow", "<f8", "<i8", ">i8", "|b1", "<M8[s]", "|O", "tree", "scan", "other", "integer"),
    ]
)


@settings(max_examples=250, deadline=None)
@given(st.booleans(), st.booleans(), st.data())
def test_a_forged_window_is_refused_or_works_and_never_crashes(timed: bool, objects: bool, data: st.DataObject) -> None:
    blob = _window(timed, objects).to_bytes()
    size = struct.unpack_from("<Q", blob, 24)[0]
    forged, payload = copy.deepcopy(json.loads(blob[32 : 32 + size])), blob[32 + size :]
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
        window = sk.UncertainWindow.from_bytes(_forged(json.dumps(forged).encode(), payload))
    except StateError:
        return
    window.query()
    window.skyline()
    window.stats()
    try:
        window.advance(100)
        sk.UncertainWindow.from_bytes(window.to_bytes())
    except SkytideError:
        pass


def _changed(change: Callable[[dict[str, Any]], None], objects: bool) -> bytes:
    meta, parts = unpack(_window(True, objects).to_bytes(), "UncertainWindow", 1)
    change(parts)
    return pack("UncertainWindow", 1, meta, parts)


def _chances(parts: dict[str, Any], prefix: str, chance: float) -> None:
    values = parts[prefix + "values"].copy()
    values[:, -1] = chance
    parts[prefix + "values"] = values


@pytest.mark.parametrize("objects", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda parts: _chances(parts, "", 1.5),
        lambda parts: _chances(parts, "", -0.5),
        lambda parts: _chances(parts, "", float("nan")),
        lambda parts: _chances(parts, "pending_", 1.5),
        lambda parts: parts.update(values=parts["values"][:, :-1]),
        lambda parts: parts.update(codes=parts["codes"] + 5),
        lambda parts: parts.update(arrivals=parts["arrivals"] + 2**62),
        lambda parts: parts.update(handles=parts["handles"] + 100),
        lambda parts: parts.update(pending_keys=parts["pending_keys"] - 100),
    ],
)
def test_rows_that_no_window_holds_are_refused_before_compiled_code_sees_them(change: Any, objects: bool) -> None:
    sk.UncertainWindow.from_bytes(_changed(lambda parts: None, objects))
    with pytest.raises(StateError):
        sk.UncertainWindow.from_bytes(_changed(change, objects))


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: _chances(parts, "", 0.9),
        lambda parts: _chances(parts, "pending_", 0.9),
        lambda parts: parts.update(pending_keys=parts["pending_keys"] + np.arange(len(parts["pending_keys"]))),
        lambda parts: parts.update(pending_handles=parts["pending_handles"][::-1].repeat(2)[::2] * 0 + 1),
    ],
)
def test_objects_that_are_none_are_refused(change: Any) -> None:
    with pytest.raises(StateError):
        sk.UncertainWindow.from_bytes(_changed(change, objects=True))


def test_the_kinds_of_rows_and_ids_must_fit() -> None:
    meta, parts = unpack(_window(False, False).to_bytes(), "UncertainWindow", 1)
    wrong: Any
    for wrong in (7, "x", [], {}):
        with pytest.raises(StateError):
            sk.UncertainWindow.from_bytes(pack("UncertainWindow", 1, meta | {"objects": wrong}, parts))
