"""Column names out of a DDL schema, without Spark and as Spark finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skytide.spark.pipeline.schema import column_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMAS = [
    "a INT",
    "ts TIMESTAMP NOT NULL,price DOUBLE COMMENT 'a, b', name STRING",
    "`a, b` DECIMAL(10, 2), `c``d` INT, e: BIGINT",
    "s STRUCT<x: INT, y: ARRAY<STRUCT<z: DOUBLE>>>, m MAP<STRING, INT>, _x1 DATE",
    "\n  a INT,\n  b STRING\n",
]


@pytest.mark.parametrize("text", SCHEMAS)
def test_names_are_those_that_spark_finds(spark: SparkSession, text: str) -> None:
    from pyspark.sql.types import StructType

    assert column_names(text) == [field.name for field in StructType.fromDDL(text)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text", ["", "a", "struct<a: int>", '{"type": "struct"}', "a INT,, b INT", "a ARRAY<INT", "a I>"]
)
def test_what_is_not_understood_gives_no_names(text: str) -> None:
    assert column_names(text) is None
