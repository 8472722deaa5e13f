"""From a pipeline's source to the rows that its query sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skytide.spark.pipeline.faults import blamed_on, is_unknown_format
from skytide.spark.pipeline.plan import Pipeline
from skytide.spark.pipeline.writing import SPARK_NAMES
from skytide.spark.shipping import needs_shipping
from skytide.spark.sources import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW = "input"
"""The name by which SQL of the file knows the source."""
KAFKA = "skytide_kafka"
"""Our own source for Kafka, where Spark's is not installed."""


def read(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The rows that the query sees; nothing runs yet, but all names and types are known and checked."""
    df = _prepared(spark, pipeline, _source(spark, pipeline))
    pipeline.check_columns(df.columns)
    return df


def _source(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    document, source = pipeline.document, pipeline.source
    if source.schema is not None:
        from pyspark.sql.types import StructType

        with blamed_on(document, "source", "schema"):
            StructType.fromDDL(source.schema)
    elsewhere = pipeline.run.remote is not None or needs_shipping(pipeline.run.master)
    if elsewhere and source.format in ("skytide", "kafka", KAFKA):
        register(spark)  # Spark looks for sources where it runs, and there it has none of ours
    with blamed_on(document, "source", _guilty(pipeline)):
        try:
            return _loaded(spark, pipeline, source.format)
        except Exception as problem:
            if source.format != "kafka" or not is_unknown_format(problem):
                raise
            return _loaded(spark, pipeline, KAFKA)


def _guilty(pipeline: Pipeline) -> str:
    """The key that is most likely at fault where a source cannot be read."""
    if pipeline.source.paths:
        return "path"
    return "options" if pipeline.source.options else "format"


def _loaded(spark: SparkSession, pipeline: Pipeline, form: str) -> DataFrame:
    source = pipeline.source
    reader: Any = spark.readStream if source.stream else spark.read
    reader = reader.format(SPARK_NAMES.get(form, form)).options(**source.options)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    paths = list(source.paths)
    df: DataFrame = reader.load(paths[0] if len(paths) == 1 else paths) if paths else reader.load()
    _ = df.schema  # Spark Connect looks at nothing before it is asked
    return df


def _prepared(spark: SparkSession, pipeline: Pipeline, df: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    document, prepare = pipeline.document, pipeline.prepare
    if "sql" in prepare:
        with blamed_on(document, "prepare", "sql"):
            df.createOrReplaceTempView(VIEW)
            df = spark.sql(prepare["sql"])
            _ = df.schema
    for key in ("casts", "columns"):
        for name, text in prepare.get(key, {}).items():
            with blamed_on(document, "prepare", key, name):
                df = df.withColumn(name, F.col(_quoted(name)).cast(text) if key == "casts" else F.expr(text))
                _ = df.schema
    for condition in prepare.get("filter", ()):
        with blamed_on(document, "prepare", "filter"):
            df = df.where(condition)
            _ = df.schema
    if "select" in prepare:
        with blamed_on(document, "prepare", "select"):
            df = df.selectExpr(*prepare["select"])
            _ = df.schema
    return df


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
