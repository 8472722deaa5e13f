"""What the coordinator's side takes from sites, and from its own log."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from skytide.errors import InputError, StateError
from skytide.protocols.filtering import messages as filtering
from skytide.protocols.fragmented import messages as fragmented
from skytide.protocols.network import table as module
from skytide.protocols.network.frames import NOBODY, Names, Numbers, Reply, Say, Settled, decode, encode
from skytide.protocols.network.query import Query
from skytide.protocols.network.seats import DIALOGUE, NAMES, SITE, Action, Close, Commit, Publish, Send
from skytide.protocols.network.table import Table, TooManyError

QUERY = Query("filtering", ("p",), method="naive")


def begun(*names: str, query: Query = QUERY, objects: int = 100) -> Table:
    """A table to which sites have come, and asked for the number of x."""
    table = Table(query, objects=objects)
    for name in names:
        table.receive(table.arrive(name, name.encode()[:1] * 16, 0.0), encode(Names(("x",))), 0.0, 1000)
    table.step(0.0)
    return table


def insert(value: float, one: int = 0) -> bytes:
    point = np.array([[value]])
    report = filtering.Reports(filtering.Kind.INSERT, 0, np.array([one]), point, point, point)
    return filtering.encode(report, 1)


def say(table: Table, site: int, *messages: bytes, fresh: bool = True) -> None:
    seat = table.seats[site]
    table.receive(site, encode(Say(seat.spoken + 1, seat.told, messages, fresh=fresh)), 0.0, 10_000)


def settled(table: Table) -> list[Action]:
    """What a step leads to, with the dialogue made durable."""
    actions = table.step(0.0)
    return actions + (table.committed() if any(isinstance(action, Commit) for action in actions) else [])


def test_of_two_sites_that_bring_one_object_at_a_time_the_second_comes_again_without_it() -> None:
    table = begun("a", "b")
    say(table, 0, insert(1.0))
    say(table, 1, insert(2.0))
    actions = settled(table)
    assert [(one.site, one.again) for one in actions if isinstance(one, Close)] == [(1, True)]
    assert Publish((), ("x",)) in actions
    table.leave(1, 0.0)
    table.receive(table.arrive("b", b"b" * 16, 0.0), encode(Names(("x",))), 0.0, 1000)
    numbers = [decode(one.data) for one in table.step(0.0) if isinstance(one, Send)][-1]
    assert numbers == Numbers((NOBODY,))


def test_an_object_that_went_to_another_site_first_is_no_reason_to_end_a_site() -> None:
    table = begun("a", "b")
    say(table, 0, insert(1.0))
    settled(table)
    say(table, 1, insert(2.0))
    assert [(one.site, one.again) for one in settled(table) if isinstance(one, Close)] == [(1, True)]


def test_what_is_too_much_for_one_dialogue_waits_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SAID", 10)
    table = begun("a", "b")
    table.receive(1, encode(Names(("y",))), 0.0, 1000)
    say(table, 0, insert(1.0))
    say(table, 1, insert(0.5, one=1))
    first = settled(table)
    assert Publish((), ("x",)) in first
    assert Publish(("x",), ("y",)) in settled(table) and table.idle


def test_objects_are_limited_and_those_with_numbers_are_not_refused() -> None:
    table = begun("a", objects=2)
    table.receive(0, encode(Names(("y", "x", "y"))), 0.0, 1000)
    with pytest.raises(TooManyError, match="objects are too many: 2"):
        table.receive(0, encode(Names(("z",))), 0.0, 1000)
    table.receive(0, encode(Names(("y", "x"))), 0.0, 1000)
    assert table.objects == 2


def test_a_site_does_not_say_how_much_it_counts() -> None:
    table = begun("a", query=Query("fragmented", ("p",)))
    join = fragmented.Arrivals(0, np.array([0]), np.array([0]), np.array([2.0]), np.array([[1.0]]))
    (message,) = fragmented.encode(join, 1, 1)
    with pytest.raises(InputError, match="counts more or less"):
        say(table, 0, message)


def test_frames_that_are_said_twice_are_refused() -> None:
    table = begun("a")
    frame = encode(Say(1, 0, (insert(1.0),), fresh=True))
    table.receive(0, frame, 0.0, 1000)
    with pytest.raises(InputError, match="does not follow"):
        table.receive(0, frame, 0.0, 1000)
    assert encode(Settled(1)) in [one.data for one in settled(table) if isinstance(one, Send)]
    with pytest.raises(InputError, match="replies to nothing"):
        table.receive(0, encode(Reply(0, ())), 0.0, 1000)


def record(site: int, message: bytes, flags: int = 1) -> bytes:
    said = encode(Say(0, 0, (message,)))
    return struct.pack("<III", 5, 1, 1) + struct.pack("<IBI", site, flags, len(said)) + said


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(record(9, insert(1.0)), id="a site that never came"),
        pytest.param(record(0, insert(1.0, one=(1 << 32) - 1)), id="an object without a name"),
        pytest.param(record(0, insert(1.0))[:-3], id="cut off"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_record_of_what_cannot_have_been_is_refused(data: bytes) -> None:
    table = Table(QUERY)
    table.replay(SITE, b'{"name": "a", "key": "00"}')
    table.replay(NAMES, encode(Names(("x",))))
    with pytest.raises(StateError, match="a record cannot be read"):
        table.replay(DIALOGUE, data)
    assert table.replay(DIALOGUE, record(0, insert(1.0))) == Publish((), ("x",))


def test_since_when_a_site_is_out_of_touch_outlives_a_restart() -> None:
    table = begun("a")
    say(table, 0, insert(1.0))
    settled(table)
    again = Table.from_bytes(table.to_bytes(), QUERY)
    again.restarted(50.0, {0: 7.0})
    assert [(one.site, one.since, one.objects) for one in again.stale()] == [("a", 7.0, ("x",))]
    again.restarted(50.0)
    assert [one.since for one in again.stale()] == [50.0]


def test_a_site_that_returns_while_it_is_being_forgotten_tells_all_that_it_has() -> None:
    table = begun("a", "b")
    say(table, 0, insert(1.0))
    settled(table)
    table.leave(0, 0.0)
    table.forget(0)
    table.arrive("a", b"a" * 16, 0.0)
    settled(table)
    say(table, 0, insert(3.0))
    assert Close not in map(type, settled(table))
    assert table.exact and table.skyline() == ["x"]


def test_a_site_that_is_forgotten_has_no_objects_any_more() -> None:
    table = begun("a", "b")
    say(table, 0, insert(1.0))
    settled(table)
    table.leave(0, 0.0)
    assert not table.exact
    table.forget(0)
    assert Publish(("x",), ()) in settled(table) and table.exact


def test_a_snapshot_waits_for_the_records_of_what_it_has() -> None:
    table = begun("a")
    assert table.resting
    table.receive(0, encode(Names(("y",))), 0.0, 1000)
    assert not table.resting  # or the log after the snapshot would name y again
    table.step(0.0)
    again = Table.from_bytes(table.to_bytes(), QUERY)
    assert table.resting and again.ids == ["x", "y"]
