"""The batch skyline. Placeholder body; see the interface."""

from __future__ import annotations

import itertools

import numpy as np

from skytide.model import Booleans, Floats, Integers


def skyline_mask(values: Floats, *, offsets: Integers | None = None, threads: int | None = None) -> Booleans:
    """Which rows of an (n, d) matrix no other row dominates; with offsets, within each run offsets[i]:offsets[i+1]."""
    inside = np.ones(len(values), dtype=bool)
    bounds = [0, len(values)] if offsets is None else offsets.tolist()
    for start, stop in itertools.pairwise(bounds):
        part = values[start:stop]
        for i, row in enumerate(part):
            inside[start + i] = not ((part <= row).all(axis=1) & (part < row).any(axis=1)).any()
    return inside
