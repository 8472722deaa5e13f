"""The broker for all tests of sinks."""

from tests.spark.sources.brokers import kafka

__all__ = ["kafka"]
