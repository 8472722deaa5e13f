"""Which numbers of objects a site asks for, and when."""

from __future__ import annotations

from skytide.protocols.network.frames import NOBODY, Names, Numbers, Welcome, decode, encode
from skytide.protocols.network.member import Member
from skytide.protocols.network.query import Query


def welcomed() -> Member:
    member = Member("here", bytes(16))
    member.connected()
    member.receive(encode(Welcome(0, 0.0, Query("filtering", ("a",)).plain())), 0.0)
    return member


def ids_asked(frames: list[bytes]) -> list[tuple[int | str, ...]]:
    return [frame.ids for frame in map(decode, frames) if isinstance(frame, Names)]


def test_a_number_is_asked_for_once_and_after_a_refusal_again() -> None:
    member = welcomed()
    member.put("x", (1.0,))
    member.put("x", (2.0,))
    assert ids_asked(member.advance(0.0)) == [("x",)]
    member.put("x", (3.0,))
    assert ids_asked(member.advance(0.0)) == []
    member.receive(encode(Numbers((NOBODY,))), 0.0)
    assert ids_asked(member.advance(0.0)) == []
    assert member.refused == 1
    member.put("x", (4.0,))
    assert ids_asked(member.advance(0.0)) == [("x",)]


def test_all_numbers_are_asked_for_anew_in_a_new_session() -> None:
    member = welcomed()
    for one in ("x", "y"):
        member.put(one, (1.0,))
    member.advance(0.0)
    member.connected()
    member.put("z", (1.0,))
    member.put("y", None)
    member.receive(encode(Welcome(0, 0.0, Query("filtering", ("a",)).plain())), 0.0)
    assert [set(ids) for ids in ids_asked(member.advance(0.0))] == [{"x", "y", "z"}]


def test_only_what_is_new_is_looked_at_when_rows_wait() -> None:
    member, asked = welcomed(), list[tuple[int | str, ...]]()
    for one in range(50):
        member.put(one, (1.0,))
        member.put(0, (2.0,))
        asked += ids_asked(member.advance(0.0))
    assert asked == [(one,) for one in range(50)]
