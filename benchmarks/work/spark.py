"""What Spark's tasks keep of their rows: the functions that prune, without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.work import data, truths
from benchmarks.work.truths import Answer
from skytide.model import Floats, Integers, Preference, Window
from skytide.monitors.sliding.clock import LOWEST
from skytide.spark.batch_tasks import survivors_of
from skytide.spark.streaming.prune import Pruning
from skytide.spark.streaming.query import WindowQuery

Runs = dict[str, tuple[Callable[[], tuple[dict[str, int], Answer]], Callable[[], Answer]]]
_NAMES = ["c0", "c1", "c2"]


def _table(values: Floats, **more: Any) -> pa.Table:
    columns: dict[str, Any] = dict(zip(_NAMES, values.T.copy(), strict=False))
    return pa.table({**columns, **more})


def batch(values: Floats) -> tuple[dict[str, int], Answer]:
    """What is left of partitions of a table at rest; the skyline of that is the answer."""
    names = _NAMES[: values.shape[1]]
    parts = np.array_split(np.arange(len(values)), 4)
    tables = [_table(values[part], row=part) for part in parts]
    left = [survivors_of(iter(table.to_batches()), Preference(names), "error") for table in tables]
    rows = pa.concat_tables([table for table in left if table is not None])
    numbers = rows.column("row").to_numpy()
    return {"survivors": len(numbers)}, [(int(numbers[place]),) for (place,) in truths.skyline(values[numbers])]


def streaming(
    values: Floats, times: Integers, length: int, thresholds: tuple[float, ...]
) -> tuple[dict[str, int], Answer]:
    """What is left of a micro-batch in four tasks; the change stream of that is the answer."""
    names, chances = _NAMES[: values.shape[1]], (1 + data.whole(61, 1023, len(values))) / 1024
    columns = ["at", "one", *names, *(["p"] if thresholds else [])]
    query = WindowQuery(
        preference=Preference(names),
        window=Window(duration=length),
        lateness=0,
        time="at",
        id="one",
        kind="whole",
        nulls="drop",
        emit="changes",
        parts=1,
        labels=tuple((name, name) for name in columns),
        types=tuple("some" for _ in columns),
        probability="p" if thresholds else None,
        thresholds=thresholds,
    )
    sent = 0
    kept: list[Integers] = []
    for part in np.array_split(np.arange(len(values)), 4):
        table = _table(values[part], at=times[part], one=part, **({"p": chances[part]} if thresholds else {}))
        for row in Pruning(query, LOWEST).run(iter(table.to_batches())):
            sent += row.column("sent")[0].as_py()
            kept.append(_numbers(row.column("packed")[0].as_py()))
    rows = np.sort(np.concatenate(kept))
    answer = _truth(values, times, chances, length, thresholds, rows)
    return {"survivors": sent}, answer


def _numbers(blob: bytes) -> Integers:
    if not blob:
        return np.zeros(0, np.int64)
    return np.asarray(pa.ipc.open_stream(blob).read_all().column("one").to_numpy(), np.int64)


def _truth(
    values: Floats, times: Integers, chances: Floats, length: int, thresholds: tuple[float, ...], rows: Integers
) -> Answer:
    """The changes over some of the rows only."""
    from skytide.cli._verify.populations import Living, Uncertain

    beside: dict[str, Any] = {"chances": chances[rows]} if thresholds else {}
    asked = truths.question("window", values.shape[1], duration=str(length), thresholds=thresholds)
    some = truths.rows_of(values[rows], rows.tolist(), times[rows], **beside)
    return truths.changes((Uncertain if thresholds else Living)(asked, some))


def runs() -> Runs:
    """By name."""
    rest = data.uniform(62, 8_000, 3)
    values, times = data.uniform(63, 2_000, 3), np.cumsum(data.whole(64, 3, 2_000))
    everyone = np.arange(2_000)
    found: Runs = {"spark: batch": (partial(batch, rest), partial(truths.skyline, rest))}
    for name, thresholds in (("window", ()), ("uncertain", (0.3,))):
        few = slice(None) if name == "window" else slice(0, 400)
        chances = (1 + data.whole(61, 1023, len(values[few]))) / 1024
        found[f"spark: {name}"] = (
            partial(streaming, values[few], times[few], 300, thresholds),
            partial(_truth, values[few], times[few], chances, 300, thresholds, everyone[few]),
        )
    return found
