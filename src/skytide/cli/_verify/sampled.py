"""Skylines counted: frequent ones by their definition, and what `sampling` and `hybrid` make of some of them.

Which timestamps are sampled follows from the seed, as `skytide.reference.sampling` says, so what the two methods answer
follows from the skylines of those timestamps. How near that is to the exact answer is told as figures: recall and
precision from the first full window on, and the share of what is reported that was in at least (theta - epsilon) s of
the last s skylines, of which theory promises 1 - 2 delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.cli._verify.comparing import Disagreement, Stream, answers_of
from skytide.cli._verify.populations import Counted
from skytide.reference.sampling import Sampled

_CLOSE = 1e-9


class Series:
    """The skylines of all timestamps, as a run told them that was itself compared."""

    def __init__(self, instants: npt.NDArray[Any], skylines: Stream, theta: Fraction, over: int) -> None:
        self._instants, self._skylines = instants, skylines
        self._theta, self._over = theta, over

    def counted(self) -> Counted:
        """The population whose answers are the frequent ones."""
        return self._at_least(self._theta)

    def _at_least(self, theta: Fraction, sampled: Callable[[int], bool] | None = None) -> Counted:
        return Counted(self._instants, answers_of(self._skylines, self._instants), theta, self._over, sampled)

    def sampled(self, epsilon: float, delta: float, seed: int) -> Counted:
        """The population whose answers are those that follow from the sampled timestamps."""
        chosen = Sampled(self._theta, self._over, epsilon=epsilon, delta=delta, seed=seed)
        return self._at_least(self._theta, chosen)

    def quality(self, stream: Stream, epsilon: float) -> dict[str, float]:
        """How near the answers of a stream are to the exact ones. O(instants · answer)."""
        true, near = self.counted(), self._at_least(max(Fraction(0), self._theta - Fraction(str(epsilon))))
        recall, precision = list[float](), list[float]()
        reported = within = 0
        for number, said in enumerate(answers_of(stream, self._instants)):
            true.step(number)
            near.step(number)
            reported += len(said)
            within += len(said & near.answer(None).must)
            if number + 1 >= self._over:
                exact = true.answer(None).must
                both = len(exact & said)
                recall.append(both / len(exact) if exact else 1.0)
                precision.append(both / len(said) if said else 1.0)
        found = {"within_epsilon": within / reported if reported else 1.0}
        if recall:
            found |= {"recall": float(np.mean(recall)), "precision": float(np.mean(precision))}
        return found


def quality_wrong(figures: dict[str, float], cost: dict[str, Any]) -> Disagreement | None:
    """Whether the recall and precision that a run says of itself are others."""
    for name in ("recall", "precision"):
        told, found = cost.get(name), figures.get(name)
        if name in figures and told is not None and not math.isclose(told, figures[name], rel_tol=_CLOSE):
            return Disagreement(f"the run says that its {name} is {told}, but it is {found}")
    return None


def cost_wrong(method: str, cost: dict[str, Any]) -> Disagreement | None:
    """Whether what `filter` sent is not what Theorem 4.1 of the paper says, given failures, probes and who came."""
    if method != "filter" or not cost:
        return None
    up = cost["failures"] + cost["probes"] + cost["inserts"] + cost["deletes"]
    down = cost["failures"] + 2 * cost["probes"] + cost["inserts"]
    if (cost["uplink"], cost["downlink"]) == (up, down):
        return None
    return Disagreement(f"{cost['uplink']} messages up and {cost['downlink']} down, but {up} and {down} are due")
