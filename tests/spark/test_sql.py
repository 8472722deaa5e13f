"""`skyline` in SQL: the function by itself, and in queries, against the oracle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import InputError, OptionError, PreferenceError, SkytideError
from skytide.model import MissingPolicy
from skytide.spark import plain_errors, register
from skytide.spark.sql import SkylineFunction, read_arguments
from skytide.spark.sql import register as give_function
from tests.spark.test_batch import MISSING, MIXED, MIXED_SCHEMA, PAYLOAD, grid, oracle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def sql(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def found(spark: SparkSession, frame: DataFrame, *arguments: str) -> DataFrame:
    frame.createOrReplaceTempView("competitors")
    texts = "".join(f", '{argument}'" for argument in arguments)
    return spark.sql(f"SELECT * FROM skyline(TABLE(competitors){texts})")


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.select("id").collect())


# -- the function, without Spark ---------------------------------------------------------------------------------------


def analyzed(schema: str, *texts: str) -> Any:
    from pyspark.sql.types import StructType
    from pyspark.sql.udtf import AnalyzeArgument

    table = AnalyzeArgument(StructType.fromDDL(schema), None, isTable=True, isConstantExpression=False)
    from pyspark.sql.types import StringType

    given = [AnalyzeArgument(StringType(), text, isTable=False, isConstantExpression=True) for text in texts]
    return SkylineFunction.analyze(table, *given)


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.tuples(MISSING, MISSING, st.sampled_from([None, "x", "y"])), max_size=40),
    size=st.integers(1, 9),
    nulls=st.sampled_from(["drop", "worst"]),
    by=st.booleans(),
)
def test_batches_of_any_size_give_what_the_oracle_says(
    spark: SparkSession, rows: list[tuple[Any, ...]], size: int, nulls: MissingPolicy, by: bool
) -> None:
    dicts = [{"c0": a, "c1": b, "g": g, "id": number} for number, (a, b, g) in enumerate(rows)]
    schema = pa.schema([("c0", pa.float64()), ("c1", pa.float64()), ("g", pa.string()), ("id", pa.int64())])
    plan = analyzed(
        "c0 double, c1 double, g string, id bigint", "c0 min", "c1 max", f"nulls {nulls}", *(["g by"] if by else [])
    )
    function = SkylineFunction(plan)
    for batch in pa.Table.from_pylist(dicts, schema).to_batches(size):
        function.eval(batch, pa.array(["c0 min"]))
    numbers = [number for table in function.terminate() for number in table.column("id").to_pylist()]
    preference = sk.Preference(minimize=["c0"], maximize=["c1"], by=["g"] if by else [])
    assert sorted(numbers) == oracle(dicts, preference, nulls)


def test_rows_come_together_in_one_place_or_by_a_hash_of_their_groups(spark: SparkSession) -> None:
    alone = analyzed("a int, `b``c` string", "a min")
    assert alone.withSinglePartition and not alone.partitionBy
    grouped = analyzed("a int, `b``c` string", "a min", "`b``c` by")
    assert not grouped.withSinglePartition
    assert [column.name for column in grouped.partitionBy] == ["pmod(hash(`b``c`), 256)"]


def test_columns_are_found_as_sql_finds_them() -> None:
    columns = ["a", "A", "top speed", "b", "min", "`"]
    asked = read_arguments(["a min", "A max", "Top Speed  MIN", "`B` by", "min min", "NULLS Worst"], columns)
    assert asked.preference == sk.Preference(["a", "top speed", "min"], ["A"], ["b"])
    assert asked.nulls == "worst"
    assert read_arguments(["` min"], columns).preference.minimize == ("`",)
    assert read_arguments(["nulls min"], ["nulls"]).preference.minimize == ("nulls",)


# -- in queries --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("by", [(), ("g by",)])
def test_the_answer_does_not_depend_on_the_partitions(sql: SparkSession, partitions: int, by: tuple[str, ...]) -> None:
    rows = grid(300, 3, seed=1)
    preference = sk.Preference(minimize=["c0", "c1"], maximize=["c2"], by=["g"] if by else [])
    frame = sql.createDataFrame(pa.Table.from_pylist(rows)).repartition(partitions)
    assert ids(found(sql, frame, "c0 min", "c1 min", "c2 max", *by)) == oracle(rows, preference)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(MISSING, MISSING, st.sampled_from([None, "x", "y"])), max_size=25),
    partitions=st.integers(1, 4),
    nulls=st.sampled_from(["drop", "worst"]),
    by=st.booleans(),
)
def test_any_table_in_any_partitions_gives_what_the_oracle_says(
    sql: SparkSession, rows: list[tuple[Any, ...]], partitions: int, nulls: MissingPolicy, by: bool
) -> None:
    dicts = [{"id": number, "c0": a, "c1": b, "g": g} for number, (a, b, g) in enumerate(rows)]
    frame = sql.createDataFrame([tuple(row.values()) for row in dicts], MIXED_SCHEMA).repartition(partitions)
    preference = sk.Preference(minimize=["c0", "c1"], by=["g"] if by else [])
    arguments = ["c0 min", "c1 min", f"nulls {nulls}", *(["g by"] if by else [])]
    assert ids(found(sql, frame, *arguments)) == oracle(dicts, preference, nulls)


@pytest.mark.parametrize("nulls", ["drop", "worst"])
def test_missing_values_follow_the_policy_and_null_is_a_group(sql: SparkSession, nulls: MissingPolicy) -> None:
    frame = sql.createDataFrame(MIXED, MIXED_SCHEMA).repartition(3)
    preference = sk.Preference(minimize=["c0", "c1"], by=["g"])
    assert ids(found(sql, frame, "c0 min", "c1 min", "g by", f"nulls {nulls}")) == oracle(MIXED, preference, nulls)


def test_nan_is_one_group_and_so_are_the_two_zeros(sql: SparkSession) -> None:
    frame = sql.sql("""
        SELECT id, id AS a, CASE id % 3 WHEN 0 THEN double('NaN') WHEN 1 THEN 0.0D ELSE -0.0D END AS g FROM range(30)
    """).repartition(4)
    assert ids(found(sql, frame, "a min", "g by")) == [0, 1]


def test_equal_rows_all_stay_and_empty_tables_stay_empty(sql: SparkSession) -> None:
    twice = sql.range(4000).selectExpr("id", "id % 2000 AS a", "-(id % 2000) AS b")
    assert found(sql, twice, "a min", "b min").count() == 4000
    for by in ([], ["id by"]):
        empty = found(sql, twice.where("id < 0"), "a min", *by)
        assert empty.schema == twice.schema
        assert empty.collect() == []


@pytest.mark.parametrize("by", [[], ["day by"]])
def test_columns_of_any_type_pass_through_unchanged(sql: SparkSession, by: list[str]) -> None:
    frame = sql.sql(PAYLOAD).repartition(2)
    zone = sql.conf.get("spark.sql.session.timeZone")
    sql.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        best = found(sql, frame, "c0 min", *by)
        assert best.schema == frame.schema
        expected = sorted((row for row in frame.collect() if by or row.c0 == 0), key=lambda row: int(row["id"]))
        answer = sorted(best.collect(), key=lambda row: int(row["id"]))
        assert [str(row) for row in answer] == [str(row) for row in expected]
    finally:
        sql.conf.set("spark.sql.session.timeZone", str(zone))


def test_it_is_a_table_like_any_other(sql: SparkSession) -> None:
    sql.range(100).selectExpr("id", "id % 10 AS a", "id % 7 AS b").createOrReplaceTempView("numbers")
    row = sql.sql("""
        WITH best AS (SELECT * FROM skyline(TABLE(SELECT * FROM numbers WHERE id > 0), 'a min', 'b max'))
        SELECT count(*) AS n, min(best.id) AS least FROM best JOIN numbers USING (id) WHERE best.a < 5
    """).collect()[0]
    rows = [{"id": k, "a": float(k % 10), "b": float(k % 7)} for k in range(1, 100)]
    expected = [k for k in oracle(rows, sk.Preference(minimize=["a"], maximize=["b"])) if k % 10 < 5]
    assert (row.n, row.least) == (len(expected), min(expected))


def test_many_rows_are_compared_in_runs(sql: SparkSession) -> None:
    values = np.random.default_rng(3).random((300_000, 3))
    frame = sql.createDataFrame(
        pa.table({"id": np.arange(len(values)), **{f"c{k}": values[:, k] for k in range(3)}})
    ).repartition(3)
    assert ids(found(sql, frame, "c0 min", "c1 min", "c2 min")) == np.flatnonzero(sk.skyline(values)).tolist()


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, type[SkytideError], str]] = [
    ("TABLE(cars), 'z min'", InputError, "column 'z': there is no such column; choose one of: id, a, b, c"),
    (
        "TABLE(cars), 'b min'",
        InputError,
        "column 'b': the column holds string, not numbers; convert it or leave it out",
    ),
    ("TABLE(cars), 'a min', 'c by'", InputError, "column 'c': rows cannot be grouped by array<int>; "),
    ("TABLE(cars)", PreferenceError, "a preference needs at least one column; name a column to minimise or maximise"),
    ("TABLE(cars), 'b by'", PreferenceError, "a preference needs at least one column"),
    ("TABLE(cars), 'a min', 'A max'", PreferenceError, "'a' is named more than once"),
    ("TABLE(cars), 'a'", OptionError, "'a' is not an argument of a skyline; write 'COLUMN min', 'COLUMN max'"),
    ("TABLE(cars), 'min'", OptionError, "'min' is not an argument of a skyline"),
    ("TABLE(cars), 7", OptionError, "7 is not text; write"),
    ("TABLE(cars), NULL", OptionError, "'NULL' is not text; write"),
    ("TABLE(cars), 'a min', 'nulls maybe'", OptionError, "'maybe' is not a missing-value policy; use error, drop"),
    ("TABLE(cars), 'a min', 'nulls drop', 'nulls drop'", OptionError, "'nulls drop' is a second policy"),
    ("'a min'", OptionError, "a skyline is of one table, the first argument; write skyline(TABLE(name), "),
]


@pytest.mark.parametrize(("arguments", "kind", "reason"), REFUSED)
def test_arguments_that_do_not_fit_are_refused_in_one_line(
    sql: SparkSession, arguments: str, kind: type[SkytideError], reason: str
) -> None:
    sql.sql("SELECT 1 AS id, 2 AS a, 'x' AS b, array(1) AS c").createOrReplaceTempView("cars")
    with pytest.raises(kind) as caught, plain_errors():
        sql.sql(f"SELECT * FROM skyline({arguments})")
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value) and "SQLSTATE" not in str(caught.value)


def test_a_type_that_does_not_pass_through_python_is_named(sql: SparkSession) -> None:
    frame = sql.sql("SELECT 1 AS a, make_interval(1, 2) AS span")
    with pytest.raises(InputError, match=r"column 'span': .*interval.*leave it out"), plain_errors():
        found(sql, frame, "a min")


@pytest.mark.parametrize("bad", ["double('NaN')", "CAST(NULL AS DOUBLE)"])
def test_a_missing_value_under_the_policy_error_surfaces_as_one_line(sql: SparkSession, bad: str) -> None:
    best = found(sql, sql.sql(f"SELECT 1.0D AS a UNION ALL SELECT {bad}"), "a min")
    with pytest.raises(InputError) as caught, plain_errors():
        best.collect()
    assert str(caught.value).startswith("column 'a': the value is missing (NULL or NaN); choose the policy drop or")


def test_the_function_can_have_another_name(sql: SparkSession) -> None:
    give_function(sql, "best_of")
    sql.sql("SELECT 1 AS a UNION ALL SELECT 2").createOrReplaceTempView("numbers")
    assert sql.sql("SELECT * FROM best_of(TABLE(numbers), 'a max')").collect()[0].a == 2
    assert not math.isnan(sql.sql("SELECT double(a) AS a FROM best_of(TABLE(numbers), 'a min')").collect()[0].a)
