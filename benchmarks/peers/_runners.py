"""The peers of `skytide bench peers`: each beside the part of Skytide that does the same, on the same rows.

A peer is two functions of rows, theirs and ours, which give seconds and an answer. Answers of both are compared, so
they have one form: the places of the rows in the skyline, or what the flat scan counts.

What runs in one thread, the flat scan too, is timed by the processor's clock, which another process's turn does not
lengthen; Spark is timed by the clock on the wall, and so is ours beside it.

Equal rows dominate nobody in any of them, and all of them stay: moocore is asked for it (`keep_weakly=True`), paretoset
too (`distinct=False`); pymoo's ranks and river's skyline are like that by themselves.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import skytide as sk
from benchmarks.peers import batch, window_parts
from skytide.errors import OptionError
from skytide.kernel.batch import skyline_mask
from skytide.model import Floats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Found = tuple[float, Any]
"""Seconds, and an answer that `==` compares."""
Runner = Callable[[Floats], Found]
LEAST_WINDOW = 1_000


@dataclass(frozen=True)
class Peer:
    """Somebody else's program, and ours for the same thing."""

    name: str
    beside: str
    theirs: Runner
    ours: Runner
    least: int = 1_000
    """Rows below which its time says nothing."""
    dimensions: range = range(1, 65)


class Absent(OptionError):  # noqa: N818
    """A peer that cannot be run here; the message says why."""


def clock(work: Callable[[], Any], now: Callable[[], float] = time.process_time) -> Found:
    """Seconds and result of one call, by the processor's clock unless told otherwise."""
    start = now()
    answer = work()
    return max(now() - start, 1e-9), answer


WALL = time.perf_counter


def places(mask: Any) -> list[int]:
    found: list[int] = np.flatnonzero(mask).tolist()
    return found


# -- the skyline of a table in memory ----------------------------------------------------------------------------------


def _ours_batch(values: Floats) -> Found:
    taken, mask = clock(lambda: skyline_mask(values, threads=1))
    return taken, places(mask)


def _masked(name: str) -> Peer:
    def theirs(values: Floats) -> Found:
        taken, mask = clock(lambda: batch.PEERS[name](values))
        return taken, places(mask)

    return Peer(name, "skyline, 1 thread", theirs, _ours_batch)


def _pymoo() -> Peer:
    sorting = _module("pymoo.util.nds.non_dominated_sorting").NonDominatedSorting()

    def theirs(values: Floats) -> Found:
        taken, front = clock(lambda: sorting.do(values, only_non_dominated_front=True))
        return taken, sorted(front.tolist())

    return Peer("pymoo", "skyline, 1 thread", theirs, _ours_batch)


# -- row by row --------------------------------------------------------------------------------------------------------


def _river() -> Peer:
    """A skyline of all rows so far, one row at a time: ours is a window that is as long as the stream.

    river takes rows as dicts; they are made before the clock starts.
    """
    misc = _module("river.misc")

    def theirs(values: Floats) -> Found:
        names = [f"x{place}" for place in range(values.shape[1])]
        rows = [dict(zip(names, row, strict=True)) | {"row": place} for place, row in enumerate(values.tolist())]
        skyline = misc.Skyline(minimize=names)

        def insert() -> None:
            for row in rows:
                skyline.update(row)

        taken, _ = clock(insert)
        return taken, sorted(row["row"] for row in skyline)

    def ours(values: Floats) -> Found:
        window = window_parts.counted(values.shape[1], len(values))
        taken, _ = clock(lambda: window.extend(values))
        return taken, [one - 1 for one in sorted(window.skyline())]

    return Peer("river", "window of all rows", theirs, ours)


def _flat_scan(folder: Path) -> Peer:
    """A window of a tenth of the rows in C++, which counts what enters; its own clock, which runs in the scan alone."""
    program = window_parts.compile_flat_scan(window_parts.FLAT_SCAN, folder)
    if program is None:
        raise Absent("its source or g++ is missing")

    def length(values: Floats) -> int:
        return max(LEAST_WINDOW, len(values) // 10)

    def theirs(values: Floats) -> Found:
        file, (rows, d) = folder / "rows.bin", values.shape
        values.tofile(file)
        found = window_parts.run_flat_scan(program, file, d, rows, length(values))
        return rows / found["rows_per_second"], {"entered": found["entered"], "last": found["last"]}

    def ours(values: Floats) -> Found:
        window = window_parts.counted(values.shape[1], length(values))
        taken, changes = clock(lambda: window.extend(values))
        return taken, window_parts.figures(window, changes)

    return Peer("flat scan, C++", "window of a tenth", theirs, ours, dimensions=range(2, 7))


# -- Spark -------------------------------------------------------------------------------------------------------------


def _on_spark(spark: SparkSession, plan: Callable[[DataFrame, sk.Preference], DataFrame]) -> Runner:
    from benchmarks.spark import batch as on_spark

    def run(values: Floats) -> Found:
        shape = batch.Shape(len(values), values.shape[1], "")
        preference = sk.Preference(minimize=on_spark.names_of(shape))
        with on_spark.table(spark, shape, values, 2) as (df, _):
            taken, ids = clock(lambda: on_spark.ids_of(plan(df, preference)), WALL)
            return taken, ids.tolist()

    return run


def _spark_peers(spark: SparkSession) -> dict[str, Callable[[], Peer]]:
    from benchmarks.spark.batch import not_exists, one_task
    from skytide.spark import skyline

    ours = _on_spark(spark, skyline)
    return {
        "not-exists": lambda: Peer("NOT EXISTS", "skyline on Spark", _on_spark(spark, not_exists), ours),
        "one-task": lambda: Peer("one task", "skyline on Spark", _on_spark(spark, one_task), ours),
    }


# -- all of them -------------------------------------------------------------------------------------------------------

ON_SPARK = ("not-exists", "one-task")
NAMES = ("moocore", "paretoset", "pymoo", "river", "flat-scan", *ON_SPARK)


@contextmanager
def everybody(folder: Path, given: SparkSession | None = None) -> Iterator[Callable[[str], Peer]]:
    """A function that gives the peer of a name, or raises Absent; it starts a session where one of them needs it."""

    @cache
    def spark_peers() -> dict[str, Callable[[], Peer]]:
        from skytide.spark import local_session

        if given is None:
            started.append(local_session("local[2]", **{"spark.driver.memory": "2g"}))
        return _spark_peers(given or started[0])

    def peer(name: str) -> Peer:
        plain: dict[str, Callable[[], Peer]] = {
            "moocore": lambda: _masked("moocore"),
            "paretoset": lambda: _masked("paretoset"),
            "pymoo": _pymoo,
            "river": _river,
            "flat-scan": lambda: _flat_scan(folder),
        }
        return (plain[name] if name in plain else spark_peers()[name])()

    started: list[SparkSession] = []
    try:
        yield peer
    finally:
        for session in started:
            session.stop()


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Absent("is not installed", value=name.partition(".")[0], remedy="install skytide[bench]") from None
