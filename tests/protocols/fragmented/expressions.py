"""Expressions and vectors for tests: drawn trees, and what the reference says of them at a vector of means."""

from __future__ import annotations

import random

import numpy as np

from skytide.expressions import Call, Column, Number, Tree, text_of
from skytide.model import Floats
from skytide.protocols.fragmented.functions import Functions
from skytide.reference.functional import Averages, Function

NAMES = ("a", "b", "c", "d")
NUMBERS = (0.0, 0.5, 1.0, 2.0, 3.0, 10.0)
SAMPLES = [
    "a", "-a", "2 * a - 3 * b", "(a + b) / 3 - c", "norm(a, b)", "norm(a, b, c)", "distance(a, b, c, d)", "var(a)",
    "var(a) + var(b)", "sqrt(max(var(a), 0))", "a * b", "a * b * c", "a / b", "a / (b ** 2 + 1)", "(a - b) / (c + 5)",
    "1 / (a ** 2 + 1)", "abs(a - b)", "max(a, b, c)", "min(a, b)", "max(a, 0) + min(b, c)", "exp(a)", "exp(-a * a)",
    "log(a ** 2 + 1)", "sqrt(abs(a)) + b", "a ** 3", "a ** 3 - b", "a ** 4", "(a ** 4 + 1) ** 0.25", "-(a ** 2)",
    "(abs(a) + 1) ** 1.5 - b", "(abs(a) + 1) ** -2", "(a ** 2 + 1) ** b", "2 ** a", "0.5 ** a + 1", "a ** -1 + b",
    "a ** -2 + b", "a ** -1", "3 / a", "-3 / a + b", "log(a) - log(b)", "sqrt(a) * b", "sqrt(a - b)", "a ** 0.5 + b",
    "a ** 2.5", "norm(a, b) - distance(a, b, c, d)", "norm(a, b) / norm(c, d)", "var(a) / (abs(b) + 1)",
    "sqrt(min(a, 2))", "max(min(log(a), 1), 0)",
    "(a + 1e16) - 1e16", "1e300 * (1e-300 * a)", "exp(10 * a)", "(a - b) ** 5", "a ** 1", "a ** 0 + b",
]  # fmt: skip
"""One of each kind."""


class At(Averages):
    """Averages that are given: the reference's values at a vector of means."""

    def __init__(self, functions: Functions, means: Floats) -> None:
        self.means: dict[tuple[str, int], float] = dict(zip(functions.components, means.tolist(), strict=True))

    def mean(self, name: str) -> float:
        return self.means[name, 1]

    def mean_square(self, name: str) -> float:
        return self.means[name, 2]


def at(function: Function, functions: Functions, means: Floats) -> float:
    """What the reference says of one function, smaller or larger being better, at a vector of means."""
    return function(At(functions, means))


def drawn_tree(source: random.Random, depth: int) -> Tree:
    """A random tree that speaks of at least one column."""
    pick = source.random()
    if depth == 0 or pick < 0.1:
        return Column(source.choice(NAMES))
    if pick < 0.15:
        return Call("norm", tuple(Column(name) for name in NAMES[: source.randint(1, 3)]))
    if pick < 0.2:
        return Call("distance", tuple(Column(name) for name in source.sample(NAMES, 4)))
    if pick < 0.27:
        return Call("var", (Column(source.choice(NAMES)),))
    inner = drawn_tree(source, depth - 1)
    if pick < 0.5:
        return Call(source.choice(["neg", "abs", "sqrt", "exp", "log", "abs"]), (inner,))
    other = drawn_tree(source, depth - 1) if source.random() < 0.6 else Number(source.choice(NUMBERS))
    parts = (inner, other) if source.random() < 0.7 else (other, inner)
    if isinstance(parts[1], Number) and parts[1].value == 0:
        return Call(source.choice(["+", "-", "min", "max"]), parts)
    return Call(source.choice(["+", "-", "*", "/", "**", "min", "max"]), parts)


def drawn_text(source: random.Random, depth: int = 3) -> str:
    return text_of(drawn_tree(source, depth))


def vectors(functions: Functions, columns: Floats) -> Floats:
    """Vectors of means from matrices of columns; a mean of squares lies above the square of the mean by chance."""
    found = np.empty((len(columns), functions.d))
    for place, (name, power) in enumerate(functions.components):
        found[:, place] = columns[:, functions.columns.index(name)] ** power
        if power == 2:
            found[:, place] += np.abs(columns[:, (functions.columns.index(name) + 1) % columns.shape[1]])
    return found
