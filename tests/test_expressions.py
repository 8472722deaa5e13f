"""The parser: precedence, names, limits, and errors that name the place."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import OptionError, SkytideError
from skytide.expressions import DEEPEST, LARGEST, LONGEST, Call, Column, Number, columns_of, parse, text_of
from tests.protocols.fragmented.expressions import drawn_tree

A, B, C = Column("a"), Column("b"), Column("c")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a / b * c", "(a / b) * c"),
        ("-a ** 2", "-(a ** 2)"),
        ("-a * b", "(-a) * b"),
        ("a ** b ** c", "a ** (b ** c)"),
        ("a ** -b", "a ** (-b)"),
        ("a ** -b * c", "(a ** (-b)) * c"),
        ("a - -b", "a - (-b)"),
        ("pow(a, b)", "a ** b"),
        (" min( a,b ,c)\t", "min(a, b, c)"),
        ("1e3 + .5 + 2.", "(1000 + 0.5) + 2"),
        ("`a`", "a"),
        ("((a))", "a"),
    ],
)
def test_precedence_and_spelling(text: str, same: str) -> None:
    assert parse(text) == parse(same)


def test_trees() -> None:
    assert parse("a - 2 * b") == Call("-", (A, Call("*", (Number(2.0), B))))
    assert parse("-norm(a, b)") == Call("neg", (Call("norm", (A, B)),))
    assert columns_of(parse("var(c) + a * c")) == ("c", "a")


def test_a_text_that_is_a_column_of_the_data_is_that_column() -> None:
    names = ["a", "a-b", "price (usd)", "max", "2020", "", "`"]
    for name in names:
        assert parse(name, names) == Column(name)
    assert parse("a-b") == Call("-", (A, B))
    assert parse("max + `price (usd)` + `2020` + ````", names) == parse("((max + `price (usd)`) + `2020`) + ````")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("a +", "ends too early, at character 4"),
        ("a b", "has 'b' where an operator belongs at character 3"),
        ("2a", "has 'a' where an operator belongs at character 2"),
        ("a)", "a closing bracket too many at character 2"),
        ("(a", "before a closing bracket"),
        ("* a", "has '*' where a value belongs at character 1"),
        ("a $ b", "has '$', which means nothing here, at character 3"),
        ("`a", "a backtick that is not closed at character 1"),
        ("squirt(a)", "calls 'squirt', which is not a function, at character 1; did you mean sqrt?"),
        ("__import__(a)", "which is not a function"),
        ("a.b", "means nothing here"),
        ("a[0]", "means nothing here"),
        ("sqrt()", "has ')' where a value belongs"),
        ("sqrt(a, b)", "gives sqrt 2 of them at character 1; give 1 argument"),
        ("min(a)", "give 2 or more arguments"),
        ("distance(a, b, c)", "give 4 arguments"),
        ("norm(a + b)", "gives norm something that is not a column at character 6"),
        ("var(2)", "gives var something that is not a column"),
        ("1e999", "beyond the largest number"),
        ("(" * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1), "levels deep"),
        ("-" * (DEEPEST + 1) + "a", "levels deep"),
        ("a+" * LARGEST + "a", "parts"),
        (" " * LONGEST + "a", "characters"),
    ],
)
def test_errors_name_the_place_and_the_remedy(text: str, says: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(text)
    assert says in str(caught.value) and caught.value.remedy


def test_a_column_that_the_data_lack_is_named_with_a_near_one() -> None:
    with pytest.raises(
        OptionError, match=r"speaks of 'prize', which is not a column, at character 5; did you mean 'pr"
    ):
        parse("2 * prize", ["price", "rating"])


def test_what_is_not_a_text_is_refused() -> None:
    with pytest.raises(OptionError):
        parse(3)  # type: ignore[arg-type]


@given(st.integers(0, 2**32))
def test_a_tree_survives_its_text(seed: int) -> None:
    tree = drawn_tree(random.Random(seed), 4)
    assert parse(text_of(tree)) == tree


@given(st.text(min_size=1))
def test_every_name_survives_its_text(name: str) -> None:
    tree = Call("+", (Column(name), Call("var", (Column(name),))))
    assert parse(text_of(tree)) == tree


@given(st.text(st.sampled_from("ab1.e(),+-*/`^ sqrtminvar")))
def test_any_text_is_a_tree_or_an_error_of_ours(text: str) -> None:
    try:
        tree = parse(text)
    except SkytideError:
        return
    assert parse(text_of(tree)) == tree
