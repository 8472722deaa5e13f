"""Queries on Spark without Spark: the same tasks and the same state, driven micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from skytide.model import Preference, Window
from skytide.monitors.sliding.clock import LOWEST
from skytide.spark.streaming import processor
from skytide.spark.streaming.packing import unpacked
from skytide.spark.streaming.processor import Merging
from skytide.spark.streaming.prune import Pruning
from skytide.spark.streaming.query import BUCKET, Query, WindowQuery

Out = tuple[Any, ...]


def query_of(
    dimensions: int,
    *,
    window: Window,
    kind: str = "whole",
    by: bool = False,
    nulls: Any = "drop",
    emit: str = "changes",
    parts: int = 1,
    thresholds: tuple[float, ...] = (),
) -> WindowQuery:
    """A query over the columns at, one, g and x0, x1, ..., the first value minimised and the others maximised."""
    values = [f"x{k}" for k in range(dimensions)]
    columns = ["at", "one", "g", *values] + (["p"] if thresholds else [])
    return WindowQuery(
        preference=Preference(minimize=values[:1], maximize=values[1:], by=["g"] if by else []),
        window=window,
        lateness=window.lateness,
        time="at",
        id="one",
        kind=kind,
        nulls=nulls,
        emit=emit,
        parts=parts,
        labels=tuple((name, name) for name in columns),
        types=tuple("some" for _ in columns),
        probability="p" if thresholds else None,
        thresholds=thresholds,
    )


class Simulation:
    """Micro-batches through prune and merge, as Spark would run them; each is a list of partitions."""

    def __init__(self, query: Query, *, prune: bool = True, shown: Sequence[str] = ()) -> None:
        self.query, self._prune, self._shown = query, prune, shown
        self._tester = TwsTester(Merging(query), timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)
        self.watermark = 0
        self._reached = 0
        self.out: list[Out] = []
        self.sent = 0

    def restart(self, query: Query | None = None) -> None:
        """Forget all but the state."""
        processor._merges.clear()
        self.query = query or self.query
        fresh = Merging(self.query)
        fresh.init(self._tester.handle)
        self._tester.processor = fresh

    def batch(self, partitions: Sequence[pa.Table]) -> None:
        """One micro-batch; its ticks make the watermark of the next one."""
        self._advance()
        closed = self.query.clock.closed_by(self.watermark) if self._prune and self.query.prunes else None
        pieces: dict[int, list[Row]] = {}
        for table in partitions:
            buckets = [hash(g) % self.query.parts for g in table.column("g").to_pylist()]
            with_bucket = table.append_column(BUCKET, pa.array(buckets, pa.int32()))
            for sent in Pruning(self.query, closed).run(iter(with_bucket.to_batches())):
                ticks = sent.column("tick").cast(pa.int64()).to_pylist()
                self._reached = max([self._reached, *(tick // 1000 for tick in ticks)])
                for row in sent.drop_columns(["tick"]).to_pylist():
                    self.sent += row["sent"]
                    pieces.setdefault(row["bucket"], []).append(Row(**row))
        for bucket, rows in pieces.items():
            self._emit(self._tester.test(bucket, rows))

    def idle(self) -> None:
        """The micro-batch without data with which Spark ends."""
        self._advance()

    def _advance(self) -> None:
        if self._reached > self.watermark:
            self.watermark = self._reached
            self._emit(self._tester.setWatermark(self.watermark))

    def _emit(self, rows: Any) -> None:
        table = unpacked(bytes(row.packed) for row in rows if row.packed)
        if table is not None:
            names = ["kind", "time", "change", "one", *(["threshold"] if self.query.thresholds else []), *self._shown]
            columns = (table.column(name).to_pylist() for name in names)
            self.out += list(zip(*columns, strict=True))

    @property
    def closed(self) -> int:
        return self.query.clock.closed_by(self.watermark) if self.watermark else LOWEST
