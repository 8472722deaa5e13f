"""The monitor against the reference: everything is drawn, and what is refused leaves no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import SkytideError
from skytide.monitors.snapshots.changes import SnapshotChanges
from skytide.reference.snapshots import snapshot_answers, snapshot_changes
from tests.monitors.snapshots.streams import (
    IDS,
    TIMES,
    Model,
    Setting,
    Step,
    foretell,
    handed,
    listed,
    perform,
    replay,
    rows_of,
    scripts,
    settings_of,
)


def agrees(monitor: sk.Snapshots, model: Model) -> None:
    """What can be asked between calls is what the rows so far say."""
    standing = monitor.skyline()
    assert sorted(standing, key=str) == sorted(model.skyline(), key=str)
    current = replay(model.setting, model.rows)
    order = model.setting.order
    for one, values in zip(standing.ids.tolist(), standing.values.tolist(), strict=True):
        assert [None if value != value else value for value in values] == [current.objects[one][k] for k in order]
    objects = model.objects()
    assert len(monitor) == len(objects)
    for one in {row.id for row in model.rows}:
        found = monitor.values(one)
        plain = None if found is None else [None if value != value else value for value in found]
        assert plain == (None if one not in objects else [objects[one][k] for k in order])
    stats = monitor.stats()
    assert stats["late"] == model.late and stats["bad"] == model.bad
    assert stats["rows"] + stats["bad"] == len(model.rows) + model.unfit
    assert stats["pending"] == sum(not model._complete(row.time) for row in model.rows)
    assert stats["snapshots"] == model.told and stats["objects"] == len(objects)
    assert stats["entered"] - stats["left"] == len(model.answer)
    assert monitor.latest is None if model.latest is None else monitor.latest == np.array([model.latest])[0]


@settings(max_examples=250)
@given(scripts(), st.booleans())
def test_every_call_tells_what_the_reference_says(drawn: tuple[Setting, list[Step], bool], storing: bool) -> None:
    setting, steps, storable = drawn
    monitor, model = setting.make(), Model(setting)
    for step in steps:
        before = monitor.to_bytes() if storable else b""
        try:
            expected = foretell(model, step)
        except SkytideError as refused:
            with pytest.raises(type(refused)):
                perform(monitor, setting, step)
            assert not storable or monitor.to_bytes() == before
            agrees(monitor, model)
            continue
        found = perform(monitor, setting, step)
        assert listed(found) == expected.changes
        assert found.snapshots.tolist() == expected.snapshots
        assert found.late.tolist() == expected.late and found.bad.tolist() == expected.bad
        if storing and storable:
            monitor = sk.Snapshots.from_bytes(monitor.to_bytes())
        agrees(monitor, model)
    assert set(monitor.skyline()) == model.answer


@settings(max_examples=60)
@given(st.data())
def test_any_cut_into_calls_and_any_method_tell_the_same(data: st.DataObject) -> None:
    setting = data.draw(settings_of())
    rows = sorted(data.draw(rows_of(setting, IDS["text"], 30)), key=lambda row: row.time)
    try:
        expected = Model(setting).extend(rows, rows[-1].time)
    except SkytideError:
        return
    for method in ("auto", "mbr", "recompute"):
        monitor = Setting(**{**vars(setting), "method": method}).make()
        told, start = [], 0
        for size in data.draw(st.lists(st.integers(0, 12), max_size=8)):
            form = data.draw(st.sampled_from(["arrow", "pairs"]))
            told.append(perform(monitor, setting, Step("extend", rows[start : start + size], form, None)))
            start += size
        told.append(perform(monitor, setting, Step("extend", rows[start:], "columns", None)))
        told.append(monitor.advance(rows[-1].time))
        # Whatever a call gives, also nothing, can be joined with what the others gave.
        found = SnapshotChanges.concatenate(told)
        assert listed(found) == expected.changes and found.snapshots.tolist() == expected.snapshots


@settings(max_examples=60)
@given(st.data())
def test_the_model_is_the_reference(data: st.DataObject) -> None:
    setting = data.draw(settings_of())
    rows = [row._replace(op=setting.op) for row in data.draw(rows_of(setting, IDS["text"], 20))]
    given: dict[str, Any] = {
        "operation": setting.op,
        "signs": [1 if least else -1 for least in setting.minimized],
        "by": [row.group for row in rows] if setting.grouped else None,
        "nulls": setting.nulls,
    }
    lateness = TIMES[setting.times].added(0)
    columns = [row.time for row in rows], [row.id for row in rows], [row.values for row in rows]
    try:
        expected = snapshot_answers(*columns, **given)
    except SkytideError:
        with pytest.raises(SkytideError):
            replay(setting, rows)
        return
    assert replay(setting, rows).answers == expected
    latest = max(row.time for row in rows)
    changes = [tuple(change) for change in snapshot_changes(*columns, lateness=lateness, **given)]
    # One call with all rows, in the order of their times, so that none is late.
    ordered = sorted(rows, key=lambda row: row.time)
    monitor = setting.make()
    updates, beside = handed(setting, ordered, "arrow")
    told = listed(monitor.extend(updates, [row.time for row in ordered], **beside)) + listed(monitor.advance(latest))
    assert told == changes
