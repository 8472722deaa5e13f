"""The feed: each reader gets each event once, in order, or is told of the gap; events are bytes and back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError, StateError
from skytide.runtime.network.feed import BATCH, Event, Feed, Gap

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(st.text(max_size=8).filter(lambda name: name not in ("number", "time", "kind")), JSON)


def _events(first: int, last: int) -> list[Event]:
    return [Event(number, number / 2, "change", {"id": number}) for number in range(first, last + 1)]


def _sse(stream: bytes) -> list[dict[str, str]]:
    """Server-sent events as the specification of HTML reads them: any of three line ends, a space after the colon."""
    text, events, current = stream.decode(), [], dict[str, str]()
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line:
            if "data" in current:
                events.append(current)
            current = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            current[name] = f"{current[name]}\n{value}" if name in current else value
    return events


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 2**63 - 1), st.floats(0, 1e11), FIELDS)
def test_an_event_says_the_same_in_every_form(number: int, time: float, fields: dict[str, Any]) -> None:
    event = Event(number, time, "change", fields)
    record = {"number": number, "time": time, "kind": "change", **fields}
    assert json.loads(event.ndjson) == record and event.ndjson.count(b"\n") == 1 and event.ndjson.endswith(b"\n")
    [sent] = _sse(event.sse)
    assert (sent["id"], sent["event"], json.loads(sent["data"])) == (str(number), "change", record)
    again = Event.from_bytes(event.to_bytes())
    assert again == event and (again.number, again.time, again.kind, again.fields) == (number, time, "change", fields)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 0.0, "change"),
        (-1, 0.0, "change"),
        (True, 0.0, "change"),
        (1.0, 0.0, "change"),
        (2**63, 0.0, "change"),
        (1, float("nan"), "change"),
        (1, 0.0, ""),
        (1, 0.0, "a\ndata: x"),
        (1, 0.0, "Change"),
        (1, 0.0, "change", {"number": 2}),
        (1, 0.0, "change", {"x": float("inf")}),
        (1, 0.0, "change", {"x": object()}),
    ],
)
def test_events_that_cannot_be_said_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(OptionError):
        Event(*arguments)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"number":1}',
        b'{"number":"1","time":0,"kind":"change"}',
        b'{"number":1,"time":"now","kind":"change"}',
        b'{"number":1,"time":0,"kind":7}',
        b"[" * 100_000,
    ],
)
def test_bytes_that_are_no_event_are_refused(data: bytes) -> None:
    with pytest.raises(StateError, match="not a stored event"):
        Event.from_bytes(data)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 7),
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(0, 9), st.integers(-2, 40), st.none() | st.integers(1, 4)), max_size=8),
)
def test_a_read_is_a_slice_of_all_events_or_a_gap(
    keep: int, before: int, steps: list[tuple[int, int, int | None]]
) -> None:
    feed, everything = Feed(keep, newest=before), list[Event]()
    for count, after, most in steps:
        new = _events(feed.newest + 1, feed.newest + count)
        feed.publish(new)
        everything += new
        newest = before + len(everything)
        kept = everything[-keep:]
        assert (feed.newest, feed.oldest) == (newest, newest - len(kept) + 1)
        found = feed.read(after, most)
        if feed.oldest - 1 <= after <= newest:
            assert found == [event for event in kept if event.number > after][:most]
        else:
            assert found == Gap(after, newest)


def test_numbers_go_on_one_by_one_and_a_bad_one_leaves_those_before_it() -> None:
    feed = Feed(10)
    feed.publish(_events(1, 2))
    for wrong in (2, 4):
        with pytest.raises(OptionError, match="is not the number after 2"):
            feed.publish([Event(wrong, 0.0, "change")])
    with pytest.raises(OptionError):
        feed.publish([Event(3, 0.0, "change"), Event(5, 0.0, "change")])
    with pytest.raises(OptionError, match="own kind"):
        feed.publish([Event(4, 0.0, "gap")])
    assert feed.newest == 3


@pytest.mark.parametrize("options", [{"keep": 0}, {"keep": 3, "newest": -1}])
def test_feeds_that_make_no_sense_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(OptionError):
        Feed(**options)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), max_size=15))
def test_readers_at_any_pace_get_each_event_once_or_one_gap_in_the_place_of_those_lost(
    keep: int, schedule: list[list[int]]
) -> None:
    """In each step some events are published, and two readers take so many of what they can have."""

    async def run() -> None:
        feed = Feed(keep)
        readers = [feed.follow(0), feed.follow(0)]
        got: list[list[Event]] = [[], []]
        for count, *wants in schedule:
            feed.publish(_events(feed.newest + 1, feed.newest + count))
            for reader, seen, want in zip(readers, got, wants, strict=True):
                for _ in range(want):
                    if (seen[-1].number if seen else 0) < feed.newest:
                        seen.append(await anext(reader))
        feed.end()
        for reader, seen in zip(readers, got, strict=True):
            seen += [event async for event in reader]
            position = 0
            for event in seen:
                if event.kind == "gap":
                    assert event.fields == {"after": position, "restart": event.number, "state": "/skyline"}
                    assert event.number > position + keep
                else:
                    assert event.number == position + 1 and event.fields == {"id": event.number}
                position = event.number
            assert position == feed.newest

    asyncio.run(run())


def test_a_reader_with_a_number_from_elsewhere_is_sent_to_the_state() -> None:
    async def run() -> None:
        feed = Feed(10)
        reader = feed.follow(500)
        gap = await anext(reader)
        assert (gap.kind, gap.number, gap.fields["after"], gap.fields["restart"]) == ("gap", 0, 500, 0)
        feed.publish(_events(1, 1))
        assert (await anext(reader)).number == 1
        await reader.aclose()  # type: ignore[attr-defined]

    asyncio.run(run())


def test_a_reader_that_is_stopped_while_it_waits_does_not_stop_others() -> None:
    async def run() -> None:
        feed = Feed(10)

        async def first() -> int:
            async for event in feed.follow(0):
                return event.number
            return -1

        tasks = [asyncio.create_task(first()) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        feed.publish(_events(1, 3))
        assert [await tasks[0], await tasks[2]] == [1, 1] and tasks[1].cancelled()

    asyncio.run(run())


def test_a_reader_that_catches_up_lets_others_have_their_turn() -> None:
    async def run() -> None:
        feed = Feed(20 * BATCH)
        feed.publish(_events(1, 10 * BATCH))
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        seen = [len(batch) async for batch in feed.batches(0, wait=False)]
        task.cancel()
        assert seen == [BATCH] * 10 and turns >= 9

    asyncio.run(run())


def test_a_reader_that_asks_for_it_hears_that_nothing_comes() -> None:
    async def run() -> None:
        feed = Feed(10)
        batches = feed.batches(0, idle=0.01)
        assert [await anext(batches) for _ in range(2)] == [[], []]
        feed.publish(_events(1, 2))
        assert [event.number for event in await anext(batches)] == [1, 2]
        assert await anext(batches) == []
        feed.end()
        assert [batch async for batch in batches] == []

    asyncio.run(run())
