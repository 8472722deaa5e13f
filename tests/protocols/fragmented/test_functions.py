"""What sites ship, the round trip through text, shapes, and errors."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError, PreferenceError, SkytideError
from skytide.expressions import parse
from skytide.kernel.functions import CONCAVE, CONVEX, GENERAL, LINEAR, values
from skytide.protocols.fragmented.functions import Functions
from skytide.reference.functional import Averages, expression
from tests.protocols.fragmented.expressions import SAMPLES, drawn_text, vectors


def test_components_are_shared_between_functions() -> None:
    functions = Functions(["a + var(b)", "b"], ["norm(c, a)"])
    assert functions.components == (("a", 1), ("b", 2), ("b", 1), ("c", 1))
    assert functions.columns == ("a", "b", "c") and functions.d == 4 and functions.k == 3
    local = functions.local(np.array([[1.0, 3.0, 5.0], [2.0, 1e200, 0.0]]))
    assert local.tolist() == [[1.0, 9.0, 3.0, 5.0], [2.0, np.inf, 1e200, 0.0]]


def test_averages_of_what_sites_ship_give_the_values_of_the_reference() -> None:
    functions = Functions(["norm(x, y)", "var(y)"], ["x / (1 + var(x))"])
    rows = [{"x": 0.1, "y": 7.0}, {"x": 0.3, "y": 1.7}]
    means = functions.local(np.array([[row[name] for name in functions.columns] for row in rows])).sum(0) / 2
    wanted = [expression(parse(text))(Averages(rows)) for text in (*functions.minimize, *functions.maximize)]
    assert (values(functions.programs, means[None, :])[0] * functions.signs).tolist() == wanted


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_texts_make_the_same_functions_elsewhere(seed: int) -> None:
    source = random.Random(seed)
    try:
        functions = Functions([drawn_text(source)], [drawn_text(source)])
    except SkytideError:
        return
    again = Functions(functions.minimize, functions.maximize)
    assert again.components == functions.components
    for one, other in zip(again.programs, functions.programs, strict=True):
        if one is not again.programs.scratch:
            assert np.array_equal(one, other, equal_nan=True)


SHAPES = [
    ("a", LINEAR), ("-(2 * a - b / 3) + 1", LINEAR), ("0 * a", LINEAR), ("a ** 1", LINEAR), ("sqrt(2) * a", LINEAR),
    ("norm(a, b)", CONVEX), ("distance(a, b, c, d)", CONVEX), ("var(a)", CONCAVE), ("var(a) - norm(a, b)", CONCAVE),
    ("-norm(a, b)", CONCAVE), ("norm(a, b) * -2", CONCAVE), ("norm(a, b) / 2 + a", CONVEX), ("a * a", CONVEX),
    ("(a - b) ** 4", CONVEX), ("abs(a)", CONVEX), ("max(a, norm(b, c))", CONVEX), ("min(a, var(b))", CONCAVE),
    ("max(a, var(b))", GENERAL), ("exp(norm(a, b))", CONVEX), ("exp(var(a))", GENERAL), ("log(var(a))", CONCAVE),
    ("sqrt(a)", CONCAVE), ("log(norm(a, b))", GENERAL), ("norm(a, b) ** 2", CONVEX), ("norm(a, b) ** 3", CONVEX),
    ("a ** 3", GENERAL), ("a ** 0.5", CONCAVE), ("a ** 1.5", CONVEX), ("var(a) ** 1.5", GENERAL), ("a ** -0.5", CONVEX),
    ("a ** -1", GENERAL), ("1 / exp(a)", GENERAL), ("2 ** a", CONVEX), ("0.5 ** var(a)", CONVEX), ("a * b", GENERAL),
    ("2 ** norm(a, b)", CONVEX), ("0.5 ** norm(a, b)", GENERAL), ("a / b", GENERAL), ("a ** b", GENERAL),
    ("norm(a, b) - distance(a, b, c, d)", GENERAL), ("1e301 * (1e-301 * a)", LINEAR), ("1e301 * a", GENERAL),
    ("(-3) ** a", GENERAL), ("abs(norm(a, b))", CONVEX), ("abs(-norm(a, b))", CONVEX), ("var(a) ** 2", GENERAL),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shape"), SHAPES)
def test_shapes(text: str, shape: int) -> None:
    assert Functions([text]).programs.shape[0] == shape
    turned = {CONVEX: CONCAVE, CONCAVE: CONVEX}.get(shape, shape)
    assert Functions([], [text]).programs.shape[0] == turned


@pytest.mark.parametrize("text", sorted({*SAMPLES, *(text for text, _ in SHAPES)}))
def test_a_shape_is_never_contradicted_by_values(text: str) -> None:
    functions = Functions([text])
    source = np.random.default_rng(3)
    ends = [vectors(functions, source.normal(size=(2000, len(functions.columns))) * 3) for _ in range(2)]
    left, right = (values(functions.programs, end)[:, 0] for end in ends)
    middle = values(functions.programs, (ends[0] + ends[1]) / 2)[:, 0]
    chord, room = (left + right) / 2, 1e-9 * (np.abs(left) + np.abs(right) + 1) + 4 * ("1e16" in text)
    shape = functions.programs.shape[0]
    defined = ~np.isnan(chord)
    if shape in (LINEAR, CONVEX):
        assert np.all(middle[defined] <= (chord + room)[defined])
    if shape in (LINEAR, CONCAVE):
        assert np.all(middle[defined] >= (chord - room)[defined])


def test_errors() -> None:
    with pytest.raises(PreferenceError, match="at least one function"):
        Functions()
    with pytest.raises(PreferenceError, match="more than once"):
        Functions(["a + b"], ["(a+b)"])
    with pytest.raises(PreferenceError, match="no column"):
        Functions(["1 + 2"])
    with pytest.raises(OptionError, match="divides by 0"):
        Functions(["a / 0"])
    with pytest.raises(OptionError, match="not a finite number"):
        Functions(["a + log(0)"])
    with pytest.raises(OptionError, match="not a column"):
        Functions(["a + b"], columns=["a"])
    assert Functions(["a - b"], columns=["a - b"]).columns == ("a - b",)
