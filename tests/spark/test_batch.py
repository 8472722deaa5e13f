"""The skyline of a DataFrame: its parts by themselves, and on a real Spark against the oracle."""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
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
from skytide.spark import batch_strong as strong
from skytide.spark import batch_tasks as tasks
from skytide.spark import plain_errors, skyline
from skytide.spark.batch import part_names

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
    together=st.integers(1, 5),
    size=st.integers(1, 7),
    nulls=st.sampled_from(["drop", "worst"]),
)
def test_pruned_and_merged_in_any_parts_the_answer_is_the_oracles(
    rows: list[tuple[float | None, ...]], cuts: list[int], parts: int, together: int, size: int, nulls: MissingPolicy
) -> None:
    preference = sk.Preference(minimize=["c0", "c1"], maximize=["c2"])
    schema = pa.schema([("c0", pa.float64()), ("c1", pa.float64()), ("c2", pa.float64()), ("id", pa.int64())])
    dicts = [{"c0": a, "c1": b, "c2": c, "id": number} for number, (a, b, c) in enumerate(rows)]
    table = pa.Table.from_pylist(dicts, schema)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    spread: list[pa.RecordBatch] = []
    for start, stop in itertools.pairwise(bounds):
        batches = iter(table.slice(start, stop - start).to_batches(size))
        survivors = tasks.survivors_of(batches, preference, nulls)
        assert (survivors is None) == (start == stop)
        if survivors is not None:
            spread += tasks.spread_rows(survivors, preference, nulls, range(7, 7 + parts))
    found: list[int] = []
    for first in range(7, 7 + parts, together):
        several = pa.array(range(first, min(first + together, 7 + parts)), pa.int32())
        mine = (batch.filter(pc.is_in(batch.column("part"), several)) for batch in spread)
        for batch in tasks.merge_part(mine, preference, nulls):
            found += batch.column("id").to_pylist()
    assert sorted(found) == oracle(dicts, preference, nulls)


def test_batches_are_compared_in_runs_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "PENDING_ROWS", 50)
    monkeypatch.setattr(tasks, "WITNESS_BYTES", 100)
    rows = grid(400, 3, seed=4)
    preference = sk.Preference(minimize=["c0", "c1", "c2"])
    table = pa.Table.from_pylist(rows)
    survivors = tasks.survivors_of(iter(table.to_batches(30)), preference, "error")
    assert survivors is not None
    assert sorted(survivors.column("id").to_pylist()) == oracle(rows, preference)
    assert survivors.column("id").num_chunks == 1
    pieces = list(tasks.spread_rows(survivors, preference, "error", [0, 1]))
    assert sum(pc.any(batch.column("witness")).as_py() for batch in pieces) == -(-survivors.num_rows // 4)


def test_a_claim_that_no_row_is_as_good_as_is_an_error() -> None:
    preference = sk.Preference(minimize=["a", "b"])
    survivors = pa.table({"a": [1.0, 3.0], "b": [3.0, 1.0]})
    spread = list(tasks.spread_rows(survivors, preference, "error", [0]))
    for kept in ([(1.0, 3.0)], [(2.0, 3.0), (3.0, 1.0)]):
        assert sum(batch.num_rows for batch in tasks.merge_part(iter(spread), preference, "error", kept)) == 2
    with pytest.raises(InputError, match=r"the table changed between two readings.*stable=False"):
        list(tasks.merge_part(iter(spread), preference, "error", [(1.0, 3.0), (2.0, 2.0)]))


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


# -- parts and strong rows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parts", "partitions"), [(2, 2), (5, 5), (8, 200), (3, 7)])
def test_spark_sends_parts_to_different_partitions(spark: SparkSession, parts: int, partitions: int) -> None:
    names = part_names(parts, partitions)
    frame = spark.createDataFrame([(name,) for name in names], "part int")
    placed = frame.repartition(partitions, "part").selectExpr("spark_partition_id() AS place").collect()
    assert len({row.place for row in placed}) == len(names) == parts


@pytest.fixture
def every_sample_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strong, "LEAST_SAMPLE", 1)
    monkeypatch.setattr(strong, "LEAST_SHARE", 0.0)


def ties(count: int, seed: int, odd: Sequence[float | None] = ()) -> list[dict[str, Any]]:
    """Rows of which a few dominate most, with ties; some values are odd."""
    random = np.random.default_rng(seed)
    matrix = random.integers(0, 6, (count, 3)).astype(object)
    for value in odd:
        matrix[random.integers(0, count, 4), random.integers(0, 3, 4)] = value
    return [
        {**{f"c{k}": None if value is None else float(value) for k, value in enumerate(row)}, "id": number}
        for number, row in enumerate(matrix)
    ]


@pytest.mark.parametrize("nulls", ["drop", "worst"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_filter_of_a_cached_table_changes_no_answer(
    spark: SparkSession, every_sample_counts: None, seed: int, nulls: MissingPolicy
) -> None:
    rows = ties(300, seed, [None, math.nan, math.inf, -math.inf, -0.0, 1.797e308])
    preference = sk.Preference(minimize=["c0", "c1"], maximize=["c2"])
    cached = spark.createDataFrame(rows, "c0 double, c1 double, c2 float, id int").repartition(3).cache()
    plain = cached.collect()  # Spark made floats of the last column
    rows = [row.asDict() for row in plain]
    inner, claims = strong.filtered(cached, preference, nulls)
    assert claims
    assert inner.count() < 250
    assert ids(skyline(cached, preference, nulls=nulls)) == oracle(rows, preference, nulls)
    assert ids(skyline(cached, preference, nulls=nulls, parts=3, carry=False)) == oracle(rows, preference, nulls)
    cached.unpersist()


def test_the_filter_knows_whole_numbers_dates_booleans_and_decimals(
    spark: SparkSession, every_sample_counts: None
) -> None:
    frame = spark.sql("""
        SELECT id, CAST(hash(id) % 7 AS DECIMAL(6,2)) / 4 AS a, date_add(date'2024-01-01', int(hash(id, 1) % 5)) AS b,
               hash(id, 2) % 3 = 0 AS c, hash(id, 3) % 11 AS d, CAST(hash(id, 4) % 3 AS TINYINT) AS e
        FROM range(400)
    """).selectExpr("id", "CAST(a AS DECIMAL(8,3)) AS a", "b", "c", "d", "e")
    preference = sk.Preference(minimize=["a", "b"], maximize=["c", "d", "e"])
    _, claims = strong.filtered(frame, preference, "error")
    assert claims
    assert ids(skyline(frame, preference, stable=True)) == ids(skyline(frame, preference, stable=False))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("double('NaN')", "the value is missing"),
        ("double(NULL)", "the value is missing"),
        ("9007199254740993", "is a whole number beyond"),
    ],
)
def test_the_filter_hides_no_reason_to_complain(
    spark: SparkSession, every_sample_counts: None, monkeypatch: pytest.MonkeyPatch, bad: str, reason: str
) -> None:
    monkeypatch.setattr(strong, "SAMPLE", 200)
    frame = spark.sql(f"SELECT id % 9 AS a, IF(id = 900, {bad}, id % 7) AS b FROM range(0, 1000, 1, 1)")
    preference = sk.Preference(minimize=["a", "b"])
    _, claims = strong.filtered(frame, preference, "error")
    assert claims
    with pytest.raises(InputError, match=f"column 'b': .*{reason}"), plain_errors():
        skyline(frame, preference, stable=True).collect()


@pytest.mark.parametrize("others", [True, False])
def test_a_table_that_changes_between_two_readings_gives_a_right_answer_or_an_error(
    spark: SparkSession, every_sample_counts: None, tmp_path: Path, others: bool
) -> None:
    place = tmp_path / "there"
    points = {0: (1.0, 1.0), **{k: (1.0 + k % 7, 1.0 + k % 5) for k in range(1, 90)}}
    points |= {k: (9.0, 0.0) for k in range(90, 100) if others}

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = [k for k in batch.column(0).to_pylist() if k in points and (k or place.exists())]
            yield pa.RecordBatch.from_pydict(
                {"id": numbers, "a": [points[k][0] for k in numbers], "b": [points[k][1] for k in numbers]}
            )

    frame = spark.range(100).mapInArrow(read, "id long, a double, b double").selectExpr("id", "a", "b", "now() AS at")
    preference = sk.Preference(minimize=["a", "b"])
    place.write_text("")
    read_once, looked_at = (
        skyline(frame, preference),
        skyline(frame.where("id % 35 <> 0 OR id = 0"), preference, stable=True),
    )
    last = list(range(90, 100)) if others else []
    assert ids(looked_at) == [0, *last]
    place.unlink()
    assert ids(read_once) == [35, 70, *last]
    with pytest.raises(InputError, match="the table changed between two readings"), plain_errors():
        looked_at.collect()


def test_without_carrying_the_source_must_be_stable(frame: DataFrame) -> None:
    with pytest.raises(OptionError, match="'carry=False' reads the source twice"):
        skyline(frame, sk.Preference(minimize=["c0"]), carry=False, stable=False)
