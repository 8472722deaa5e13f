"""A sample of the rows that pass."""

from __future__ import annotations

import numpy as np

from skytide.plots._style import Floats

SAMPLE_ROWS = 20_000


class Sample:
    """A uniform sample of rows that pass in chunks: each row draws a number, and the smallest numbers stay.

    >>> sample = Sample(2, size=3)
    >>> sample.add(np.arange(10.0).reshape(5, 2)); sample.rows.shape, sample.seen
    ((3, 2), 5)
    """

    def __init__(self, dimensions: int, size: int = SAMPLE_ROWS, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._size = size
        self._keys = np.empty(0)
        self.rows: Floats = np.empty((0, dimensions))
        self.seen = 0

    @classmethod
    def of(cls, rows: Floats) -> Sample:
        """A sample of rows that are all there."""
        sample = cls(rows.shape[1])
        sample.add(rows)
        return sample

    def add(self, rows: Floats) -> None:
        """Let rows pass. O(rows)."""
        self.seen += len(rows)
        keys = np.concatenate([self._keys, self._random.random(len(rows))])
        together = np.concatenate([self.rows, rows])
        if len(keys) > self._size:
            kept = np.argpartition(keys, self._size)[: self._size]
            keys, together = keys[kept], together[kept]
        self._keys, self.rows = keys, together


class LivingSample(Sample):
    """A sample of the rows of a window: each row has a key, and those up to a bound have expired.

    >>> sample = LivingSample(1)
    >>> sample.live(np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 3.0]), bound=1.0)
    >>> sample.expire(2.0); sample.rows.tolist(), sample.seen
    ([[3.0]], 3)
    """

    def __init__(self, dimensions: int, size: int = SAMPLE_ROWS, seed: int = 0) -> None:
        super().__init__(dimensions, size, seed)
        self._rate = 1.0

    def live(self, rows: Floats, keys: Floats, bound: float) -> None:
        """Let rows pass, of which those with keys up to the bound have expired already. O(rows and sample)."""
        self.seen += len(rows)
        chosen = (keys > bound) & (self._random.random(len(rows)) < self._rate)
        self.expire(bound)
        self._keys = np.concatenate([self._keys, keys[chosen]])
        self.rows = np.concatenate([self.rows, rows[chosen]])
        while len(self.rows) > self._size:
            self._rate /= 2
            kept = self._random.random(len(self.rows)) < 0.5
            self._keys, self.rows = self._keys[kept], self.rows[kept]

    def expire(self, bound: float) -> None:
        """Forget rows with keys up to the bound. O(sample)."""
        alive = self._keys > bound
        if not alive.all():
            self._keys, self.rows = self._keys[alive], self.rows[alive]
