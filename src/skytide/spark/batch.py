"""The exact skyline of a Spark DataFrame: pruned in parallel, merged in parallel, read once.

First every task keeps the skyline of its own partition, a batch at a time (`batch_tasks`). With `by` columns the
survivors are then shuffled by group and the same is done again. Without them, every survivor goes to one of several
parts, and its preference values, packed, to all of them as a witness: each part asks which of its own rows any witness
dominates, so that P parts do a share of the comparing each and no task holds more than a share of the rows. Where
little is left to merge, Spark's adaptive execution lets one task do it all. The source is evaluated once: one that
changes between two readings still gives the skyline of something that was there.

Most of the time goes into handing rows to Python, not into comparing them. So where the source is stable (cached, or
declared so) a few strong rows of it are a filter that Spark itself applies before (`batch_strong`). Elsewhere they
are taken inside each task, from the rows at hand: the kernel begins every run of rows with such a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from skytide.errors import OptionError
from skytide.model import Column, MissingPolicy, Preference, check_missing_policy
from skytide.spark.batch_tasks import Task
from skytide.spark.columns import check_arrow, resolve
from skytide.spark.faults import need_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MESSAGES = "part INT NOT NULL, witness BOOLEAN NOT NULL, data BINARY NOT NULL"
MOST_PARTS = 8
"""Into so many parts the merge goes at most, unless told otherwise: each of them reads all witnesses."""


def skyline(
    df: DataFrame,
    preference: Preference,
    *,
    nulls: MissingPolicy = "error",
    parts: int | None = None,
    carry: bool = True,
    stable: bool | None = None,
) -> DataFrame:
    """The rows of a DataFrame that no other row dominates, all columns kept, in no particular order.

    The schema out is the schema in. Equal rows all stay. `by` columns make one skyline per group. A complaint about the
    data (a missing value under the policy `error`, say) comes with the action that runs it all, as one clear line
    inside `skytide.spark.plain_errors()`. `parts` is how many tasks share the merge of a skyline without groups.

    `stable` says that the source gives the same rows each time it is read, and is taken for granted where the
    DataFrame is cached: then a look at its first rows, at once, yields a filter that spares most rows the way through
    Python. If those rows are gone by the time of the action, that is an error, never a wrong answer. With `carry=False`
    only the preference and `by` columns pass through Python, and a join brings the others back: faster for wide tables
    and right for columns that Arrow does not know, but the source must be stable. Otherwise nothing runs before an
    action does, and the source is read once. A task's memory is that of its candidates, and in the merge of all their
    values.

    ```python
    best = skytide.spark.skyline(cars, Preference(minimize=["price"], maximize=["mpg"], by=["brand"]))
    ```
    """
    need_pyspark()
    check_missing_policy(nulls)
    if parts is not None and parts < 1:
        raise OptionError("is not a number of parts", value=parts, remedy="give 1 or more, or nothing")
    if stable is False and not carry:
        raise OptionError("reads the source twice, so it must be stable", value="carry=False", remedy="use carry=True")
    named = resolve(df, preference)
    if stable is None:
        stable = not carry or _is_cached(df)
    if carry:
        return _skyline(df, named, nulls, parts, stable)
    keys = [*named.names, *named.by]
    wanted = _skyline(df.select(*(df[_quoted(name)] for name in keys)), named, nulls, parts, stable).distinct()
    wanted = wanted.toDF(*(f"_skytide_{position}" for position in range(len(keys))))
    same = (df[_quoted(name)].eqNullSafe(wanted[f"_skytide_{position}"]) for position, name in enumerate(keys))
    return df.join(wanted, reduce(and_, same), "left_semi")


def _skyline(df: DataFrame, preference: Preference, nulls: MissingPolicy, parts: int | None, stable: bool) -> DataFrame:
    check_arrow(df)
    # Spark passes columns to a task by their names, which need not be unique, nor free of dots and marks.
    inner = df.toDF(*(f"c{position}" for position in range(len(df.columns))))
    labels = dict(zip(inner.columns, df.columns, strict=True))
    plain = {known: name for name, known in labels.items()}
    renamed = Preference(*([plain[str(name)] for name in role] for role in _roles(preference)))
    if preference.by:
        task = Task(renamed, nulls, labels)
        pruned = inner.mapInArrow(task.pruner(), inner.schema)
        return pruned.repartition(*(str(name) for name in renamed.by)).mapInArrow(task.pruner(), df.schema)
    claims: tuple[tuple[float, ...], ...] = ()
    if stable:
        from skytide.spark.batch_strong import filtered

        inner, claims = filtered(inner, renamed, nulls)
    task = Task(renamed, nulls, labels, claims)
    if parts is None:
        partitions = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or MOST_PARTS)
        names = part_names(min(MOST_PARTS, partitions), partitions)
    else:
        names = list(range(parts))
    spread = inner.mapInArrow(task.spreader(names), MESSAGES)
    # Unlike a number of partitions, a column leaves Spark free to put small ones together.
    shuffled = spread.repartition("part") if parts is None else spread.repartitionById(parts, "part")
    return shuffled.mapInArrow(task.merger(), df.schema)


def _is_cached(df: DataFrame) -> bool:
    level = df.storageLevel
    return bool(level.useMemory or level.useDisk or level.useOffHeap)


def _roles(preference: Preference) -> tuple[Sequence[Column], ...]:
    return preference.minimize, preference.maximize, preference.by


def _quoted(name: Column) -> str:
    return "`" + str(name).replace("`", "``") + "`"


# -- parts that a shuffle by hash tells apart --------------------------------------------------------------------------


def part_names(parts: int, partitions: int) -> list[int]:
    """So many numbers that a shuffle by hash sends to different ones of so many partitions.

    Where Spark hashed otherwise, parts would share a task and nothing else would change.

    >>> [murmur(name) % 4 for name in part_names(3, 4)]
    [0, 1, 2]
    """
    names: dict[int, int] = {}
    number = 0
    while len(names) < min(parts, partitions):
        place = murmur(number) % partitions
        if place < parts:
            names.setdefault(place, number)
        number += 1
    return [names[place] for place in sorted(names)]


def murmur(number: int, seed: int = 42) -> int:
    """Spark's hash of an INT column: 32-bit Murmur3 of its four bytes, as a signed number.

    >>> murmur(1)
    -559580957
    """
    mixed = _rotate(number * 0xCC9E2D51, 15) * 0x1B873593
    mixed = _rotate(seed ^ (mixed & 0xFFFFFFFF), 13) * 5 + 0xE6546B64
    mixed = (mixed & 0xFFFFFFFF) ^ 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed = ((mixed ^ (mixed >> shift)) * factor) & 0xFFFFFFFF
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _rotate(word: int, bits: int) -> int:
    word &= 0xFFFFFFFF
    return ((word << bits) | (word >> (32 - bits))) & 0xFFFFFFFF
