"""The protocol for objects in fragments (papa14) in rounds: blocks of sites on executors, coordinator on the driver.

Site and coordinator are those of `skytide.protocols.fragmented`, and so are the bytes between them. A site's number is
its number in its bucket times the number of buckets, plus the bucket's: buckets give out numbers without a word. An
object is at sites of many buckets, so the coordinator numbers them: a bucket that meets one for the first time tells
its id beside its vectors, and is told its number in the same timestamp. All orders of a round to a bucket are one
message, since sites look at what they have to say when they know all of them.
"""

from __future__ import annotations

import copy
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skytide.errors import InputError
from skytide.model import Changes, Floats, Integers, MissingPolicy
from skytide.monitors.storage import pack, unpack
from skytide.protocols.fragmented.messages import (
    Arrivals,
    Kind,
    Message,
    Report,
    decode,
    encode,
    merged,
    sizes,
)
from skytide.protocols.fragmented.methods import coordinator_of, pairs_of
from skytide.protocols.fragmented.site import SiteBlock
from skytide.spark.rounds.fragments import FragmentQuery
from skytide.spark.rounds.protocol import KEY, Run, Said, picked
from skytide.spark.rounds.ties import last_of_each
from skytide.spark.streaming.packing import one, unpacked
from skytide.spark.streaming.query import Read
from skytide.spark.streaming.snapshots.objects import Identities

SITE, ID, ORDER, GONE = "site", "id", "order", "gone"
_SITES, COORDINATOR, VERSION = "FragmentSites", "FragmentCoordinator", 1
_NONE: Integers = np.zeros(0, np.int64)


@dataclass(frozen=True)
class FragmentRules:
    """The protocol with its query: see `protocol.Rules`."""

    query: FragmentQuery
    buckets: int

    @property
    def owner(self) -> str:
        """The column with the sites."""
        return self.query.site

    @property
    def row_bytes(self) -> int:
        """The size of a record that tells an update; the heads of messages are not counted."""
        return sizes(Kind.UPDATE, *self.shape)[1]

    @property
    def shape(self) -> tuple[int, int]:
        """How many components and functions there are, which messages must know."""
        return self.query.functions.d, self.query.functions.k

    @property
    def values(self) -> list[str]:
        """The columns of kept rows with the local values."""
        return [f"v{place}" for place in range(self.query.preference.dimensions)]

    def kept(self, table: pa.Table, read: Read) -> pa.Table:
        """Site, id, values, whether the object leaves the site, and what orders rows of one cell and time."""
        query, values = self.query, read.values
        good = table if read.good.all() else table.filter(pa.array(read.good))
        columns = {SITE: good.column(query.site), ID: good.column(query.id)}
        columns |= {name: pa.array(values[:, place]) for place, name in enumerate(self.values)}
        columns[GONE] = pa.array(np.isnan(values).all(axis=1))
        if query.order is not None:
            columns[ORDER] = good.column(query.order)
        return pa.table(columns)

    def merged(self, rows: pa.Table) -> pa.Table:
        """By key; of several rows of an object at one site and time the last. Who leaves comes first at each time."""
        found = last_of_each(rows, [SITE, ID], self.query.order and ORDER)
        leaves = found.column(GONE).to_numpy()
        if not leaves.any():
            return found
        return found.take(pa.array(np.lexsort((~leaves, found.column(KEY).to_numpy()))))

    def survey(self, rows: pa.Table) -> bytes:
        """Nothing."""
        return b""

    def bucket(self, number: int, state: bytes | None, rows: pa.Table | None, run: Run) -> SiteBucket:
        """The sites of a bucket."""
        return SiteBucket(self, number, state, rows, run)

    def coordinator(self, state: bytes | None, schema: Any = None) -> FragmentCoordinator:
        """The coordinator."""
        return FragmentCoordinator(self, state)


class _Newcomers(NamedTuple):
    """Cells of objects that have no number yet: sites, places of the ids in the run's, vectors."""

    sites: Integers
    places: Integers
    vectors: Floats

    @property
    def names(self) -> Integers:
        """The places of the ids, each once: the order in which they are told and get numbers."""
        return np.unique(self.places)


class SiteBucket:
    """Some of the sites, with their rows of a run of timestamps."""

    def __init__(self, rules: FragmentRules, number: int, state: bytes | None, rows: pa.Table | None, run: Run) -> None:
        self._rules, self._number = rules, number
        functions, method = rules.query.functions, rules.query.method
        self._block = SiteBlock(functions, paired=pairs_of(method, functions))
        self._sites = Identities()
        self._known: dict[Any, int] = {}
        self._kinds = {SITE: pa.null(), ID: pa.null()}
        self._newcomers: _Newcomers | None = None
        if state is not None:
            self._restore(state)
        self._read(rows, run)

    def _read(self, rows: pa.Table | None, run: Run) -> None:
        """Rows as arrays: timestamp, site, place of the id among the ids, vector, whether the object leaves."""
        width = len(self._rules.values)
        self._rows = _Rows(_NONE, _NONE, _NONE, np.zeros((0, width)), np.zeros(0, np.bool_))
        self._ids: list[Any] = []
        if rows is not None and len(run.keys):
            rows = rows.slice(0, int(np.searchsorted(rows.column(KEY).to_numpy(), run.keys[-1], side="right")))
            self._rows = self._arrays(rows.combine_chunks(), run) if rows.num_rows else self._rows
        self._numbers = np.array([self._known.get(name, -1) for name in self._ids], np.int64)
        self._number_rows()

    def _arrays(self, rows: pa.Table, run: Run) -> _Rows:
        self._kinds = {name: rows.column(name).type for name in (SITE, ID)}
        ids = rows.column(ID).combine_chunks().dictionary_encode()
        self._ids = ids.dictionary.to_pylist()
        values = np.column_stack([rows.column(name).to_numpy() for name in self._rules.values])
        return _Rows(
            run.first + np.searchsorted(run.keys, rows.column(KEY).to_numpy()),
            self._sites.of(np.zeros(rows.num_rows, np.int64), rows.column(SITE)),
            ids.indices.to_numpy().astype(np.int64),
            self._rules.query.functions.local(values),
            rows.column(GONE).to_numpy(),
        )

    def _number_rows(self) -> None:
        """The objects' numbers by row, as far as they have some; and the rows of those that have none."""
        self._objects = self._numbers[self._rows.places]
        self._unknown = np.flatnonzero(self._objects < 0)

    # -- timestamps ----------------------------------------------------------------------------------------------------

    def advance(self, time: int, until: int) -> tuple[int, list[bytes]]:
        """Let timestamps come up to the first in which any site speaks; it, and what is said."""
        times = self._rows.times
        row, end = int(np.searchsorted(times, time)), int(np.searchsorted(times, until, side="right"))
        while row < end:
            odd = self._unknown[np.searchsorted(self._unknown, row) :][:1]
            now = int(times[odd[0]]) if len(odd) and odd[0] < end else until + 1
            stop = int(np.searchsorted(times, now))
            if row < stop:
                said = self._taken(np.arange(row, min(stop, end)))
                if said:
                    return said[0].time, [b"", _framed(()), *self._encoded(said)]
            else:
                stop = int(np.searchsorted(times, now, side="right"))
                told = self._met(np.arange(row, stop))
                if told:
                    return now, told
            row = stop
        return until + 1, []

    def _taken(self, rows: Integers) -> list[Report]:
        """Let rows of known objects come, up to the first timestamp in which a site speaks; what it says."""
        times, sites, _, vectors, gone = self._rows
        columns = [times[rows], sites[rows], self._objects[rows], vectors[rows], gone[rows]]
        while len(columns[0]):
            done, said = self._block.instant(*columns)
            if said:
                return said
            columns = [column[done:] for column in columns]
        return []

    def _met(self, rows: Integers) -> list[bytes]:
        """Let a timestamp come in which there are objects without a number; what is said."""
        known = self._objects[rows] >= 0
        said = self._taken(rows[known])
        # What leaves before it was ever here was never known, and is none of ours.
        new = rows[~known & ~self._rows.gone[rows]]
        if not len(new):
            return [b"", _framed(()), *self._encoded(said)] if said else []
        times, sites, places, vectors, _ = self._rows
        self._newcomers = _Newcomers(sites[new], places[new], vectors[new])
        names = self._newcomers.names
        ids = one(pa.table({ID: pa.array([self._ids[place] for place in names.tolist()], self._kinds[ID])}))
        provisional = np.searchsorted(names, places[new])
        arrivals = Arrivals(int(times[new[0]]), sites[new], provisional, np.ones(len(new)), vectors[new])
        return [ids, _framed(self._encoded([arrivals])), *self._encoded(said)]

    def tell(self, message: bytes) -> list[bytes]:
        """Learn the numbers of objects, follow orders; what sites say to them."""
        numbers, *orders = _unframed(message)
        if numbers:
            self._learn(np.frombuffer(numbers, np.int64))
        if not orders:
            return []
        told = [decode(order) for order in orders]
        said = self._block.obey(*merged([replace(each, sites=each.sites // self._rules.buckets) for each in told]))
        return self._encoded(merged(said))

    def _learn(self, numbers: Integers) -> None:
        """Objects that were told by their ids have these numbers: from now on they are as all others."""
        assert self._newcomers is not None, "who is told numbers has asked for them"
        sites, places, vectors = self._newcomers
        names, self._newcomers = self._newcomers.names, None
        self._numbers = self._numbers.copy()
        self._numbers[names] = numbers
        self._known = {**self._known, **{self._ids[place]: self._numbers[place].item() for place in names.tolist()}}
        self._number_rows()
        self._block.join(0, sites, self._numbers[places], vectors)  # of which the coordinator has heard

    def _encoded(self, reports: Iterable[Report]) -> list[bytes]:
        found = [replace(each, sites=each.sites * self._rules.buckets + self._number) for each in reports]
        return [data for each in found for data in encode(each, *self._rules.shape)]

    def copy(self) -> SiteBucket:
        """The same again; rows and names are shared, which are replaced and never changed."""
        other = copy.copy(self)
        other._block = self._block.copy()
        return other

    # -- storage -------------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """What the sites know, their names, and the objects' ids and numbers."""
        sites = pa.table({SITE: pa.array(map(self._sites.name, range(len(self._sites))), self._kinds[SITE])})
        ids = pa.table(
            {ID: pa.array(self._known, self._kinds[ID]), "number": pa.array(self._known.values(), pa.int64())}
        )
        blobs = {"block": self._block.to_bytes(), "sites": one(sites), "ids": one(ids)}
        return pack(_SITES, VERSION, {}, {name: np.frombuffer(blob, np.uint8) for name, blob in blobs.items()})

    def _restore(self, state: bytes) -> None:
        _, parts = unpack(state, _SITES, VERSION)
        self._block = SiteBlock.from_bytes(parts["block"].tobytes())
        sites, ids = (unpacked([parts[name].tobytes()]) for name in ("sites", "ids"))
        assert sites is not None and ids is not None
        self._kinds = {SITE: sites.column(SITE).type, ID: ids.column(ID).type}
        self._sites.restore(range(sites.num_rows), [0] * sites.num_rows, sites.column(SITE).to_pylist())
        self._known = dict(zip(ids.column(ID).to_pylist(), ids.column("number").to_pylist(), strict=True))


class _Rows(NamedTuple):
    """The rows of a run, in order."""

    times: Integers
    sites: Integers
    places: Integers
    vectors: Floats
    gone: Any


class FragmentCoordinator:
    """The coordinator of a method, and the ids of objects."""

    def __init__(self, rules: FragmentRules, state: bytes | None) -> None:
        self._rules, query = rules, rules.query
        # Only at the end of a timestamp it is an error that a function has no value: until then, leave the object out.
        nulls: MissingPolicy = "drop" if query.nulls == "error" else query.nulls
        self._method = coordinator_of(query.method, query.functions, nulls=nulls)
        self._ids: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._kind = pa.null()
        self._counts: Counter[str] = Counter()
        self._time, self._heard = 0, False
        self._news: dict[int, bytes] = {}
        if state is not None:
            self._restore(state)
        self._skyline = self._method.skyline()

    def prepare(self, surveys: Sequence[bytes]) -> bytes:
        """Nothing."""
        return b""

    def begin(self, time: int, said: Said) -> Said:
        """Take what sites say of their own accord; the first orders."""
        self._time, self._heard = time, bool(said)
        reports: list[Message] = []
        for bucket in sorted(said):
            named, newcomers, *rest = said[bucket]
            if named:
                numbers = self._learn(named)
                self._news[bucket] = numbers.tobytes()
                found = [decode(data) for data in _unframed(newcomers)]
                reports += [replace(each, objects=numbers[each.objects]) for each in found]
            reports += [decode(data) for data in rest]
        return self._orders(reports) if said else {}

    def _learn(self, named: bytes) -> Integers:
        """The numbers of objects that a bucket tells by their ids, new ones where nobody has told them before."""
        ids = unpacked([named]).column(ID)  # type: ignore[union-attr]
        self._kind = ids.type
        for name in ids.to_pylist():
            if name not in self._numbers:
                self._numbers[name] = len(self._ids)
                self._ids.append(name)
        return np.array([self._numbers[name] for name in ids.to_pylist()], np.int64)

    def answered(self, said: Said) -> Said:
        """Take what sites say to orders; further orders."""
        return self._orders([decode(data) for bucket in sorted(said) for data in said[bucket]])

    def _orders(self, reports: Sequence[Message]) -> Said:
        reports = merged(reports)
        self._count("up", reports)
        orders = merged(self._method.take(self._time, reports))
        self._count("down", orders)
        found: dict[int, list[bytes]] = {}
        for order in orders:
            buckets = order.sites % self._rules.buckets
            for bucket in np.unique(buckets).tolist():
                found.setdefault(bucket, []).extend(encode(picked(order, buckets == bucket), *self._rules.shape))
        return {bucket: [_framed([self._news.pop(bucket, b""), *found[bucket]])] for bucket in sorted(found)}

    def settle(self) -> Said:
        """The numbers of objects, for those who have not heard of them with orders."""
        news, self._news = self._news, {}
        return {bucket: [_framed([numbers])] for bucket, numbers in sorted(news.items())}

    def _count(self, way: str, messages: Sequence[Message]) -> None:
        for message in messages:
            self._counts[f"{way}.{message.kind.name.lower()}"] += len(message.sites)

    def changes(self) -> Changes:
        """What the timestamp changed, by number of the timestamp."""
        before = self._skyline
        if self._heard:
            self._skyline = self._method.skyline()
            self._check()
        left, came = (np.setdiff1d(*pair) for pair in ((before, self._skyline), (self._skyline, before)))
        ids = np.empty(len(left) + len(came), object)
        ids[:] = [self._ids[each] for each in (*left.tolist(), *came.tolist())]
        return Changes.of(np.full(len(ids), self._time), np.repeat([-1, 1], [len(left), len(came)]), ids)

    def _check(self) -> None:
        undefined = self._method.undefined() if self._rules.query.nulls == "error" else _NONE
        if len(undefined):
            raise InputError(
                "is an object of which a function has no value",
                value=self._ids[undefined[0]],
                remedy="choose the policy drop or worst for missing values, or another expression",
            )

    def counts(self) -> dict[str, int]:
        """Rows told, of an object at a site each, by way and kind, such as `up.violation`."""
        return dict(self._counts)

    def to_bytes(self) -> bytes:
        """What the coordinator knows, and the ids of objects in the order of their numbers."""
        blobs = {"method": self._method.to_bytes(), "ids": one(pa.table({ID: pa.array(self._ids, self._kind)}))}
        parts = {name: np.frombuffer(blob, np.uint8) for name, blob in blobs.items()}
        return pack(COORDINATOR, VERSION, {"counts": dict(self._counts)}, parts)

    def _restore(self, state: bytes) -> None:
        meta, parts = unpack(state, COORDINATOR, VERSION)
        self._method = type(self._method).from_bytes(parts["method"].tobytes())
        ids = unpacked([parts["ids"].tobytes()]).column(ID)  # type: ignore[union-attr]
        self._kind, self._ids = ids.type, ids.to_pylist()
        self._numbers = {name: number for number, name in enumerate(self._ids)}
        self._counts = Counter(meta["counts"])


# -- messages in one ---------------------------------------------------------------------------------------------------


def _framed(messages: Iterable[bytes]) -> bytes:
    """Messages as one, each after its length.

    >>> _unframed(_framed([b"a", b"", b"bcd"]))
    [b'a', b'', b'bcd']
    """
    return b"".join(struct.pack("<I", len(message)) + message for message in messages)


def _unframed(data: bytes) -> list[bytes]:
    found, place = [], 0
    while place < len(data):
        (size,) = struct.unpack_from("<I", data, place)
        found.append(data[place + 4 : place + 4 + size])
        place += 4 + size
    return found
