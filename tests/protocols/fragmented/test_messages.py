"""The encoding: what goes in comes out, sizes are known, and bytes from elsewhere are refused in plain words."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import InputError
from skytide.protocols.fragmented import messages as module
from skytide.protocols.fragmented.messages import (
    HEAD,
    MOST,
    Arrivals,
    Departures,
    Kind,
    Message,
    Order,
    Pairings,
    Report,
    Shifts,
    Updates,
    Violations,
    Zonings,
    decode,
    encode,
    merged,
    sizes,
)

CLASSES = {one.kind: one for one in (*get_args(Report), *get_args(Order))}
NUMBER, VALUE, POSITIVE = st.integers(0, 2**32 - 1), st.floats(allow_nan=False), st.floats(1e-300, 1e300)


def table(draw: st.DrawFn, values: st.SearchStrategy[Any], *shape: int) -> Any:
    count = int(np.prod(shape))
    return np.array(draw(st.lists(values, min_size=count, max_size=count))).reshape(shape)


@st.composite
def messages(draw: st.DrawFn) -> tuple[Message, int, int]:
    """A block of any kind, with the numbers of components and functions."""
    kind, n, d, k = (
        draw(st.sampled_from(Kind)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
    )
    low, high = np.sort(table(draw, VALUE, 2, n, k), axis=0)
    objects = table(draw, NUMBER, n)
    columns: dict[str, Any] = {
        "time": draw(st.integers(0, 2**63 - 1)),
        "sites": table(draw, st.one_of(st.integers(0, 2), NUMBER), n),
        "objects": objects,
        "versions": table(draw, NUMBER, n),
        "others": (objects + 1) % 2**32,
        "columns": table(draw, st.integers(-1, k - 1), n),
        "strict": table(draw, st.integers(0, k - 1), n),
        "updates": table(draw, NUMBER, n),
        "moved": table(draw, st.floats(0, allow_nan=False, width=32), n, d),
        "vectors": table(draw, st.floats(), n, d),
        "stretch": table(draw, POSITIVE, n),
        "stretches": table(draw, POSITIVE, n, 2),
        "weights": table(draw, POSITIVE, n),
        "centre": table(draw, VALUE, n, d),
        "amounts": table(draw, VALUE, n, d),
        "low": low,
        "high": high,
    }
    kept = {field.name: columns[field.name] for field in fields(CLASSES[kind])}
    return CLASSES[kind](**kept), d, k


@settings(max_examples=200, deadline=None)
@given(messages())
def test_every_site_has_one_message_of_known_size_that_comes_back_as_it_was(drawn: tuple[Message, int, int]) -> None:
    message, d, k = drawn
    data = list(encode(message, d, k))
    assert len(data) == len(np.unique(message.sites))
    head, record = sizes(message.kind, d, k)
    assert sum(map(len, data)) == len(data) * head + len(message.sites) * record
    (again,) = merged([decode(each) for each in data])
    order = np.argsort(message.sites, kind="stable")
    assert type(again) is type(message) and again.time == message.time
    for field in fields(message):
        if field.name != "time":
            wanted = getattr(message, field.name)[order]
            assert np.array_equal(getattr(again, field.name), wanted, equal_nan=wanted.dtype.kind == "f"), field.name


def test_what_is_said_of_nothing_is_no_message() -> None:
    none = np.zeros(0, np.int64)
    assert list(encode(Departures(7, none, none), 2, 1)) == []


def read(data: bytes) -> None:
    """Bytes are refused, or are a message whose bytes they are."""
    try:
        message = decode(data)
    except InputError as error:
        assert "the message cannot be read" in str(error)
    else:
        assert list(encode(message, data[2], data[3])) == [data]


@settings(max_examples=200, deadline=None)
@given(messages(), st.data())
def test_a_damaged_message_is_refused_or_is_another_message(
    drawn: tuple[Message, int, int], data: st.DataObject
) -> None:
    whole = bytearray(next(encode(*drawn)))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(whole))
    read(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    read(bytes(whole) + b"\0")


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(Kind), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.binary(max_size=200))
def test_any_bytes_after_any_head_are_refused_or_a_message(kind: int, d: int, k: int, count: int, rest: bytes) -> None:
    record = sizes(Kind(kind), d, k)[1]
    head = np.array([(module.VERSION, kind, d, k, 7, 9, count)], HEAD).tobytes()
    read(head + rest[: count * record].ljust(count * record, b"\x3f"))
    read(rest)


ONE = np.array([0])
ZONE = Zonings(0, ONE, ONE, ONE, ONE + 1.0, ONE[None] + 1.0, ONE[None] + 0.0, ONE[None] + 2.0)
PAIR = Pairings(0, ONE, ONE, ONE + 1, ONE, ONE, np.ones((1, 2)))
TOLD = Violations(0, ONE, ONE, ONE[None] + 1.0, ONE + 1, ONE[None] + 1.0)


@pytest.mark.parametrize(
    ("message", "shape", "word"),
    [
        (Departures(-1, ONE, ONE), (1, 1), "not a time"),
        (Departures(2**63, ONE, ONE), (1, 1), "not a time"),
        (Departures(0, ONE - 1, ONE), (1, 1), "does not fit"),
        (Departures(0, ONE, ONE + 2**32), (1, 1), "does not fit"),
        (replace(ZONE, versions=ONE - 1), (1, 1), "does not fit"),
        (Departures(0, ONE, ONE), (0, 1), "too many"),
        (Departures(0, ONE, ONE), (1, MOST + 1), "too many"),
    ],
)
def test_what_does_not_fit_is_not_sent(message: Message, shape: tuple[int, int], word: str) -> None:
    with pytest.raises(InputError, match=word):
        list(encode(message, *shape))


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (replace(ZONE, low=ONE[None] + 3.0), "ends before it begins"),
        (replace(ZONE, high=ONE[None] * np.nan), "ends before it begins"),
        (replace(ZONE, centre=ONE[None] * np.nan), "not a number"),
        (replace(ZONE, stretch=ONE + 0.0), "not positive"),
        (replace(ZONE, stretch=ONE + np.inf), "not positive"),
        (replace(PAIR, columns=ONE + 1), "about no function"),
        (replace(PAIR, others=ONE), "with itself"),
        (replace(PAIR, stretches=-np.ones((1, 2))), "not positive"),
        (replace(TOLD, moved=ONE[None] - 1.0), "negative"),
        (Shifts(0, ONE, ONE, ONE, ONE[None] * np.nan), "not a number"),
        (Arrivals(0, ONE, ONE, ONE - 1.0, ONE[None] + 1.0), "not positive"),
    ],
)
def test_what_means_nothing_is_not_taken(message: Message, word: str) -> None:
    (data,) = encode(message, 1, 1)
    with pytest.raises(InputError, match=f"the message cannot be read: .*{word}"):
        decode(data)


def test_other_versions_and_lengths_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (data,) = encode(ZONE, 1, 1)
    for wrong, word in (
        (bytes([module.VERSION + 1]) + data[1:], "its version is 2, not 1"),
        (data[:1] + b"\x09" + data[2:], "its kind or its columns are unknown"),
        (data[:2] + b"\x00" + data[3:], "its kind or its columns are unknown"),
        (data[:15] + b"\xff" + data[16:], "its time is out of range"),
        (data[: HEAD.itemsize], "its length is not that of a message"),
        (data + data, "its length is not that of its records"),
    ):
        with pytest.raises(InputError, match=word):
            decode(wrong)
    monkeypatch.setattr(module, "MOST_BYTES", len(data) - 1)
    with pytest.raises(InputError, match="its length"):
        decode(data)
    with pytest.raises(InputError, match="too many for a message"):
        list(encode(ZONE, 1, 1))


def test_sizes_that_do_not_fit_arrive_as_infinite_and_missing_values_as_missing() -> None:
    (data,) = encode(replace(TOLD, moved=ONE[None] + 1e300, vectors=ONE[None] * np.nan), 1, 1)
    again = decode(data)
    assert isinstance(again, Violations)
    assert np.isposinf(again.moved).all() and np.isnan(again.vectors).all()


def test_blocks_of_one_kind_are_merged_and_others_stay() -> None:
    first, second = Updates(3, ONE, ONE, ONE[None] + 1.0), Updates(3, ONE + 1, ONE, ONE[None] + 2.0)
    left, both = merged([first, Departures(3, ONE, ONE), second])
    assert (left.kind, both.kind) == (Kind.LEAVE, Kind.UPDATE)
    assert both.sites.tolist() == [0, 1] and both.vectors.tolist() == [[1.0], [2.0]]
    assert merged([first]) == [first] and merged([]) == []
