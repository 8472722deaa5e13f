"""Tables in: numpy, Arrow, pandas, polars; orientation; missing values; what is refused."""

import datetime
import decimal
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import InputError, PreferenceError
from skytide.missing import with_worst
from skytide.reference.batch import skyline as reference_skyline
from skytide.tables import as_array, group_codes, oriented, partly, restored

PRICE = sk.Preference(minimize=["price"], maximize=["mpg"])
COLUMNS = {"price": [3.0, 1.0, 2.0], "mpg": [30, 20, 20]}


@pytest.mark.parametrize(
    "table",
    [
        COLUMNS,
        pa.table(COLUMNS),
        pa.table(COLUMNS).to_batches()[0],
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        pa.RecordBatchReader.from_batches(pa.table(COLUMNS).schema, pa.table(COLUMNS).to_batches()),
    ],
    ids=["mapping", "table", "batch", "pandas", "polars", "stream"],
)
def test_every_kind_of_table_gives_the_same_mask(table: Any) -> None:
    assert sk.skyline(table, PRICE).tolist() == [True, True, False]


def test_a_float64_matrix_is_passed_on_without_a_copy_and_never_changed() -> None:
    matrix = np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0]])
    matrix.setflags(write=False)
    assert oriented(matrix, sk.Preference.columns(2)).values is matrix
    assert sk.skyline(matrix).tolist() == [True, True, False]
    assert sk.skyline(matrix, sk.Preference(maximize=[0, 1])).tolist() == [False, False, True]


def test_arrays_of_any_layout_and_number_type_work() -> None:
    matrix = np.array([[1, 2], [2, 1], [2, 2]])
    for variant in (
        matrix,
        matrix.astype(np.float32),
        np.asfortranarray(matrix.astype(float)),
        matrix.astype(np.uint8),
    ):
        assert sk.skyline(variant).tolist() == [True, True, False]
    assert sk.skyline(matrix[:, ::-1]).tolist() == [True, True, False]
    masked = np.ma.masked_array(matrix, mask=[[False, False], [True, False], [False, False]])
    assert sk.skyline(masked, nulls="drop").tolist() == [True, False, False]


def test_no_rows_give_an_empty_mask() -> None:
    assert sk.skyline(np.zeros((0, 3))).tolist() == []
    assert (
        sk.skyline(pa.table({"price": pa.array([], pa.float64()), "mpg": pa.array([], pa.int64())}), PRICE).tolist()
        == []
    )


VALUES = st.one_of(
    st.none(),
    st.integers(-2, 2).map(float),
    st.sampled_from([math.inf, -math.inf, math.nan, 1.7976931348623157e308, -0.0, 5e-324]),
)


@given(st.lists(st.tuples(VALUES, VALUES), max_size=12))
def test_missing_values_under_worst_are_worse_than_infinity_and_equal_to_each_other(
    rows: list[tuple[Any, Any]],
) -> None:
    table = {"a": pa.array([a for a, _ in rows], pa.float64()), "b": pa.array([b for _, b in rows], pa.float64())}
    preference = sk.Preference(minimize=["a"], maximize=["b"])

    def key(value: float | None, sign: int) -> tuple[int, float]:
        return (1, 0.0) if value is None or math.isnan(value) else (0, sign * value)

    expected = reference_skyline([(key(a, 1), key(b, -1)) for a, b in rows])
    assert np.flatnonzero(sk.skyline(table, preference, nulls="worst")).tolist() == list(expected)
    whole = [i for i, row in enumerate(rows) if not any(v is None or math.isnan(v) for v in row)]
    kept = reference_skyline([(key(rows[i][0], 1), key(rows[i][1], -1)) for i in whole])
    assert np.flatnonzero(sk.skyline(table, preference, nulls="drop")).tolist() == [whole[i] for i in kept]


@given(st.lists(st.tuples(VALUES, VALUES), max_size=6))
def test_oriented_values_can_be_restored(rows: list[tuple[Any, Any]]) -> None:
    table = {"a": pa.array([a for a, _ in rows], pa.float64()), "b": pa.array([b for _, b in rows], pa.float64())}
    preference = sk.Preference(minimize=["a"], maximize=["b"])
    back = restored(oriented(table, preference, "worst").values, preference, "worst")
    assert [[None if math.isnan(v) else v for v in row] for row in back.tolist()] == [
        [None if v is None or math.isnan(v) else v for v in row] for row in rows
    ]


def test_a_missing_value_under_error_names_row_and_column() -> None:
    with pytest.raises(InputError, match="row 2, column 'mpg'"):
        sk.skyline({"price": [1.0, 2.0], "mpg": [3.0, None]}, PRICE)


@pytest.mark.parametrize(
    ("column", "order"),
    [
        ([datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)], [1.0, 0.0]),
        ([datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 1)], [1.0, 0.0]),
        ([decimal.Decimal("1.10"), decimal.Decimal("1.09")], [1.0, 0.0]),
        ([True, False], [1.0, 0.0]),
        (pa.array([2, 1], pa.uint64()), [1.0, 0.0]),
        (pa.array([2.5, 1.5], pa.float16()), [1.0, 0.0]),
        (pa.array([2, 1]).dictionary_encode(), [1.0, 0.0]),
        (pa.array(np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[ns]")), [1.0, 0.0]),
        (pa.array([datetime.timedelta(2), datetime.timedelta(1)]), [1.0, 0.0]),
    ],
)
def test_whatever_has_an_order_of_numbers_can_compete(column: Any, order: list[float]) -> None:
    found = oriented({"c": column}, sk.Preference(minimize=["c"])).values[:, 0]
    assert (found[0] > found[1]) == (order[0] > order[1])


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (["1", "two"], "row 2, column 'c': 'two' is text"),
        (["1", "2"], "holds string"),
        ([2**53 + 1, 1], "not exact in float64"),
        (pa.array([2**64 - 1], pa.uint64()), "not exact in float64"),
        (pa.array([1], pa.timestamp("ns")), "finer than a microsecond"),
        ([decimal.Decimal(10) ** 30 + 1], "not exact in float64"),
        ([[1, 2]], "not numbers"),
        ([{"x": 1}], "not numbers"),
    ],
)
def test_what_is_not_numbers_or_not_exact_is_refused(column: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        oriented({"c": column}, sk.Preference(minimize=["c"]))


def test_bad_tables_are_refused_with_a_remedy() -> None:
    with pytest.raises(InputError, match="no such column; choose one of: price, mpg"):
        sk.skyline(COLUMNS, sk.Preference(minimize=["cost"]))
    with pytest.raises(InputError, match="several columns"):
        sk.skyline(pa.table([[1.0], [2.0]], names=["a", "a"]), sk.Preference(minimize=["a"]))
    with pytest.raises(InputError, match="not a table"):
        sk.skyline(np.zeros(3))
    with pytest.raises(InputError, match="not a table"):
        sk.skyline("cars.csv", PRICE)
    with pytest.raises(InputError, match="2 column"):
        sk.skyline(np.zeros((3, 2)), sk.Preference(minimize=[5]))
    with pytest.raises(InputError, match="no column names"):
        sk.skyline(np.zeros((3, 2)), PRICE)
    with pytest.raises(InputError):
        sk.skyline(np.zeros((3, 2), dtype=complex))
    with pytest.raises(PreferenceError, match="needs a preference"):
        sk.skyline(COLUMNS)


GROUP = st.one_of(st.none(), st.sampled_from(["x", "y"]))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), GROUP, st.integers(0, 1)), max_size=20))
def test_groups_have_skylines_of_their_own(rows: list[tuple[int, int, str | None, int]]) -> None:
    table = pa.table(
        {
            "a": pa.array([r[0] for r in rows], pa.int64()),
            "b": pa.array([r[1] for r in rows], pa.int64()),
            "g": pa.array([r[2] for r in rows], pa.string()),
            "h": pa.array([r[3] for r in rows], pa.int64()),
        }
    )
    expected = [False] * len(rows)
    for key in {row[2:] for row in rows}:
        members = [i for i, row in enumerate(rows) if row[2:] == key]
        for position in reference_skyline([rows[i][:2] for i in members]):
            expected[members[position]] = True
    assert sk.skyline(table, sk.Preference(minimize=["a", "b"], by=["g", "h"])).tolist() == expected
    codes, count = group_codes(table, ("g", "h"))
    assert count == len({row[2:] for row in rows})
    assert sorted(set(codes.tolist())) == list(range(count))


MISSING = st.one_of(st.none(), st.just(math.nan))
NUMBER = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([math.inf, -math.inf, 1.797e308, -1.797e308, 5e-324]))


@given(st.lists(st.tuples(MISSING | NUMBER, MISSING | NUMBER), max_size=8))
def test_partly_keeps_what_is_there_oriented_and_marks_what_is_missing(rows: list[tuple[Any, Any]]) -> None:
    table = {"a": pa.array([row[0] for row in rows], pa.float64()), "b": [row[1] for row in rows]}
    found = partly(table, sk.Preference(minimize=["a"], maximize=["b"]))
    gap = [[value is None or math.isnan(value) for value in row] for row in rows]
    assert np.isnan(found).tolist() == gap
    for values, row in zip(found.tolist(), rows, strict=True):
        for value, given_value, sign in zip(values, row, (1, -1), strict=True):
            assert math.isnan(value) or value == sign * given_value


def test_partly_refuses_what_is_not_numbers_and_copies_nothing_that_it_need_not() -> None:
    matrix = np.array([[1.0, math.nan], [math.inf, -math.inf]])
    assert partly(matrix, sk.Preference.columns(2)) is matrix
    assert partly(matrix[:, ::-1], sk.Preference.columns(2)).tolist()[1] == [-math.inf, math.inf]
    assert partly({"a": [None, None]}, sk.Preference(maximize=["a"])).shape == (2, 1)
    with pytest.raises(InputError, match="row 2, column 'a': 'x' is text"):
        partly({"a": ["1", "x"]}, sk.Preference(minimize=["a"]))
    with pytest.raises(InputError, match="no such column"):
        partly({"a": [1.0]}, sk.Preference(minimize=["b"]))


@given(st.lists(st.just(math.nan) | NUMBER | st.sampled_from([1.2e300, 1.3e300, -1.3e300]), max_size=12))
def test_with_worst_orders_as_the_policy_does_and_leaves_its_input(values: list[float]) -> None:
    given_values = np.array(values).reshape(-1, 1)
    before = given_values.copy()
    found = with_worst(given_values)
    assert np.array_equal(given_values, before, equal_nan=True) and not np.isnan(found).any()
    assert np.array_equal(found, oriented(given_values, sk.Preference.columns(1), "worst").values)
    for one, own in zip(values, found[:, 0].tolist(), strict=True):
        for other, its in zip(values, found[:, 0].tolist(), strict=True):
            if math.isnan(one) or math.isnan(other):
                assert (own < its) == (math.isnan(other) and not math.isnan(one))
            else:
                assert (own < its) == (one < other)


def test_days_are_times_in_a_list_as_in_a_column() -> None:
    days = [np.datetime64("2020-01-02"), np.datetime64("2020-01-05")]
    assert as_array(days).tolist() == as_array(np.array(days)).tolist()
