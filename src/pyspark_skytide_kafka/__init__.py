"""Lets Spark find the format `skytide_kafka` without registration: each module of such a name gives it one format."""

from skytide.spark.sources.kafka import KafkaSource as DefaultSource

__all__ = ["DefaultSource"]
