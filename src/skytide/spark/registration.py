"""What a session can be given by name: the SQL table function `skyline` and the formats that streams are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skytide.spark import sources, sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Give a session the SQL function `skyline`, and the formats `skytide` and `skytide_kafka`, until it ends.

    ```python
    skytide.spark.register(spark)
    spark.sql("SELECT * FROM skyline(TABLE(cars), 'price min', 'mpg max', 'brand by')")
    ```
    """
    sql.register(spark)
    sources.register(spark)
