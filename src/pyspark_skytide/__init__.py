"""Lets Spark find the format `skytide` without registration: it looks into modules of such names."""

from skytide.spark.sources.generator import SkytideSource as DefaultSource

__all__ = ["DefaultSource"]
