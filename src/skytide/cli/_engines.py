"""Which rows of a source are in the skyline: here, in chunks, or by Spark.

Skylines merge: a row that a chunk's skyline leaves out is dominated by a row that stays, and so it may be forgotten.
The candidates so far and the next rows are put together, and the skyline of both are the candidates from then on. Next
rows are collected until they are as many as the candidates, so that a large skyline is not tested anew for every chunk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skytide.batch import skyline
from skytide.errors import InputError, MissingDependencyError
from skytide.model import Integers, MissingPolicy, Preference
from skytide.streams.files import CHUNK_ROWS, Chunk, Numbers, Output, Source
from skytide.streams.files.output import as_text

Watch = Callable[[Chunk], None]
"""Is shown every chunk as it passes, with the columns that were asked for."""


@dataclass(frozen=True)
class Competitors:
    """Rows of DATA by position, with what decides about them, and with all their columns if these are kept."""

    rows: Integers
    values: pa.Table
    columns: pa.Table | None

    def where(self, mask: Any) -> Competitors:
        """Those the mask says."""
        kept = pa.array(mask)
        columns = None if self.columns is None else self.columns.filter(kept)
        return Competitors(self.rows[mask], self.values.filter(kept), columns)

    @staticmethod
    def together(parts: list[Competitors]) -> Competitors:
        """All of them, in the order given."""
        columns = [part.columns for part in parts if part.columns is not None]
        return Competitors(
            np.concatenate([part.rows for part in parts]),
            pa.concat_tables([part.values for part in parts]),
            pa.concat_tables(columns) if columns else None,
        )


def competitors(
    source: Source,
    preference: Preference,
    nulls: MissingPolicy,
    *,
    watch: Watch | None = None,
    keep: bool = False,
    more: tuple[str, ...] = (),
    chunk_rows: int = CHUNK_ROWS,
) -> Iterator[Competitors]:
    """DATA chunk by chunk: preference columns as float64, `by` columns as they are; `keep` keeps all columns.

    `more` names columns that `watch` wants to see. A missing value is an error here if the policy says so.
    """
    names = [str(name) for name in preference.names]
    groups = [str(name) for name in preference.by]
    source.check_names([*names, *groups, *more])
    wanted = None if keep else list(dict.fromkeys([*names, *groups, *more]))
    numbers = Numbers()
    for chunk in source.chunks(wanted, rows=chunk_rows):
        values = {name: numbers.read(chunk, name) for name in names}
        if nulls == "error":
            _refuse_missing(chunk, values)
        columns = {name: pa.array(column) for name, column in values.items()}
        columns |= {name: chunk.table.column(name) for name in groups}
        if watch is not None:
            watch(chunk)
        rows = np.arange(chunk.start, chunk.start + chunk.table.num_rows)
        yield Competitors(rows, pa.table(columns), chunk.table if keep else None)


def _refuse_missing(chunk: Chunk, values: dict[str, Any]) -> None:
    missing = {name: np.isnan(column) for name, column in values.items()}
    found = [(int(np.argmax(mask)), name) for name, mask in missing.items() if mask.any()]
    if found:
        row, name = min(found, key=lambda place: place[0])
        raise InputError(
            "the value is missing (NULL or NaN)",
            file=chunk.file,
            row=chunk.first + row,
            column=name,
            remedy="choose --nulls drop or --nulls worst, or fill it in",
        )


def local_skyline(
    source: Source,
    preference: Preference,
    nulls: MissingPolicy = "error",
    *,
    watch: Watch | None = None,
    more: tuple[str, ...] = (),
    chunk_rows: int = CHUNK_ROWS,
) -> pa.Table:
    """The rows of DATA in the skyline, in input order, all columns. Memory for a chunk and the skyline, twice."""
    keep = not source.seekable
    chunks = competitors(source, preference, nulls, watch=watch, keep=keep, more=more, chunk_rows=chunk_rows)
    waiting: list[Competitors] = []
    candidates = count = 0
    for chunk in chunks:
        waiting.append(chunk)
        count += len(chunk.rows)
        if count - candidates >= max(chunk_rows, candidates):
            waiting = [_reduce(waiting, preference, nulls)]
            candidates = count = len(waiting[0].rows)
    if not waiting:
        return source.schema.empty_table()
    found = _reduce(waiting, preference, nulls)
    return source.take(found.rows) if found.columns is None else found.columns


def _reduce(parts: list[Competitors], preference: Preference, nulls: MissingPolicy) -> Competitors:
    together = Competitors.together(parts)
    return together.where(skyline(together.values, preference, nulls=nulls))


def spark_skyline(
    source: Source,
    preference: Preference,
    nulls: MissingPolicy = "error",
    *,
    watch: Watch | None = None,
    more: tuple[str, ...] = (),
) -> pa.Table:
    """The same rows, found by Spark on this machine.

    Spark is given the preference columns, the groups and the row numbers only: so the answer keeps the input's order
    and values, and bad values are found while the rows are handed over.
    """
    try:
        from skytide.spark.batch import skyline as distributed
        from skytide.spark.faults import plain_errors
        from skytide.spark.session import local_session
    except ImportError as error:
        raise MissingDependencyError(
            f"the Spark engine is not usable here ({error})",
            remedy="pip install 'skytide[spark]'; skytide doctor says what is missing",
        ) from None
    least = [f"p{place}" for place in range(len(preference.minimize))]
    most = [f"p{place}" for place in range(len(preference.minimize), preference.dimensions)]
    groups = [f"g{place}" for place in range(len(preference.by))]
    columns = {"row": pa.int64()} | dict.fromkeys(least + most, pa.float64()) | dict.fromkeys(groups, pa.string())
    schema = pa.schema(list(columns.items()))
    with tempfile.TemporaryDirectory(prefix="skytide-") as folder:
        path = str(Path(folder) / "rows.parquet")
        with Output(path, schema) as output:
            for part in competitors(source, preference, nulls, watch=watch, more=more):
                texts = [as_text(part.values.column(str(name))).cast(pa.string()) for name in preference.by]
                values = [part.values.column(str(name)) for name in preference.names]
                output.write(pa.Table.from_arrays([pa.array(part.rows), *values, *texts], schema=schema))
        with plain_errors():
            frame = local_session().read.parquet(path)
            found = distributed(frame, Preference(least, most, groups), nulls=nulls).select("row").toArrow()
    return source.take(np.sort(found.column("row").to_numpy()))
