"""What file sinks write is read once, whatever a query does that is stopped and started again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError
from skytide.spark.sinks.files import CsvSink, JsonLinesSink, ParquetSink
from skytide.spark.sinks.tail import Tail
from skytide.spark.streaming.write import after

SINKS: dict[str, Any] = {"parquet": ParquetSink, "csv": CsvSink, "jsonl": JsonLinesSink}
MOMENTS = pa.timestamp("us", "UTC")


def changes(*rows: tuple[int, str, str, str]) -> pa.Table:
    times, signs, ids, groups = zip(*rows, strict=True) if rows else ((), (), (), ())
    text = pa.string()
    columns = [pa.array(times, pa.int64()), pa.array(signs, text), pa.array(ids, text), pa.array(groups, text)]
    return pa.table(columns, names=["time", "change", "id", "city"])


batches = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("+-"), st.sampled_from("ab7"), st.sampled_from("xy"))),
    max_size=6,
)


@settings(max_examples=40)
@given(
    form=st.sampled_from(sorted(SINKS)), first=batches, kept=st.integers(0, 6), second=batches, most=st.integers(1, 3)
)
def test_a_reader_comes_to_the_answer_of_the_files_over_what_is_taken_back(
    form: str, first: list[Any], kept: int, second: list[Any], most: int
) -> None:
    """A query writes, its checkpoint is set back, and it writes something else from there on."""
    with tempfile.TemporaryDirectory() as folder:
        sink, tail, known = SINKS[form](folder), Tail(folder, form, ("city",), most=most), None
        kept = min(kept, len(first))
        for start, some in ((0, first), (kept, second)):
            for number, rows in enumerate(some, start):
                sink.write(number, changes(*rows))
                if number % 2:
                    known = seen(tail.read(), known)
            for number in range(start + len(some), len(first)):
                sink.write(number, changes())
            while events := tail.read():
                known = seen(events, known)
        table = pa.concat_tables([changes(), *(changes(*rows) for rows in (*first[:kept], *second))])
        expected = after(None, table, ["city"])
        assert sorted(pairs(known)) == sorted(pairs(expected))


def seen(events: list[Any], known: pa.Table | None) -> pa.Table | None:
    for event in events:
        known = event.rows if event.kind == "answer" else after(known, event.rows, ["city"])
        if known is not None:
            keep = [name for name in ("time", "id", "city") if name in known.column_names]
            known = known.select(keep) if known.num_rows else None
    return known


def pairs(table: pa.Table | None) -> list[tuple[str, str]]:
    return [] if table is None else list(zip(*(table.column(name).to_pylist() for name in ("id", "city")), strict=True))


@pytest.mark.parametrize("form", sorted(SINKS))
def test_ids_stay_text_times_are_moments_and_values_numbers(tmp_path: Path, form: str) -> None:
    moment = pa.array([1_500_000, 86_400_000_000], pa.int64()).cast(MOMENTS)
    table = pa.table({"time": moment, "change": ["+", "+"], "id": ["007", "7"], "price": [1.5, None]})
    SINKS[form](str(tmp_path)).write(3, table)
    [event] = Tail(str(tmp_path), form).read()
    assert event.rows.column("time").cast(MOMENTS).to_pylist() == moment.to_pylist()
    assert event.rows.column("id").to_pylist() == ["007", "7"]
    assert event.rows.column("price").to_pylist() == [1.5, None] and event.batch == 3


def test_what_is_no_file_of_changes_is_refused(tmp_path: Path) -> None:
    ParquetSink(str(tmp_path)).write(0, pa.table({"price": [1]}))
    with pytest.raises(InputError, match="is not a file of changes; give a pipeline's sink"):
        Tail(str(tmp_path), "parquet").read()
    with pytest.raises(OptionError, match="use parquet, csv, jsonl"):
        Tail(str(tmp_path), "orc")
    assert Tail(str(tmp_path / "none"), "csv").read() == []
