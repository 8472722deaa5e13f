"""The broker for all tests of sources."""

from tests.spark.sources.brokers import kafka

__all__ = ["kafka"]
