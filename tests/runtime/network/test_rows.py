"""Rows of CSV and JSON: the same however the bytes are cut, and what cannot be used is named."""

from __future__ import annotations

import csv
import io
import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import InputError, SkytideError
from skytide.runtime.network import rows as module
from skytide.runtime.network.rows import Row, RowReader, form_of, id_of, number_of

NAMES = st.text(st.sampled_from('ab17-, "\n\r;é'), min_size=1, max_size=4).filter(lambda name: name.strip(" \n\r"))
NUMBERS = st.one_of(st.none(), st.integers(-3, 3), st.floats(allow_nan=False), st.sampled_from([0.1, 5e-324, -0.0]))
TABLES = st.lists(st.tuples(NAMES, NUMBERS, NUMBERS), max_size=8)


def everything(reader: RowReader, data: bytes, cuts: list[int]) -> list[Row | InputError]:
    """What a reader gives of bytes that come in pieces."""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    found = [one for start, end in pairwise(places) for one in reader.feed(data[start:end])]
    return [*found, *reader.feed(b"", last=True)]


def expected(table: list[tuple[str, float | None, float | None]]) -> list[tuple[object, tuple[str, ...] | None]]:
    found: list[tuple[object, tuple[str, ...] | None]] = []
    for name, *values in table:
        numbers = tuple(repr(math.nan if value is None else float(value)) for value in values)
        found.append((id_of(name), None if numbers == ("nan", "nan") else numbers))
    return found


def shown(found: list[Row | InputError]) -> list[object]:
    return [one if isinstance(one, InputError) or one[1] is None else (one[0], _texts(one[1])) for one in found]


def _texts(values: tuple[float, ...]) -> tuple[str, ...]:
    return tuple(map(repr, values))


@given(TABLES, st.lists(st.integers(0, 500), max_size=5), st.booleans())
def test_csv_is_what_the_writer_wrote_however_it_is_cut(
    table: list[tuple[str, float | None, float | None]], cuts: list[int], crlf: bool
) -> None:
    text = io.StringIO()
    # Without \r in its line ends the writer does not see that a field with one needs quotes.
    writer = csv.writer(text) if crlf else csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["b", "other", "name", "a"])
    writer.writerows(
        [["" if b is None else repr(b), "x,y", name, "" if a is None else repr(a)] for name, a, b in table]
    )
    found = everything(RowReader("csv", "name", ("a", "b")), text.getvalue().encode(), cuts)
    assert shown(found) == expected(table)


@given(TABLES, st.lists(st.integers(0, 500), max_size=5))
def test_lines_of_json_are_what_the_writer_wrote_however_they_are_cut(
    table: list[tuple[str, float | None, float | None]], cuts: list[int]
) -> None:
    text = "".join(json.dumps({"name": name, "a": a, "b": b}) + "\n" for name, a, b in table)
    assert shown(everything(RowReader("ndjson", "name", ("a", "b")), text.encode(), cuts)) == expected(table)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=3), st.sampled_from(["csv", "ndjson"]))
def test_any_bytes_are_rows_or_errors_and_all_are_taken(data: bytes, cuts: list[int], form: str) -> None:
    reader = RowReader(form, "n", ("a",))
    head = b"n,a\n" if form == "csv" else b""
    found = everything(reader, head + data, cuts)
    assert reader.taken == len(head + data)
    assert not reader.torn
    assert all(isinstance(one, tuple | InputError) for one in found)


def test_a_row_is_not_read_before_its_line_has_an_end() -> None:
    reader = RowReader("csv", "n", ("a",))
    assert list(reader.feed(b"n,a\nx,1")) == []
    assert reader.torn
    assert list(reader.feed(b"2\n")) == [("x", (12.0,))]
    assert (reader.torn, reader.row, reader.taken) == (False, 1, 9)


def test_an_open_quote_costs_the_row_it_is_in_and_no_other() -> None:
    found = everything(RowReader("csv", "n", ("a",)), b'n,a\nx,1\n"y,2\nz,3\n', [])
    assert [one if isinstance(one, tuple) else str(one) for one in found] == [
        ("x", (1.0,)),
        "row 2: a quote is not closed; mend the row",
        ("z", (3.0,)),
    ]


def test_a_line_without_an_end_does_not_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 100)
    for form, opened in (("csv", b""), ("csv", b'"'), ("ndjson", b"")):
        reader = RowReader(form, "n", ("a",))
        list(reader.feed(b"n,a\n" if form == "csv" else b""))
        found = [one for _ in range(50) for one in reader.feed(opened + b"x" * 30)]
        found += reader.feed(b"\n" + (b"z,3\n" if form == "csv" else b'{"n": "z", "a": 3}\n'))
        assert len(reader._pending) <= 200
        assert isinstance(found[0], InputError)
        assert found[-1] == ("z", (3.0,))


@pytest.mark.parametrize(
    ("form", "line", "said"),
    [
        ("csv", "x,1,2,3", "row 1: the row has 4 values for 3 columns; mend the row"),
        ("csv", "x,oops,2", "row 1, column 'a': 'oops' is not a number; give numbers, or nothing"),
        ("csv", "x,1,1_000", "row 1, column 'b': '1_000' is not a number; give numbers, or nothing"),
        ("csv", "x,1e999,2", "row 1, column 'a': '1e999' is beyond what a float64 holds; use another unit"),
        ("csv", ",1,2", "row 1, column 'n': the id is missing; name the object"),
        ("csv", 'x,"1"2,2', 'row 1: the row is not CSV; write " in quotes as ""'),
        ("ndjson", "[1]", "row 1: the line is not an object; write an object on each line"),
        ("ndjson", "{", "row 1: the line is not JSON; write an object on each line"),
        ("ndjson", '{"n": "x"}', "row 1: the row has none of the columns a, b; give null to take an object out"),
        ("ndjson", '{"n": 1.5, "a": 1}', "row 1, column 'n': 1.5 is not an id; use whole numbers of 64 bits or texts"),
        ("ndjson", '{"n": true, "a": 1}', "row 1, column 'n': True is not an id"),
        ("ndjson", '{"n": 1, "a": true}', "row 1, column 'a': True is not a number"),
        ("ndjson", '{"n": 1, "a": 9007199254740993}', "has more digits than a float64 holds; round it"),
        ("ndjson", '{"n": "\\ud800", "a": 1}', "is not an id"),
    ],
)
def test_what_cannot_be_used_is_named(form: str, line: str, said: str) -> None:
    head = "n,a,b\n" if form == "csv" else ""
    (found,) = everything(RowReader(form, "n", ("a", "b")), f"{head}{line}\n".encode(), [])
    assert said in str(found)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("n,a", "'b' is no column; the header has n, a"),
        ("m,a,b", "'n' is no column"),
        ("n,a,b,a", "'a' names two columns"),
        ('n,"a,b', "a quote is not closed"),
    ],
)
def test_a_header_that_lacks_a_column_is_raised(header: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        everything(RowReader("csv", "n", ("a", "b")), header.encode(), [])


def test_an_object_has_one_id_in_both_forms() -> None:
    for text, one in (("17", 17), ("-3", -3), ("0", 0), ("007", "007"), ("-0", "-0"), ("+5", "+5"), ("1.0", "1.0")):
        from_csv = everything(RowReader("csv", "n", ("a",)), f"n,a\n{text},1\n".encode(), [])
        from_json = everything(RowReader("ndjson", "n", ("a",)), b'{"n": "%s", "a": 1}' % text.encode(), [])
        assert from_csv == from_json == [(one, (1.0,))]
    large = str(1 << 63)
    assert (id_of(large), id_of(str((1 << 63) - 1))) == (large, (1 << 63) - 1)
    with pytest.raises(InputError, match="is not an id"):
        id_of(1 << 63)


def test_infinities_and_extremes_are_numbers() -> None:
    texts = ["inf", "-Infinity", "1.797e308", "5e-324", " 7 ", "+.5", "5.", "-0.0", "9007199254740992"]
    assert list(map(number_of, texts)) == [math.inf, -math.inf, 1.797e308, 5e-324, 7.0, 0.5, 5.0, -0.0, 2.0**53]
    assert math.isnan(number_of("NaN"))


def test_forms_and_columns_that_cannot_be_are_refused() -> None:
    for make in (
        lambda: form_of("rows.txt"),
        lambda: RowReader("xml", "n", ("a",)),
        lambda: RowReader("csv", "a", ("a",)),
    ):
        with pytest.raises(SkytideError):
            make()
