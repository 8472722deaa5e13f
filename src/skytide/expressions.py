"""Expressions that users write over averaged columns: text to trees and back, and nothing else.

    a + 2 * b        arithmetic: + - * / ** and a minus before, with Python's precedence; pow(a, 2) is a ** 2
    sqrt(a)          sqrt abs exp log, min and max of two or more
    norm(a, b)       sqrt(a² + b²), of one column or more
    distance(a, b, c, d)    of the points (a, b) and (c, d)
    var(a)           the variance over the sites
    `any name`       a column whose name is no identifier; a backtick in it is doubled

No text is ever run as code: it is cut into tokens, and the tokens into a tree of three kinds of nodes. What a tree is
worth is said by `skytide.reference.functional`.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from skytide.errors import OptionError

LONGEST = 2000
"""Characters of a text."""
DEEPEST = 40
"""Brackets within brackets."""
LARGEST = 250
"""Nodes of a tree."""


@dataclass(frozen=True)
class Number:
    """A number, finite and not negative: a minus before it is a node of its own."""

    value: float


@dataclass(frozen=True)
class Column:
    """The average of a column."""

    name: str


@dataclass(frozen=True)
class Call:
    """An operator or function and its arguments: `+ - * / **` of two, `neg` of one, and those of `FUNCTIONS`."""

    name: str
    arguments: tuple[Tree, ...]


Tree = Number | Column | Call

_MANY = LARGEST
FUNCTIONS = {
    "sqrt": (1, 1),
    "abs": (1, 1),
    "exp": (1, 1),
    "log": (1, 1),
    "pow": (2, 2),
    "min": (2, _MANY),
    "max": (2, _MANY),
    "norm": (1, _MANY),
    "distance": (4, 4),
    "var": (1, 1),
}
"""The functions, and how many arguments each takes, at least and at most."""
OF_COLUMNS = ("norm", "distance", "var")
"""Functions whose arguments are columns, not expressions."""

_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4}
_MINUS = 3
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|`(?P<quoted>(?:[^`]|``)+)`"
    r"|(?P<sign>\*\*|[-+*/(),])"
)
_REMEDY = "write columns, numbers, + - * / ** ( ) and " + " ".join(FUNCTIONS)


def parse(text: str, columns: Collection[str] | None = None) -> Tree:
    """The tree of a text; where the data's columns are given, a column that is not one of them is an error. O(length).

    A text that is the name of one of the columns is that column, whatever characters it has.

    >>> parse("2 * a + b") == parse("(2*a)+b")
    True
    >>> parse("km/h", columns=["km/h", "km"])
    Column(name='km/h')
    >>> parse("sqrt(a")
    Traceback (most recent call last):
    ...
    skytide.errors.OptionError: 'sqrt(a' ends at character 7, before a closing bracket; close what was opened
    """
    if not isinstance(text, str):
        raise OptionError("is not a text", value=text, remedy=_REMEDY)
    if columns is not None and text in columns:
        return Column(text)
    if len(text) > LONGEST:
        raise OptionError(f"has more than {LONGEST} characters", value=text, remedy="write a shorter expression")
    return _Parser(text, columns).whole()


def columns_of(tree: Tree) -> tuple[str, ...]:
    """The columns that a tree speaks of, each once, in the order of the text.

    >>> columns_of(parse("b * norm(a, b)"))
    ('b', 'a')
    """
    return tuple(dict.fromkeys(node.name for node in _nodes(tree) if isinstance(node, Column)))


def text_of(tree: Tree) -> str:
    """A text whose tree is this one.

    >>> text_of(parse("-a**2/(`b c` - 1e3)"))
    '(-(a ** 2.0)) / (`b c` - 1000.0)'
    """
    if isinstance(tree, Number):
        return repr(tree.value)
    if isinstance(tree, Column):
        plain = _TOKEN.fullmatch(tree.name)
        return tree.name if plain and plain["name"] else "`" + tree.name.replace("`", "``") + "`"
    parts = [text_of(argument) for argument in tree.arguments]
    if tree.name in FUNCTIONS:
        return f"{tree.name}({', '.join(parts)})"
    parts = [
        f"({part})" if isinstance(argument, Call) and argument.name not in FUNCTIONS else part
        for part, argument in zip(parts, tree.arguments, strict=True)
    ]
    return "-" + parts[0] if tree.name == "neg" else f"{parts[0]} {tree.name} {parts[1]}"


def _nodes(tree: Tree) -> Iterator[Tree]:
    yield tree
    if isinstance(tree, Call):
        for argument in tree.arguments:
            yield from _nodes(argument)


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


class _Parser:
    """A parser by binding powers: an operator takes what binds tighter than itself to its right."""

    def __init__(self, text: str, columns: Collection[str] | None) -> None:
        self.text = text
        self.columns = columns
        self.tokens = self._tokens()
        self.next = 0
        self.depth = 0
        self.nodes = 0

    def _fail(self, reason: str, place: int, remedy: str = _REMEDY) -> NoReturn:
        raise OptionError(f"{reason} at character {place + 1}", value=self.text, remedy=remedy)

    def _tokens(self) -> list[_Token]:
        found, place = [], 0
        while place < len(self.text):
            if self.text[place].isspace():
                place += 1
                continue
            match = _TOKEN.match(self.text, place)
            if match is None or match.lastgroup is None:
                if self.text[place] == "`":
                    self._fail("has a backtick that is not closed", place, "close it, and double those in the name")
                self._fail(f"has {self.text[place]!r}, which means nothing here,", place)
            found.append(_Token(match.lastgroup, match[match.lastgroup], place))
            place = match.end()
        found.append(_Token("end", "", len(self.text)))
        return found

    def whole(self) -> Tree:
        tree = self._expression(0)
        token = self.tokens[self.next]
        if token.kind != "end":
            if token.text == ")":
                self._fail("has a closing bracket too many", token.place, "open it first, or leave it out")
            self._fail(f"has {token.text!r} where an operator belongs", token.place)
        return tree

    def _take(self) -> _Token:
        token = self.tokens[self.next]
        self.next += token.kind != "end"
        return token

    def _made(self, tree: Tree) -> Tree:
        self.nodes += 1
        if self.nodes > LARGEST:
            raise OptionError(f"has more than {LARGEST} parts", value=self.text, remedy="write a simpler expression")
        return tree

    def _expression(self, binding: int) -> Tree:
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail(f"is more than {DEEPEST} levels deep", self.tokens[self.next].place, "use fewer brackets")
        left = self._operand()
        while True:
            token = self.tokens[self.next]
            power = _BINDS.get(token.text, 0) if token.kind == "sign" else 0
            if power <= binding:
                break
            self.next += 1
            # ** groups from the right, as in Python
            right = self._expression(power - 1 if token.text == "**" else power)
            left = self._made(Call(token.text, (left, right)))
        self.depth -= 1
        return left

    def _operand(self) -> Tree:
        token = self._take()
        if token.kind == "number":
            value = float(token.text)
            if math.isinf(value):
                self._fail(f"has {token.text}, beyond the largest number,", token.place, "write a smaller one")
            return self._made(Number(value))
        if token.kind == "quoted":
            return self._column(token.text.replace("``", "`"), token.place)
        if token.kind == "name":
            if self.tokens[self.next].text == "(" and self.tokens[self.next].kind == "sign":
                return self._call(token)
            return self._column(token.text, token.place)
        if token.text == "-" and token.kind == "sign":
            return self._made(Call("neg", (self._expression(_MINUS - 1),)))
        if token.text == "(" and token.kind == "sign":
            tree = self._expression(0)
            self._close()
            return tree
        if token.kind == "end":
            self._fail("ends too early," if self.text.strip() else "is empty", token.place)
        self._fail(f"has {token.text!r} where a value belongs", token.place)

    def _close(self) -> None:
        token = self._take()
        if token.kind == "end":
            raise OptionError(
                f"ends at character {token.place + 1}, before a closing bracket",
                value=self.text,
                remedy="close what was opened",
            )
        if token.text != ")" or token.kind != "sign":
            self._fail(f"has {token.text!r} where a closing bracket or an operator belongs", token.place)

    def _column(self, name: str, place: int) -> Tree:
        if self.columns is not None and name not in self.columns:
            near = difflib.get_close_matches(name, [str(each) for each in self.columns], 1)
            remedy = f"did you mean {near[0]!r}?" if near else "name a column of the data, in backticks if need be"
            self._fail(f"speaks of {name!r}, which is not a column,", place, remedy)
        return self._made(Column(name))

    def _call(self, name: _Token) -> Tree:
        if name.text not in FUNCTIONS:
            near = difflib.get_close_matches(name.text, FUNCTIONS, 1)
            remedy = f"did you mean {near[0]}?" if near else "use " + " ".join(FUNCTIONS)
            self._fail(f"calls {name.text!r}, which is not a function,", name.place, remedy)
        self._take()
        arguments: list[Tree] = []
        while True:
            place = self.tokens[self.next].place
            arguments.append(self._expression(0))
            if name.text in OF_COLUMNS and not isinstance(arguments[-1], Column):
                remedy = "write it with arithmetic" if name.text != "var" else "prepare the column first"
                self._fail(f"gives {name.text} something that is not a column", place, remedy)
            if self.tokens[self.next].text != "," or self.tokens[self.next].kind != "sign":
                break
            self._take()
        self._close()
        least, most = FUNCTIONS[name.text]
        if not least <= len(arguments) <= most:
            wanted = f"{least}" if least == most else f"{least} or more"
            remedy = f"give {wanted} argument{'s' * (wanted != '1')}"
            self._fail(f"gives {name.text} {len(arguments)} of them", name.place, remedy)
        return self._made(Call("**" if name.text == "pow" else name.text, tuple(arguments)))
