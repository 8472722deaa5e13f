"""Files in and out: what goes in comes out, whatever the chunks, and types hold for whole files."""

from __future__ import annotations

import datetime
import io
import json
import os
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError
from skytide.streams.files import Output, TypeGuess, csv_bytes, open_data, read_chunks, write_table
from skytide.streams.files.from_csv import CsvFile

texts = st.one_of(
    st.none(),
    st.text(alphabet=st.sampled_from(list('ab0 ,"\n\r;äé€😀\t')), max_size=5),
    st.sampled_from(["", "NA", "007", "-1", "1.10", "nan", "true", "2020-01-01"]),
)
names = st.lists(
    st.text(alphabet=st.sampled_from(list('ab, "\nä')), min_size=1, max_size=3), min_size=1, max_size=4, unique=True
)


@st.composite
def text_tables(draw: st.DrawFn) -> pa.Table:
    columns = draw(names)
    rows = draw(st.lists(st.tuples(*[texts] * len(columns)), max_size=8))
    return pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(columns)})


def read_all(path: str | Path, rows: int = 3) -> pa.Table:
    with open_data(str(path)) as source:
        return pa.concat_tables([source.schema.empty_table(), *(chunk.table for chunk in source.chunks(rows=rows))])


@settings(max_examples=150)
@given(table=text_tables(), rows=st.integers(1, 5))
def test_text_of_any_kind_survives_csv_and_null_is_not_the_empty_text(table: pa.Table, rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t.csv"
        write_table(path, table)
        found = read_all(path, rows)
        assert found.column_names == table.column_names
        assert found.to_pydict() == table.to_pydict()
        assert csv_bytes(found) == Path(path).read_bytes()


@settings(max_examples=60)
@given(table=text_tables(), rows=st.integers(1, 5), cut=st.integers(0, 8))
def test_text_survives_parquet_and_json_lines_also_in_a_folder(table: pa.Table, rows: int, cut: int) -> None:
    for extension in ("parquet", "jsonl"):
        with tempfile.TemporaryDirectory() as folder:
            parts = [part for part in (table.slice(0, cut), table.slice(cut)) if part.num_rows]
            for place, part in enumerate(parts):
                write_table(f"{folder}/{place}.{extension}", part)
            if parts:
                assert read_all(folder, rows).to_pydict() == table.to_pydict()


numbers = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(0, 3))
floats = st.one_of(st.none(), st.floats(allow_nan=False), st.sampled_from([1.797e308, 5e-324, -0.0, 1.0, 1e22]))
times = st.one_of(st.none(), st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)))


@settings(max_examples=150)
@given(rows=st.lists(st.tuples(numbers, floats, times, st.sampled_from([None, True, False])), min_size=1, max_size=9))
def test_typed_values_survive_csv_whatever_the_first_rows_look_like(
    rows: list[tuple[int | None, float | None, datetime.datetime | None, bool | None]],
) -> None:
    types = [pa.int64(), pa.float64(), pa.timestamp("us"), pa.bool_()]
    columns = {name: pa.array([row[at] for row in rows], types[at]) for at, name in enumerate("nftb")}
    table = pa.table(columns)
    with tempfile.TemporaryDirectory() as folder:
        write_table(f"{folder}/t.csv", table)
        found = pa.concat_tables(read_chunks(f"{folder}/t.csv", rows=2))
    assert found["n"].to_pylist() == table["n"].to_pylist() or table["n"].null_count == len(rows)
    assert [str(value) for value in found["f"].to_pylist()] == [str(value) for value in table["f"].to_pylist()]
    assert found["b"].to_pylist() == table["b"].to_pylist()
    if table["t"].null_count < len(rows):
        assert found["t"].cast(pa.timestamp("us")).equals(table["t"])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2"], pa.int64()),
        (["1", "2.5", None], pa.float64()),
        (["1", "NA"], pa.int64()),
        (["1.5", "NaN"], pa.float64()),
        (["1", "007"], pa.string()),
        (["0.5", "0"], pa.float64()),
        (["1.5", "01.5"], pa.string()),
        (["1234567890123456.5", "1e400"], pa.string()),
        (["1234567890123456.5", "-.5", "+1", "1e22", "inf", "-Infinity"], pa.float64()),
        (["9223372036854775808"], pa.string()),
        (["1.5", "9007199254740993"], pa.string()),
        (["true", "FALSE"], pa.bool_()),
        (["1", "true"], pa.string()),
        (["0", "1"], pa.int64()),
        (["2020-01-01", "2020-01-02"], pa.date32()),
        (["2020-01-01", "2020-01-02 10:00"], pa.timestamp("us")),
        (["2020-01-01T10:00:00.123456789"], pa.timestamp("ns")),
        (["2020-01-01T10:00:00Z"], pa.timestamp("us", "UTC")),
        (["2020-01-01", "soon"], pa.string()),
        ([None, None], pa.string()),
        (["1", ""], pa.int64()),
    ],
)
def test_the_type_of_a_text_column_is_the_narrowest_that_loses_nothing(
    values: list[str | None], kind: pa.DataType
) -> None:
    for one_by_one in (False, True):
        guess = TypeGuess(["a"])
        whole = pa.table({"a": pa.array(values, pa.string())})
        for part in [whole.slice(at, 1) for at in range(len(values))] if one_by_one else [whole]:
            guess.see(part)
        assert guess.type_of("a") == kind


def test_the_whole_file_decides_the_types_and_columns_named_text_stay_text(tmp_path: Path) -> None:
    lines = [f"{place},{place}" for place in range(400_000)]
    (tmp_path / "t.csv").write_text("id,v\n" + "\n".join(lines) + "\n7,0.5\n")
    tables = list(read_chunks(str(tmp_path / "t.csv"), text=["id"]))
    assert len(tables) > 1
    assert {tuple(table.schema.types) for table in tables} == {(pa.string(), pa.float64())}
    assert sum(table.num_rows for table in tables) == 400_001


def test_chunks_know_their_file_their_rows_and_how_much_is_done(tmp_path: Path) -> None:
    for name, count in (("b.csv", 5), ("a.csv", 3)):
        (tmp_path / name).write_text("x\n" + "1\n" * count)
    with open_data(str(tmp_path)) as source:
        chunks = list(source.chunks(rows=2))
    assert [(Path(chunk.file).name, chunk.first, chunk.start, chunk.table.num_rows) for chunk in chunks] == [
        ("a.csv", 1, 0, 2),
        ("a.csv", 3, 2, 1),
        ("b.csv", 1, 3, 2),
        ("b.csv", 3, 5, 2),
        ("b.csv", 5, 7, 1),
    ]
    shares = [chunk.done for chunk in chunks]
    assert shares == sorted(shares) and shares[-1] == 1.0


@pytest.mark.parametrize("extension", ["csv", "parquet", "jsonl"])
def test_take_gives_the_rows_at_positions_of_the_whole(extension: str, tmp_path: Path) -> None:
    table = pa.table({"a": list(range(100)), "b": [str(value) for value in range(100)]})
    if extension == "parquet":
        pq.write_table(table.slice(0, 60), tmp_path / "1.parquet", row_group_size=7)
        pq.write_table(table.slice(60), tmp_path / "2.parquet", row_group_size=7)
    else:
        write_table(str(tmp_path / f"1.{extension}"), table.slice(0, 60))
        write_table(str(tmp_path / f"2.{extension}"), table.slice(60))
    for rows in ([], [0], [99], [5, 6, 7, 59, 60, 98], list(range(100))):
        with open_data(str(tmp_path)) as source:
            assert source.take(np.array(rows, dtype=np.int64))["b"].to_pylist() == [str(row) for row in rows]


def test_line_ends_byte_order_marks_and_empty_lines_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for content in (
        b"a,b\n1,2\n3,4\n",
        b"a,b\r\n1,2\r\n3,4",
        b"\xef\xbb\xbfa,b\n\n1,2\n\n3,4\n\n",
        b"\n\na,b\n1,2\n3,4\n",
    ):
        path.write_bytes(content)
        assert read_all(path).to_pydict() == {"a": ["1", "3"], "b": ["2", "4"]}
    path.write_bytes(b"a\n1\n\n3\n")
    assert read_all(path).to_pydict() == {"a": ["1", None, "3"]}


def test_standard_input_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_data("-", stdin=io.BytesIO(b"a\n1\n")) as source:
        assert list(tmp_path.iterdir())
        assert [chunk.table.to_pydict() for chunk in source.chunks()] == [{"a": ["1"]}]
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="standard input: the file is empty"):
        open_data("-", stdin=io.BytesIO(b""))
    assert not list(tmp_path.iterdir())


def test_a_quote_inside_a_value_is_no_open_quote(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b'a,b\n5" pipe,1\n6,2\n')
    assert read_all(tmp_path / "t.csv").to_pydict() == {"a": ['5" pipe', "6"], "b": ["1", "2"]}


def test_rows_longer_than_a_block_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skytide.streams.files.from_csv.BLOCK_BYTES", 64)
    (tmp_path / "t.csv").write_text("a\n" + "x" * 500 + "\n")
    with pytest.raises(InputError, match=r"t\.csv: the file has a row of more than 64 bytes"):
        list(CsvFile(tmp_path / "t.csv", "t.csv").batches())


def test_json_values_of_any_kind_come_out_as_they_were(tmp_path: Path) -> None:
    records: list[dict[str, object]] = [
        {"a": 1, "b": [1, {"c": None}], "big": 10**30, "mix": "x", "u": 2**64 - 1},
        {"a": 2.5, "b": None, "big": 1, "mix": 1, "u": 0},
        {"b": {"d": "é"}, "new": False, "inf": float("inf"), "mix": True},
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    write_table(str(tmp_path / "o.jsonl"), read_all(tmp_path / "t.jsonl"))
    found = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    keys = ["a", "b", "big", "mix", "u", "new", "inf"]
    assert found == [{key: record.get(key) for key in keys} for record in records]


def test_csv_has_a_form_for_every_type_and_times_read_back_equal() -> None:
    moment = datetime.datetime(2020, 7, 1, 12, 0, 0, 500)
    zoned = [
        pa.array([moment, None], pa.timestamp(unit, zone))
        for unit in ("us", "ns")
        for zone in (None, "UTC", "Europe/Rome")
    ]
    for column in zoned:
        again = arrow_csv.read_csv(
            io.BytesIO(csv_bytes(pa.table({"t": column, "x": [1, 2]}))),
            convert_options=arrow_csv.ConvertOptions(column_types={"t": pa.timestamp("ns", column.type.tz and "UTC")}),
        )
        assert again["t"].cast(pa.timestamp("ns")).equals(pa.chunked_array([column.cast(pa.timestamp("ns"))]))
    table = pa.table(
        {
            "decimal": [Decimal("1.10")],
            "date": [datetime.date(2020, 1, 2)],
            "time": [datetime.time(1, 2, 3)],
            "list": [[1, 2]],
            "struct": [{"a": "x"}],
            "dictionary": pa.array(["x"]).dictionary_encode(),
            "half": pa.array([np.float16(0.5)]),
            "single": pa.array([0.1], pa.float32()),
            "null": pa.nulls(1),
        }
    )
    assert csv_bytes(table).decode().splitlines()[1] == (
        '1.10,2020-01-02,01:02:03,"[1, 2]","{""a"": ""x""}",x,0.5,0.1,'
    )


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    for name in ("t.csv", "t.parquet", "t.jsonl"):
        target = tmp_path / name
        with pytest.raises(RuntimeError), Output(str(target), schema) as output:
            output.write(pa.table({"a": [1]}))
            assert not target.exists()
            raise RuntimeError
        assert list(tmp_path.iterdir()) == []
    with Output(str(tmp_path / "t.csv"), schema) as output:
        output.write(pa.table({"a": [1]}))
    assert (tmp_path / "t.csv").read_text() == "a\n1\n"
    assert (tmp_path / "t.csv").stat().st_mode & 0o077 == 0o066 & ~_umask()
    with pytest.raises(OptionError, match=r"t\.txt"):
        Output(str(tmp_path / "t.txt"), schema)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_whoever_watches_is_told_how_much_was_looked_at_for_the_types(tmp_path: Path) -> None:
    rows = 40_000
    (tmp_path / "1.csv").write_text("a\n" + "1\n" * rows)
    (tmp_path / "2.csv").write_text("a\n" + "2\n" * rows)
    (tmp_path / "3.jsonl").write_text('{"a": 3}\n' * rows)
    told: list[float] = []
    open_data(str(tmp_path), watch=told.append).close()
    assert told[-1] == 2 / 3, "JSON lines are looked at first, then the CSV files"
    assert len(told) >= 4 and 2 / 3 < max(told[:-2]) <= 1
    told.clear()
    open_data(str(tmp_path / "1.csv"), watch=told.append).close()
    assert told == []
    open_data(str(tmp_path / "1.csv"), typed=True, watch=told.append).close()
    assert told == sorted(told) and told[-1] == 1
