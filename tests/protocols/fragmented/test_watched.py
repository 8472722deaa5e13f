"""Pairs as a table and as arrays, and what changed since a mark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skytide.kernel.functions import TOP
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.watched import Pair, PairTable, Terms, comparable, more_zones, no_zones

PAIR = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-1, 1)).filter(lambda pair: pair[0] != pair[1])
DEEDS = st.lists(st.tuples(PAIR, st.one_of(st.none(), st.sampled_from([1.0, 1.5]))), max_size=30)


@given(DEEDS, DEEDS)
def test_the_table_is_a_mapping_of_pairs_that_knows_what_changed_since_a_mark(first: list, second: list) -> None:  # type: ignore[type-arg]
    table, plain = PairTable(), dict[Pair, Terms]()

    def do(deeds: list) -> None:  # type: ignore[type-arg]
        for names, stretch in deeds:
            pair = Pair(*names)
            if stretch is None:
                table.drop(pair)
                plain.pop(pair, None)
            else:
                plain[pair] = Terms(0, stretch, 1.0, 0.25)
                table.put(pair, plain[pair])

    do(first)
    before = dict(plain)
    table.mark()
    do(second)
    put, gone = table.changes()
    assert set(put) == {pair for pair in plain if before.get(pair) != plain[pair]}
    assert set(gone) == set(before) - set(plain)
    assert set(table) == set(plain) and len(table) == len(plain)
    assert all(pair in table and table.terms(pair) == terms for pair, terms in plain.items())
    for one in range(6):
        places = table.of([one]).tolist()
        assert {table.at(place) for place in places} == {pair for pair in plain if one in pair[:2]}
        assert all(table.arrays.stretch[place, 0] == plain[table.at(place)].left for place in places)
        assert all(table.shares[place] == 0.25 for place in places)
    assert table.of(range(9)).tolist() == list(range(len(plain)))


def test_an_object_beyond_the_table_has_no_pairs() -> None:
    table = PairTable()
    table.put(Pair(0, 1, 0), Terms(0, 1.0, 1.0))
    assert table.of([7]).tolist() == [] and table.of([]).tolist() == []
    table.drop(Pair(1, 0, 0))
    assert len(table) == 1


def test_more_room_keeps_zones_and_what_is_new_is_told_in_full() -> None:
    zones = more_zones(no_zones(2, 1), 3)
    zones.centre[1] = 7.0
    zones.mode[1] = 0
    more = more_zones(zones, 50)
    assert more.centre[1].tolist() == [7.0, 7.0] and more.mode[1] == 0
    assert len(more.mode) >= 50 and (more.mode[3:] == 1).all() and (more.stretch == 1.0).all()


def test_comparable_bounds_have_no_shortcut_at_the_top() -> None:
    programs = Functions(["sqrt(a / b)"]).programs
    assert programs.nodes[:, TOP].any() and not comparable(programs).nodes[:, TOP].any()
