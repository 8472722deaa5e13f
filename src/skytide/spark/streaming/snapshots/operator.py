"""`skytide.spark.snapshots` and `frequent`: the changes of the skyline of objects under updates, as a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skytide.errors import InputError, OptionError
from skytide.model import MissingPolicy, Preference, Window
from skytide.monitors.frequent.pairs import Pair, Theta
from skytide.monitors.snapshots.choice import METHODS
from skytide.monitors.snapshots.reading import OPERATIONS
from skytide.spark.faults import need_pyspark
from skytide.spark.streaming.asked import check_ordered, common, inner_names
from skytide.spark.streaming.operator import answer
from skytide.spark.streaming.snapshots.query import UpdateQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def snapshots(
    updates: DataFrame,
    preference: Preference,
    *,
    time: str,
    id: str,
    op: str = "set",
    order: str | None = None,
    nulls: MissingPolicy = "drop",
    lateness: float | int | str = 0,
    method: str = "auto",
    emit: str = "changes",
    parts: int = 8,
) -> DataFrame:
    """The exact changes of the skyline of objects whose values change, over a stream of updates or a whole table.

    Each row is an update of the object `id` at a `time`; each distinct time is a snapshot. `op` is what an update does
    to an object that is there: `set`, `add`, `multiply` or `average`, or the name of a column with these words. The
    first update sets an object, and a row whose preference columns are all empty deletes it. The changes are those of
    `skytide.Snapshots` on the same rows, with two differences that a distributed table makes. Rows have no order there,
    so several updates of one object at one time are applied in the order of the column `order`, if given, and then of
    all their values, column by column, missing ones first. And an object is known within its group: one that goes from
    one group to another is deleted in the old one by a row of its own.

    Times, `lateness`, closed instants, `emit` and `parts` are as in `window`, and so are the columns out: `kind`,
    `time`, `change`, `id`, the `by` columns, then the columns of the object's last row as of then (for a deleted object
    the row that deleted it). Where updates do more than `set`, the preference columns are DOUBLE and hold the object's
    values. A row with some preference columns empty, or whose result is no number, follows the policy `nulls`.

    Groups are computed in parallel, a group in one task, which holds its objects. `method` is as in
    `skytide.Snapshots`. All else that is asked for, except `emit`, must stay the same while a checkpoint is used.

    ```python
    preference = Preference(minimize=["beta"], maximize=["slope"])
    changes = skytide.spark.snapshots(stocks, preference, time="day", id="symbol", lateness="1d")
    ```
    """
    need_pyspark()
    query = _plan(updates, preference, None, time, id, op, order, nulls, lateness, method, emit, parts)
    return answer(updates, query)


def frequent(
    updates: DataFrame,
    preference: Preference,
    *,
    theta: Theta,
    over: int,
    time: str,
    id: str,
    op: str = "set",
    order: str | None = None,
    nulls: MissingPolicy = "drop",
    lateness: float | int | str = 0,
    method: str = "auto",
    emit: str = "changes",
    parts: int = 8,
) -> DataFrame:
    """The exact changes of who was in the skyline in at least a share `theta` of the last `over` snapshots.

    All else as `snapshots`. Every group counts snapshots of its own: the closed times at which it has rows. Without
    `by` columns these are all times, and the changes are those of `skytide.Frequent` after `skytide.Snapshots`.

    ```python
    changes = skytide.spark.frequent(stocks, preference, theta=0.8, over=1000, time="day", id="symbol")
    ```
    """
    need_pyspark()
    pair = Pair.of(theta, over)
    query = _plan(updates, preference, pair, time, id, op, order, nulls, lateness, method, emit, parts)
    return answer(updates, query)


def _plan(
    df: DataFrame,
    preference: Preference,
    pair: Pair | None,
    time: str,
    id: str,
    op: str,
    order: str | None,
    nulls: MissingPolicy,
    lateness: float | int | str,
    method: str,
    emit: str,
    parts: int,
) -> UpdateQuery:
    """The query over a DataFrame's columns, or an error that says what does not fit."""
    if method not in METHODS:
        raise OptionError("is not a method", value=method, remedy="choose one of " + ", ".join(METHODS))
    word = op if op in OPERATIONS else ""
    if not word and op not in df.columns:
        remedy = f"choose one of {', '.join(OPERATIONS)}, or name a column with these words"
        raise OptionError("is neither an operation nor a column", value=op, remedy=remedy)
    roles = {"time": time, "id": id} | ({} if word else {"operation": op}) | ({} if order is None else {"order": order})
    inner = inner_names(df, preference, roles)
    # An instant has no length; a count is a window's length that says nothing about time.
    length = Window(count=1, lateness=lateness)
    given: dict[str, Any] = common(df, preference, length, inner, time=time, id=id, nulls=nulls, emit=emit, parts=parts)
    kinds = {field.name: field.dataType for field in df.schema}
    _check_operands(kinds, {label: name for label, name in given["labels"]}, given["preference"], word)
    if not word and not _is_text(kinds[op]):
        raise InputError("the column holds no words", column=op, remedy=f"write one of {', '.join(OPERATIONS)} in it")
    if order is not None:
        check_ordered(kinds[order], order, "orders")
    return UpdateQuery(
        **given,
        op=word,
        op_column=None if word else inner[op],
        order=None if order is None else inner[order],
        method=method,
        frequent=None if pair is None else (pair.theta, pair.over),
    )


def _check_operands(kinds: dict[str, Any], names: dict[str, str], preference: Preference, word: str) -> None:
    """What is added, multiplied or averaged must be numbers; what is set may be a time."""
    from pyspark.sql import types

    for inner in preference.names if word != "set" else ():
        name = names[str(inner)]
        if not isinstance(kinds[name], types.NumericType | types.NullType):
            raise InputError(
                f"values of type {kinds[name].simpleString()} can be set, not {word or 'calculated with'}",
                column=name,
                remedy="cast the column to DOUBLE, or leave op out",
            )


def _is_text(kind: Any) -> bool:
    from pyspark.sql import types

    return isinstance(kind, types.StringType)
