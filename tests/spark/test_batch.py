"""The skyline of a DataFrame: its parts by themselves, and on a real Spark against the oracle."""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import InputError, OptionError, PreferenceError
from skytide.model import MissingPolicy
from skytide.reference import batch as reference
from skytide.spark import batch as operator
from skytide.spark import plain_errors, skyline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXTREMES = [math.inf, -math.inf, 1.797e308, -1.797e308, 5e-324, -0.0, 0.0]
NUMBERS = st.one_of(st.integers(0, 4).map(float), st.sampled_from(EXTREMES))
MISSING = st.one_of(NUMBERS, st.none(), st.just(math.nan))


def oracle(rows: Sequence[dict[str, Any]], preference: sk.Preference, nulls: MissingPolicy = "error") -> list[int]:
    """The `id`s of the skyline, by definition: a missing value is a pair that is worse than every number's."""
    groups: dict[Any, list[tuple[int, Any]]] = {}
    for row in rows:
        values = []
        for name, sign in zip(preference.names, preference.signs, strict=True):
            value = row[str(name)]
            absent = value is None or (isinstance(value, float) and math.isnan(value))
            values.append((1, 0.0) if absent else (0, float(sign) * value))
        if nulls == "drop" and any(absent for absent, _ in values):
            continue
        groups.setdefault(tuple(row[str(name)] for name in preference.by), []).append((row["id"], values))
    found = []
    for members in groups.values():
        found += [members[position][0] for position in reference.skyline([values for _, values in members])]
    return sorted(found)


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.select("id").collect())


def grid(count: int, columns: int, seed: int, values: int = 12) -> list[dict[str, Any]]:
    """Rows on a small grid, so that there are ties; the first column is against the others, so that many stay."""
    random = np.random.default_rng(seed)
    matrix = random.integers(0, values, (count, columns)).astype(float)
    matrix[:, 0] = values * (columns - 1) - matrix[:, 1:].sum(axis=1) + random.integers(0, 3, count)
    return [
        {**{f"c{k}": float(value) for k, value in enumerate(row)}, "id": number, "g": "abcde"[number * number % 5]}
        for number, row in enumerate(matrix)
    ]


# -- the tasks, without Spark ------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(MISSING, MISSING, MISSING), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=6),
    parts=st.integers(1, 5),
    size=st.integers(1, 7),
    nulls=st.sampled_from(["drop", "worst"]),
)
def test_pruned_and_merged_in_any_parts_the_answer_is_the_oracles(
    rows: list[tuple[float | None, ...]], cuts: list[int], parts: int, size: int, nulls: MissingPolicy
) -> None:
    preference = sk.Preference(minimize=["c0", "c1"], maximize=["c2"])
    schema = pa.schema([("c0", pa.float64()), ("c1", pa.float64()), ("c2", pa.float64()), ("id", pa.int64())])
    dicts = [{"c0": a, "c1": b, "c2": c, "id": number} for number, (a, b, c) in enumerate(rows)]
    table = pa.Table.from_pylist(dicts, schema)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    spread: list[pa.RecordBatch] = []
    for start, stop in itertools.pairwise(bounds):
        batches = iter(table.slice(start, stop - start).to_batches(size))
        survivors = operator.survivors_of(batches, preference, nulls)
        assert (survivors is None) == (start == stop)
        if survivors is not None:
            spread += operator.spread_rows(survivors, preference, nulls, parts)
    found: list[int] = []
    for part in range(parts):
        mine = (batch.filter(pc.equal(batch.column("part"), part)) for batch in spread)
        for batch in operator.merge_part(mine, 3):
            found += batch.column("id").to_pylist()
    assert sorted(found) == oracle(dicts, preference, nulls)


def test_batches_are_compared_in_runs_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "PENDING_ROWS", 50)
    monkeypatch.setattr(operator, "WITNESS_BYTES", 100)
    rows = grid(400, 3, seed=4)
    preference = sk.Preference(minimize=["c0", "c1", "c2"])
    table = pa.Table.from_pylist(rows)
    survivors = operator.survivors_of(iter(table.to_batches(30)), preference, "error")
    assert survivors is not None
    assert sorted(survivors.column("id").to_pylist()) == oracle(rows, preference)
    assert survivors.column("id").num_chunks == 1
    pieces = list(operator.spread_rows(survivors, preference, "error", 2))
    assert sum(pc.any(batch.column("witness")).as_py() for batch in pieces) == -(-survivors.num_rows // 4)


# -- on Spark ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return grid(300, 3, seed=1)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows))


@pytest.mark.parametrize("partitions", [1, 2, 3, 5, 7])
def test_the_answer_does_not_depend_on_the_partitions(
    partitions: int, frame: DataFrame, rows: list[dict[str, Any]]
) -> None:
    preference = sk.Preference(minimize=["c0", "c1"], maximize=["c2"])
    expected = oracle(rows, preference)
    assert expected == np.flatnonzero(sk.skyline(pa.Table.from_pylist(rows), preference)).tolist()
    assert ids(skyline(frame.repartition(partitions), preference, parts=8 - partitions)) == expected


@pytest.mark.parametrize("carry", [True, False])
def test_each_group_has_a_skyline_of_its_own(carry: bool, frame: DataFrame, rows: list[dict[str, Any]]) -> None:
    preference = sk.Preference(minimize=["c0", "c1", "c2"], by=["g"])
    expected = oracle(rows, preference)
    assert len(expected) > 60
    assert ids(skyline(frame.repartition(4), preference, carry=carry)) == expected


def test_every_equal_row_stays_and_large_answers_are_whole(spark: SparkSession) -> None:
    points = spark.range(40_000, numPartitions=3).selectExpr("id", "id % 20000 as a", "-(id % 20000) as b")
    preference = sk.Preference(minimize=["a", "b"])
    assert skyline(points, preference).count() == 40_000
    assert skyline(points, preference, carry=False).count() == 40_000


MIXED: list[dict[str, Any]] = [
    {"id": 0, "c0": 1.0, "c1": None, "g": None},
    {"id": 1, "c0": math.nan, "c1": 1.0, "g": None},
    {"id": 2, "c0": 2.0, "c1": 2.0, "g": "x"},
    {"id": 3, "c0": 3.0, "c1": 3.0, "g": "x"},
    {"id": 4, "c0": None, "c1": math.nan, "g": "x"},
    {"id": 5, "c0": math.inf, "c1": -math.inf, "g": "y"},
    {"id": 6, "c0": 1.0, "c1": math.nan, "g": None},
    {"id": 7, "c0": None, "c1": -math.inf, "g": "y"},
]
MIXED_SCHEMA = "id int, c0 double, c1 double, g string"


@pytest.mark.parametrize("carry", [True, False])
@pytest.mark.parametrize("nulls", ["drop", "worst"])
@pytest.mark.parametrize("by", [[], ["g"]])
def test_missing_values_follow_the_policy(
    spark: SparkSession, nulls: MissingPolicy, by: list[str], carry: bool
) -> None:
    preference = sk.Preference(minimize=["c0", "c1"], by=by)
    frame = spark.createDataFrame(MIXED, MIXED_SCHEMA).repartition(3)
    assert ids(skyline(frame, preference, nulls=nulls, carry=carry)) == oracle(MIXED, preference, nulls)


@pytest.mark.parametrize("bad", ["NULL", "double('NaN')"])
def test_a_missing_value_under_the_policy_error_surfaces_as_one_line(spark: SparkSession, bad: str) -> None:
    frame = spark.sql(f"SELECT double(1) a, double(2) b UNION ALL SELECT {bad}, 3")
    best = skyline(frame, sk.Preference(minimize=["b"], maximize=["a"]))
    with pytest.raises(InputError) as caught, plain_errors():
        best.collect()
    text = str(caught.value)
    assert text.startswith("column 'a': the value is missing (NULL or NaN); choose the policy drop or worst")
    assert "\n" not in text
    assert "row" not in text


def test_a_value_that_is_not_exact_in_float64_surfaces_as_one_line(spark: SparkSession) -> None:
    best = skyline(spark.sql("SELECT 9007199254740993 a"), sk.Preference(minimize=["a"]))
    with (
        pytest.raises(InputError, match=r"column 'a': 9007199254740993 is a whole number beyond 2\^53"),
        plain_errors(),
    ):
        best.collect()


PAYLOAD = """
    SELECT id,
           double(id % 3) AS c0,
           struct(id AS x, array(struct(string(id) AS y)) AS z) AS nested,
           IF(id % 2 = 0, array(id, NULL), NULL) AS list,
           map('k', id) AS mapping,
           binary(string(id)) AS bytes,
           decimal(id) / 7 AS exact,
           timestamp_ntz'2024-02-29 01:02:03.000004' AS local_time,
           timestamp_micros(id) AS instant,
           date_add(date'2024-01-01', int(id)) AS day,
           interval '1 02:03:04.5' day to second AS span,
           parse_json('{"a":1}') AS anything,
           NULL AS nothing,
           IF(id = 4, NULL, concat('é', id)) AS `a name.with ``marks`
    FROM range(9)
"""


@pytest.mark.parametrize("carry", [True, False])
def test_columns_of_any_type_pass_through_unchanged(spark: SparkSession, carry: bool) -> None:
    frame = spark.sql(PAYLOAD).repartition(2)
    best = skyline(frame, sk.Preference(minimize=["c0"]), carry=carry)
    assert best.schema == frame.schema
    key = "id"
    expected = sorted(frame.where("c0 = 0").collect(), key=lambda row: row[key])
    found = sorted(best.collect(), key=lambda row: row[key])
    assert [row.id for row in found] == [0, 3, 6]
    assert [str(row) for row in found] == [str(row) for row in expected]


def test_columns_that_arrow_does_not_know_pass_without_carrying(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, make_interval(1, 2) AS span FROM range(3)")
    best = skyline(frame, sk.Preference(maximize=["id"]), carry=False)
    assert best.select("id", "span").where("span IS NOT NULL").drop("span").collect()[0].id == 2
    with pytest.raises(InputError, match=r"column 'span': .*interval.*carry=False"):
        skyline(frame, sk.Preference(maximize=["id"]))


def test_decimals_dates_times_and_booleans_compete(spark: SparkSession) -> None:
    rows = [
        {
            "id": number,
            "c0": decimal.Decimal(number % 5) / 4,
            "c1": datetime.date(2024, 1, 1 + number % 7),
            "c2": datetime.datetime(2024, 1, 1, 0, 0, number % 11),
            "c3": number % 2 == 0,
            "c4": number % 13,
        }
        for number in range(200)
    ]
    schema = "id int, c0 decimal(10,2), c1 date, c2 timestamp_ntz, c3 boolean, c4 tinyint"
    frame = spark.createDataFrame(rows, schema).repartition(3)
    plain = [
        {
            **row,
            "c0": float(row["c0"]),  # type: ignore[arg-type]
            "c1": row["c1"].toordinal(),  # type: ignore[attr-defined]
            "c2": row["c2"].second,  # type: ignore[attr-defined]
        }
        for row in rows
    ]
    preference = sk.Preference(minimize=["c0", "c1"], maximize=["c2", "c3", "c4"])
    assert ids(skyline(frame, preference)) == oracle(plain, preference)


def test_tables_without_rows_or_with_empty_partitions_are_tables(spark: SparkSession) -> None:
    empty = spark.createDataFrame([], "id int NOT NULL, a double, g string")
    one = spark.sql("SELECT 1 AS id, double(5) AS a, 'x' AS g").repartition(4)
    for by in ([], ["g"]):
        preference = sk.Preference(minimize=["a"], by=by)
        assert skyline(empty, preference).schema == empty.schema
        assert skyline(empty, preference).collect() == []
        assert ids(skyline(one, preference)) == [1]


def test_the_schema_keeps_its_names_metadata_and_what_cannot_be_null(spark: SparkSession) -> None:
    from pyspark.sql import types

    schema = types.StructType(
        [
            types.StructField("id", types.LongType(), False, {"comment": "a key"}),
            types.StructField("a", types.FloatType(), False),
            types.StructField("twice", types.StringType(), True),
            types.StructField("twice", types.IntegerType(), True, {"x": 1}),
        ]
    )
    frame = spark.createDataFrame([(1, 2.0, "u", 3), (2, 1.0, "v", None)], schema)
    for carry in (True, False):
        best = skyline(frame, sk.Preference(minimize=[1]), carry=carry)
        assert best.schema == schema
        assert [tuple(row) for row in best.collect()] == [(2, 1.0, "v", None)]


def test_a_preference_that_does_not_fit_is_refused_before_anything_runs(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 a, 'x' b, array(1) c, 'y' COLLATE UTF8_LCASE d, 2 e, 3 e")
    for preference, reason in [
        (sk.Preference(minimize=["z"]), "column 'z': there is no such column; choose one of: a, b, c, d, e, e"),
        (sk.Preference(minimize=[9]), "column 9: there is no such column"),
        (sk.Preference(minimize=["b"]), "column 'b': the column holds string, not numbers"),
        (sk.Preference(maximize=["c"]), "column 'c': the column holds array<int>, not numbers"),
        (sk.Preference(minimize=["e"]), "column 'e': there are several columns of this name"),
        (sk.Preference(minimize=["a"], by=["c"]), "column 'c': rows cannot be grouped by array<int>"),
        (sk.Preference(minimize=["a"], by=["d"]), "column 'd': groups are told apart by their exact text"),
    ]:
        with pytest.raises(InputError) as caught:
            skyline(frame, preference)
        assert str(caught.value).startswith(reason)
    with pytest.raises(PreferenceError):
        skyline(frame, sk.Preference(minimize=["a", 0]))
    for wrong in ({"parts": 0}, {"nulls": "ignore"}):
        with pytest.raises(OptionError):
            skyline(frame, sk.Preference(minimize=["a"]), **wrong)


def test_a_stream_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InputError, match="use a window over the stream"):
        skyline(spark.readStream.format("rate").load(), sk.Preference(minimize=["value"]))


def test_it_is_a_step_of_a_larger_plan(frame: DataFrame, rows: list[dict[str, Any]]) -> None:
    preference = sk.Preference(minimize=["c0", "c1"])
    best = frame.where("g <> 'a'").transform(lambda df: skyline(df, preference)).groupBy().sum("id")
    expected = oracle([row for row in rows if row["g"] != "a"], preference)
    assert best.collect()[0][0] == sum(expected)
