"""Trees of expressions as programs for the kernel: nodes in order, what is known of each, and their shapes.

`skytide.kernel.functions` says what a program is. Parts without columns become constants here. A linear function also
gets its coefficients, summed exactly; beside them stand the sums of magnitudes, which say how much rounding may cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from skytide.errors import OptionError
from skytide.expressions import Call, Column, Number, Tree, columns_of, text_of
from skytide.kernel import functions as kernel
from skytide.kernel.functions import (
    ABS,
    ADD,
    ANY,
    APART,
    COLUMN,
    CONCAVE,
    CONST,
    CONVEX,
    DIV,
    EXP,
    GENERAL,
    LENGTH,
    LINEAR,
    LOG,
    MAX,
    MIN,
    MUL,
    NEG,
    NORM,
    OVER,
    POWER,
    RAISE,
    SCALE,
    SQRT,
    SQUARE,
    SUB,
    UNDER,
    VARIANCE,
)  # fmt: skip
from skytide.kernel.intervals import enclosed
from skytide.kernel.relaxations import HIGH, LOW
from skytide.model import Floats, Integers

Component = tuple[str, int]
"""What a site ships of a column: its value (power 1) or its square (power 2)."""

_PLAIN = {"neg": NEG, "+": ADD, "-": SUB, "sqrt": SQRT, "abs": ABS, "exp": EXP, "log": LOG}
_LARGE = Fraction(2) ** 900
_UNDERFLOW = Fraction(1, 2**1000)


class Program:
    """One function as nodes: rows of `skytide.kernel.functions.Programs.nodes`, constants, ranges and shape."""

    def __init__(self, tree: Tree, components: dict[Component, int]) -> None:
        self._components = components
        self._tree = tree
        self.nodes: list[list[int]] = []
        self.constants: list[float] = []
        self._emit(tree)
        self._mark_top(len(self.nodes) - 1)
        self.ranges = self._ranges()
        self.form = self._form()
        self.linear = self._linear()
        shape = self._shapes()[-1]
        self.shape = GENERAL if shape == LINEAR and not self.linear else shape

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _add(self, op: int, left: int = 0, right: int = 0, constant: float = 0.0) -> int:
        self.nodes.append([op, left, right, 0])
        self.constants.append(constant)
        return len(self.nodes) - 1

    @property
    def constant(self) -> bool:
        """Whether the function speaks of no column."""
        return all(op != COLUMN for op, *_ in self.nodes)

    def placed(self, start: int) -> Integers:
        """The nodes as they stand behind `start` others."""
        rows = np.array(self.nodes, np.int64)
        rows[rows[:, kernel.OP] != COLUMN, kernel.LEFT] += start
        rows[rows[:, kernel.OP] != NORM, kernel.RIGHT] += start
        return rows

    def _component(self, column: Tree, power: int = 1) -> int:
        assert isinstance(column, Column)
        return self._add(COLUMN, self._components.setdefault((column.name, power), len(self._components)))

    def _emit(self, tree: Tree) -> int:
        if isinstance(tree, Column):
            return self._component(tree)
        if isinstance(tree, Number):
            return self._add(CONST, constant=tree.value)
        if not columns_of(tree):
            return self._add(CONST, constant=constant_of(tree))
        name, arguments = tree.name, tree.arguments
        if name in ("norm", "distance", "var"):
            return self._emit_named(name, arguments)
        if name in ("*", "/", "**"):
            return self._emit_product(name, *arguments)
        if name in ("min", "max"):
            place = self._emit(arguments[0])
            for argument in arguments[1:]:
                place = self._add(MIN if name == "min" else MAX, place, self._emit(argument))
            return place
        places = [self._emit(argument) for argument in arguments]
        return self._add(_PLAIN[name], places[0], places[-1])

    def _emit_named(self, name: str, arguments: Sequence[Tree]) -> int:
        if name == "var":
            squares = self._component(arguments[0], power=2)
            mean = self._component(arguments[0])
            return self._add(SUB, squares, self._add(SQUARE, mean, mean))
        if name == "norm":
            places = [self._component(argument) for argument in arguments]
        else:
            a, b, c, d = (self._component(argument) for argument in arguments)
            places = [self._add(SUB, a, c), self._add(SUB, b, d)]
        return self._add(NORM, places[0], len(places))

    def _emit_product(self, name: str, left: Tree, right: Tree) -> int:
        if not columns_of(right):
            constant = constant_of(right)
            if name == "/" and constant == 0.0:
                raise OptionError("divides by 0", value=text_of(self._tree), remedy="divide by something else")
            place = self._emit(left)
            if name == "**" and constant == 1.0:
                return place
            if name == "**" and constant == 2.0:
                return self._add(SQUARE, place, place)
            return self._add({"*": SCALE, "/": OVER, "**": POWER}[name], place, place, constant)
        if not columns_of(left) and name != "**":
            place = self._emit(right)
            return self._add(SCALE if name == "*" else UNDER, place, place, constant_of(left))
        place = self._emit(left)
        if name == "*" and left == right:
            return self._add(SQUARE, place, place)
        return self._add({"*": MUL, "/": DIV, "**": RAISE}[name], place, self._emit(right))

    def _mark_top(self, place: int) -> None:
        """Mark the nodes above which are only functions of one argument, min and max."""
        self.nodes[place][kernel.TOP] = 1
        op, left, right, _ = self.nodes[place]
        if op in (COLUMN, CONST, MUL, DIV, RAISE, NORM):
            return
        if op in (ADD, SUB) and CONST not in (self.nodes[left][0], self.nodes[right][0]):
            return
        for each in {left, right}:
            self._mark_top(each)

    # -- what is known of them -----------------------------------------------------------------------------------------

    def _ranges(self) -> Floats:
        """The range of each node over all vectors."""
        scratch = np.full((len(self.nodes), 3), np.inf)
        scratch[:, LOW] = -np.inf
        squares = {place for (_, power), place in self._components.items() if power == 2}
        for place, (op, left, _, _) in enumerate(self.nodes):
            if op == COLUMN and left in squares:
                scratch[place, LOW] = 0.0
        enclosed(np.array(self.nodes, np.int64), np.array(self.constants), scratch, 0, len(self.nodes))
        return scratch[:, [LOW, HIGH]]

    def _form(self) -> int:
        ops = [node[0] for node in self.nodes]
        columns = [node[1] for node in self.nodes if node[0] == COLUMN]
        if len(set(columns)) < len(columns):
            return ANY
        if ops == [COLUMN, COLUMN, SQUARE, SUB] and self.nodes[3][1] == 0:
            squares = {place for (_, power), place in self._components.items() if power == 2}
            return VARIANCE if columns[0] in squares else ANY
        if ops[-1] != NORM:
            return ANY
        return LENGTH if set(ops[:-1]) == {COLUMN} else APART

    def _linear(self) -> tuple[dict[int, float], dict[int, float]] | None:
        """Coefficients and sizes by component, -1 for the constant term; None where the function is not linear."""
        forms: list[tuple[dict[int, Fraction], dict[int, Fraction]]] = []
        for (op, left, right, _), constant in zip(self.nodes, self.constants, strict=True):
            if op == COLUMN:
                forms.append(({left: Fraction(1)}, {left: Fraction(1), -1: _UNDERFLOW}))
            elif op == CONST:
                forms.append(({-1: Fraction(constant)}, {-1: abs(Fraction(constant))}))
            elif op in (NEG, SCALE, OVER):
                factor = Fraction(-1 if op == NEG else constant)
                factor = 1 / factor if op == OVER else factor
                forms.append((_times(forms[left][0], factor), _times(forms[left][1], abs(factor))))
                forms[-1][1][-1] = forms[-1][1].get(-1, Fraction(0)) + _UNDERFLOW
            elif op in (ADD, SUB):
                turned = _times(forms[right][0], Fraction(1 if op == ADD else -1))
                forms.append((_plus(forms[left][0], turned), _plus(forms[left][1], forms[right][1])))
            else:
                return None
        coefficients, sizes = forms[-1]
        if any(value and not 1 / _LARGE < abs(value) < _LARGE for value in coefficients.values()):
            return None  # beyond what floats carry with all digits: node by node it is still right
        if any(value > _LARGE for value in sizes.values()):
            return None
        share = Fraction(kernel.DRIFT) * 2 + Fraction(len(self.nodes) + 16, 2**51)
        scaled = {place: float(value * share) for place, value in sizes.items()}
        return {place: float(value) for place, value in coefficients.items()}, scaled

    def _shapes(self) -> list[int]:
        found: list[int] = []
        for place, (op, left, right, _) in enumerate(self.nodes):
            if op in (COLUMN, CONST):
                found.append(LINEAR)
            elif op == NORM:
                found.append(CONVEX)
            elif op in (ADD, SUB):
                found.append(_sum(found[left], found[right] if op == ADD else turned(found[right])))
            elif op in (MIN, MAX):
                wanted = CONVEX if op == MAX else CONCAVE
                found.append(wanted if {found[left], found[right]} <= {LINEAR, wanted} else GENERAL)
            elif op == RAISE and self.nodes[left][0] == CONST:
                base = self.constants[left]
                found.append(_applied(found[right], CONVEX, math.copysign(1, base - 1)) if base > 0 else GENERAL)
            elif op in (MUL, DIV, RAISE):
                found.append(GENERAL)
            else:
                low, high = self.ranges[left]
                found.append(_unary(op, found[left], self.constants[place], low, high))
        return found


def constant_of(tree: Tree) -> float:
    """The value of a tree without columns, as the kernel computes it."""
    if isinstance(tree, Number):
        return tree.value
    assert isinstance(tree, Call)
    values = [constant_of(argument) for argument in tree.arguments]
    chain = {"*": MUL, "/": DIV, "**": RAISE, "min": MIN, "max": MAX, **_PLAIN}
    nodes = [[CONST, 0, 0, 0] for _ in values]
    if tree.name == "**" and values[1] == 2.0:
        nodes.append([SQUARE, 0, 0, 0])
    elif len(values) == 1:
        nodes.append([chain[tree.name], 0, 0, 0])
    else:
        nodes.append([chain[tree.name], 0, 1, 0])
        nodes += [[chain[tree.name], len(values) + place - 2, place, 0] for place in range(2, len(values))]
    constants = np.array(values + [0.0] * (len(nodes) - len(values)))
    scratch = np.empty((len(nodes), 3))
    value = float(kernel.evaluate(np.array(nodes, np.int64), constants, scratch, 0, len(nodes), np.empty(0)))
    if not math.isfinite(value):
        raise OptionError("is not a finite number", value=text_of(tree), remedy="write constants that have a value")
    return value


def _times(form: dict[int, Fraction], factor: Fraction) -> dict[int, Fraction]:
    return {place: value * factor for place, value in form.items()}


def _plus(left: dict[int, Fraction], right: dict[int, Fraction]) -> dict[int, Fraction]:
    return {place: left.get(place, Fraction(0)) + right.get(place, Fraction(0)) for place in {**left, **right}}


# -- shapes ------------------------------------------------------------------------------------------------------------


def turned(shape: int) -> int:
    """The shape of minus a function."""
    return {CONVEX: CONCAVE, CONCAVE: CONVEX}.get(shape, shape)


def _sum(left: int, right: int) -> int:
    if left == LINEAR:
        return right
    return left if right in (LINEAR, left) else GENERAL


def _applied(inner: int, outer: int, slope: float) -> int:
    """The shape of a function of a function: the outer one is convex or concave, and grows, falls or (0) does both."""
    if inner == LINEAR:
        return outer
    return outer if slope and inner == (outer if slope > 0 else turned(outer)) else GENERAL


def _unary(op: int, inner: int, constant: float, low: float, high: float) -> int:
    """The shape of a function of one node, whose values lie between `low` and `high`."""
    growth = 1 if low >= 0 else -1 if high <= 0 else 0
    if op == NEG or (op in (SCALE, OVER) and constant < 0):
        return turned(inner)
    if op in (SCALE, OVER):
        return inner
    if op == EXP:
        return _applied(inner, CONVEX, 1)
    if op in (LOG, SQRT):
        return _applied(inner, CONCAVE, 1)
    if op == ABS and growth:
        return inner if growth > 0 else turned(inner)
    if op in (ABS, SQUARE):
        return _applied(inner, CONVEX, growth)
    if op == UNDER:
        return _applied(inner, CONVEX if constant > 0 else CONCAVE, -constant) if growth > 0 else GENERAL
    assert op == POWER
    whole = constant == math.floor(constant)
    if whole and constant >= 0 and constant % 2 == 0:
        return _applied(inner, CONVEX, growth)
    if growth <= 0 and (whole or inner != LINEAR) and not 0 < constant < 1:
        return GENERAL
    if 0 < constant < 1:
        return _applied(inner, CONCAVE, 1)
    return _applied(inner, CONVEX, constant)
