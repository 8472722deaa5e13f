"""Offsets of Kafka streams: every message in one batch, whatever the limits, restarts and new partitions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError
from skytide.spark.sources.offsets import (
    Offset,
    Part,
    Places,
    advance,
    fail_on_loss,
    flat,
    limited,
    nested,
    pieces,
    ranges,
    read_places,
    resolve,
)

PARTS = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 11))
GROWTH = st.lists(st.dictionaries(PARTS, st.integers(0, 30), max_size=5), min_size=1, max_size=6)


def stored(offset: Offset) -> Offset:
    """As it comes back from Spark's log."""
    return Offset.from_json(json.loads(json.dumps(offset.to_json())))


@given(begin=st.dictionaries(PARTS, st.integers(0, 9), max_size=4), growth=GROWTH, most=st.none() | st.integers(1, 40))
def test_each_message_is_read_once_in_order(begin: Places, growth: list[dict[Part, int]], most: int | None) -> None:
    ends: Places = dict(begin)
    offset = Offset(begin, initial=True)
    read: Places = dict(begin)
    for step in growth:
        for part, more in step.items():
            ends[part] = ends.get(part, 0) + more
        for _ in range(200):
            end = stored(advance(offset, {part: (0, high) for part, high in ends.items()}, most, fail_on_loss))
            if end == offset:
                break
            found = ranges(offset, end)
            assert most is None or sum(last - first for first, last in found.values()) <= most
            # The first batch, done again, begins where somebody else would begin by now.
            if offset.initial:
                assert ranges(Offset({part: 10**6 for part in ends}, initial=True), end) == found
            for part, (first, last) in found.items():
                assert read.get(part, 0) == first < last
                read[part] = last
            offset = end
        assert {part: high for part, high in ends.items() if high} == {part: at for part, at in read.items() if at}


@given(waiting=st.dictionaries(PARTS, st.integers(0, 10**12), max_size=8), most=st.integers(1, 10**6))
def test_a_limit_is_used_up_and_not_exceeded_and_leaves_nobody_out(waiting: dict[Part, int], most: int) -> None:
    found = limited(dict.fromkeys(waiting, 0), waiting, most)
    assert sum(found.values()) == min(most, sum(waiting.values()))
    assert all(found[part] <= high for part, high in waiting.items())
    busy = [part for part, high in waiting.items() if high]
    assert most < len(busy) or all(found[part] > 0 for part in busy)


@given(parts=st.dictionaries(PARTS, st.tuples(st.integers(0, 9), st.integers(10, 99)), max_size=5), n=st.integers(1, 9))
def test_pieces_cover_the_ranges(parts: dict[Part, tuple[int, int]], n: int) -> None:
    covered: dict[Part, list[int]] = {part: [] for part in parts}
    for part, first, last in pieces(parts, n):
        assert first < last
        covered[part] += range(first, last)
    assert covered == {part: list(range(first, last)) for part, (first, last) in parts.items()}


def test_an_empty_first_batch_done_again_stays_empty() -> None:
    first = Offset({("t", 0): 5}, initial=True)
    for by_now in ({("t", 0): 9}, {("t", 0): 2}, {}):
        assert ranges(Offset(by_now, initial=True), first) == {}
    # What came in between is in the next batch.
    after = advance(stored(first), {("t", 0): (0, 9)}, None, fail_on_loss)
    assert ranges(first, after) == {("t", 0): (5, 9)}


def test_a_new_partition_is_read_from_its_first_message() -> None:
    end = advance(Offset({("t", 0): 4}), {("t", 0): (0, 4), ("t", 1): (3, 8)}, None, fail_on_loss)
    assert ranges(Offset({("t", 0): 4}), stored(end)) == {("t", 1): (3, 8)}


@pytest.mark.parametrize(
    ("bounds", "said", "left"),
    [
        ({("t", 0): (7, 9)}, "partition 0 of topic t begins at offset 7 by now, and 4 is the next", {("t", 0): (7, 9)}),
        ({("t", 0): (0, 2)}, "it was made anew", {("t", 0): (0, 2)}),
        ({("t", 1): (0, 0)}, "partition 0 of topic t no longer exists", {}),
    ],
)
def test_lost_messages_are_an_error_unless_allowed(
    bounds: dict[Part, tuple[int, int]], said: str, left: dict[Part, tuple[int, int]]
) -> None:
    start = Offset({("t", 0): 4})
    with pytest.raises(InputError, match=f"messages are lost: .*{said}"):
        advance(start, bounds, None, fail_on_loss)
    assert ranges(start, stored(advance(start, bounds, None, lambda what: None))) == left


@given(st.dictionaries(PARTS, st.integers(0, 99), max_size=6))
def test_what_is_stored_does_not_depend_on_the_order(places: Places) -> None:
    backwards = dict(reversed(places.items()))
    assert json.dumps(nested(places)) == json.dumps(nested(backwards))
    assert flat(nested(places)) == places


def test_places_are_words_or_json() -> None:
    bounds = {("t", 0): (2, 9), ("t", 1): (0, 5)}
    assert resolve(read_places("EARLIEST"), bounds, option="x") == {("t", 0): 2, ("t", 1): 0}
    assert resolve(read_places("latest"), bounds, option="x") == {("t", 0): 9, ("t", 1): 5}
    given = read_places('{"t": {"0": -1, "1": 3}}')
    assert resolve(given, bounds, option="x") == {("t", 0): 9, ("t", 1): 3}


@pytest.mark.parametrize("text", ["first", "{", "[1]", '{"t": 1}', '{"t": {"0": "1"}}', '{"t": {"0": -3}}'])
def test_other_places_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="is not a place in a topic"):
        read_places(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"t": {"0": 3}}', "'partition 1' of topic t is not in startingOffsets"),
        ('{"t": {"0": 3, "1": 1, "2": 1}}', "'partition 2' of topic t does not exist but is in"),
        ('{"t": {"0": 1, "1": 1}}', "1 is in startingOffsets for partition 0 of topic t, which has offsets 2 to 9"),
    ],
)
def test_places_that_are_not_there_are_refused(text: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        resolve(read_places(text), {("t", 0): (2, 9), ("t", 1): (0, 5)}, option="startingOffsets")
