"""Streams to test and measure with: seeded generators of rows, times, probabilities and updates; replay of files.

Everything random depends on the seed and the position alone, never on how much is asked for at once.
"""

from skytide.streams.arrivals import spike_times, steady_times
from skytide.streams.fragments import LocalVectors, fragments
from skytide.streams.generators import KINDS, chunks, generate
from skytide.streams.uncertainty import probabilities
from skytide.streams.walks import Updates, jitter, random_walk, together

__all__ = [
    "KINDS",
    "LocalVectors",
    "Updates",
    "chunks",
    "fragments",
    "generate",
    "jitter",
    "probabilities",
    "random_walk",
    "spike_times",
    "steady_times",
    "together",
]
