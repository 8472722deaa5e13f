"""Top-k by a monotone preference function: how a row becomes one number, its score. Smaller is better.

tao06 motivates skylines by preference functions (Section 1) and leaves their retrieval on streams to future work. The
answer at an instant is the live rows with fewer than k live rows of a strictly smaller score: rows that tie stay
together, as equal rows do in a skyline. That is the k-skyband of the scores, so `SkybandEngine(1, k)` keeps it.

A score is computed row by row in a fixed order of operations: the same row has the same score in any batch, on any
machine. A matrix product would not promise that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from skytide.errors import InputError, OptionError
from skytide.model import Column, Floats, Preference

ScoreFunction = Callable[[Floats], Any]
"""From the oriented (n, d) matrix, smaller is better in every column, to n scores, smaller is better."""


class Score:
    """The score of rows: a weighted sum of the preference columns, or a function of the user's.

    Weights are per column, not negative, and 0 where none is given; a column of weight 0 is not looked at. They apply
    to oriented values: a maximised column counts with its sign turned, so a larger value makes the score smaller. Sums
    are rounded to float64 in the order of the preference's columns, which never turns dominance around.

    A function gets the oriented matrix, read-only, and gives one number per row. It must not depend on the other rows
    of the batch. It should be monotone (never better when a column gets worse); that cannot be checked.

    >>> pref = Preference(minimize=["price"], maximize=["rating"])
    >>> Score(pref, {"price": 1.0, "rating": 10.0})(np.array([[30.0, -4.0], [20.0, -2.0]])).tolist()
    [[-10.0], [0.0]]
    >>> Score(pref, {"price": -1.0})
    Traceback (most recent call last):
    ...
    skytide.errors.OptionError: column 'price': -1.0 is not a weight; give a finite number from 0: a negative one would
    prefer worse rows
    """

    def __init__(self, preference: Preference, rule: Mapping[Column, float] | Sequence[float] | ScoreFunction) -> None:
        self.names = preference.names
        self.function: ScoreFunction | None = None
        self.weights: tuple[float, ...] = ()
        """One weight per preference column; empty where the score is a function of the user's."""
        if isinstance(rule, Mapping):
            self.weights = self._checked(_by_name(self.names, rule))
        elif callable(rule):
            self.function = rule
        else:
            given = list(rule)
            if len(given) != len(self.names):
                raise OptionError(
                    f"{len(given)} weight(s) do not fit {len(self.names)} preference column(s)",
                    remedy="give one per column, the minimised ones first, or name the columns",
                )
            self.weights = self._checked(given)

    def _checked(self, given: Sequence[Any]) -> tuple[float, ...]:
        for name, weight in zip(self.names, given, strict=True):
            usable = isinstance(weight, int | float | np.integer | np.floating) and not isinstance(weight, bool)
            if not usable or not 0 <= weight < np.inf:
                raise OptionError(
                    "is not a weight",
                    value=weight,
                    column=name,
                    remedy="give a finite number from 0: a negative one would prefer worse rows",
                )
        if not any(given):
            raise OptionError("all weights are 0, so that all rows tie", remedy="give one column a weight above 0")
        return tuple(float(weight) for weight in given)

    def __call__(self, values: Floats) -> Floats:
        """The scores of oriented rows as an (n, 1) matrix. O(n d)."""
        scores = self._sum(values) if self.function is None else self._ask(values)
        bad = np.isnan(scores)
        if bad.any():
            row = int(np.argmax(bad))
            if self.function is None:
                reason = "the weighted sum is not a number, since infinities of both signs meet in it"
                remedy = "bound the columns, or leave one of them out of the weights"
            else:
                reason, remedy = "the score function gives NaN", "give every row a number"
            raise InputError(reason, row=row + 1, remedy=remedy)
        return scores.reshape(-1, 1)

    def _sum(self, values: Floats) -> Floats:
        total: Floats | None = None
        with np.errstate(over="ignore", invalid="ignore"):
            for position, weight in enumerate(self.weights):
                if weight:
                    # 0 * inf is NaN, so columns without weight are left out; -0.0 and 0.0 compare equal.
                    term = values[:, position] * weight
                    total = term if total is None else np.add(total, term, out=total)
        assert total is not None
        return total

    def _ask(self, values: Floats) -> Floats:
        assert self.function is not None
        view = values.view()
        view.flags.writeable = False
        found = np.asarray(self.function(view))
        if found.shape != (len(values),) or found.dtype.kind not in "fiub":
            raise InputError(
                f"the score function gives {found.dtype} of shape {found.shape} for {len(values)} row(s)",
                remedy=f"return one number per row: shape ({len(values)},)",
            )
        return found.astype(np.float64)


def _by_name(names: tuple[Column, ...], given: Mapping[Column, float]) -> list[float]:
    for name in given:
        if name not in names:
            known = ", ".join(map(str, names))
            raise OptionError("is not a preference column", value=name, remedy=f"give weights to: {known}")
    return [given.get(name, 0.0) for name in names]
