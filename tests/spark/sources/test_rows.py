"""The generated stream: the row at a position is the same whoever asks, and the one that `skytide generate` writes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.cli.generate import command
from skytide.errors import OptionError
from skytide.spark.sources.rows import KINDS, SEQUENTIAL, Rows, split

SMALL: dict[str, Any] = {"objects": 20, "sites": 3}


def table(rows: Rows, first: int, last: int) -> pa.Table:
    return pa.Table.from_batches(rows.batches(first, last), rows.schema())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_command(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "rows.parquet"
    arguments = [kind, "-n", "900", "-d", "3", "--seed", "5", "--objects", "20", "--sites", "3"]
    done = CliRunner().invoke(command, [*arguments, "-o", str(target)])
    assert done.exit_code == 0, done.output
    expected = pq.read_table(target)
    found = table(Rows(kind, dimensions=3, seed=5, **SMALL), 0, 900)
    assert found.select(expected.column_names) == expected


@settings(max_examples=60)
@given(
    kind=st.sampled_from(KINDS),
    cuts=st.lists(st.integers(0, 700), min_size=2, max_size=6),
    groups=st.sampled_from([None, 1, 3]),
    time=st.sampled_from(["number", "timestamp", "none"]),
    data=st.data(),
)
def test_any_parts_in_any_order_are_the_same_rows(
    kind: str, cuts: list[int], groups: int | None, time: str, data: st.DataObject
) -> None:
    rows = Rows(kind, seed=3, groups=groups, time=time, time_start=7, time_step=2, **SMALL)
    cuts.sort()
    whole = table(rows, cuts[0], cuts[-1])
    parts = {part: None for part in pairwise(cuts)}
    for part in data.draw(st.permutations(sorted(parts))):
        parts[part] = table(rows, *part)
    assert pa.concat_tables([parts[part] for part in pairwise(cuts)]) == whole


@pytest.mark.parametrize("kind", ["independent", "spikes"])
def test_blocks_do_not_show(kind: str) -> None:
    rows = Rows(kind, groups=4)
    whole = table(rows, 0, 60_000)
    assert table(rows, 16_380, 33_000) == whole.slice(16_380, 33_000 - 16_380)
    assert whole.num_rows == 60_000


def test_times_are_numbers_or_timestamps_and_may_repeat() -> None:
    times = table(Rows("independent", time_start=10, time_step=5, rows_per_time=2), 1, 5)["time"]
    assert times.to_pylist() == [10, 15, 15, 20]
    stamps = table(Rows("jitter", time="timestamp", time_start=0, time_step=1_000_000, **SMALL), 19, 21)["time"]
    assert stamps.cast(pa.int64()).to_pylist() == [0, 1_000_000]
    spikes = table(Rows("spikes", time="timestamp", time_step=1_000_000), 0, 2000)["time"].cast(pa.int64()).to_numpy()
    assert (np.diff(spikes) >= 0).all() and spikes[300] > 10_000_000


def test_groups_are_about_equally_large_and_named() -> None:
    counts = table(Rows("independent", groups=3), 0, 9000)["group"].value_counts().to_pylist()
    assert {count["values"] for count in counts} == {"g1", "g2", "g3"}
    assert all(2700 < count["counts"] < 3300 for count in counts)


def test_settings_that_make_no_rows_are_refused() -> None:
    with pytest.raises(OptionError, match="'wlak' is not a kind of rows"):
        Rows("wlak")
    with pytest.raises(OptionError, match="have no deviation"):
        Rows("correlated", deviation=0.1)
    with pytest.raises(OptionError, match="have times of their own"):
        Rows("jitter", rows_per_time=2)
    with pytest.raises(OptionError, match="a step back in time"):
        Rows("independent", time_step=-1)
    with pytest.raises(OptionError, match="beyond the last time"):
        list(Rows("independent", time_step=2**62).batches(0, 3))


@given(first=st.integers(0, 10**6), length=st.integers(0, 10**6), parts=st.integers(1, 9))
def test_a_split_covers_everything_once(first: int, length: int, parts: int) -> None:
    found = split(first, first + length, parts)
    assert len(found) <= parts + 1
    assert [first, *(last for _, last in found)][-1] == first + length
    assert all(before[1] == after[0] for before, after in pairwise(found))
    assert all(begin < end for begin, end in found) and (not found or found[0][0] == first)


def test_the_sequential_kinds_are_known_as_such() -> None:
    assert [kind for kind in KINDS if Rows(kind).sequential] == list(SEQUENTIAL)


def test_short_runs_go_together() -> None:
    rows = Rows("walk", objects=100)
    assert len(list(rows.batches(0, 30_000))) == 2
    assert table(rows, 17_003, 17_009) == table(rows, 0, 30_000).slice(17_003, 6)
