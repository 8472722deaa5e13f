"""The f-skyline of objects in fragments over sites (papa14), by definition.

A local vector is a mapping of column names to numbers. A function speaks of the averages over the object's sites. The
mean of a column is its correctly rounded sum divided by the number of sites, so that no order of sites matters; where
sites have weights, the correctly rounded sum of weight times value, divided by that of the weights. The formulas below
are exact in their order of operations too: where two objects tie, the last bit decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from skytide.errors import InputError
from skytide.expressions import Column, Number, Tree
from skytide.model import Change
from skytide.reference.batch import Row, skyline, worst_for_missing
from skytide.reference.window import closed, differences

Local = Mapping[str, float]


def rounded_sum(values: Sequence[float]) -> float:
    """The sum as if computed exactly and rounded once; infinite beyond the largest float, NaN where infinities meet.

    >>> rounded_sum([1e308, 1e308, -1e308]), rounded_sum([1e308, 1e308]), rounded_sum([0.1] * 10)
    (1e+308, inf, 1.0)
    """
    endless = [value for value in values if math.isinf(value) or math.isnan(value)]
    if endless:
        return sum(endless)
    total = sum(Fraction(value) for value in values)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


class Averages:
    """An object's averages over its sites, each of which has a weight; without weights each counts 1.

    >>> Averages([{"x": 1.0}, {"x": 5.0}], weights=[3.0, 1.0]).mean("x")
    2.0
    """

    def __init__(self, vectors: Sequence[Local], weights: Sequence[float] | None = None) -> None:
        self.vectors = vectors
        self.weights = [1.0] * len(vectors) if weights is None else weights

    def mean(self, name: str) -> float:
        """The mean of a column."""
        return self._mean([vector[name] for vector in self.vectors])

    def mean_square(self, name: str) -> float:
        """The mean of a column's squares, which the sites compute: they ship (x, x²)."""
        return self._mean([vector[name] * vector[name] for vector in self.vectors])

    def _mean(self, values: Sequence[float]) -> float:
        products = [weight * value for weight, value in zip(self.weights, values, strict=True)]
        return rounded_sum(products) / rounded_sum(self.weights)


Function = Callable[[Averages], float]


def column(name: str) -> Function:
    """The mean of a column."""
    return lambda averages: averages.mean(name)


def norm(*names: str) -> Function:
    """The Euclidean norm of the means: sqrt(a² + b² + ...), summed from left to right."""

    def value(averages: Averages) -> float:
        total = 0.0
        for name in names:  # not sum(), which later Pythons compute with more digits than additions have
            total += averages.mean(name) * averages.mean(name)
        return math.sqrt(total)

    return value


def distance(a: str, b: str, c: str, d: str) -> Function:
    """The distance of the means of (a, b) and (c, d): sqrt((a - c)² + (b - d)²)."""

    def value(averages: Averages) -> float:
        first = averages.mean(a) - averages.mean(c)
        second = averages.mean(b) - averages.mean(d)
        return math.sqrt(first * first + second * second)

    return value


def variance(name: str) -> Function:
    """The population variance over the sites: the mean of the squares less the square of the mean.

    >>> variance("x")(Averages([{"x": 1.0}, {"x": 3.0}]))
    1.0
    """
    return lambda averages: averages.mean_square(name) - averages.mean(name) * averages.mean(name)


def expression(tree: Tree) -> Function:
    """A user's expression: each operation rounded, in the order of the tree. x ** 2 is x * x.

    What has no value is NaN: x / 0, 0 ** -1, sqrt(-1), log(0), and what is made of it. What is too large is infinite,
    and so is an exponent: 0 ** -inf has no value either.

    >>> from skytide.expressions import parse
    >>> expression(parse("2 * x ** 2 + 1"))(Averages([{"x": 1.0}, {"x": 3.0}])), expression(parse("1 / x"))(
    ...     Averages([{"x": 0.0}]))
    (9.0, nan)
    """

    def value(averages: Averages) -> float:
        if isinstance(tree, Number):
            return tree.value
        if isinstance(tree, Column):
            return averages.mean(tree.name)
        if tree.name in _OF_COLUMNS:
            return _OF_COLUMNS[tree.name](*(part.name for part in tree.arguments if isinstance(part, Column)))(averages)
        return _applied(tree.name, [expression(part)(averages) for part in tree.arguments])

    return value


_OF_COLUMNS: dict[str, Callable[..., Function]] = {"norm": norm, "distance": distance, "var": variance}


def _applied(name: str, values: list[float]) -> float:
    first, last = values[0], values[-1]
    if name in ("min", "max"):
        return math.nan if any(map(math.isnan, values)) else (min if name == "min" else max)(values)
    if name == "**":
        return first * first if last == 2 else _power(first, last)
    simple: dict[str, Callable[[], float]] = {
        "neg": lambda: -first,
        "abs": lambda: abs(first),
        "+": lambda: first + last,
        "-": lambda: first - last,
        "*": lambda: first * last,
        "/": lambda: first / last if last != 0 else math.nan,
        "sqrt": lambda: math.sqrt(first) if first >= 0 else math.nan,
        "log": lambda: math.log(first) if first > 0 else math.nan,
    }
    if name in simple:
        return simple[name]()
    try:
        return math.exp(first)
    except OverflowError:
        return math.inf


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        return math.nan  # a division by 0, by the exponent -inf as well
    try:
        return math.pow(base, exponent)
    except ValueError:
        return math.nan
    except OverflowError:
        return -math.inf if base < 0 and math.fmod(exponent, 2) else math.inf


def functional_skyline(
    objects: Mapping[Any, Sequence[Local]],
    functions: Sequence[Function],
    *,
    signs: Sequence[int] | None = None,
    nulls: str = "error",
    weights: Mapping[Any, Sequence[float]] | None = None,
) -> set[Any]:
    """The ids of the objects, each given by its local vectors, that no object f-dominates. O(objects² · functions).

    `weights` has what each object's sites count, in the order of its vectors; without them every site counts the same.

    A function value that is not a number is missing and follows the policy; with `drop` the object does not compete.
    """
    names, values = [], []
    for one, vectors in objects.items():
        averages = Averages(vectors, None if weights is None else weights[one])
        found = [function(averages) for function in functions]
        if any(math.isnan(value) for value in found):
            if nulls == "error":
                raise InputError("a function has no value", value=one, remedy="choose the policy drop or worst")
            if nulls == "drop":
                continue
        names.append(one)
        values.append([sign * value for sign, value in zip(signs or [1] * len(found), found, strict=True)])
    rows: Sequence[Row] = worst_for_missing(values) if nulls == "worst" else values
    return {names[position] for position in skyline(rows)}


def fragment_answers(
    times: Sequence[Any],
    sites: Sequence[Any],
    ids: Sequence[Any],
    vectors: Sequence[Mapping[str, float | None]],
    functions: Sequence[Function],
    *,
    signs: Sequence[int] | None = None,
    nulls: str = "error",
    by: Sequence[Any] | None = None,
) -> list[tuple[Any, set[Any]]]:
    """The f-skyline's ids after each distinct time, in order; rows of one time are applied in input order.

    A row is the new local vector of one object at one site. A site counts for an object from its first row on, until a
    row with empty values takes it out; an object without sites is gone. A row with some values empty follows the
    policy; with `worst`, averages over a missing value are missing. An object competes in the group that its last row
    with values names.
    """
    local: dict[Any, dict[Any, Local]] = {}
    group: dict[Any, Any] = {}
    answers = []
    for time in sorted(set(times)):
        for position in [position for position, own in enumerate(times) if own == time]:
            one, site = ids[position], sites[position]
            empty = [value is None or value != value for value in vectors[position].values()]
            if all(empty):
                local.get(one, {}).pop(site, None)
            elif any(empty) and nulls == "error":
                raise InputError("a value is missing", value=one, remedy="choose the policy drop or worst")
            elif not any(empty) or nulls == "worst":
                vector = {name: math.nan if value is None else value for name, value in vectors[position].items()}
                local.setdefault(one, {})[site] = vector
                group[one] = None if by is None else by[position]
        answer: set[Any] = set()
        for name in dict.fromkeys(group.values()):
            members = {one: list(at.values()) for one, at in local.items() if at and group[one] == name}
            answer |= functional_skyline(members, functions, signs=signs, nulls=nulls)
        answers.append((time, answer))
    return answers


def fragment_changes(
    times: Sequence[Any],
    sites: Sequence[Any],
    ids: Sequence[Any],
    vectors: Sequence[Mapping[str, float | None]],
    functions: Sequence[Function],
    *,
    signs: Sequence[int] | None = None,
    nulls: str = "error",
    by: Sequence[Any] | None = None,
    until: Any = None,
    lateness: Any = 0,
    close_last: bool = True,
) -> list[Change]:
    """The change stream of the f-skyline, up to the last closed time.

    >>> rows = [{"x": 4.0}, {"x": 2.0}, {"x": 0.0}, {"x": None}]
    >>> for change in fragment_changes([1, 1, 2, 3], ["s", "s", "t", "t"], "abaa", rows, [column("x")]):
    ...     print(*change)
    1 + b
    2 + a
    3 - a
    """
    answers = fragment_answers(times, sites, ids, vectors, functions, signs=signs, nulls=nulls, by=by)
    return differences(
        [
            (at, answer)
            for at, answer in answers
            if closed(at, times, until=until, lateness=lateness, close_last=close_last)
        ]
    )
