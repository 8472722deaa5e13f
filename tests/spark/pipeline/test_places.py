"""Lines of keys: of every way to write them, and the same keys as tomllib finds."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.spark.pipeline.places import Path, lines_of

VALUES = st.sampled_from(
    [
        "1",
        "-1.5e3",
        "true",
        "1979-05-27 07:32:00",
        '""',
        "''",
        '"a # ] } = \\" \\\\"',
        "'C:\\'",
        '"""\n[no]\nk = "" 1 # no\n"""',
        '"""a\\"""\n\\\\"""',
        '"""two quotes: """""',
        "'''\n[[no]]\n''x'\n'''",
        "'''one quote: ''''",
        "[]",
        "[1, # ] no\n\n 2,]",
        '["a",\n  [3, "]"], # end ]\n  {x = 1, y.z = [1]} ]',
        "{}",
        "{ a = 1, 'b c'.d = \"}\", e = [\n1,\n{f = 2}] }",
    ]
)
NAMES = st.sampled_from(["a", "b-1", "'c.d'", '"e # f"', '"g\\u0041"', "'[h]'", "123"])
FILLERS = st.sampled_from(["", "\n", "# comment = 1\n", "\t # [no]\n\n"])
ENDS = st.sampled_from(["", " # end", "\t# ' \" [ {"])


def every_path(value: Any, path: Path = ()) -> Iterator[Path]:
    """All ways into what tomllib read."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for name, one in inner:
        yield (*path, name)
        yield from every_path(one, (*path, name))


@settings(max_examples=150)
@given(data=st.data(), newline=st.sampled_from(["\n", "\r\n"]))
def test_every_key_has_its_line_however_it_is_written(data: st.DataObject, newline: str) -> None:
    text, number = "", 0
    expected: dict[Path, int] = {}

    def fresh() -> str:
        nonlocal number
        number += 1
        return f"k{number}"

    for place in range(data.draw(st.integers(0, 4))):
        parent: Path = ()
        if place:
            text += data.draw(FILLERS)
            name, kind = data.draw(NAMES), data.draw(st.sampled_from(["[{}]", "[ {} ]", "[[{}]]"]))
            unique = fresh()
            parent = (tomllib.loads(f"{name} = 1").popitem()[0], unique)
            expected[parent] = text.count("\n") + 1
            text += kind.format(f"{name} . {unique}" if data.draw(st.booleans()) else f"{name}.{unique}")
            text += data.draw(ENDS) + "\n"
            if kind.startswith("[["):
                parent = (*parent, 0)
        for _ in range(data.draw(st.integers(0, 4))):
            text += data.draw(FILLERS)
            unique = fresh()
            dotted = data.draw(st.lists(NAMES, max_size=2))
            names = [tomllib.loads(f"{name} = 1").popitem()[0] for name in dotted]
            key = data.draw(st.sampled_from([".", " . "])).join([unique, *dotted])
            expected[(*parent, unique, *names)] = text.count("\n") + 1
            text += f"{key} = {data.draw(VALUES)}{data.draw(ENDS)}\n"
    text = text.replace("\n", newline)
    found = lines_of(text)
    assert {path: found.get(path) for path in expected} == expected
    assert set(found) == set(every_path(tomllib.loads(text)))


def test_lines_inside_arrays_and_inline_tables_are_those_of_the_elements() -> None:
    text = 'min = [\n  "a",  # [x]\n\n  "b"]\nsink = { path = "p", options = { a = 1,\n b = """\n"""\n} }\nlast = 1'
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # an inline table of several lines is newer than some versions of Python
        text = text.replace("a = 1,\n b", "a = 1, b").replace('"""\n}', '""" }')
        shift = 2
    else:
        shift = 0
    found = lines_of(text)
    assert (found["min", 0], found["min", 1], found["sink", "options", "a"]) == (2, 4, 5)
    assert found["last",] == 9 - shift


def test_tables_of_an_array_and_tables_below_them_are_told_apart() -> None:
    found = lines_of("[[t]]\nx = 1\n[t.u]\ny = 1\n[[t]]\n[t.u]\ny = 2\n[other]\n")
    assert found["t", 0, "u", "y"] == 4
    assert found["t", 1, "u", "y"] == 7
    assert found["t",] == 1 and found["t", 1] == 5 and found["other",] == 8


@pytest.mark.parametrize("text", ["", "\n\n# nothing\n", "a=1", "\n[a]"])
def test_short_texts(text: str) -> None:
    assert set(lines_of(text)) == set(every_path(tomllib.loads(text)))
