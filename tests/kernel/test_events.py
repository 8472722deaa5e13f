"""The event list against plain lists, with its invariants stated after every instant."""

from itertools import count

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel.events import EventList, close, drop, enlist, hide, pass_on, show, stop_waiting, wait_for

ACTIONS = ["enlist", "wait", "stop", "pass", "drop", "show", "hide"]


class Model:
    """What the list should hold: rows in order, rings as lists, and who is shown."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.rings: dict[int, list[int]] = {}
        self.shown: set[int] = set()

    def leave_ring(self, slot: int) -> None:
        for ring in self.rings.values():
            if slot in ring:
                ring.remove(slot)

    def waits(self, slot: int) -> bool:
        return any(slot in ring for ring in self.rings.values())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 99), st.integers(0, 99)), max_size=120), st.data())
def test_any_sequence_of_steps_keeps_the_invariants_and_gives_net_changes(
    script: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    events, model = EventList(), Model()
    known: dict[int, int] = {}
    handles: dict[int, int] = {}
    out = np.empty((400, 3), dtype=np.int64)
    numbers = count(1000)
    clock = 0
    for action, a, b in script:
        e = events.arrays
        pick = model.order[a % len(model.order)] if model.order else -1
        other = model.order[b % len(model.order)] if model.order else -1
        if action == "enlist" or pick < 0:
            events.grow()
            handle = next(numbers)
            slot = enlist(events.arrays, clock + 10, clock, handle)
            handles[slot] = handle
            model.order.append(slot)
            model.rings[slot] = []
        elif action == "wait" and pick != other and not model.waits(pick):
            wait_for(e, pick, other)
            model.rings[other].append(pick)
        elif action == "stop":
            stop_waiting(e, pick)
            model.leave_ring(pick)
        elif action == "pass" and pick != other and other not in model.rings[pick]:
            pass_on(e, pick, other)
            model.rings[other] += model.rings[pick]
            model.rings[pick] = []
        elif action == "drop":
            drop(e, pick)
            model.leave_ring(pick)
            model.order.remove(pick)
            del model.rings[pick]
            model.shown.discard(pick)
        elif action == "show":
            show(e, pick)
            model.shown.add(pick)
        elif action == "hide":
            hide(e, pick)
            model.shown.discard(pick)
        if data.draw(st.booleans()):
            clock += 1
            size = close(events.arrays, clock, out, 0)
            answer = {slot: handles[slot] for slot in model.shown}
            expected = {(clock, -1, handle) for handle in known.values() if handle not in answer.values()}
            expected |= {(clock, 1, handle) for handle in answer.values() if handle not in known.values()}
            changes = [tuple(row) for row in out[:size].tolist()]
            assert len(changes) == len(set(changes))
            assert set(changes) == expected
            assert [sign for _, sign, _ in changes] == sorted(sign for _, sign, _ in changes)
            known = answer
            events._check()
        assert events.order().tolist() == model.order
        assert {slot: sorted(events.waiting(slot)) for slot in model.order} == {
            slot: sorted(ring) for slot, ring in model.rings.items()
        }


def test_a_slot_is_not_reused_within_the_instant_in_which_it_fell_free() -> None:
    events = EventList()
    out = np.empty((8, 3), dtype=np.int64)
    events.grow()
    first = enlist(events.arrays, 5, 0, 70)
    show(events.arrays, first)
    size = close(events.arrays, 0, out, 0)
    drop(events.arrays, first)
    second = enlist(events.arrays, 6, 1, 71)
    show(events.arrays, second)
    assert second != first
    assert close(events.arrays, 1, out, size) == 3
    assert out[:3].tolist() == [[0, 1, 70], [1, -1, 70], [1, 1, 71]]
    assert enlist(events.arrays, 7, 2, 72) == first


def test_the_next_time_is_the_first_expiry_and_never_when_empty() -> None:
    events = EventList()
    assert events.next_time == 2**63 - 1
    events.grow()
    lowest = -(2**63)
    slot = enlist(events.arrays, lowest, lowest, 1)
    assert events.next_time == lowest
    drop(events.arrays, slot)
    assert events.next_time == 2**63 - 1


def test_memory_grows_with_the_rows_only() -> None:
    events = EventList()
    for i in range(10_000):
        events.grow()
        enlist(events.arrays, i, i, i)
    assert events.memory_bytes < 1.4 * 10_000 * 53 + 1000
