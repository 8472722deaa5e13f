"""The candidates of a window: the rows that parts have left, put in order, and what they change. No Spark in here.

A merge holds rows whose instant is not closed yet, and behind them the engines of the groups. Its rows are kept as a
log of tables in the order in which they came; rows that no longer matter stay in it until it is compacted. The log and
the last closed instant are all that has to be stored: engines loaded with the rows of the log are the same engines.

A count window ranks the rows of a group by time and then by id, once their instant is closed: a row's rank is its
arrival number, and the time of its changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.model import Booleans, Floats, Integers
from skytide.monitors.sliding.clock import HIGHEST, LOWEST
from skytide.monitors.sliding.engine import Moves, Rows
from skytide.monitors.sliding.flow import Flow, TimeFlow
from skytide.monitors.sliding.groups import Groups
from skytide.monitors.sliding.ids import net
from skytide.monitors.sliding.waiting import Arrivals, no_arrivals
from skytide.spark.streaming.output import changes_in_order, kinds_of, last_of_odd
from skytide.spark.streaming.query import Output, WindowQuery

RANK = "rank"
"""The column of a stored count window's rows that have got their rank."""
_FEW = 1024
"""A log with fewer superfluous rows than this is not worth compacting."""


@dataclass
class RankFlow(Flow):
    """A count window over rows that have been put in order: the i-th row of a group lives until row i + N of it."""

    length: int = 1

    def __post_init__(self) -> None:
        self.counts: dict[int, int] = {}

    def take(self, rows: Arrivals) -> Moves:
        """Take rows in order; times of the moves are ranks in the group."""
        parts = []
        for code, mine in rows.by_group():
            before = self.counts.get(code, 0)
            ranks = np.arange(before + 1, before + 1 + len(mine.handles), dtype=np.int64)
            self.counts[code] = before + len(ranks)
            run = Rows(mine.values, ranks, ranks + self.length, mine.handles)
            parts.append(self.engine(code).run(run, self.counts[code]))
        return Moves.joined(parts)


class Merge:
    """The candidates of one bucket of groups, and its answer as of the last closed instant."""

    def __init__(self, query: WindowQuery) -> None:
        self._query = query
        make = query.maker()
        self._timed = None if query.counted else TimeFlow(query.width, make, clock=query.clock.keys)
        self._ranked = RankFlow(query.width, make, length=min(int(query.window.count or 1), 2**62))
        self._flow: Flow = self._timed or self._ranked
        self._queue = no_arrivals(query.width)  # a count window's rows that wait for their rank
        self._groups = Groups(tuple(query.preference.by))
        self._log: pa.Table | None = None
        self._handles = np.zeros(0, np.int64)  # of the rows of the log; they grow
        self._ranks = np.zeros(0, np.int64)  # of the rows of the log in a count window; 0 while they wait
        self._next = 0
        self._worth = _FEW  # with so many rows in the log it may be worth compacting
        self.closed = LOWEST

    def __len__(self) -> int:
        """How many rows are held, superfluous ones included."""
        return len(self._handles)

    # -- rows in -------------------------------------------------------------------------------------------------------

    def take(self, table: pa.Table) -> tuple[pa.Table, Output]:
        """Take rows in any order: those accepted, to be stored, and those that are not, as they come out."""
        table = _in_order(table, self._query)
        read = self._query.read(table)
        kinds, timely = kinds_of(read, self.closed)
        fresh = np.flatnonzero(kinds == "change")
        codes = self._groups.of(table, fresh)
        admitted = self._admitted(table.column(self._query.id).take(pa.array(fresh)), codes, read.keys[timely])
        kinds[fresh[~admitted]] = "bad"
        accepted = table.take(pa.array(fresh[admitted]))
        self._append(accepted, read.values[timely][admitted], codes[admitted], read.keys[timely][admitted])
        rejected = np.flatnonzero(kinds != "change")
        none = np.zeros(len(rejected), np.int64)
        return accepted, Output(table.take(pa.array(rejected)), kinds[rejected].tolist(), none, none)

    def _append(self, table: pa.Table, values: Floats, codes: Integers, keys: Integers) -> None:
        handles = np.arange(self._next, self._next + len(keys), dtype=np.int64)
        self._next += len(keys)
        self._log = table if self._log is None else pa.concat_tables([self._log, table])
        self._handles = np.concatenate((self._handles, handles))
        self._ranks = np.concatenate((self._ranks, np.zeros(len(handles), np.int64)))
        arrivals = Arrivals(values, codes, handles, keys)
        if self._timed is not None:
            self._timed.waiting.add(arrivals, self.closed)
        else:
            self._queue = self._queue.join(arrivals)

    def _admitted(self, ids: pa.ChunkedArray, codes: Integers, keys: Integers) -> Booleans:
        """Which rows of a time window have an id that no other held row of their group has while they live.

        Rows that parts have dropped are not known here, so ids that come twice are found among candidates only.
        """
        admitted = np.ones(len(keys), dtype=bool)
        if self._timed is None or not self._come_again(ids, self._log):
            return admitted
        living: dict[tuple[int, object], list[int]] = {}
        if self._log is not None:
            held, own = self._log.column(self._query.id).to_pylist(), self._query.read(self._log).keys.tolist()
            for group, one, key in zip(self._groups.of(self._log).tolist(), held, own, strict=True):
                living.setdefault((group, one), []).append(key)
        expire = self._query.clock.keys.expiries
        for place, (group, one) in enumerate(zip(codes.tolist(), ids.to_pylist(), strict=True)):
            others = np.array(living.setdefault((group, one), []), dtype=np.int64)
            mine = keys[place : place + 1]
            admitted[place] = not ((expire(others) > mine) & (expire(mine) > others)).any()
            if admitted[place]:
                living[group, one].append(int(mine[0]))
        return admitted

    def _come_again(self, ids: pa.ChunkedArray, log: pa.Table | None) -> bool:
        """Whether an id comes twice among these, or is one of the log's."""
        if len(pc.unique(ids)) < len(ids):
            return True
        return log is not None and bool(
            pc.any(pc.is_in(ids, value_set=log.column(self._query.id).combine_chunks())).as_py()
        )

    # -- changes out ---------------------------------------------------------------------------------------------------

    def close(self, bound: int) -> Output:
        """Make every instant up to the bound final; the changes that this makes, in order."""
        if bound <= self.closed:
            return self._output(Moves.joined([]))
        self.closed = bound
        if self._timed is not None:
            moves = self._timed.close(bound)
            self._timed.idle.clear()
        else:
            due = self._queue.keys <= bound
            moves = self._rank(self._queue.pick(np.flatnonzero(due)))
            self._queue = self._queue.pick(np.flatnonzero(~due))
        return self._output(moves)

    def _rank(self, rows: Arrivals) -> Moves:
        """Give rows of a count window their ranks, and let them in."""
        rows = self._ranked_order(rows)
        before = dict(self._ranked.counts)
        moves = self._ranked.take(rows)
        for code, mine in rows.by_group():
            first = before.get(code, 0) + 1
            self._ranks[np.searchsorted(self._handles, mine.handles)] = np.arange(first, first + len(mine.handles))
        return moves

    def _ranked_order(self, rows: Arrivals) -> Arrivals:
        if not len(rows.handles) or self._log is None:
            return rows
        ids = self._log.column(self._query.id).take(pa.array(np.searchsorted(self._handles, rows.handles)))
        table = pa.table({"time": rows.keys, "id": ids})
        order = pc.sort_indices(table, sort_keys=[("time", "ascending"), ("id", "ascending")])
        return rows.pick(order.to_numpy())

    def _output(self, moves: Moves) -> Output:
        assert self._log is not None or not len(moves.handles)
        log = self._log if self._log is not None else pa.table({name: [] for name in self._query.columns})
        rows = log.take(pa.array(np.searchsorted(self._handles, moves.handles)))
        times, signs = moves.times, moves.signs
        if len(times):
            same = self._identities(rows) * (len(self._query.thresholds) + 1) + np.abs(signs)
            stays = net(times, signs, same)
            if self._query.emit == "net":
                stays &= last_of_odd(stays, same)
            if not stays.all():
                rows, times, signs = rows.filter(pa.array(stays)), times[stays], signs[stays]
            rows, times, signs = changes_in_order(rows, times, signs, self._query.id)
        return Output(rows, ["change"] * len(times), times, signs)

    def _identities(self, rows: pa.Table) -> Integers:
        """A number per row that is the same for rows of one group and id."""
        found = pc.dictionary_encode(rows.column(self._query.id)).combine_chunks()
        numbers: Integers = found.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if self._query.preference.by:
            numbers = numbers + (int(numbers.max(initial=0)) + 1) * self._groups.of(rows)
        return numbers

    def next_event(self) -> int:
        """Nothing changes before this instant is closed, unless rows come; the largest int64 where nothing will."""
        queued = self._queue.keys if self._timed is None else self._timed.waiting.all().keys
        first = int(queued.min()) if len(queued) else HIGHEST
        if self._timed is None:
            return first
        return min(first, *(engine.next_event() for engine in self._timed.engines.values()), HIGHEST)

    # -- stored --------------------------------------------------------------------------------------------------------

    def compacted(self) -> pa.Table | None:
        """The log anew, where more than half of it has become superfluous: to be stored in place of all before."""
        if len(self._handles) <= self._worth:
            return None
        retained = {code: rows for code, rows in self._flow.retained().items() if len(rows)}
        waiting = self._queue if self._timed is None else self._timed.waiting.all()
        handles = [rows.handles for rows in retained.values()]
        if self._timed is None:
            handles.append(self._newest())
        needed = np.unique(np.concatenate([waiting.handles, *handles]))
        self._worth = 2 * len(needed) + _FEW
        if self._log is None or len(self._handles) <= self._worth:
            return None
        places = np.searchsorted(self._handles, needed)
        self._log = self._log.take(pa.array(places)).combine_chunks()
        self._handles, self._ranks = needed, self._ranks[places]
        self._forget_groups({*retained, *waiting.codes.tolist(), *self._ranked.counts})
        if self._timed is not None:
            return self._log
        return self._log.append_column(RANK, pa.array(self._ranks, mask=self._ranks == 0))

    def _newest(self) -> Integers:
        """The newest ranked row of each group: its rank is the number of rows so far, also where it never exists."""
        assert self._log is not None
        codes = self._groups.of(self._log)
        newest = self._ranks == np.array([self._ranked.counts.get(code, -1) for code in codes.tolist()])
        found: Integers = self._handles[newest]
        return found

    def _forget_groups(self, used: set[int]) -> None:
        for code in [code for code in self._groups.keys if code not in used]:
            self._groups.forget(code)

    @classmethod
    def restored(cls, query: WindowQuery, closed: int, stored: Sequence[pa.Table]) -> Merge:
        """The merge whose log was stored in these pieces."""
        merge = cls(query)
        merge.closed = closed
        for table in stored:
            if query.counted and RANK not in table.column_names:
                table = table.append_column(RANK, pa.nulls(table.num_rows, pa.int64()))
            if table.num_rows:
                merge._log = table if merge._log is None else pa.concat_tables([merge._log, table])
        if merge._log is None:
            if merge._timed is not None:
                merge._timed.closed = closed
            return merge
        ranks = merge._log.column(RANK).fill_null(0).to_numpy() if query.counted else None
        merge._log = merge._log.select(query.columns).combine_chunks()
        read = query.read(merge._log)
        merge._next = len(read.keys)
        merge._handles = np.arange(merge._next, dtype=np.int64)
        merge._ranks = np.zeros(merge._next, np.int64)
        rows = Arrivals(read.values, merge._groups.of(merge._log), merge._handles, read.keys)
        if ranks is None:
            merge._restore_timed(rows)
        else:
            merge._restore_ranked(rows, ranks)
        return merge

    def _restore_timed(self, rows: Arrivals) -> None:
        assert self._timed is not None
        self._timed.closed = self.closed
        past = rows.keys <= self.closed
        for code, mine in rows.pick(np.flatnonzero(past)).in_order().by_group():
            expiries = self._query.clock.keys.expiries(mine.keys)
            engine = self._timed.engine(code)
            engine.load(Rows(mine.values, mine.keys, expiries, mine.handles).pick(expiries > self.closed), self.closed)
            self._timed.wake(code, engine.next_event())
        self._timed.idle.clear()
        self._timed.waiting.add(rows.pick(np.flatnonzero(~past)), self.closed)

    def _restore_ranked(self, rows: Arrivals, ranks: Integers) -> None:
        ranked = ranks > 0
        for code, mine in rows._replace(keys=ranks).pick(np.flatnonzero(ranked)).in_order().by_group():
            # The newest row of a group is always kept, so the largest rank is the number of rows so far.
            count = self._ranked.counts[code] = int(mine.keys[-1])
            lasting = Rows(mine.values, mine.keys, mine.keys + self._ranked.length, mine.handles)
            self._ranked.engine(code).load(lasting, count)
        self._ranks = ranks.copy()
        due = ~ranked & (rows.keys <= self.closed)
        self._rank(rows.pick(np.flatnonzero(due)))
        self._queue = rows.pick(np.flatnonzero(~ranked & ~due))


def _in_order(table: pa.Table, query: WindowQuery) -> pa.Table:
    """The rows in an order of their own, so that which of two rows with one id stays does not depend on the parts."""
    kind = table.schema.field(query.id).type
    keys = [(query.time, "ascending")]
    if not pa.types.is_nested(kind) and not pa.types.is_null(kind):
        keys.append((query.id, "ascending"))
    return table.take(pc.sort_indices(table.select([name for name, _ in keys]), sort_keys=keys))
