"""Brings the rows of a micro-batch to their buckets, in one job, and says what times there are.

First every task sorts out the rows of its part: what is late or bad, and to which bucket the others go, packed. Then
each bucket's rows are put in order with those that waited from before, and stored beside the bucket's state. The driver
learns the distinct times, and gets the rows that were not taken, if anybody wants them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.model import Integers
from skytide.spark.rounds.files import read_rows, write_rows
from skytide.spark.rounds.protocol import KEY, Rules
from skytide.spark.streaming.output import kinds_of
from skytide.spark.streaming.packing import one, packed, unpacked
from skytide.spark.streaming.processor import output_table
from skytide.spark.streaming.query import BUCKET, Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SORTED = pa.schema([(BUCKET, pa.int32()), ("rows", pa.binary()), ("letters", pa.binary()), ("taken", pa.int64())])
SORTED_DDL = "bucket INT, rows BINARY, letters BINARY, taken BIGINT"
GATHERED_DDL = (
    "bucket INT, name STRING, times BINARY, survey BINARY, letters ARRAY<BINARY>, taken BIGINT, late BIGINT, bad BIGINT"
)
GATHERED = pa.schema(
    [
        (BUCKET, pa.int32()),
        ("name", pa.string()),
        ("times", pa.binary()),
        ("survey", pa.binary()),
        ("letters", pa.list_(pa.binary())),
        ("taken", pa.int64()),
        ("late", pa.int64()),
        ("bad", pa.int64()),
    ]
)
PENDING_ROWS = 1 << 17
"""A task sorts out so many rows at a time."""


@dataclass(frozen=True)
class Gathered:
    """What the driver learns: by bucket the file of its rows; the times; what the coordinator wants to know."""

    names: dict[int, str | None]
    keys: Integers
    surveys: list[bytes]
    letters: pa.Table | None
    taken: int
    late: int
    bad: int
    size: int
    """How many bytes it took to say so, without the letters."""


@dataclass(frozen=True)
class Intake:
    """Reads the rows of one micro-batch; a plain value that travels."""

    rules: Rules
    folder: str
    closed: int
    """Rows up to this instant are late."""
    waiting: tuple[str | None, ...]
    """By bucket: the file in which rows of later instants wait."""
    letters: bool
    """Whether rows that are not taken are wanted, and not only counted."""

    def gather(self, rows: DataFrame) -> Gathered:
        """Run the job."""
        from pyspark.sql import functions, types

        query, count = self.rules.query, self.rules.buckets
        inner = rows.toDF(*query.columns)
        owner = functions.col(self.rules.owner)
        if isinstance(inner.schema[self.rules.owner].dataType, types.FractionalType):
            owner = owner + functions.lit(0)  # -0.0 and 0.0 are one value
        inner = inner.withColumn(BUCKET, functions.pmod(functions.xxhash64(owner), functions.lit(count)).cast("int"))
        spread = inner.mapInArrow(self.sort, SORTED_DDL).repartitionById(count, BUCKET)
        return gathered(spread.mapInArrow(self.gathering, GATHERED_DDL).toArrow())

    # -- in the tasks --------------------------------------------------------------------------------------------------

    def sort(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For mapInArrow: rows in, packed rows by bucket out."""
        # A bucket must be called also where it has no new rows: some may wait in it.
        yield _batch(SORTED, [{BUCKET: number, "taken": 0} for number in range(self.rules.buckets)])
        for table in _runs(batches):
            yield from self._sorted(table)

    def _sorted(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        query = self.rules.query
        buckets, table = table.column(BUCKET).to_numpy(), table.drop_columns([BUCKET])
        read = query.read(table)
        kinds, timely = kinds_of(read, self.closed)
        kept = self.rules.kept(table, read).append_column(KEY, pa.array(read.keys))
        if not timely.all():
            kept = kept.filter(pa.array(timely))
        taken = kinds == "change"
        for number, rows in _parted(kept, buckets[taken]):
            for piece in packed(rows):
                yield _batch(SORTED, [{BUCKET: number, "rows": piece, "taken": rows.num_rows}])
        rejected = np.flatnonzero(~taken)
        if len(rejected):
            none = np.zeros(len(rejected), np.int64)
            out = output_table(Output(table.take(pa.array(rejected)), kinds[rejected].tolist(), none, none), query)
            for number, rows in _parted(out if self.letters else out.select(["kind"]), buckets[rejected]):
                for piece in packed(rows):
                    yield _batch(SORTED, [{BUCKET: number, "letters": piece, "taken": 0}])

    def gathering(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For mapInArrow: packed rows of some buckets in, stored ones out."""
        rows: dict[int, list[Any]] = {}
        letters: dict[int, list[Any]] = {}
        for batch in batches:
            for number, piece, letter in zip(*(batch.column(name) for name in SORTED.names[:3]), strict=True):
                mine = rows.setdefault(number.as_py(), [])
                mine += [piece.as_buffer()] if piece.is_valid else []
                theirs = letters.setdefault(number.as_py(), [])
                theirs += [letter.as_buffer()] if letter.is_valid else []
        for number in sorted(rows):
            yield self._gathered(number, rows[number], letters[number])

    def _gathered(self, number: int, pieces: list[Any], letters: list[Any]) -> pa.RecordBatch:
        fresh = unpacked(pieces)
        tables = [] if fresh is None else [fresh]
        waiting = self.waiting[number]
        if waiting is not None:
            before = read_rows(self.folder, waiting)
            tables.append(before.filter(pc.greater(before.column(KEY), self.closed)))
        rows = self.rules.merged(pa.concat_tables(tables)) if tables else None
        rejected = unpacked(letters)
        kinds = [] if rejected is None else rejected.column("kind").to_pylist()
        found: dict[str, Any] = {
            BUCKET: number,
            "taken": 0 if fresh is None else fresh.num_rows,
            "late": kinds.count("late"),
            "bad": kinds.count("bad"),
            "letters": [one(rejected)] if rejected is not None and self.letters else [],
            "times": b"",
            "survey": b"",
        }
        if rows is not None and rows.num_rows:
            found["name"] = write_rows(self.folder, number, rows)
            found["times"] = np.unique(rows.column(KEY).to_numpy()).tobytes()
            found["survey"] = self.rules.survey(rows)
        return _batch(GATHERED, [found])


def _runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches as tables of a size that is worth it."""
    held, count = list[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= PENDING_ROWS:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if count:
        yield pa.Table.from_batches(held)


def _parted(rows: pa.Table, buckets: Any) -> Iterator[tuple[int, pa.Table]]:
    """Rows by bucket."""
    order = np.argsort(buckets, kind="stable")
    numbers, starts = np.unique(buckets[order], return_index=True)
    rows = rows.take(pa.array(order))
    ends = np.append(starts[1:], len(order))[: len(starts)]  # of no rows there is no bucket
    for number, start, end in zip(numbers.tolist(), starts, ends, strict=True):
        yield number, rows.slice(start, end - start)


def _batch(schema: pa.Schema, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema)


def gathered(table: pa.Table) -> Gathered:
    """What the buckets said, in one piece."""
    rows = table.sort_by(BUCKET).to_pylist()
    keys = [np.frombuffer(row["times"], np.int64) for row in rows]
    return Gathered(
        names={row[BUCKET]: row["name"] for row in rows},
        keys=np.unique(np.concatenate([np.zeros(0, np.int64), *keys])),
        surveys=[row["survey"] for row in rows if row["survey"]],
        letters=unpacked([piece for row in rows for piece in row["letters"]]),
        taken=sum(row["taken"] for row in rows),
        late=sum(row["late"] for row in rows),
        bad=sum(row["bad"] for row in rows),
        size=sum(len(row["times"]) + len(row["survey"]) for row in rows),
    )
