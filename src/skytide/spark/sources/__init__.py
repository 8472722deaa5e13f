"""What streams can be read from: `format("skytide")`, generators or a coordinator, `format("skytide_kafka")`, Kafka.

Spark finds both without registration where Skytide is installed beside it; `register(spark)` does it by hand, for a
server that has no Skytide of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skytide.spark.faults import need_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make the formats `skytide` and `skytide_kafka` known to a session that does not find them itself."""
    need_pyspark()
    from skytide.spark.sources.generator import SkytideSource
    from skytide.spark.sources.kafka import KafkaSource

    spark.dataSource.register(SkytideSource)
    spark.dataSource.register(KafkaSource)
