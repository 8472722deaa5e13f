"""Blocks of clients: a run of timestamps that is absorbed leaves what its timestamps one by one would have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.model import Floats, Integers
from skytide.protocols.filtering.client import ClientBlock
from skytide.protocols.filtering.messages import Boxes, Departures, Kind, Message, Questions, Releases, Schedules
from skytide.protocols.filtering.schedule import Schedule

NONE = np.zeros(0, np.int64)
MANY, D = 5, 2
VALUE = st.integers(0, 4).map(float)
MOVES = st.dictionaries(st.integers(0, MANY), st.tuples(VALUE, VALUE), max_size=3)


def rows(moves: Sequence[dict[int, tuple[float, ...]]]) -> tuple[Integers, Integers, Floats]:
    """Moves of timestamps as `absorb` takes them."""
    cuts = np.cumsum([0, *map(len, moves)])
    clients = np.array([one for each in moves for one in each], np.int64)
    return cuts, clients, np.array([point for each in moves for point in each.values()]).reshape(-1, D)


def told(block: ClientBlock, time: int) -> list[list[list[float]]]:
    """What the clients say when asked."""
    answer = block.answer(Questions(time, np.arange(MANY)))
    return [matrix.tolist() for matrix in (answer.points, answer.floor, answer.roof)]


def set_up(modes: Sequence[str], schedule: Schedule, wide: float) -> ClientBlock:
    """Clients at (2, 2), each quiet in its way."""
    block, home = ClientBlock(D), np.full((1, D), 2.0)
    block.observe(0, np.arange(MANY), np.repeat(home, MANY, axis=0), NONE)
    for one, mode in enumerate(modes):
        who = np.array([one])
        if mode == "boxed" or mode == "mixed":
            block.obey(Boxes(0, who, home - wide, home + wide, schedule if mode == "mixed" else None))
        elif mode == "sampled":
            block.obey(Schedules(0, who, schedule))
        elif mode == "released":
            block.obey(Releases(0, who))
    return block


@settings(max_examples=200, deadline=None)
@given(
    modes=st.lists(
        st.sampled_from(["boxed", "boxed", "mixed", "sampled", "released", "free"]), min_size=MANY, max_size=MANY
    ),
    moves=st.lists(MOVES, min_size=1, max_size=8),
    rate=st.sampled_from([0.05, 0.3]),
    wide=st.sampled_from([1.0, 2.0]),
    crashed=st.booleans(),
)
def test_absorbing_stops_at_the_first_word_and_is_what_observing_is(
    modes: list[str], moves: list[dict[int, tuple[float, ...]]], rate: float, wide: float, crashed: bool
) -> None:
    schedule = Schedule(3, rate)
    block, plain = set_up(modes, schedule, wide), set_up(modes, schedule, wide)
    if crashed:
        block.forget(np.array([0]))
        plain.forget(np.array([0]))
    quiet, said = 0, list[Message]()
    for time, each in enumerate(moves, start=1):
        _, clients, points = rows([each])
        said = plain.observe(time, clients, points, NONE)
        if said:
            break
        quiet += 1
    taken = block.absorb(1, *rows(moves))
    assert taken == quiet
    if taken < len(moves):
        _, clients, points = rows([moves[taken]])
        words = block.observe(taken + 1, clients, points, NONE)
        assert [(one.kind, one.clients.tolist()) for one in words] == [(one.kind, one.clients.tolist()) for one in said]
    assert told(block, taken + 1) == told(plain, taken + 1)


def test_a_million_quiet_updates_are_one_call() -> None:
    clients, timestamps = 1_000, 1_000
    block, everyone = ClientBlock(D), np.arange(clients)
    block.observe(0, everyone, np.zeros((clients, D)), NONE)
    block.obey(Boxes(0, everyone, np.full((clients, D), -1.0), np.full((clients, D), 1.0)))
    points = np.random.default_rng(1).uniform(-1, 1, (clients * timestamps, D))
    points[-1, 0] = 1.5
    cuts = np.arange(timestamps + 1) * clients
    assert block.absorb(1, cuts, np.tile(everyone, timestamps), points) == timestamps - 1
    (failure,) = block.observe(timestamps, everyone, points[-clients:], NONE)
    assert failure.kind == Kind.FAILURE and failure.clients.tolist() == [clients - 1]


@pytest.mark.parametrize("long", [1, 1_000, 10**6])
def test_a_client_that_was_cut_off_for_long_says_where_it_is_and_that_it_hardly_remembers_more(long: int) -> None:
    block, one = ClientBlock(1), np.array([0])
    block.observe(0, one, np.array([[0.0]]), NONE)
    block.obey(Boxes(0, one, np.array([[-10.0]]), np.array([[10.0]])))
    assert not block.observe(1, one, np.array([[8.0]]), NONE)
    (failure,) = block.observe(1 + long, one, np.array([[12.0]]), NONE)
    assert not isinstance(failure, Departures | Questions)
    assert told_floor(failure) <= 12.0 and (long < 1_000 or told_floor(failure) > 8.0 - 1e-6)


def told_floor(message: Message) -> float:
    """Where the reach of the first client of a report begins."""
    return float(message.floor[0, 0])  # type: ignore[union-attr]


@given(
    modes=st.lists(st.sampled_from(["boxed", "mixed", "sampled", "free"]), min_size=MANY, max_size=MANY), moves=MOVES
)
def test_a_copy_looks_ahead_and_leaves_no_trace(modes: list[str], moves: dict[int, tuple[float, ...]]) -> None:
    schedule = Schedule(3, 0.3)
    block, untouched = set_up(modes, schedule, 1.0), set_up(modes, schedule, 1.0).to_bytes()
    ahead = block.copy()
    _, clients, points = rows([moves])
    ahead.observe(1, clients, points, np.array([0]))
    ahead.absorb(2, *rows([{1: (2.5, 2.5)}]))
    ahead.forget(np.array([2]))
    ahead.obey(Boxes(2, np.array([3]), np.zeros((1, D)), np.ones((1, D)), Schedule(4, 0.5)))
    ahead.obey(Releases(2, np.array([4])))
    ahead.answer(Questions(9, np.array([1])))
    assert block.to_bytes() == untouched != ahead.to_bytes()
    block.observe(1, clients, points, np.array([0]))
    other = ClientBlock.from_bytes(untouched)
    other.observe(1, clients, points, np.array([0]))
    assert block.to_bytes() == other.to_bytes()
