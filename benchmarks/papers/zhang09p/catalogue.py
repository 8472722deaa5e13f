"""The figures of zhang09p."""

from benchmarks.papers.registry import Figure

FIGURES: list[Figure] = []
