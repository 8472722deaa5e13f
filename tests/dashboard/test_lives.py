"""Rows of a window that are outside of the answer are shown as long as they live, and no longer."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.dashboard.pipeline import board_of
from skytide.dashboard.rows import Rows
from skytide.dashboard.shown import Shown
from skytide.spark.pipeline.about import About


@settings(max_examples=40)
@given(
    starts=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    now=st.integers(0, 20),
    moments=st.booleans(),
    data=st.data(),
)
def test_the_rest_is_what_lives(starts: list[int], now: int, moments: bool, data: st.DataObject) -> None:
    """Some are known from the source, others from having been in the answer."""
    duration: str | float = "5s" if moments else 5
    parameters: dict[str, str | float] = {"id": "who", "time": "ts", "duration": duration}
    about = About("t", "window", minimize=("a",), by=("g",), id="who", extra=("ts",), parameters=parameters)
    board = board_of(about, keyed=True)
    shown, kind = Shown(board, about), pa.timestamp("s") if moments else pa.int64()
    names, groups = [f"r{place}" for place in range(len(starts))], ["xy"[place % 2] for place in range(len(starts))]
    rows = pa.table({"who": names, "ts": pa.array(starts).cast(kind), "g": groups, "a": [1.0] * len(starts)})
    once = data.draw(st.lists(st.sampled_from(range(len(starts))), unique=True))
    passed = [place for place in range(len(starts)) if place not in once]
    shown.passed(rows.take(pa.array(passed, pa.int64())))
    events = sorted((starts[place] + after, sign, place) for place in once for after, sign in ((0, "+"), (2, "-")))
    latest = max([now, *(time for time, _, _ in events)])
    changes = pa.table(
        {
            "change": pa.array([sign for _, sign, _ in events], pa.string()),
            "time": pa.array([time for time, _, _ in events], pa.int64()),
        }
    )
    some = rows.take(pa.array([place for _, _, place in events], pa.int64())).rename_columns(["id", "ts", "g", "a"])
    for name in changes.column_names:
        some = some.append_column(name, changes[name].cast(kind if name == "time" else pa.string()))
    cut = data.draw(st.integers(0, len(events)))
    shown.changes(some.slice(0, cut))
    shown.changes(some.slice(cut))
    last = pa.table({"id": ["end"], "ts": [latest], "g": ["x"], "a": [9.0], "change": ["+"], "time": [latest]})
    for name in ("ts", "time"):
        last = last.set_column(last.column_names.index(name), name, last[name].cast(kind))
    shown.changes(last)
    alive = {name for name, start in zip(names, starts, strict=True) if start + 5 > latest}
    assert {row[1] for row in board.rest()["rows"]} == alive


def test_a_sample_is_drawn_among_the_rows_that_are_not_forgotten() -> None:
    rows = Rows(room=100_000)
    rows.put(map(str, range(50_000)), ((place,) for place in range(50_000)))
    rows.forget(map(str, range(49_000)))
    assert {key for key, _ in rows.sample(2_000)} == set(map(str, range(49_000, 50_000)))
    drawn = [int(key) for key, _ in rows.sample(500)]
    assert 250 < len(drawn) <= 500 and min(drawn) < 49_300 and max(drawn) > 49_700
