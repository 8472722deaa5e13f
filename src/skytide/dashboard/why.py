"""Why a row is where it is: who dominates it, since when, and what would bring it in, in words.

Every row outside is dominated by a row of the answer, and which change brings it in depends on those rows alone: the
best of its dominators are all in the answer. So the answer is enough to be exact about a row whose values are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skytide.dashboard.history import Stay, Version
from skytide.dashboard.rows import Values
from skytide.dashboard.values import Clock, moment_text, number_of, value_text
from skytide.explain import Bound, Explanation, dominators_of, explain
from skytide.model import Floats, Preference

MOST_LISTED = 50


@dataclass(frozen=True)
class Case:
    """One row: its version where it is in the answer, its values, its stays."""

    kind: str
    preference: Preference
    names: list[str]
    clock: Clock
    version: Version | None
    values: Values
    stays: list[Stay]

    def explained(self, rivals: list[Version], seen: list[Values]) -> dict[str, Any]:
        """`rivals` are the other rows of the answer in its group, `seen` rows outside of it that are remembered."""
        point = self._point(self.values)
        others = self._matrix([one.values for one in rivals])
        above = [rivals[at] for at in np.flatnonzero(dominators_of(others, point)).tolist()]
        above.sort(key=lambda one: (one.entered, one.key))
        found: dict[str, Any] = {"dominators": above[:MOST_LISTED], "ways": [], "smallest": None, "dominated": None}
        found["since"] = self._since(above)
        if self.version is not None:
            dominated = self._dominated(seen, others, point)
            summary = self._inside(above, dominated, len(seen) + len(rivals))
            return found | {"summary": summary, "dominated": dominated, **self._slack(rivals)}
        if self.kind == "frequent":
            summary = "The answer counts past skylines; this row was not in enough of them."
            return found | {"summary": summary}
        if self.kind == "uncertain":
            return found | {"summary": self._improbable(above)}
        if not above:
            return found | {"summary": self._gone(), "since": self._left()}
        told = f"Dominated by {_rows(len(above))} of the answer" + self._when(found["since"]) + "."
        return found | {"summary": told, **self._moves(rivals)}

    def _point(self, values: Values) -> Floats:
        return np.asarray(self._matrix([values])[0])

    def _matrix(self, rows: list[Values]) -> Floats:
        """The preference columns, smaller is better, what is missing is worst."""
        width = self.preference.dimensions
        numbers = np.array([[number_of(one) for one in row[:width]] for row in rows]).reshape(-1, width)
        return np.where(np.isnan(numbers), np.inf, numbers * self.preference.signs)

    def _dominated(self, seen: list[Values], others: Floats, point: Floats) -> int:
        outside = self._matrix(seen)
        return int(dominators_of(-outside, -point).sum() + dominators_of(-others, -point).sum())

    def _since(self, above: list[Version]) -> float | None:
        """In the answer since; or dominated since, as far as is known: since it left, or its dominators entered."""
        if self.version is not None:
            return self.version.entered
        left = self._left()
        if left is not None:
            return left
        return min((one.entered for one in above), default=None)

    def _left(self) -> float | None:
        ends = [stay.end for stay in self.stays if stay.end is not None]
        return max(ends) if ends else None

    def _when(self, time: float | None) -> str:
        return "" if time is None else f" since {moment_text(time, self.clock)}"

    def _inside(self, above: list[Version], dominated: int, looked: int) -> str:
        assert self.version is not None
        told = f"In the answer{self._when(self.version.entered)}."
        if self.version.probability is not None:
            told = f"In the skyline with probability {self.version.probability:.4g}; {told[0].lower()}{told[1:]}"
            if above:
                told += f" It is less than its own because of {_rows(len(above))} of the answer that dominate it."
        return told + f" It dominates {_rows(dominated)} of {looked:,} that were looked at."

    def _improbable(self, above: list[Version]) -> str:
        told = "Its probability to be in the skyline is below the smallest threshold"
        return f"{told}: {_rows(len(above))} of the answer dominate it." if above else f"{told}, or it lives no more."

    def _gone(self) -> str:
        left = self._left()
        told = "No row of the answer dominates it: it lives no more"
        return told + (f", and left at {moment_text(left, self.clock)}." if left is not None else ".")

    # -- ways in, and room to worsen -----------------------------------------------------------------------------------

    def _asked(self, rivals: list[Version]) -> Explanation:
        rows = [self.values, *(one.values for one in rivals)]
        matrix = np.array([[number_of(one) for one in row[: self.preference.dimensions]] for row in rows])
        minimized = len(self.preference.minimize)
        plain = Preference(
            minimize=tuple(range(minimized)), maximize=tuple(range(minimized, self.preference.dimensions))
        )
        return explain(matrix, plain, 0, nulls="worst")

    def _slack(self, rivals: list[Version]) -> dict[str, Any]:
        if self.kind in ("frequent", "uncertain"):
            return {}
        found = self._asked(rivals)
        ways = []
        if not found.inside:  # an answer that is not exact now
            return {}
        for name, bound in zip(self.preference.names, found.slack, strict=True):
            if bound is None:
                ways.append(f"{name} may worsen without limit")
            else:
                ways.append(f"{name} may worsen to {self._bound(bound, rivals, worsening=True)}")
        return {"ways": ways}

    def _moves(self, rivals: list[Version]) -> dict[str, Any]:
        found = self._asked(rivals)
        ways = [f"{self._bound(bound, rivals)} alone" for bound in found.alone if bound is not None]
        move = found.smallest
        if move is None:
            return {"ways": ways}
        told = " and ".join(self._bound(bound, rivals) for bound in move.bounds)
        return {"ways": ways, "smallest": told if move.exact else f"{told} (the best that was found)"}

    def _bound(self, bound: Bound, rivals: list[Version], *, worsening: bool = False) -> str:
        name, minimized = self.names[int(bound.column)], int(bound.column) < len(self.preference.minimize)
        like = self.values if bound.like == 0 else rivals[bound.like - 1].values
        value = "any value" if math.isnan(bound.value) else value_text(like[int(bound.column)])
        side = ("below" if minimized else "above") if bound.strict else ("at most" if minimized else "at least")
        if math.isnan(bound.value):
            side = ""
        limit = f"{side} {value}".strip()
        return (f"anything {limit}" if bound.strict else value) if worsening else f"{name} {limit}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
