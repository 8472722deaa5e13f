"""Ids in windows: unique among live rows, forgotten with them, netted within an instant."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import IdError
from skytide.reference.window import window_changes
from tests.monitors.sliding.windows import batches, listed, preference, streams, table


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), max_size=12), st.integers(1, 5), st.sampled_from([0, 20])
)
def test_a_second_live_row_with_one_id_is_refused_and_nothing_is_lost(
    rows: list[tuple[int, int]], duration: int, lateness: int
) -> None:
    window = sk.SlidingWindow(sk.Preference.columns(1), duration=duration, lateness=lateness)
    taken: list[tuple[int, int]] = []
    for one, time in rows if lateness else sorted(rows, key=lambda row: row[1]):
        clash = any(other == one and abs(time - when) < duration for other, when in taken)
        if clash:
            before = window.stats()
            with pytest.raises(IdError, match="live at the same time"):
                window.insert([0.0], time=time, id=one)
            # Dead ids may be forgotten on the way; what matters is as it was.
            assert window.stats() | {"known_ids": 0} == before | {"known_ids": 0}
        else:
            window.insert([0.0], time=time, id=one)
            taken.append((one, time))


@settings(max_examples=100)
@given(stream=streams(), duration=st.integers(1, 4), text=st.booleans(), data=st.data())
def test_an_id_that_comes_again_as_its_row_expires_gives_no_change_while_it_stays(
    stream: tuple[Any, Any, Any, Any], duration: int, text: bool, data: st.DataObject
) -> None:
    rows, times, groups, cuts = stream
    ids: list[Any] = []
    for position, time in enumerate(times):
        taken = {one for one, when in zip(ids, times[:position], strict=True) if when + duration > time}
        free = [one for one in range(len(rows)) if one not in taken]
        ids.append(data.draw(st.sampled_from(free[:2]), label=f"id {position}"))
    ids = [f"i{one}" for one in ids] if text else ids
    window = sk.SlidingWindow(preference(rows, False), duration=duration)
    found: list[tuple[Any, str, Any]] = []
    for part in batches(len(rows), cuts):
        found += listed(window.extend(table(rows, groups, part), times=times[part], ids=ids[part]))
        window = sk.SlidingWindow.from_bytes(window.to_bytes())
    found += listed(window.advance(times[-1]))
    assert found == [tuple(c) for c in window_changes(rows, times, ids, duration=duration)]


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xy")), max_size=14), st.integers(1, 3), st.integers(1, 14)
)
def test_in_count_windows_an_id_is_free_when_its_row_has_left_its_group(
    rows: list[tuple[int, str]], count: int, size: int
) -> None:
    window = sk.SlidingWindow(sk.Preference(minimize=["v"], by=["g"]), count=count)

    def clashes(upto: int) -> bool:
        for later in range(upto):
            for earlier in range(later):
                followers = sum(1 for _, group in rows[earlier + 1 : later + 1] if group == rows[earlier][1])
                if rows[earlier][0] == rows[later][0] and followers < count:
                    return True
        return False

    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        data = {"v": [0.0] * len(part), "g": [group for _, group in part]}
        if clashes(start + len(part)):
            with pytest.raises(IdError):
                window.extend(data, ids=[one for one, _ in part])
            return
        window.extend(data, ids=[one for one, _ in part])


def test_ids_of_another_kind_or_number_or_missing_are_refused() -> None:
    window = sk.SlidingWindow(sk.Preference.columns(1), count=2)
    window.extend(np.array([[1.0]]), ids=["a"])
    for ids in (None, [1], ["b", "c"], [None]):
        with pytest.raises(IdError):
            window.extend(np.array([[1.0]]), ids=ids)
    assert listed(window.extend(np.array([[0.0]]), ids=["b"])) == [(2, "-", "a"), (2, "+", "b")]


@settings(max_examples=100)
@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    last=st.integers(0, 25),
    length=st.sampled_from([("count", 1), ("count", 5), ("duration", 1), ("duration", 5)]),
    store=st.booleans(),
)
def test_ids_that_grow_are_refused_like_any_other_when_one_comes_again(
    sizes: list[int], last: int, length: tuple[str, Any], store: bool
) -> None:
    window = sk.SlidingWindow(sk.Preference.columns(1), **{length[0]: length[1]})
    taken = 0
    for size in sizes:
        ids = np.arange(taken, taken + size)
        window.extend(np.zeros((size, 1)), times=ids if length[0] == "duration" else None, ids=ids)
        taken += size
    if store:
        window = sk.SlidingWindow.from_bytes(window.to_bytes())
    time = taken if length[0] == "duration" else None
    if taken - length[1] < last < taken:
        with pytest.raises(IdError, match="live at the same time"):
            window.extend(np.zeros((1, 1)), times=None if time is None else [time], ids=[last])
    else:
        window.extend(np.zeros((1, 1)), times=None if time is None else [time], ids=[last])
        assert last in set(window.skyline())


def test_ids_of_rows_that_are_gone_are_forgotten() -> None:
    window = sk.SlidingWindow(sk.Preference.columns(1), count=3)
    for start in range(0, 30_000, 1000):
        window.extend(np.arange(1000.0)[::-1, None], ids=[f"r{start + k}" for k in range(1000)])
    assert len(window._handles.known) < 5000 and len(window._live) < 10_000
    numbered = sk.SlidingWindow(sk.Preference.columns(1), count=3)
    for start in range(0, 30_000, 1000):
        numbered.extend(np.arange(1000.0)[::-1, None], ids=np.arange(start, start + 1000))
    assert numbered.stats()["known_ids"] <= 2000
