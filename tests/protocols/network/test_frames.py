"""Frames: what is written is read, and other bytes are refused, or are another frame."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import InputError
from skytide.protocols.network.frames import (
    KEY_BYTES,
    MOST_ID,
    Frame,
    Hello,
    Names,
    Numbers,
    Reply,
    Say,
    Settled,
    Tell,
    Welcome,
    decode,
    encode,
    usable_id,
)

NUMBERS = st.integers(0, (1 << 32) - 1)
MESSAGES = st.lists(st.binary(max_size=20), max_size=4).map(tuple)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
IDS = st.integers(-(1 << 63), (1 << 63) - 1) | TEXTS
PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TIMES = st.floats(0.0, 1e300) | st.sampled_from([0.0, 5e-324, 1.797e308])
FRAMES: dict[type[Any], st.SearchStrategy[Frame]] = {
    Hello: st.builds(
        Hello, st.from_regex(r"[A-Za-z0-9_-]{1,100}", fullmatch=True), st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)
    ),
    Welcome: st.builds(Welcome, NUMBERS, TIMES, st.dictionaries(st.text(max_size=5), PLAIN, max_size=3), st.booleans()),
    Names: st.builds(Names, st.lists(IDS, max_size=6).map(tuple)),
    Numbers: st.builds(Numbers, st.lists(NUMBERS, max_size=6).map(tuple)),
    Say: st.builds(Say, NUMBERS, NUMBERS, MESSAGES, st.booleans(), st.booleans(), st.integers(0, 2**64 - 1)),
    Reply: st.builds(Reply, NUMBERS, MESSAGES),
    Tell: st.builds(Tell, NUMBERS, NUMBERS, NUMBERS, MESSAGES),
    Settled: st.builds(Settled, NUMBERS),
}


@pytest.mark.parametrize("kind", FRAMES)
@given(data=st.data())
def test_a_frame_is_read_as_it_was_written(kind: type[Any], data: st.DataObject) -> None:
    frame = data.draw(FRAMES[kind])
    assert decode(encode(frame)) == frame


@given(frame=st.one_of(*FRAMES.values()), data=st.data())
def test_a_damaged_frame_is_refused_or_is_another_frame(frame: Frame, data: st.DataObject) -> None:
    damaged = bytearray(encode(frame))
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place : place + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    _read(bytes(damaged))


@given(st.binary(max_size=60) | st.builds(lambda kind, rest: bytes([1, kind]) + rest, st.integers(0, 20), st.binary()))
def test_any_bytes_are_refused_or_a_frame(data: bytes) -> None:
    _read(data)


def _read(data: bytes) -> None:
    try:
        found = decode(data)
    except InputError:
        return
    again = decode(encode(found))
    assert again == found


@given(frame=st.one_of(*FRAMES.values()), more=st.binary(min_size=1, max_size=5))
def test_no_frame_goes_on_after_its_end_or_ends_before_it(frame: Frame, more: bytes) -> None:
    whole = encode(frame)
    if not isinstance(frame, Hello | Welcome):  # whose last part has no length
        with pytest.raises(InputError, match="something follows its end"):
            decode(whole + more)
        for end in range(len(whole)):
            with pytest.raises(InputError):
                decode(whole[:end])


@given(frame=st.one_of(*FRAMES.values()))
def test_a_frame_larger_than_allowed_is_refused_before_it_is_read(frame: Frame) -> None:
    whole = encode(frame)
    assert decode(whole, most=len(whole)) == frame
    with pytest.raises(InputError, match="its length"):
        decode(whole, most=len(whole) - 1)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bytes([1, 2]) + b"\xff\xff\xff\xff", id="more ids than bytes"),
        pytest.param(bytes([1, 3]) + bytes(9) + b"\xff\xff\xff\xff", id="more messages than bytes"),
        pytest.param(bytes([1, 17]) + b"\xff\xff\xff\xff", id="more numbers than bytes"),
        pytest.param(bytes([1, 4]) + bytes(4) + b"\1\0\0\0\xff\xff\xff\xff", id="a message longer than the frame"),
        pytest.param(bytes([1, 3]) + bytes(8) + b"\4" + bytes(4), id="unknown flags"),
        pytest.param(bytes([1, 2]) + b"\1\0\0\0" + b"\1\0\0", id="an empty id"),
        pytest.param(bytes([1, 2]) + b"\1\0\0\0" + b"\1\1\0\xff", id="an id that is no text"),
        pytest.param(bytes([1, 2]) + b"\1\0\0\0" + b"\0\4\0" + bytes(4), id="a whole number of 32 bits"),
        pytest.param(bytes([1, 1]) + bytes(16), id="no name"),
        pytest.param(bytes([1, 1]) + bytes(16) + b"a b", id="a name with a space"),
        pytest.param(bytes([1, 16]) + bytes(13) + b"[" * 100_000, id="deep JSON"),
        pytest.param(bytes([1, 16]) + bytes(13) + b"[]", id="a query that is no object"),
        pytest.param(bytes([1, 16]) + bytes(13) + b'{"every": NaN}', id="not a number"),
        pytest.param(bytes([1, 16]) + bytes(13) + b'{"every": 1e999}', id="no finite number"),
        pytest.param(bytes([1, 16]) + bytes(4) + b"\xff" * 8 + b"\0{}", id="a time that is no number"),
    ],
)
def test_what_lengths_and_texts_claim_is_checked(data: bytes) -> None:
    with pytest.raises(InputError, match="the frame cannot be read"):
        decode(data)


def test_ids_are_texts_and_whole_numbers_of_limited_size() -> None:
    for good in ("a", "é" * (MOST_ID // 2), -(1 << 63), (1 << 63) - 1):
        assert usable_id(good) and decode(encode(Names((good,)))) == Names((good,))
    for bad in ("", "a" * (MOST_ID + 1), "\ud800", 1 << 63, 1.0, True, None, math.nan):
        assert not usable_id(bad)
