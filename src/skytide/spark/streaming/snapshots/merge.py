"""The objects of a bucket of groups, their updates put in order, and what these change. No Spark in here.

A merge holds rows whose instant is not closed yet, and behind them the objects with the engines of `Snapshots`. Its
rows are kept as a log of tables in the order in which they came. The log is what has to be stored (`stored`): where it
has grown too long it becomes one row per object again, with the object's values as of then.

Updates of one object at one time come in no order, so they get one that depends on nothing but the rows: by the column
that the query names, then by all values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skytide.kernel.updates import BAD, PLACED
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.sliding.clock import HIGHEST, LOWEST
from skytide.monitors.sliding.groups import Groups
from skytide.monitors.sliding.waiting import Arrivals, Waiting
from skytide.monitors.snapshots.boxes import PATIENCE
from skytide.monitors.snapshots.choice import maker
from skytide.monitors.snapshots.objects import Effect, Objects, Turns
from skytide.spark.streaming.output import changes_in_order, kinds_of, last_of_odd
from skytide.spark.streaming.query import Output
from skytide.spark.streaming.snapshots.counts import Counts
from skytide.spark.streaming.snapshots.objects import Identities, ranks
from skytide.spark.streaming.snapshots.query import UpdateQuery


class Updates(NamedTuple):
    """Rows whose instant is closed, in order: the objects' numbers, what is done, the rows' handles, times, values."""

    numbers: Integers
    operations: Integers
    handles: Integers
    keys: Integers
    values: Floats


class Before(NamedTuple):
    """Objects as they were before updates: their numbers, rising, the handles of their last rows, their values."""

    numbers: Integers
    handles: Integers
    values: Floats


class UpdateMerge:
    """The objects of one bucket of groups, and its answer as of the last closed instant."""

    few = 1024
    """A log with fewer superfluous rows than this is not worth compacting."""

    def __init__(self, query: UpdateQuery) -> None:
        self.query = query
        d = query.preference.dimensions
        self.groups = Groups(tuple(query.preference.by))
        self.identities = Identities()
        make = maker(query.method, d, PATIENCE)
        signs = np.array(query.preference.signs, np.float64)
        self.objects = Objects(d, signs, query.nulls == "worst", make, bool(query.preference.by))
        self.counts = None if query.frequent is None else Counts(*query.frequent)
        self.waiting = Waiting(d)
        self.log: pa.Table | None = None
        self.handles = np.zeros(0, np.int64)  # of the rows of the log; they grow
        self.last = np.zeros(0, np.int64)  # the handle of the last row of each object; -1 where none was applied
        self.worth = self.few  # with so many rows in the log it may be worth compacting
        self.closed = LOWEST

    def __len__(self) -> int:
        """How many rows are held, superfluous ones included."""
        return len(self.handles)

    # -- rows in -------------------------------------------------------------------------------------------------------

    def take(self, table: pa.Table) -> tuple[pa.Table, Output]:
        """Take rows in any order: those accepted, to be stored, and those that are not, as they come out."""
        read = self.query.read(table)
        kinds, timely = kinds_of(read, self.closed)
        fresh = np.flatnonzero(kinds == "change")
        accepted = table if len(fresh) == table.num_rows else table.take(pa.array(fresh))
        self.append(accepted, read.values[timely], read.keys[timely])
        rejected = np.flatnonzero(kinds != "change")
        none = np.zeros(len(rejected), np.int64)
        return accepted, Output(table.take(pa.array(rejected)), kinds[rejected].tolist(), none, none)

    def append(self, table: pa.Table, values: Floats, keys: Integers) -> None:
        """Let good rows wait for their instant to be closed."""
        numbers = self.identities.of(self.groups.of(table), table.column(self.query.id))
        self.reserve()
        first = int(self.handles[-1]) + 1 if len(self.handles) else 0
        handles = np.arange(first, first + len(keys), dtype=np.int64)
        self.log = table if self.log is None else pa.concat_tables([self.log, table])
        self.handles = np.concatenate((self.handles, handles))
        codes = (numbers << 2) | np.maximum(self.query.operations(table), 0)
        self.waiting.add(Arrivals(values, codes, handles, keys), LOWEST)

    def reserve(self) -> None:
        """Make room for all objects that have a number."""
        room = len(self.identities)
        self.objects.reserve(room)
        if room > len(self.last):
            more = np.full(max(room, 2 * len(self.last)) - len(self.last), -1, np.int64)
            self.last = np.concatenate((self.last, more))

    # -- changes out ---------------------------------------------------------------------------------------------------

    def close(self, bound: int) -> Output:
        """Make every instant up to the bound final; the changes that this makes, and updates that came to nothing."""
        if bound <= self.closed:
            return self._nothing()
        self.closed = bound
        due = self._ordered(self.waiting.release(bound))
        if not len(due.keys):
            return self._nothing()
        effect = self.objects.effect(due.numbers, due.values, due.operations)
        if effect.bad and self.query.nulls == "error":
            self.query.refuse(self.identities.name(int(due.numbers[effect.verdicts == BAD][0])))
        before = self._before(due)
        groups = self.identities.groups
        turns = self.objects.play(due.numbers, due.keys, groups[due.numbers], effect)
        sound = effect.verdicts != BAD
        self.last[due.numbers[sound]] = due.handles[sound]  # of several rows of one object the last one stays
        if self.counts is not None:
            turns = self.counts.run(turns, due.keys[sound], groups[due.numbers[sound]], groups)
        return self._output(due, effect, before, turns)

    def _ordered(self, rows: Arrivals) -> Updates:
        """Rows by time and object, and several of one object at one time in an order of their own."""
        numbers = rows.codes >> 2
        order = np.lexsort((numbers, rows.keys))
        same = (np.diff(rows.keys[order]) == 0) & (np.diff(numbers[order]) == 0)
        if same.any():
            tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
            which = order[tied]
            places = ranks(self.rows(rows.handles[which]), self.query.order)
            order[tied] = which[np.lexsort((places, numbers[which], rows.keys[which]))]
        picked = rows.pick(order)
        return Updates(numbers[order], picked.codes & 3, picked.handles, picked.keys, picked.values)

    def _before(self, due: Updates) -> Before:
        numbers = np.unique(due.numbers)
        return Before(numbers, self.last[numbers], self._values(numbers))

    def _values(self, numbers: Integers) -> Floats:
        """The values of objects; NaN for those that are not there."""
        return np.where(self.objects.present[numbers][:, None], self.objects.values[numbers], np.nan)

    def rows(self, handles: Integers) -> pa.Table:
        """Rows of the log."""
        assert self.log is not None
        return self.log.take(pa.array(np.searchsorted(self.handles, handles)))

    def _nothing(self) -> Output:
        none = np.zeros(0, np.int64)
        return Output(pa.table({name: [] for name in self.query.columns}), [], none, none)

    def _output(self, due: Updates, effect: Effect, before: Before, turns: Turns) -> Output:
        keys, signs, numbers = turns
        order = np.argsort(keys, kind="stable")
        if self.query.emit == "net":
            order = order[last_of_odd(np.ones(len(order), bool), numbers[order])]
        keys, signs, numbers = keys[order], signs[order], numbers[order]
        handles, values = self._as_of(keys, numbers, due, effect, before)
        rows = self._restated(self.rows(handles), values)
        rows, keys, signs = changes_in_order(rows, keys, signs, self.query.id)
        spoiled = np.flatnonzero(effect.verdicts == BAD)
        none = np.zeros(len(spoiled), np.int64)
        if len(spoiled):
            rows = pa.concat_tables([rows, self._restated(self.rows(due.handles[spoiled]), None)])
        kinds = ["change"] * len(keys) + ["bad"] * len(spoiled)
        return Output(rows, kinds, np.concatenate((keys, none)), np.concatenate((signs, none)))

    def _as_of(
        self, keys: Integers, numbers: Integers, due: Updates, effect: Effect, before: Before
    ) -> tuple[Integers, Floats]:
        """Objects as they were at some times: the handles of their last rows by then, and their values."""
        sound = np.flatnonzero(effect.verdicts != BAD)
        values = np.where((effect.verdicts[sound] == PLACED)[:, None], effect.values[sound], np.nan)
        times = np.unique(due.keys)
        # One number for object and time; what an object was before stands before its first time.
        known = before.numbers * (len(times) + 1)
        code = due.numbers[sound] * (len(times) + 1) + 1 + np.searchsorted(times, due.keys[sound])
        order = np.argsort(np.concatenate((known, code)), kind="stable")
        code = np.concatenate((known, code))[order]
        asked = numbers * (len(times) + 1) + 1 + np.searchsorted(times, keys)
        places = np.searchsorted(code, asked, side="right") - 1
        found = (places >= 0) & (code[places] // (len(times) + 1) == numbers)
        places = order[np.where(found, places, 0)]
        handles = np.where(found, np.concatenate((before.handles, due.handles[sound]))[places], self.last[numbers])
        stood = np.where(found[:, None], np.concatenate((before.values, values))[places], self._values(numbers))
        return handles, stood

    def _restated(self, rows: pa.Table, values: Floats | None) -> pa.Table:
        """Rows with the values of their objects in the place of what was added to them, or their own as DOUBLE."""
        signs = self.query.preference.signs
        for column, name in enumerate(self.query.recast):
            at = rows.column_names.index(name)
            if values is None:
                own = rows.column(name).cast(pa.float64(), safe=False)
            else:
                own = pa.array(values[:, column] * signs[column], from_pandas=True)
            rows = rows.set_column(at, name, own)
        return rows

    def next_event(self) -> int:
        """Nothing changes before this instant is closed, unless rows come; the largest int64 where nothing will."""
        keys = self.waiting.all().keys
        return int(keys.min()) if len(keys) else HIGHEST

    # -- stored --------------------------------------------------------------------------------------------------------

    def compacted(self) -> pa.Table | None:
        """The log anew, where more than half of it has become superfluous: to be stored in place of all before."""
        if len(self.handles) <= self.worth:
            return None
        from skytide.spark.streaming.snapshots.stored import compacted

        return compacted(self)

    def counted(self, numbers: Integers) -> Booleans:
        """Which of these objects have been in the skyline in a snapshot that still counts."""
        if self.counts is None:
            return np.zeros(len(numbers), bool)
        return self.counts.known(numbers, self.identities.groups)
