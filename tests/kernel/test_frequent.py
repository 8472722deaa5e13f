"""The compiled counter against counting by hand, with its invariants stated after every step."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel.frequent import CROSSINGS, HEAP, MEMBERS, SLOPES, USED
from skytide.monitors.frequent.counts import Counts, Refused
from skytide.monitors.frequent.pairs import Pair

SLOTS = 5
PAIRS = st.lists(
    st.tuples(st.sampled_from(["0.1", "0.5", "0.7", "1"]), st.integers(1, 8)), min_size=1, max_size=3, unique=True
)
STEPS = st.lists(st.tuples(st.sets(st.integers(0, SLOTS - 1)), st.integers(1, 12)), max_size=14)


def _counts(pairs: list[tuple[str, int]], slots: int = SLOTS) -> Counts:
    counts = Counts([Pair.of(theta, over) for theta, over in pairs])
    counts.widen(slots)
    return counts


@settings(max_examples=100)
@given(PAIRS, STEPS, st.data())
def test_counts_and_crossings_are_those_of_counting_by_hand(
    pairs: list[tuple[str, int]], steps: list[tuple[set[int], int]], data: st.DataObject
) -> None:
    counts = _counts(pairs)
    inside: set[int] = set()
    answers: list[set[int]] = []
    shown = [set[int]() for _ in pairs]
    for toggled, length in steps:
        slots = np.array(data.draw(st.permutations(sorted(toggled))), np.int64)
        signs = np.array([-1 if slot in inside else 1 for slot in slots.tolist()], np.int64)
        assert counts.admit(np.full(len(slots), counts.now + 1), slots, signs) is None
        inside ^= toggled
        answers += [set(inside)] * length
        numbers, nodes, moved = counts.run(len(answers)).tolist()
        counts._check()
        found = Counter(zip(numbers, nodes, moved, strict=True))
        truth: Counter[tuple[int, int, int]] = Counter()
        for number in range(len(answers) - length + 1, len(answers) + 1):
            for position, (theta, over) in enumerate(pairs):
                last = Counter(slot for answer in answers[max(number - over, 0) : number] for slot in answer)
                now = {slot for slot, count in last.items() if count >= Pair.of(theta, over).need}
                truth.update(
                    (number, slot * len(pairs) + position, 1 if slot in now else -1) for slot in now ^ shown[position]
                )
                shown[position] = now
        assert found == truth and numbers == sorted(numbers)
        for position, (_, over) in enumerate(pairs):
            by_hand = [sum(slot in answer for answer in answers[-over:]) for slot in range(SLOTS)]
            assert counts.counts(np.arange(SLOTS), position).tolist() == by_hand
            assert set(counts.frequent(position).tolist()) == shown[position]
        assert set(counts.members.tolist()) == inside


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, SLOTS - 1), st.sampled_from([1, -1])), max_size=12))
def test_changes_are_admitted_all_or_none(script: list[tuple[int, int, int]]) -> None:
    counts = _counts([("0.5", 4)])
    counts.admit(np.array([1, 1]), np.array([0, 1]), np.array([1, 1]))
    counts.run(1)
    numbers = 2 + np.cumsum([step for step, _, _ in script], dtype=np.int64)
    inside, last, expected = {0, 1}, dict[int, int](), None
    for position, (number, (_, slot, sign)) in enumerate(zip(numbers.tolist(), script, strict=True)):
        if last.get(slot) == number or (slot in inside) == (sign > 0):
            expected = Refused(position, last.get(slot) == number)
            break
        inside ^= {slot}
        last[slot] = number
    slots, signs = (np.array([one[at] for one in script], np.int64) for at in (1, 2))
    assert counts.admit(numbers, slots, signs) == expected
    if expected is None:
        assert set(counts.members.tolist()) == inside and counts.queued == 2 + len(script)
        counts.run(2 + 2 * len(script))
    else:
        assert set(counts.members.tolist()) == {0, 1} and counts.queued == 2
        assert counts.uses[:SLOTS].tolist() == [1, 1, 0, 0, 0]
    counts._check()


def test_slots_are_given_back_when_the_last_window_has_passed_and_nothing_else_needs_them() -> None:
    counts = _counts([("0.5", 2), ("0.5", 5)])
    counts.admit(np.array([1, 1, 2, 3]), np.array([0, 1, 0, 1]), np.array([1, 1, -1, -1]))
    counts.run(6)
    assert counts.drain() == []  # both have entered long ago, and left in the larger window
    counts.run(7)
    assert counts.drain() == [0]
    counts.uses[1] += 1  # as a remembered stay does
    counts.run(20)
    assert counts.drain() == [] and counts.release(np.array([1])) == [1] and counts.queued == 0


def test_a_change_costs_the_same_in_any_skyline() -> None:
    done = []
    for members in (10, 10_000):
        counts = _counts([("0.5", 20), ("0.9", 7)], members + 1)
        counts.admit(np.ones(members, np.int64), np.arange(members), np.ones(members, np.int64))
        counts.run(100)
        assert counts.meta[HEAP] == 0 and counts.meta[MEMBERS] == members
        before = counts.meta.copy()
        counts.admit(np.array([200, 210]), np.array([members, members]), np.array([1, -1]))
        counts.run(10**9)
        done.append((counts.meta - before)[[SLOPES, CROSSINGS]].tolist())
    assert done == [[8, 4], [8, 4]]


def test_room_for_changes_is_reused_and_given_back() -> None:
    counts = _counts([("0.5", 3)])
    for turn in range(50):
        for step in range(40):
            counts.admit(np.array([counts.now + 1]), np.array([0]), np.array([1 - 2 * (step % 2)]))
            counts.run(counts.now + 1)
            counts.drain()
        if turn % 10 == 0:
            counts._check()
    assert len(counts._queue.numbers) <= 64
    signs = np.tile([1, -1], 5_000)
    counts.admit(np.arange(counts.now + 1, counts.now + 10_001), np.zeros(10_000, np.int64), signs)
    assert counts.meta[USED] <= len(counts._queue.numbers)
    counts.run(counts.now + 10_000)
    counts.drain()
    counts.admit(np.array([counts.now + 1]), np.array([0]), np.array([1]))
    counts.run(counts.now + 1)
    counts._check()
    assert len(counts._queue.numbers) <= 1024
