"""What `skytide.spark.monitor` asks for, as a plain value: moves of clients, which are known by their ids alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skytide.protocols.filtering.answers import SNAPSHOT
from skytide.protocols.filtering.methods import SAMPLED, Method, method_of
from skytide.spark.streaming.snapshots.query import UpdateQuery


@dataclass(frozen=True, kw_only=True)
class MonitorQuery(UpdateQuery):
    """Points of clients, and the method by which they are watched."""

    epsilon: float
    delta: float
    seed: int

    @property
    def dimensions(self) -> int:
        """Of the clients' points: groups are two more columns, so that no client dominates one of another group."""
        return self.preference.dimensions + (2 if self.preference.by else 0)

    def made(self) -> Method:
        """The method's server and answers, as they are before the first timestamp."""
        pairs = SNAPSHOT if self.frequent is None else [self.frequent]
        return method_of(
            self.method, self.dimensions, pairs=pairs, epsilon=self.epsilon, delta=self.delta, seed=self.seed
        )

    def _particular(self, names: dict[str, str]) -> dict[str, Any]:
        theta, over = self.frequent or SNAPSHOT[0]
        sampled = {"epsilon": self.epsilon, "delta": self.delta, "seed": self.seed}
        return {
            "kind": "monitor",
            "method": self.method,
            "theta": str(theta),
            "over": over,
            "order": None if self.order is None else names[self.order],
            **(sampled if self.method in SAMPLED else {}),
        }
