"""Small tables in, sorted updates out, and comparison of numbers that were rounded on different ways."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from skytide.spark import plain_errors
from skytide.spark.prepared import order_of, prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]


def updates(
    spark: SparkSession, name: str, tables: dict[str, tuple[list[Row], pa.Schema]], **options: Any
) -> list[Row]:
    """The updates of a pipeline over rows, in their order.

    The rows go through files, as only these keep times without a zone apart from times with one.
    """
    with tempfile.TemporaryDirectory() as folder, plain_errors():
        frames = {}
        for table, (rows, schema) in tables.items():
            place = Path(folder, table)
            place.mkdir()
            for part in range(2):
                pq.write_table(pa.Table.from_pylist(rows[part::2], schema), place / f"{part}.parquet")
            frames[table] = spark.read.parquet(str(place))
        found = prepare(spark, name, frames, **options)
        rows_out: list[Row] = found.orderBy(*order_of(found)).toArrow().to_pylist()
        return rows_out


def same(found: list[Row], expected: list[Row], tolerance: float = 1e-9) -> None:
    """Both are the same: names, order and values; numbers with fractions up to rounding."""
    assert len(found) == len(expected), (found, expected)
    for one, other in zip(found, expected, strict=True):
        assert list(one) == list(other)
        for name, value in other.items():
            if isinstance(value, float):
                assert math.isclose(one[name], value, rel_tol=tolerance, abs_tol=tolerance), (name, one, other)
            else:
                assert one[name] == value, (name, one, other)
