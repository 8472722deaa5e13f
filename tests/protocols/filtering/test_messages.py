"""The encoding: what goes in comes out, its size is known, and bytes from elsewhere are refused in plain words."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import InputError
from skytide.protocols.filtering.messages import (
    MOST_DIMENSIONS,
    Boxes,
    Departures,
    Kind,
    Message,
    Questions,
    Releases,
    Reports,
    Schedules,
    decode,
    encode,
    size_of,
)
from skytide.protocols.filtering.schedule import Schedule

VALUE = st.floats(allow_nan=False)


@st.composite
def messages(draw: st.DrawFn) -> tuple[Message, int]:
    kind, d, n = draw(st.sampled_from(Kind)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    time = draw(st.integers(0, 2**32 - 1))
    clients = np.array(draw(st.lists(st.integers(0, 2**32 - 1), min_size=n, max_size=n)), np.int64)
    drawn = draw(st.lists(VALUE, min_size=3 * n * d, max_size=3 * n * d))
    low, middle, high = np.sort(np.array(drawn).reshape(3, n, d), axis=0)
    schedule = Schedule(draw(st.integers(0, 2**64 - 1)), draw(st.floats(0, 1, exclude_min=True)))
    if kind in (Kind.FAILURE, Kind.ANSWER):
        return Reports(kind, time, clients, middle, low, high), d
    if kind in (Kind.INSERT, Kind.UPDATE, Kind.SAMPLE):
        return Reports(kind, time, clients, middle, middle, middle), d
    if kind in (Kind.FILTER, Kind.MIXED):
        return Boxes(time, clients, low, high, schedule if kind == Kind.MIXED else None), d
    if kind == Kind.SCHEDULE:
        return Schedules(time, clients, schedule), d
    if kind == Kind.DELETE:
        return Departures(time, clients), d
    return (Questions(time, clients) if kind == Kind.QUESTION else Releases(time, clients)), d


@settings(max_examples=200, deadline=None)
@given(messages())
def test_a_block_comes_back_as_it_was_and_bytes_add_up(given_one: tuple[Message, int]) -> None:
    message, d = given_one
    data = encode(message, d)
    again = decode(data)
    assert type(again) is type(message) and again.kind == message.kind
    for one in fields(message):
        before, after = getattr(message, one.name), getattr(again, one.name)
        assert np.array_equal(before, after) if isinstance(before, np.ndarray) else before == after
    size = size_of(message.kind, d)
    assert len(data) == size * len(message.clients)
    assert decode(data[:size]).clients.tolist() == message.clients[:1].tolist()


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: b"\x01\x03\x01\x00" + tail))
def test_random_bytes_are_read_or_refused_and_never_crash(data: bytes) -> None:
    try:
        message = decode(data)
    except InputError as error:
        assert "message cannot be read" in str(error)
    else:
        assert encode(message, int.from_bytes(data[2:4], "little"))[:12] == data[:12]


@settings(max_examples=200, deadline=None)
@given(messages(), st.data())
def test_a_damaged_message_is_read_or_refused_and_never_crashes(
    given_one: tuple[Message, int], data: st.DataObject
) -> None:
    whole = bytearray(encode(*given_one))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    for damaged in (bytes(whole), cut):
        try:
            decode(damaged)
        except InputError as error:
            assert "message cannot be read" in str(error)


ONE = np.array([0])


@pytest.mark.parametrize(
    ("message", "dimensions", "word"),
    [
        (Questions(-1, ONE), 1, "not a timestamp"),
        (Questions(2**32, ONE), 1, "not a timestamp"),
        (Questions(0, np.array([-1])), 1, "does not fit"),
        (Questions(0, np.array([2**32])), 1, "does not fit"),
        (Questions(0, ONE), 0, "number of columns"),
        (Questions(0, ONE), MOST_DIMENSIONS + 1, "number of columns"),
    ],
)
def test_what_does_not_fit_is_not_sent(message: Message, dimensions: int, word: str) -> None:
    with pytest.raises(InputError, match=word):
        encode(message, dimensions)


def test_other_versions_wrong_boxes_and_values_that_are_no_numbers_are_refused() -> None:
    box = encode(Boxes(0, ONE, np.array([[1.0]]), np.array([[2.0]])), 1)
    wrong = encode(Boxes(0, ONE, np.array([[3.0]]), np.array([[2.0]])), 1)
    nothing = encode(Reports(Kind.UPDATE, 0, ONE, *[np.array([[np.nan]])] * 3), 1)
    never = encode(Schedules(0, ONE, Schedule(1, 0.0)), 1)
    for data, word in (
        (b"\x02" + box[1:], "version is 2"),
        (wrong, "ends before it begins"),
        (nothing, "not a number"),
        (never, "schedule"),
        (box + encode(Boxes(1, ONE, np.array([[1.0]]), np.array([[2.0]])), 1), "several"),
    ):
        with pytest.raises(InputError, match=word):
            decode(data)
