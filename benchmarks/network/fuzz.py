"""Random, damaged and hostile bytes into everything that reads what others wrote: only Skytide's errors may come out.

`python -m benchmarks.network.fuzz --inputs 1000000 --seed 1` runs every target; an input is one call of what reads.
Targets are the frames, the messages of both protocols, a table with a hostile site among honest ones, a member with a
hostile coordinator, records, snapshots and files of the log, events, queries, tokens and configurations.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.network.corpus import QUERIES, Conversation, Recorded, recorded
from skytide.errors import SkytideError
from skytide.monitors.storage import pack, unpack
from skytide.protocols.filtering import messages as filtering
from skytide.protocols.fragmented import messages as fragmented
from skytide.protocols.network.frames import Frame, Id, Names, Numbers, Reply, Say, Settled, Tell, decode, encode
from skytide.protocols.network.member import Member
from skytide.protocols.network.query import Query
from skytide.protocols.network.table import Table
from skytide.runtime.network.config import Config
from skytide.runtime.network.feed import Event
from skytide.runtime.network.log import Log
from skytide.runtime.network.log_files import Entry, Scan, entry_head, log_head
from skytide.runtime.network.secrets import Tokens, issue

EDGES = (0, 1, 2, 255, 1 << 15, (1 << 31) - 1, 1 << 31, (1 << 32) - 2, (1 << 32) - 1)
SECRET = bytes(range(32))
IDS: tuple[Id, ...] = ("a", "0-a", 3, "x", "y", -1)
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 1e308, 1 << 70, "", "é", "p", "\u0000"),
    *([], [1], {}, ["p", "p"], ["1 +"], [None]),
)
TOML = b"""[coordinator]
listen = "127.0.0.1:8750"
data = "state"
revoked = ["a"]
patience = "500ms"
[query]
protocol = "fragmented"
min = ["load / cores"]
max = ["norm(a, b)"]
[limits]
frame = 4096
"""


# -- damage ------------------------------------------------------------------------------------------------------------


def damaged(chance: random.Random, data: bytes, other: bytes = b"") -> bytes:
    """Bytes with something wrong, or without."""
    found = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        way, place = chance.randrange(7), chance.randrange(len(found) + 1)
        if way == 0 and place < len(found):
            found[place] ^= 1 << chance.randrange(8)
        elif way == 1 and place < len(found):
            found[place] = chance.randrange(256)
        elif way == 2:
            found[place : place + 4] = struct.pack("<I", chance.choice(EDGES))
        elif way == 3:
            del found[place:]
        elif way == 4:
            del found[place : place + chance.randint(1, 8)]
        elif way == 5:
            found[place:place] = chance.randbytes(chance.randint(1, 8))
        else:
            found[place:] = other[chance.randrange(len(other) + 1) :]
    return bytes(found)


def anything(chance: random.Random, pool: list[bytes]) -> bytes:
    """Mostly damaged bytes of a pool, sometimes just bytes."""
    if chance.random() < 0.1:
        return chance.randbytes(chance.randint(0, 80))
    return damaged(chance, chance.choice(pool), chance.choice(pool))


# -- targets -----------------------------------------------------------------------------------------------------------

Target = Callable[[], None]


@dataclass
class Fuzzer:
    """The targets, over recorded conversations."""

    chance: random.Random
    folder: Path
    known: list[Recorded]
    targets: dict[str, tuple[float, Target]] = field(default_factory=dict)

    @classmethod
    def of(cls, seed: int, folder: Path) -> Fuzzer:
        """A fuzzer by a seed, with a folder for files."""
        made = cls(random.Random(seed), folder, [recorded(query, seed) for query in QUERIES])
        made.targets = {
            "frames": (20, made.frames),
            "filtering messages": (15, made.filtering),
            "fragmented messages": (15, made.fragmented),
            "tables": (20, Hostile(made).site),
            "members": (15, HostileCoordinator(made).frame),
            "records": (4, made.records),
            "snapshots": (2, made.snapshots),
            "logs": (3, made.logs),
            "log folders": (0.05, made.folders),
            "events": (2, made.events),
            "queries": (2, made.queries),
            "tokens": (2, made.tokens),
            "configurations": (1, made.configurations),
        }
        return made

    def pick(self) -> Recorded:
        """One of the conversations."""
        return self.chance.choice(self.known)

    def frames(self) -> None:
        """Frames, both ways; what is read is written and read again."""
        known = self.pick()
        data = anything(self.chance, known.up + known.down)
        found = decode(data)
        assert decode(encode(found)) == found

    def filtering(self) -> None:
        """Messages of the filtering protocol."""
        filtering.decode(anything(self.chance, self.known[self.chance.randrange(2)].messages))

    def fragmented(self) -> None:
        """Messages about objects in fragments."""
        fragmented.decode(anything(self.chance, self.known[self.chance.randint(2, 4)].messages))

    def records(self) -> None:
        """A log of records of which one is damaged; what is left is used."""
        known = self.pick()
        table = Table(known.query)
        place = self.chance.randrange(len(known.records))
        for kind, data in known.records[max(0, place - 12) if self.chance.random() < 0.1 else 0 : place]:
            if place > 20:
                break
            table.replay(kind, data)
        kind, data = known.records[place]
        table.replay(kind, damaged(self.chance, data, self.chance.choice(known.records)[1]))
        used(table)

    def snapshots(self) -> None:
        """Snapshots: as bytes, or with a part changed and the checksums right."""
        known = self.pick()
        blob = self.chance.choice(known.snapshots)
        if self.chance.random() < 0.2:
            used(Table.from_bytes(anything(self.chance, [blob]), known.query))
            return
        used(Table.from_bytes(self.changed(blob, "NetworkTable"), known.query))

    def changed(self, blob: bytes, kind: str) -> bytes:
        """A stored thing with something changed inside."""
        header = json.loads(blob[32 : 32 + struct.unpack_from("<Q", blob, 24)[0]])
        meta, parts = unpack(blob, kind, header["version"])
        if self.chance.random() < 0.3:
            meta = json.loads(_spoiled(self.chance, meta))
        else:
            name = self.chance.choice(list(parts))
            parts = {**parts, name: self._other(name, parts[name])}
        return pack(kind, header["version"], meta, parts)

    def _other(self, name: str, part: Any) -> Any:
        data = part.tobytes()
        inner = {"engine": ("FilteringEngine", "FragmentedEngine")}.get(name, ())
        for kind in inner:
            if kind.encode() in data[:200] and self.chance.random() < 0.9:
                return np.frombuffer(self.changed(data, kind), np.uint8)
        if self.chance.random() < 0.2:
            return part[: self.chance.randint(0, len(part))] if part.ndim else part
        changed = damaged(self.chance, data)
        size = len(changed) - len(changed) % part.dtype.itemsize
        return np.frombuffer(changed[: min(size, len(data))], part.dtype)

    def logs(self) -> None:
        """The bytes of a log, read from memory."""
        data = damaged(self.chance, self._log(), self._log())
        scan = Scan(io.BytesIO(data), Path("log"), 0, len(data))
        for _ in scan:
            pass
        scan.refuse_damage(scan.end)

    def _log(self) -> bytes:
        parts, place = [log_head(0)], len(log_head(0))
        for kind, data in self.pick().records[: self.chance.randint(0, 8)]:
            entry = Entry(kind, data)
            parts += (entry_head(0, place, entry, self.chance.randint(0, place)), data)
            place = sum(map(len, parts))
        return b"".join(parts)

    def folders(self) -> None:
        """A folder of a log whose file is damaged: it opens, or says why not; and what opens can be used."""
        place = self.folder / "log"
        place.mkdir(exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        (place / "0000000000.log").write_bytes(damaged(self.chance, self._log(), self._log()))
        with Log.open(place) as log:
            list(log.entries)
            log.append(1, b"more")
            log.sync()

    def events(self) -> None:
        """Stored events."""
        pool = [Event(number, 0.5, "change", {"id": "a", "change": "+"}).to_bytes() for number in (1, 1 << 40)]
        Event.from_bytes(anything(self.chance, pool))

    def queries(self) -> None:
        """What a coordinator asks."""
        plain = json.loads(_spoiled(self.chance, self.pick().query.plain()))
        query = Query.read(plain)
        query.row([1.0] * len(query.columns))

    def tokens(self) -> None:
        """Tokens in headers: one that counts is the right one."""
        right = f"Bearer {issue(SECRET, 'site', 'a')}"
        given = anything(self.chance, [right.encode()]).decode("latin-1")
        found = Tokens(SECRET).identity(given, "site")
        assert found is None or given.split() == right.split() or given[7:].strip() == right[7:]

    def configurations(self) -> None:
        """Configuration files."""
        file = self.folder / "c.toml"
        file.write_bytes(anything(self.chance, [TOML]))
        Config.read(file)


def used(table: Table) -> None:
    """Do with a restored table what a coordinator does."""
    table.restarted(0.0)
    table.skyline()
    table.stale()
    for seat in table.seats[:3]:
        table.forget(seat.number)
    table.step(1.0)


def _spoiled(chance: random.Random, plain: Any) -> str:
    """JSON with a value in the wrong place, or none at all."""

    def spoil(one: Any) -> Any:
        if chance.random() < 0.15:
            return chance.choice(ODD)
        if isinstance(one, dict):
            kept = {key: spoil(value) for key, value in one.items() if chance.random() > 0.03}
            return kept | ({"more": 1} if chance.random() < 0.02 else {})
        return [spoil(value) for value in one] if isinstance(one, list) else one

    return json.dumps(spoil(plain))


# -- hostile peers -----------------------------------------------------------------------------------------------------


class Hostile:
    """Tables with honest sites and one that says anything; now and then it is seen that the others are served."""

    def __init__(self, fuzzer: Fuzzer) -> None:
        self._fuzzer, self._chance = fuzzer, fuzzer.chance
        self._turn = 0
        self._talks: list[tuple[Conversation, Recorded]] = []

    def site(self) -> None:
        """A frame of the hostile site."""
        self._turn += 1
        if not self._turn % 2000:
            self._talks = []
        if not self._talks:
            for known in self._fuzzer.known:
                talk = Conversation(known.query, 2, self._chance.randrange(1 << 30))
                talk.begin()
                self._talks.append((talk, known))
        talk, known = self._chance.choice(self._talks)
        if self._chance.random() < 0.1:
            talk.put()
            talk.settle()
            if self._chance.random() < 0.1:
                for late in talk.table.late(1e9):
                    talk.table.leave(late, 0.0)
                talk.settle()
                assert all(member.acknowledged == member.rows for member in talk.members)
        table = talk.table
        site = table.arrive("hostile", bytes(16), 0.0) if self._chance.random() < 0.02 else self._seat(table)
        try:
            table.receive(site, self._frame(table, site, known), 0.0, 1 << 24)
        except SkytideError:
            table.leave(site, 0.0)
            raise
        finally:
            if site in table.late(1e9) and self._chance.random() < 0.3:
                table.leave(site, 0.0)
            talk.settle()
            talk.strange.clear()

    def _seat(self, table: Table) -> int:
        for seat in table.seats:
            if seat.name == "hostile" and seat.here:
                return seat.number
        return table.arrive("hostile", bytes(16), 0.0)

    def _frame(self, table: Table, site: int, known: Recorded) -> bytes:
        seat, chance = table.seats[site], self._chance
        if chance.random() < 0.1:
            return anything(chance, known.up)
        messages = tuple(self._message(known, site, table) for _ in range(chance.choice((0, 1, 1, 2))))
        frame: Frame = Say(seat.spoken + 1, seat.told, messages, fresh=not seat.synced, last=chance.random() < 0.02)
        roll = chance.random()
        if roll < (0.8 if site in table.late(1e9) else 0.05):
            frame = Reply(seat.told, messages)
        elif roll < 0.2:
            frame = Names(tuple(chance.choices(IDS, k=chance.randint(0, 4))))
        elif roll < 0.25 and isinstance(frame, Say):
            frame = replace(frame, number=chance.choice(EDGES), heard=chance.choice(EDGES), fresh=chance.random() < 0.5)
        return encode(frame)

    def _message(self, known: Recorded, site: int, table: Table) -> bytes:
        """A message as of this site, about any objects, with any values."""
        chance = self._chance
        data = chance.choice(known.messages)
        module: Any = filtering if known.query.protocol == "filtering" else fragmented
        found = module.decode(data)
        names = {"clients", "objects"} & set(vars(found))
        count = len(next(iter(getattr(found, name) for name in names)))
        numbers = np.array([chance.randrange(table.objects + 2) for _ in range(count)])
        changes: dict[str, Any] = dict.fromkeys(names, numbers)
        if "sites" in vars(found):
            changes["sites"] = np.full(count, site if chance.random() < 0.95 else 0)
        for name in ("points", "vectors", "floor", "roof", "moved", "weights"):
            if name in vars(found) and chance.random() < 0.3:
                values = (0.0, -0.0, 1.0, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324)
                shape = getattr(found, name).shape
                changes[name] = np.array([chance.choice(values) for _ in range(int(np.prod(shape)))]).reshape(shape)
        made = replace(found, **changes)
        if module is filtering:
            return damaged(chance, filtering.encode(made, 2)) if chance.random() < 0.1 else filtering.encode(made, 2)
        functions = known.query.functions
        whole = next(iter(fragmented.encode(made, functions.d, functions.k)))
        return damaged(chance, whole) if chance.random() < 0.1 else whole


class HostileCoordinator:
    """Members that a coordinator tells anything."""

    def __init__(self, fuzzer: Fuzzer) -> None:
        self._fuzzer, self._chance = fuzzer, fuzzer.chance
        self._members: list[tuple[Member, Recorded]] = []

    def frame(self) -> None:
        """A frame to a member."""
        chance = self._chance
        if len(self._members) < 5 or chance.random() < 0.001:
            known = self._fuzzer.pick()
            self._members = [*self._members[-4:], (Member("m", bytes(16)), known)]
            self._members[-1][0].connected()
        member, known = chance.choice(self._members)
        if member.query is not None and not member.finished and chance.random() < 0.5:
            values = [float(chance.randint(-4, 4)) for _ in member.query.columns]
            member.put(chance.choice("abc"), values if chance.random() < 0.9 else None)
        try:
            member.receive(self._frame(member, known), 0.0)
            member.advance(0.0)
        except SkytideError:
            member.connected()
            raise

    def _frame(self, member: Member, known: Recorded) -> bytes:
        chance, session = self._chance, member._session
        if session is None:
            welcome = known.down[0]
            return welcome if chance.random() < 0.7 else anything(chance, [welcome])
        roll = chance.random()
        if roll < 0.4:
            asked = session.asked[0] if session.asked else ()
            return encode(Numbers(tuple(range(len(asked)))))
        if roll < 0.55:
            return encode(Settled(session.number if chance.random() < 0.9 else chance.choice(EDGES)))
        if roll < 0.6:
            return anything(chance, known.down)
        messages = tuple(chance.choice(known.messages) for _ in range(chance.randint(0, 2)))
        spoiled = tuple(damaged(chance, one) if chance.random() < 0.2 else one for one in messages)
        taken = session.number if chance.random() < 0.7 else max(0, session.number - 1)
        return encode(Tell(session.heard + 1, taken, chance.choice(EDGES), spoiled))


# -- the command -------------------------------------------------------------------------------------------------------


def fuzz(inputs: int, seed: int, most_failures: int = 10) -> dict[str, Any]:
    """Run so many inputs over all targets: how many of each, how many were refused, and what went wrong."""
    failures: list[str] = []
    counts: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        fuzzer = Fuzzer.of(seed, Path(folder))
        names = list(fuzzer.targets)
        weights = [weight for weight, _ in fuzzer.targets.values()]
        for name in fuzzer.chance.choices(names, weights, k=inputs):
            entry = counts.setdefault(name, [0, 0])
            entry[0] += 1
            try:
                fuzzer.targets[name][1]()
            except SkytideError:
                entry[1] += 1
            except Exception:
                failures.append(f"{name}: {traceback.format_exc()}")
                if len(failures) >= most_failures:
                    break
    ordered = {name: {"inputs": total, "refused": refused} for name, (total, refused) in sorted(counts.items())}
    return {"inputs": sum(total for total, _ in counts.values()), "targets": ordered, "failures": failures}


def measured(inputs: int, seed: int) -> Iterator[dict[str, Any]]:
    """A line of a table for each target; what went wrong is told on standard error."""
    found = fuzz(inputs, seed)
    print(*found["failures"], sep="\n", file=sys.stderr)
    for name, counts in found["targets"].items():
        failures = sum(failure.startswith(f"{name}: ") for failure in found["failures"])
        yield {"target": name, **counts, "failures": failures, "equal": not failures}


def main(argv: list[str] | None = None) -> int:
    """Run it; 1 where something else than an error of ours came out."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="skytide bench network fuzz", description=about)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failures", type=int, default=10, help="stop after so many")
    given = parser.parse_args(argv)
    began = time.monotonic()
    found = fuzz(given.inputs, given.seed, given.failures)
    print(json.dumps({**found, "failures": len(found["failures"]), "seconds": time.monotonic() - began}, indent=1))
    for failure in sorted(set(found["failures"]), key=len):
        print(failure, file=sys.stderr)
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
