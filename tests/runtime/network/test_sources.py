"""Files that grow, are cut off and are replaced; and what a site keeps of its rows across crashes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import InputError, SkytideError, StateError
from skytide.protocols.network.frames import Id
from skytide.runtime.network.memory import Memory
from skytide.runtime.network.sources import Growing, Pipe, Place, is_plain


def drain(source: Growing) -> list[tuple[bytes, bool]]:
    """All that is there, joined by file."""
    found: list[tuple[bytes, bool]] = []
    while True:
        piece = source.read()
        assert piece is not None
        if not piece.data:
            return found
        if piece.first or not found:
            found.append((piece.data, piece.first))
        else:
            found[-1] = found[-1][0] + piece.data, found[-1][1]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_a_growing_file_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"one")
    source = Growing(str(path))
    assert drain(source) == [(b"one", True)]
    assert drain(source) == []
    append(path, b"two")
    assert drain(source) == [(b"two", False)]
    append(path, bytes(200_000))
    assert drain(source) == [(bytes(200_000), False)]
    source.close()


def test_a_file_that_is_replaced_is_read_to_its_end_before(tmp_path: Path) -> None:
    path, other = tmp_path / "rows", tmp_path / "rows.1"
    path.write_bytes(b"one")
    source = Growing(str(path))
    assert drain(source) == [(b"one", True)]
    path.rename(other)
    assert drain(source) == []
    append(other, b"late")
    path.write_bytes(b"new")
    assert drain(source) == [(b"late", False), (b"new", True)]
    source.close()


def test_a_file_that_is_cut_off_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"first line")
    source = Growing(str(path))
    drain(source)
    path.write_bytes(b"again")
    assert drain(source) == [(b"again", True)]
    path.write_bytes(b"longer than it was before")
    assert drain(source) == [(b"longer than it was before", True)]
    source.close()


def test_a_place_is_found_again_in_the_same_file_only(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"abcdef")
    source = Growing(str(path))
    drain(source)
    place = source.place(4, 2)
    source.close()
    append(path, b"ghi")
    for content, goes_on, rest in (
        (b"abcdefghi", True, b"efghi"),
        (b"abc", False, b"abc"),
        (b"xbcdefghi", False, b"xbcdefghi"),
        (b"abcdXX", True, b"XX"),
        (b"abXdef", False, b"abXdef"),
    ):
        path.write_bytes(content)
        source = Growing(str(path))
        assert source.resume(place) is goes_on
        assert drain(source) == [(rest, not goes_on)]
        source.close()


def test_a_pipe_is_read_as_it_comes_and_never_waits_long() -> None:
    theirs, ours = os.pipe()
    source = Pipe(theirs)
    assert source.read() == (b"", False)
    os.write(ours, b"abc")
    assert source.read() == (b"abc", False)
    os.close(ours)
    assert source.read() is None
    source.close()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        Growing(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="nowhere"):
        is_plain(str(tmp_path / "nowhere"))


IDS = st.sampled_from(["a", "b", 7, "ü"])
VALUES = st.one_of(
    st.none(), st.tuples(st.sampled_from([0.1, -0.0, 5e-324, float("inf"), 1.797e308]), st.floats(-1, 1))
)
STEPS = st.lists(
    st.one_of(st.lists(st.tuples(IDS, VALUES), max_size=4), st.just("shorten"), st.just("again")), max_size=8
)


@given(STEPS)
def test_a_memory_has_what_was_kept_after_any_crash(
    tmp_path_factory: pytest.TempPathFactory, steps: list[object]
) -> None:
    folder = str(tmp_path_factory.mktemp("memory"))
    memory = Memory(folder, "here")
    memory.check(("x", "y"))
    key, place = memory.key, None
    known: dict[Id, tuple[float, ...]] = {}
    for number, step in enumerate(steps):
        if step == "shorten":
            memory.shorten(known)
        elif step == "again":
            copied = str(tmp_path_factory.mktemp("memory") / "copy")  # as a crash leaves it
            shutil.copytree(folder, copied)
            memory.close()
            folder, memory = copied, Memory(copied, "here")
            assert memory.values == known
            assert (memory.key, memory.place) == (key, place)
            memory.check(("x", "y"))
        else:
            assert isinstance(step, list)
            place = Place(number, number, "00")
            memory.keep(step, place)
            for one, values in step:
                known.pop(one, None)
                if values is not None:
                    known[one] = values
    memory.close()
    memory = Memory(folder, "here")
    assert (memory.values, memory.key, memory.place) == (known, key, place)
    memory.close()


def test_a_memory_of_another_site_or_other_columns_is_refused(tmp_path: Path) -> None:
    folder = str(tmp_path)
    memory = Memory(folder, "here")
    memory.check(("x",))
    memory.keep([("a", (1.0,))], None)
    with pytest.raises(SkytideError, match="another process"):
        Memory(folder, "here")
    memory.close()
    with pytest.raises(StateError, match="belongs to the site here, not there"):
        Memory(folder, "there")
    memory = Memory(folder, "here")
    with pytest.raises(StateError, match="has the columns x, the coordinator asks for x, y"):
        memory.check(("x", "y"))
    memory.close()
