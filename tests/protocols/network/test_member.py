"""What a site acknowledges, and when it speaks."""

from __future__ import annotations

from skytide.protocols.network.frames import Frame, Names, Numbers, Say, Settled, Welcome, decode, encode
from skytide.protocols.network.member import Member
from skytide.protocols.network.query import Query


def welcomed(*, hold: bool = False) -> Member:
    member = Member("here", bytes(16), hold=hold)
    member.connected()
    member.receive(encode(Welcome(0, 0.0, Query("filtering", ("p",)).plain())), 0.0)
    return member


def said(member: Member) -> list[Frame]:
    return [decode(frame) for frame in member.advance(0.0)]


def test_that_an_object_leaves_is_not_acknowledged_before_the_coordinator_knows_what_the_site_has() -> None:
    member = welcomed()
    member.put("from before", None)
    assert member.acknowledged == 0
    assert [type(frame) for frame in said(member)] == [Say]
    assert member.acknowledged == 0
    member.receive(encode(Settled(1)), 0.0)
    assert member.acknowledged == 1


def test_a_site_that_is_held_says_all_at_once_when_it_is_released() -> None:
    member = welcomed(hold=True)
    assert said(member) == []
    member.put("a", [1.0])
    assert said(member) == [Names(("a",))]
    member.receive(encode(Numbers((4,))), 0.0)
    member.put("b", [2.0])
    assert said(member) == [Names(("b",))]
    member.receive(encode(Numbers((7,))), 0.0)
    assert said(member) == [] and member.acknowledged == 0
    member.release()
    (say,) = said(member)
    assert isinstance(say, Say) and say.fresh and sum(map(len, say.messages)) == 2 * (12 + 8)
    member.receive(encode(Settled(1)), 0.0)
    assert member.acknowledged == 2


def test_a_site_that_is_held_stays_so_when_its_connection_is_lost() -> None:
    member = welcomed(hold=True)
    member.put("a", [1.0])
    member.lost()
    member.connected()
    member.receive(encode(Welcome(0, 0.0, Query("filtering", ("p",)).plain())), 0.0)
    assert said(member) == [Names(("a",))]
    member.receive(encode(Numbers((4,))), 0.0)
    assert said(member) == []
    member.release()
    assert [type(frame) for frame in said(member)] == [Say]
