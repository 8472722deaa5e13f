"""The figures of papa14."""

from benchmarks.papers.registry import Figure

FIGURES: list[Figure] = []
