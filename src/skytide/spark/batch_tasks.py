"""What the tasks of a Spark skyline do with Arrow batches: prune a partition, spread what is left, merge a part.

Nothing here needs pyspark: the functions take and give Arrow data, and tests call them without a JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skytide.errors import InputError, SkytideError
from skytide.model import Booleans, Floats, MissingPolicy, Preference
from skytide.spark.streaming.packing import PIECE_BYTES, packed

Mapper = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

PENDING_ROWS = 1 << 17
"""Rows wait until there are so many, or as many as candidates so far, before they are compared."""
PENDING_BYTES = 64 << 20
"""Or until they take so much memory."""
BATCH_ROWS = 10_000
"""Rows go back to Spark in batches of so many, which is also its own default."""
WITNESS_BYTES = PIECE_BYTES
"""And witnesses in pieces of at most so much, so that no batch of them is too large for Spark."""


@dataclass(frozen=True)
class Task:
    """What goes to the workers; `labels` are the names by which the user knows the columns.

    `claims` are values that rows had at an earlier reading of the source, as good as which some row must still be.
    """

    preference: Preference
    nulls: MissingPolicy
    labels: dict[str, str]
    claims: tuple[tuple[float, ...], ...] = ()

    def survivors(self, batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
        """The skyline of one partition; a complaint names the column as the user knows it."""
        try:
            return survivors_of(batches, self.preference, self.nulls)
        except SkytideError as problem:
            problem.row = None  # rows of a DataFrame have no numbers; this one would be counted within a run
            problem.column = self.labels.get(str(problem.column), problem.column)
            raise

    def pruner(self) -> Mapper:
        """For mapInArrow: the skyline of a partition, or of each of its groups."""

        def prune(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            survivors = self.survivors(batches)
            if survivors is not None:
                yield from survivors.to_batches(BATCH_ROWS)

        return prune

    def spreader(self, parts: Sequence[int]) -> Mapper:
        """For mapInArrow: the skyline of a partition, spread as messages over parts of these names."""

        def spread(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            survivors = self.survivors(batches)
            if self.claims:  # the merge must be called also where no row is left
                yield _messages(parts[:1], True, [b""])
            if survivors is not None:
                yield from spread_rows(survivors, self.preference, self.nulls, parts)

        return spread

    def merger(self) -> Mapper:
        """For mapInArrow: the rows of one part, or of several, that are in the skyline of all."""

        def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from merge_part(batches, self.preference, self.nulls, self.claims)

        return merge


# -- prune -------------------------------------------------------------------------------------------------------------


def survivors_of(batches: Iterator[pa.RecordBatch], preference: Preference, nulls: MissingPolicy) -> pa.Table | None:
    """The skyline of the rows of one partition, or None where it has no rows."""
    survivors = Survivors(preference, nulls)
    for batch in batches:
        survivors.add(batch)
    return survivors.table()


class Survivors:
    """The skyline of rows that come in batches.

    Batches wait until there are as many rows as candidates so far, so that all comparisons together cost about what the
    last one does. The memory is that of the candidates and of what waits.
    """

    def __init__(self, preference: Preference, nulls: MissingPolicy) -> None:
        self._preference = preference
        self._nulls: MissingPolicy = nulls
        self._candidates: pa.Table | None = None
        self._forget_pending()

    def _forget_pending(self) -> None:
        self._pending: list[pa.Table] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Let more rows compete."""
        self._pending.append(pa.Table.from_batches([batch]))
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        candidates = 0 if self._candidates is None else self._candidates.num_rows
        if self._rows >= max(PENDING_ROWS, candidates) or self._bytes >= PENDING_BYTES:
            self._compare()

    def table(self) -> pa.Table | None:
        """The skyline of all rows so far; None where there were no batches."""
        if self._pending:
            self._compare()
        return self._candidates

    def _compare(self) -> None:
        tables = self._pending if self._candidates is None else [self._candidates, *self._pending]
        # Few rows of each batch are left: without combining, a long run would end as very many tiny pieces.
        self._candidates = _best(pa.concat_tables(tables), self._preference, self._nulls).combine_chunks()
        self._forget_pending()


def _best(table: pa.Table, preference: Preference, nulls: MissingPolicy) -> pa.Table:
    from skytide.batch import skyline

    mask = skyline(table, preference, nulls=nulls, threads=1)
    return table if mask.all() else table.filter(pa.array(mask))


# -- spread ------------------------------------------------------------------------------------------------------------


def spread_rows(
    survivors: pa.Table, preference: Preference, nulls: MissingPolicy, parts: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """One copy of the survivors' values for every part, and each survivor for one part.

    Both are packed: Spark shuffles a few large binary values far faster than as many rows.
    """
    from skytide.tables import oriented

    if not survivors.num_rows:
        return
    values = oriented(survivors, preference, nulls).values
    step = max(1, WITNESS_BYTES // (8 * values.shape[1]))
    for start in range(0, len(values), step):
        yield _messages(parts, True, [values[start : start + step].tobytes()] * len(parts))
    for place, part in enumerate(parts):
        mine = survivors.take(pa.array(np.arange(place, survivors.num_rows, len(parts))))
        for piece in packed(mine):
            yield _messages([part], False, [piece])


def _messages(parts: Sequence[int], witness: bool, data: list[bytes]) -> pa.RecordBatch:
    columns = [pa.array(parts, pa.int32()), pa.array([witness] * len(parts)), pa.array(data, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["part", "witness", "data"])


# -- merge -------------------------------------------------------------------------------------------------------------


def merge_part(
    messages: Iterator[pa.RecordBatch],
    preference: Preference,
    nulls: MissingPolicy,
    claims: Sequence[Sequence[float]] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of one part, or of several parts in one task, that none of the witnesses dominates."""
    from skytide.tables import oriented

    witnesses = [np.empty((0, preference.dimensions))]
    own: list[pa.Table] = []
    copy: int | None = None
    for batch in messages:
        for part, witness, data in zip(*batch.columns, strict=True):
            if not witness.as_py():
                own.append(pa.ipc.open_stream(data.as_buffer()).read_all())
                continue
            copy = part.as_py() if copy is None else copy
            if part.as_py() == copy:  # several parts brought as many copies
                witnesses.append(np.frombuffer(data.as_buffer(), np.float64).reshape(-1, preference.dimensions))
    known = np.concatenate(witnesses)
    if copy is not None:
        _check_claims(known, claims)
    if own:
        rows = pa.concat_tables(own)
        inside = undominated(oriented(rows, preference, nulls).values, known)
        yield from rows.filter(pa.array(inside)).combine_chunks().to_batches(BATCH_ROWS)


def _check_claims(witnesses: Floats, claims: Sequence[Sequence[float]]) -> None:
    for claim in claims:
        if not (witnesses <= np.array(claim)).all(axis=1).any():
            raise InputError(
                "the table changed between two readings: a strong row of the first is gone",
                remedy="cache the table, or use stable=False",
            )


def undominated(values: Floats, witnesses: Floats) -> Booleans:
    """Which rows none of the witnesses dominates; the rows themselves are among the witnesses."""
    from skytide.kernel.batch import skyline_mask
    from skytide.kernel.witness import dominated_by

    if len(values) == len(witnesses):  # all rows are here: what is dominated need not be asked
        return skyline_mask(values, threads=1)
    return ~dominated_by(values, witnesses)
