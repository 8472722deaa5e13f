"""The methods by name: a server, and what makes answers of its skylines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from skytide.errors import OptionError
from skytide.monitors.frequent.pairs import Theta, pairs_of
from skytide.monitors.storage import pack, unpack
from skytide.protocols.filtering.answers import SNAPSHOT, Answers, ExactAnswers, SampledAnswers
from skytide.protocols.filtering.auto import AutoServer
from skytide.protocols.filtering.filter import Boundaries, FilterServer
from skytide.protocols.filtering.hybrid import HybridServer
from skytide.protocols.filtering.schedule import Schedule, sampling_rate
from skytide.protocols.filtering.server import NaiveServer, SamplingServer, Server
from skytide.protocols.stored import VERSION, must

EXACT = ("naive", "filter", "auto")
SAMPLED = ("sampling", "hybrid")
METHODS = (*EXACT, *SAMPLED)
_KIND = "FilteringMethod"


class Method(NamedTuple):
    """A server with its answers."""

    server: Server
    answers: Answers
    exact: bool

    def to_bytes(self) -> bytes:
        """Server and answers as they are between two timestamps, versioned and without pickle. O(clients).

        >>> again = Method.from_bytes(method_of("auto", dimensions=2).to_bytes())
        >>> type(again.server).__name__, again.exact
        ('AutoServer', True)
        """
        parts = {"server": self.server.to_bytes(), "answers": self.answers.to_bytes()}
        meta = {"server": type(self.server).__name__}
        return pack(_KIND, VERSION, meta, {name: np.frombuffer(blob, np.uint8) for name, blob in parts.items()})

    @classmethod
    def from_bytes(cls, blob: bytes) -> Method:
        """What `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        meta, parts = unpack(blob, _KIND, VERSION)
        kinds = {kind.__name__: kind for kind in (NaiveServer, FilterServer, AutoServer, SamplingServer, HybridServer)}
        must(set(parts) == {"server", "answers"} and meta.get("server") in kinds, "method")
        kind = kinds[meta["server"]]
        exact = kind not in (SamplingServer, HybridServer)
        answers: type[ExactAnswers] | type[SampledAnswers] = ExactAnswers if exact else SampledAnswers
        return cls(kind.from_bytes(parts["server"].tobytes()), answers.from_bytes(parts["answers"].tobytes()), exact)


def method_of(
    name: str,
    dimensions: int,
    *,
    pairs: Sequence[tuple[Theta, int]] = SNAPSHOT,
    epsilon: float = 0.2,
    delta: float = 0.1,
    seed: int = 1,
    boundaries: Boundaries = "cost",
) -> Method:
    """The method of a name, for queries that are pairs of theta and `over`.

    `epsilon` and `delta` say how good the answers of sampling methods must be: any record that is reported was in at
    least (theta - epsilon) * over skylines with probability 1 - 2 delta. `seed` is that of the sampled timestamps.
    `boundaries` is for comparisons of `filter` with itself.
    """
    if name not in METHODS:
        raise OptionError("is not a method", value=name, remedy="choose one of " + ", ".join(METHODS))
    if name in EXACT:
        filtering = partial(FilterServer, boundaries=boundaries)
        servers: dict[str, Callable[[int], Server]] = {"naive": NaiveServer, "filter": filtering, "auto": AutoServer}
        return Method(servers[name](dimensions), ExactAnswers(pairs), exact=True)
    if not 0 <= seed < 2**64:
        raise OptionError("is not a seed", value=seed, remedy="give a whole number from 0 to 2^64 - 1")
    schedule = Schedule(seed, sampling_rate(pairs_of(None, None, pairs), epsilon, delta))
    made = HybridServer(dimensions, schedule) if name == "hybrid" else SamplingServer(dimensions, schedule)
    return Method(made, SampledAnswers(pairs), exact=False)
