"""Objects under updates, by definition: apply the rows of each time in order, then take the skyline of all objects.

The problem is udom14's, with objects that come and go. Values here are as the user has them, not oriented: a product of
negated values is not the negated product. `signs` says which columns are minimised (1) and maximised (-1).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from skytide.errors import InputError
from skytide.model import Change
from skytide.reference.batch import Row, by_group, skyline, worst_for_missing
from skytide.reference.window import closed, differences

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, new: new,
    "add": lambda old, new: old + new,
    "multiply": lambda old, new: old * new,
    "average": lambda old, new: (old + new) / 2,
}


def missing(value: Any) -> bool:
    """Whether a value is None or NaN."""
    return value is None or value != value


def updated(old: Row | None, new: Row, operation: str) -> list[Any]:
    """An object's values after a row; the first row sets them, whatever the operation.

    What is missing stays missing until it is set. A result that is not a number (inf - inf) is missing.

    >>> updated((1, 4), (3, 2), "average"), updated(None, (3, 2), "average"), updated((None, 1), (1, 1), "add")
    ([2.0, 3.0], [3, 2], [None, 2])
    """
    if old is None or operation == "set":
        return [None if missing(value) else value for value in new]
    results = [None if missing(x) or missing(y) else OPERATIONS[operation](x, y) for x, y in zip(old, new, strict=True)]
    return [None if missing(result) else result for result in results]


def apply(objects: dict[Any, Row], one: Any, row: Row, operation: str, nulls: str) -> bool:
    """Apply one row to the objects; False where the policy `drop` left the row out.

    A row that is missing in all columns deletes the object, if it is there.
    """
    if all(missing(value) for value in row):
        objects.pop(one, None)
        return True
    result = updated(objects.get(one), row, operation)
    if None in result and nulls == "error":
        raise InputError("a value is missing", value=one, remedy="choose the policy drop or worst")
    if None in result and nulls == "drop":
        return False
    objects[one] = result
    return True


def oriented(row: Row, signs: Sequence[int] | None) -> Row:
    """The row with smaller values better in every column."""
    if signs is None:
        return row
    return [None if value is None else sign * value for sign, value in zip(signs, row, strict=True)]


def snapshot_answers(
    times: Sequence[Any],
    ids: Sequence[Any],
    rows: Sequence[Row],
    *,
    operation: str = "set",
    signs: Sequence[int] | None = None,
    by: Sequence[Hashable] | None = None,
    nulls: str = "error",
) -> list[tuple[Any, set[Any]]]:
    """The skyline's ids after each distinct time, in order. O(snapshots · objects² · d).

    Rows may be in any order; those of one time are applied in input order. An object is in the group that its last row
    which did not delete it names. Rows left out by the policy `drop` make no snapshot.

    >>> snapshot_answers([1, 1, 2], "aba", [(1, 1), (2, 2), (3, 3)])
    [(1, {'a'}), (2, {'b'})]
    """
    objects: dict[Any, Row] = {}
    group: dict[Any, Hashable] = {}
    answers = []
    for time in sorted(set(times)):
        seen = False
        for position in [position for position, own in enumerate(times) if own == time]:
            one, row = ids[position], rows[position]
            if not apply(objects, one, row, operation, nulls):
                continue
            seen = True
            if by is not None and not all(missing(value) for value in row):
                group[one] = by[position]
        if seen:
            names = list(objects)
            values = [oriented(objects[one], signs) for one in names]
            values = worst_for_missing(values) if nulls == "worst" else values
            inside = by_group(values, [group.get(one) for one in names], skyline)
            answers.append((time, {names[position] for position in inside}))
    return answers


def snapshot_changes(
    times: Sequence[Any],
    ids: Sequence[Any],
    rows: Sequence[Row],
    *,
    operation: str = "set",
    signs: Sequence[int] | None = None,
    by: Sequence[Hashable] | None = None,
    nulls: str = "error",
    until: Any = None,
    lateness: Any = 0,
    close_last: bool = True,
) -> list[Change]:
    """The change stream of the skyline, snapshot by snapshot, up to the last closed one.

    >>> for change in snapshot_changes([1, 1, 2, 3], "abab", [(1, 1), (2, 2), (3, 3), (None, None)]):
    ...     print(*change)
    1 + a
    2 - a
    2 + b
    3 - b
    3 + a
    """
    answers = snapshot_answers(times, ids, rows, operation=operation, signs=signs, by=by, nulls=nulls)
    return differences(
        [
            (at, answer)
            for at, answer in answers
            if closed(at, times, until=until, lateness=lateness, close_last=close_last)
        ]
    )
