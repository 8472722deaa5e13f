"""Stored in the middle of a run: the rest is the same, message by message; and other bytes are refused."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import SkytideError, StateError
from skytide.monitors.storage import pack, unpack
from skytide.protocols.filtering.client import ClientBlock
from skytide.protocols.filtering.filter import FilterServer
from skytide.protocols.filtering.messages import Questions
from skytide.protocols.filtering.methods import METHODS, Method, method_of
from tests.protocols.filtering.series import Step, series
from tests.protocols.filtering.test_hybrid import walks

PAIRS = [[("0.5", 900)], [("0.5", 3), ("1", 1)]]


def plain(message: Any) -> Any:
    """A message as values that can be compared."""
    found = (getattr(message, field.name) for field in fields(message))
    return [type(message).__name__, *(each.tolist() if isinstance(each, np.ndarray) else each for each in found)]


def timestamp(method: Method, block: ClientBlock, time: int, step: Step) -> list[Any]:
    """Run a timestamp; all that was said, the skyline and the changes."""
    said = block.observe(time, *step)
    heard = [plain(message) for message in said]
    whom = method.server.begin(time, said)
    while len(whom):
        answers = block.answer(Questions(time, whom))
        heard.append(plain(answers))
        whom = method.server.answered(answers)
    for order in method.server.settle():
        block.obey(order)
        heard.append(plain(order))
    skyline = method.server.skyline()
    changes = [tuple(change) for change in method.answers.observe(skyline, time)]
    return [heard, None if skyline is None else skyline.tolist(), changes]


def assert_the_rest_is_the_same(name: str, pairs: list[tuple[str, int]], steps: list[Step], cuts: set[int]) -> None:
    d = steps[0].points.shape[1]
    kept, block = method_of(name, d, pairs=pairs, seed=3), ClientBlock(d)
    stored, other = method_of(name, d, pairs=pairs, seed=3), ClientBlock(d)
    for time, step in enumerate(steps):
        if time in cuts:
            stored, other = Method.from_bytes(stored.to_bytes()), ClientBlock.from_bytes(other.to_bytes())
            assert stored.exact == kept.exact
        assert timestamp(kept, block, time, step) == timestamp(stored, other, time, step)


@settings(max_examples=60, deadline=None)
@given(
    steps=series(),
    name=st.sampled_from(METHODS),
    pairs=st.sampled_from(PAIRS),
    cuts=st.sets(st.integers(0, 12), min_size=1),
)
def test_stored_in_the_middle_of_a_run_the_rest_is_the_same(
    steps: list[Step], name: str, pairs: list[tuple[str, int]], cuts: set[int]
) -> None:
    assert_the_rest_is_the_same(name, pairs, steps, cuts)


@pytest.mark.parametrize("name", METHODS)
def test_long_runs_with_changes_of_mode_go_on_as_they_were(name: str) -> None:
    assert_the_rest_is_the_same(name, PAIRS[0], walks(5, 150, grid=False), {40, 41, 90, 149})


def ran(name: str) -> Method:
    """A method in the middle of a run."""
    method, block = method_of(name, 2, pairs=PAIRS[0]), ClientBlock(2)
    for time, step in enumerate(walks(1, 30, grid=True)):
        timestamp(method, block, time, step)
    return method


@pytest.mark.parametrize("name", METHODS)
def test_parts_that_are_missing_or_of_another_form_are_refused(name: str) -> None:
    for whole in (ran(name).server, ran(name).answers):
        kind: Any = type(whole)
        meta, parts = unpack(whole.to_bytes(), kind.__name__, 1)
        for part, array in parts.items():
            without = {other: each for other, each in parts.items() if other != part}
            for wrong in (without, {**parts, part: array[:, None]}, {**parts, part: array.astype(np.float32)}):
                with pytest.raises(StateError):
                    kind.from_bytes(pack(kind.__name__, 1, meta, wrong))


def test_numbers_that_compiled_code_would_trust_are_checked() -> None:
    server = ran("filter").server
    meta, parts = unpack(server.to_bytes(), "FilterServer", 1)
    far, nothing = np.full_like(parts["dominator"], 10**9), np.full_like(parts["low"], np.nan)
    for wrong in ({"dominator": far}, {"low": nothing}, {"alive": parts["alive"][:-1]}):
        with pytest.raises(StateError, match="not in order"):
            FilterServer.from_bytes(pack("FilterServer", 1, meta, {**parts, **wrong}))
    for odd in ({"room": -1}, {"dimensions": 0}, {"middle": 3}, {"time": "now"}):
        with pytest.raises(StateError, match="not in order"):
            FilterServer.from_bytes(pack("FilterServer", 1, {**meta, **odd}, parts))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(METHODS), st.data())
def test_damaged_bytes_are_refused_in_plain_words(name: str, data: st.DataObject) -> None:
    blob = bytearray(method_of(name, 2, pairs=PAIRS[0]).to_bytes())
    blob[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(blob), bytes(blob[: data.draw(st.integers(0, len(blob) - 1))])):
        with pytest.raises(SkytideError):
            Method.from_bytes(damaged)


def test_one_kind_is_not_taken_for_another() -> None:
    with pytest.raises(StateError, match="NaiveServer"):
        FilterServer.from_bytes(method_of("naive", 2).server.to_bytes())
