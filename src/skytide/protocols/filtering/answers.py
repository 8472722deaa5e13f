"""Who is frequent, from skylines of every timestamp (exact) or of the sampled ones (approximate).

Each query is a pair of theta and `over` (the paper's s); the skyline itself is theta = 1 over 1. `skytide.Frequent`
counts exact series. Of sampled ones, with T sampled timestamps in the window and C of them with a record in the
skyline, the record is reported when C >= theta T (Algorithm 6). Before `over` timestamps have been seen, a record must
have been in theta * over skylines of fewer timestamps, so the share that the sample must show is higher: the bar is
theta T over / t. If every timestamp is sampled, this is the exact answer. Where none is, nobody is reported.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np

from skytide.model import Booleans, Changes, Integers
from skytide.monitors.frequent.changes import PairChanges
from skytide.monitors.frequent.frequent import Frequent
from skytide.monitors.frequent.pairs import Pair, Theta, pairs_of
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.stored import Contents, dump, must, restore

SNAPSHOT = ((1, 1),)
"""The query whose answer is the skyline itself."""


class Answers(Protocol):
    """Skylines in, changes of the frequent ones out; with several queries each change says which it is about."""

    def observe(self, skyline: Integers | None, time: int) -> Changes | PairChanges:
        """Take the skyline of a timestamp, None where it was not computed. Every timestamp is taken, in order."""
        ...

    def to_bytes(self) -> bytes:
        """What was counted; both kinds of answers have `from_bytes`."""
        ...


class ExactAnswers:
    """Counts all skylines.

    >>> answers = ExactAnswers([("0.5", 2)])
    >>> [tuple(change) for time in range(3) for change in answers.observe(np.array([time]), time)]
    [(0, '+', 0), (1, '+', 1), (2, '-', 0), (2, '+', 2)]
    """

    def __init__(self, pairs: Sequence[tuple[Theta, int]] = SNAPSHOT) -> None:
        self._frequent = Frequent(pairs=pairs, history=False)

    def observe(self, skyline: Integers | None, time: int) -> Changes | PairChanges:
        """Take the skyline of a timestamp. O(its members)."""
        assert skyline is not None, "an exact method knows every skyline"
        return self._frequent.observe(skyline, time)

    @property
    def seen(self) -> int:
        """How many timestamps were observed."""
        return self._frequent.snapshots

    def to_bytes(self) -> bytes:
        """What was counted, versioned and without pickle. O(clients)."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The answers that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        return Contents({}, {"frequent": np.frombuffer(self._frequent.to_bytes(), np.uint8)})

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        made = cls()
        made._frequent = Frequent.from_bytes(contents.blob("frequent"))
        must(made._frequent.options()["history"] is False, "history")
        return made


class _Counted:
    """One query over sampled timestamps: exact counters of what lies in the window."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._samples: deque[tuple[int, Integers]] = deque()
        self._counts: Integers = np.zeros(0, np.int64)
        self.answer: Booleans = np.zeros(0, np.bool_)

    def observe(self, skyline: Integers | None, seen: int) -> tuple[Integers, Integers]:
        """Who leaves the answer and who enters it, when so many timestamps have been seen. O(clients)."""
        while self._samples and self._samples[0][0] <= seen - self._pair.over:
            self._counts[self._samples.popleft()[1]] -= 1
        if skyline is not None:
            self._counts = grown(self._counts, room_for(skyline))
            self._counts[skyline] += 1
            self._samples.append((seen, skyline))
        before = grown(self.answer, len(self._counts))[: len(self._counts)]
        self._judge(seen)
        return np.flatnonzero(before & ~self.answer), np.flatnonzero(self.answer & ~before)

    def _judge(self, seen: int) -> None:
        samples, over = len(self._samples), self._pair.over
        bar = math.ceil(self._pair.theta * over * samples / min(seen, over)) if samples else 0
        self.answer = self._counts >= min(bar, 2**62) if samples else np.zeros(len(self._counts), np.bool_)

    def contents(self) -> Contents:
        """The samples in the window; what was counted follows from them."""
        skylines = [skyline for _, skyline in self._samples]
        times, sizes = [time for time, _ in self._samples], [len(each) for each in skylines]
        parts = {"times": np.array(times, np.int64), "sizes": np.array(sizes, np.int64)}
        return Contents({}, {**parts, "members": np.concatenate([np.zeros(0, np.int64), *skylines])})

    def fill(self, contents: Contents, seen: int) -> None:
        """Take samples that `contents` gave."""
        times = contents.integers("times", -1, max(1, seen + 1 - self._pair.window), seen)
        must(bool((np.diff(times) > 0).all()), "times of samples")
        members = contents.integers("members", -1, 0, 2**32 - 1)
        sizes = contents.integers("sizes", len(times), 0, len(members))
        must(int(sizes.sum()) == len(members), "samples")
        pieces = np.split(members, np.cumsum(sizes)[:-1]) if len(sizes) else []
        must(all(bool((np.diff(each) > 0).all()) for each in pieces), "samples")
        self._samples = deque(zip(times.tolist(), pieces, strict=True))
        self._counts = np.bincount(members).astype(np.int64) if len(members) else self._counts
        self._judge(seen)


class SampledAnswers:
    """Counts the sampled skylines, for each query exactly in its window.

    >>> answers = SampledAnswers([("0.5", 4)])
    >>> for time, skyline in enumerate(([3], None, [5], None, None, [5])):
    ...     for change in answers.observe(None if skyline is None else np.array(skyline), time):
    ...         print(*change)
    1 + 3
    2 - 3
    3 + 3
    3 + 5
    4 - 3
    """

    def __init__(self, pairs: Sequence[tuple[Theta, int]] = SNAPSHOT) -> None:
        self.pairs = pairs_of(None, None, pairs)
        self._queries = [_Counted(pair) for pair in self.pairs]
        self._seen = 0

    def observe(self, skyline: Integers | None, time: int) -> Changes | PairChanges:
        """Take the skyline of a timestamp, None where it is not sampled. O(clients queries)."""
        self._seen += 1
        ids, signs, which = [], [], []
        for place, query in enumerate(self._queries):
            left, entered = query.observe(skyline, self._seen)
            ids += [left, entered]
            signs.append(np.repeat(np.array([-1, 1]), [len(left), len(entered)]))
            which.append(np.full(len(left) + len(entered), place))
        who, times = np.concatenate(ids), np.full(sum(map(len, ids)), time)
        if len(self.pairs) == 1:
            return Changes.of(times, np.concatenate(signs), who)
        thetas, overs = np.array([float(pair.theta) for pair in self.pairs]), [pair.window for pair in self.pairs]
        places = np.concatenate(which)
        return PairChanges.of(times, np.concatenate(signs), who, thetas[places], np.array(overs)[places])

    def to_bytes(self) -> bytes:
        """What was counted, versioned and without pickle. O(clients)."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The answers that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        pairs = [[str(pair.theta), pair.over] for pair in self.pairs]
        found = Contents({"pairs": pairs, "seen": self._seen}, {})
        for place, query in enumerate(self._queries):
            found = found.within(str(place), query.contents())
        return found

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        made = cls([(str(theta), over) for theta, over in contents.meta["pairs"]])
        made._seen = contents.whole("seen")
        for place, query in enumerate(made._queries):
            query.fill(contents.inner(str(place)), made._seen)
        return made
