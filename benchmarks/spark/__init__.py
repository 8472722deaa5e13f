"""Benchmarks of the Spark pipeline."""
