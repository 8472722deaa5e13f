"""The figures of udom14."""

from benchmarks.papers.registry import Figure

FIGURES: list[Figure] = []
