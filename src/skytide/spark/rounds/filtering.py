"""The filtering protocol (zhang09c) in rounds: blocks of clients on the executors, its server on the driver.

Client and server are those of `skytide.protocols.filtering`, and so are the bytes between them. A client's number is
its number in its bucket times the number of buckets, plus the bucket's: buckets give out numbers without a word. With
its first report a client tells its id, too, which is all that the driver learns of it besides its messages.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from skytide.missing import with_worst
from skytide.model import Booleans, Changes, Floats, Integers
from skytide.monitors.sliding.groups import Groups, canonical
from skytide.monitors.storage import pack, unpack
from skytide.protocols.filtering.client import ClientBlock
from skytide.protocols.filtering.messages import (
    Departures,
    Kind,
    Message,
    Questions,
    Reports,
    decode,
    encode,
    size_of,
)
from skytide.protocols.filtering.methods import Method
from skytide.protocols.filtering.server import joined
from skytide.spark.rounds.protocol import KEY, Run, Said, picked
from skytide.spark.rounds.query import MonitorQuery
from skytide.spark.rounds.ties import last_of_each
from skytide.spark.streaming.packing import one, unpacked
from skytide.spark.streaming.query import Read
from skytide.spark.streaming.snapshots.objects import Identities, ranks

ID, ORDER = "id", "order"
CODE = "code"
_CLIENTS, SERVER, VERSION = "FilteringClients", "FilteringServer", 1


@dataclass(frozen=True)
class FilteringRules:
    """The protocol with its query: see `protocol.Rules`."""

    query: MonitorQuery
    buckets: int

    @property
    def owner(self) -> str:
        """The column with the clients' ids."""
        return self.query.id

    @property
    def row_bytes(self) -> int:
        """The size of a message that tells a move."""
        return size_of(Kind.UPDATE, self.query.dimensions)

    @property
    def values(self) -> list[str]:
        """The columns of kept rows with the point; all NaN where the client goes."""
        return [f"v{place}" for place in range(self.query.preference.dimensions)]

    @property
    def groups(self) -> list[str]:
        """The columns of kept rows with the group."""
        return [f"g{place}" for place in range(len(self.query.preference.by))]

    def kept(self, table: pa.Table, read: Read) -> pa.Table:
        """Id, point, group and what orders rows of one client and time."""
        query, values = self.query, read.values
        if query.nulls == "worst":
            leaves: Booleans = np.asarray(np.isnan(values).all(axis=1))
            values = np.where(leaves[:, None], np.nan, with_worst(values))
        good = table if read.good.all() else table.filter(pa.array(read.good))
        columns = {ID: good.column(query.id)}
        columns |= {name: pa.array(values[:, place]) for place, name in enumerate(self.values)}
        by = [str(name) for name in query.preference.by]
        columns |= {name: good.column(inner) for name, inner in zip(self.groups, by, strict=True)}
        if query.order is not None:
            columns[ORDER] = good.column(query.order)
        return pa.table(columns)

    def merged(self, rows: pa.Table) -> pa.Table:
        """By key, then id; of several rows of a client at one time the last, in an order that the rows say."""
        return last_of_each(rows, [ID], self.query.order and ORDER)

    def survey(self, rows: pa.Table) -> bytes:
        """The groups of the rows that have one."""
        if not self.groups:
            return b""
        return one(
            rows.filter(pa.array(_placed(rows, self.values))).select(self.groups).group_by(self.groups).aggregate([])
        )

    def bucket(self, number: int, state: bytes | None, rows: pa.Table | None, run: Run) -> ClientBucket:
        """The clients of a bucket."""
        return ClientBucket(self, number, state, rows, run)

    def coordinator(self, state: bytes | None, schema: Any = None) -> FilteringCoordinator:
        """The server."""
        return FilteringCoordinator(self, state)


def _placed(rows: pa.Table, values: Sequence[str]) -> Booleans:
    """Which rows put their client somewhere; the others take it away."""
    placed: Booleans = ~np.isnan(rows.column(values[0]).to_numpy())
    return placed


class ClientBucket:
    """Some of the clients, with their moves in a run of timestamps."""

    def __init__(
        self, rules: FilteringRules, number: int, state: bytes | None, rows: pa.Table | None, run: Run
    ) -> None:
        self._rules, self._number, self._first = rules, number, run.first
        self._block = ClientBlock(rules.query.dimensions)
        self._names = Identities()
        self._kind = pa.null()
        if state is not None:
            self._restore(state)
        self._read(rows, run)

    def _read(self, rows: pa.Table | None, run: Run) -> None:
        """Rows as arrays, where each timestamp's rows begin, and in which somebody goes."""
        dimensions = self._rules.query.dimensions
        self._clients, self._points = np.zeros(0, np.int64), np.zeros((0, dimensions))
        self._gone, keys = np.zeros(0, np.bool_), np.zeros(0, np.int64)
        if rows is not None and rows.num_rows:
            ids = rows.column(ID)
            self._kind, keys = ids.type, rows.column(KEY).to_numpy()
            self._clients = self._names.of(np.zeros(len(ids), np.int64), ids)
            self._points = np.column_stack([rows.column(name).to_numpy() for name in self._rules.values])
            self._gone = ~_placed(rows, self._rules.values)
            if self._rules.groups:
                codes = self._codes(rows, run.shared)
                self._points = np.column_stack((self._points, codes, -codes))
        self._cuts = np.append(np.searchsorted(keys, run.keys), np.searchsorted(keys, run.keys[-1:], side="right"))
        self._parting = np.unique(np.searchsorted(self._cuts, np.flatnonzero(self._gone), side="right") - 1)

    def _codes(self, rows: pa.Table, shared: bytes) -> Floats:
        """The groups' numbers, as the driver gave them."""
        names = self._rules.groups
        known, groups = unpacked([shared]), Groups(tuple(names))
        if known is not None:
            for key, code in zip(_keys(known, names), known.column(CODE).to_pylist(), strict=True):
                groups.add(key, code)
        codes = np.zeros(rows.num_rows)
        placed = np.flatnonzero(~self._gone)
        if len(placed):
            codes[placed] = groups.of(rows, placed)
        return codes

    def advance(self, time: int, until: int) -> tuple[int, list[bytes]]:
        """Let timestamps come up to the first in which anybody speaks; it, and what is said."""
        while time <= until:
            place = time - self._first
            # Who goes is not absorbed in silence.
            goes = np.searchsorted(self._parting, place)
            end = min(until + 1 - self._first, *self._parting[goes : goes + 1].tolist(), len(self._cuts) - 1)
            time += self._block.absorb(time, self._cuts[place : end + 1], self._clients, self._points)
            if time <= until:
                if said := self._observe(time):
                    return time, said
                time += 1
        return until + 1, []

    def _observe(self, time: int) -> list[bytes]:
        """Let a timestamp come; what is said, the ids of new clients first."""
        place = time - self._first
        rows = slice(int(self._cuts[place]), int(self._cuts[place + 1]))
        gone, clients = self._gone[rows], self._clients[rows]
        said = self._block.observe(time, clients[~gone], self._points[rows][~gone], clients[gone])
        if not said:
            return []
        new = [block.clients for block in said if block.kind == Kind.INSERT]
        ids = [self._names.name(client) for client in np.concatenate([np.zeros(0, np.int64), *new]).tolist()]
        named = one(pa.table({ID: pa.array(ids, self._kind)})) if ids else b""
        return [named, *(self._encoded(block) for block in said)]

    def tell(self, message: bytes) -> list[bytes]:
        """Answer questions, obey orders."""
        told = decode(message)
        told = replace(told, clients=told.clients // self._rules.buckets)
        if isinstance(told, Questions):
            return [self._encoded(self._block.answer(told))]
        assert not isinstance(told, Reports | Departures), "clients say that"
        self._block.obey(told)
        return []

    def _encoded(self, block: Message) -> bytes:
        numbers = block.clients * self._rules.buckets + self._number
        return encode(replace(block, clients=numbers), self._rules.query.dimensions)

    def copy(self) -> ClientBucket:
        """The same again; rows and names are shared, which do not change."""
        other = copy.copy(self)
        other._block = copy.deepcopy(self._block)
        return other

    def to_bytes(self) -> bytes:
        """What the clients know, and their ids."""
        count = len(self._names)
        ids = one(pa.table({ID: pa.array([self._names.name(client) for client in range(count)], self._kind)}))
        parts = {"block": np.frombuffer(self._block.to_bytes(), np.uint8), "ids": np.frombuffer(ids, np.uint8)}
        return pack(_CLIENTS, VERSION, {}, parts)

    def _restore(self, state: bytes) -> None:
        _, parts = unpack(state, _CLIENTS, VERSION)
        self._block = ClientBlock.from_bytes(parts["block"].tobytes())
        ids = unpacked([parts["ids"].tobytes()])
        assert ids is not None
        self._kind = ids.column(ID).type
        self._names.restore(range(ids.num_rows), [0] * ids.num_rows, ids.column(ID).to_pylist())


class FilteringCoordinator:
    """The server, the answers, and the ids of clients."""

    def __init__(self, rules: FilteringRules, state: bytes | None) -> None:
        self._rules = rules
        self._method = rules.query.made()
        self._groups = Groups(tuple(rules.groups))
        self._group_kinds: pa.Schema | None = None
        self._ids: dict[int, Any] = {}
        self.kind = pa.null()
        self._counts: Counter[str] = Counter()
        self._time = 0
        if state is not None:
            self._restore(state)

    def prepare(self, surveys: Sequence[bytes]) -> bytes:
        """Give new groups numbers; the numbers of all groups that the rows have."""
        found = unpacked(surveys)
        if found is None or not self._rules.groups:
            return b""
        found = found.group_by(self._rules.groups).aggregate([]).combine_chunks()
        # Numbers are given out in an order that does not depend on the buckets.
        found = found.take(pa.array(np.argsort(ranks(found, None))))
        self._group_kinds = found.schema
        return one(found.append_column(CODE, pa.array(self._groups.of(found))))

    def begin(self, time: int, said: Said) -> Said:
        """Take what clients say of their own accord; whom to ask."""
        self._time = time
        blocks = []
        for bucket in sorted(said):
            named, *rest = said[bucket]
            decoded = [decode(block) for block in rest]
            self._learn(named, decoded)
            blocks += decoded
        self._count("up", blocks)
        return self._questions(self._method.server.begin(time, blocks))

    def _learn(self, named: bytes, said: Sequence[Message]) -> None:
        if named:
            ids = unpacked([named]).column(ID)  # type: ignore[union-attr]
            self.kind = ids.type
            new = np.concatenate([block.clients for block in said if block.kind == Kind.INSERT])
            self._ids.update(zip(new.tolist(), ids.to_pylist(), strict=True))

    def answered(self, said: Said) -> Said:
        """Take the answers of all that were asked; whom to ask next."""
        blocks = [decode(block) for bucket in sorted(said) for block in said[bucket]]
        self._count("up", blocks)
        return self._questions(self._method.server.answered(joined(blocks)))

    def _questions(self, whom: Integers) -> Said:
        return self._sent([Questions(self._time, whom)]) if len(whom) else {}

    def settle(self) -> Said:
        """Boxes, schedules, releases."""
        return self._sent(self._method.server.settle())

    def _sent(self, messages: Sequence[Message]) -> Said:
        """Messages by the buckets of their clients."""
        self._count("down", messages)
        found: dict[int, list[bytes]] = {}
        for message in messages:
            buckets = message.clients % self._rules.buckets
            for bucket in np.unique(buckets).tolist():
                mine = picked(message, buckets == bucket)
                found.setdefault(bucket, []).append(encode(mine, self._rules.query.dimensions))
        return found

    def _count(self, way: str, messages: Sequence[Message]) -> None:
        for message in messages:
            self._counts[f"{way}.{message.kind.name.lower()}"] += len(message.clients)

    def changes(self) -> Changes:
        """What the timestamp changed, by number of the timestamp."""
        found = self._method.answers.observe(self._method.server.skyline(), self._time)
        ids = np.empty(len(found), object)
        ids[:] = [self._ids[client] for client in found.ids.tolist()]
        return Changes.of(found.times, found.signs, ids)

    def counts(self) -> dict[str, int]:
        """Messages by way and kind, such as `up.failure`."""
        return dict(self._counts)

    def to_bytes(self) -> bytes:
        """Server, answers, ids and groups."""
        numbers = np.array(list(self._ids), np.int64)
        ids = one(pa.table({ID: pa.array(self._ids.values(), self.kind)}))
        blobs = {"method": self._method.to_bytes(), "ids": ids}
        if self._group_kinds is not None:
            keys = [self._groups.keys[code] for code in range(self._groups.next)]
            columns = [[key[place] for key in keys] for place in range(len(self._rules.groups))]
            arrays = [pa.array(one_, kind.type) for one_, kind in zip(columns, self._group_kinds, strict=True)]
            blobs["groups"] = one(pa.table(arrays, schema=self._group_kinds))
        parts = {name: np.frombuffer(blob, np.uint8) for name, blob in blobs.items()}
        return pack(SERVER, VERSION, {"counts": dict(self._counts)}, {**parts, "numbers": numbers})

    def _restore(self, state: bytes) -> None:
        meta, parts = unpack(state, SERVER, VERSION)
        self._method = Method.from_bytes(parts["method"].tobytes())
        ids = unpacked([parts["ids"].tobytes()]).column(ID)  # type: ignore[union-attr]
        self.kind = ids.type
        self._ids = dict(zip(parts["numbers"].tolist(), ids.to_pylist(), strict=True))
        self._counts = Counter(meta["counts"])
        if "groups" in parts:
            groups = unpacked([parts["groups"].tobytes()])
            assert groups is not None
            self._group_kinds = groups.schema
            for code, key in enumerate(_keys(groups, self._rules.groups)):
                self._groups.add(key, code)


def _keys(table: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The groups of rows, as they are looked up."""
    columns = [[canonical(value) for value in table.column(name).to_pylist()] for name in names]
    return list(zip(*columns, strict=True))
