"""The figures of zhang09c."""

from benchmarks.papers.registry import Figure

FIGURES: list[Figure] = []
