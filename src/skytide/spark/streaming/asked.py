"""What a query on Spark is asked for, checked against the columns of a DataFrame before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skytide.errors import InputError, OptionError, WindowError
from skytide.model import MissingPolicy, Preference, Window, check_missing_policy, duration_value
from skytide.monitors.sliding.clock import Clock
from skytide.spark.columns import check_arrow, resolve
from skytide.spark.streaming.query import WindowQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def plan(
    df: DataFrame,
    preference: Preference,
    window: Window,
    *,
    time: str,
    id: str,
    nulls: MissingPolicy,
    emit: str,
    parts: int,
    probability: str | None = None,
    thresholds: tuple[float, ...] = (),
) -> WindowQuery:
    """The window over a DataFrame's columns, or an error that says what does not fit."""
    roles = {"time": time, "id": id} | ({} if probability is None else {"probability": probability})
    inner = inner_names(df, preference, roles)
    if probability is not None:
        _check_probability(df.schema[df.columns.index(probability)].dataType, probability)
    return WindowQuery(
        **common(df, preference, window, inner, time=time, id=id, nulls=nulls, emit=emit, parts=parts),
        window=window,
        probability=None if probability is None else inner[probability],
        thresholds=thresholds,
    )


def inner_names(df: DataFrame, preference: Preference, roles: dict[str, str]) -> dict[str, str]:
    """Plain names for a DataFrame's columns, by the user's; an error where one that is needed is not there."""
    check_arrow(df)
    for field in df.schema:
        if "spark.watermarkDelayMs" in field.metadata:
            raise InputError(
                "the stream has a watermark already, and Spark knows one clock per query",
                column=field.name,
                remedy="leave withWatermark out and give the lateness here",
            )
    resolve(df, preference, streams=True)
    names = list(df.columns)
    for role, column in roles.items():
        if names.count(column) != 1:
            known = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            reason = "there is no such column" if column not in names else "there are several columns of this name"
            raise InputError(f"{reason}, and it is to be the {role}", column=column, remedy=f"choose one of: {known}")
    return {name: f"c{position}" for position, name in enumerate(names)}


def common(
    df: DataFrame,
    preference: Preference,
    window: Window,
    inner: dict[str, str],
    *,
    time: str,
    id: str,
    nulls: MissingPolicy,
    emit: str,
    parts: int,
) -> dict[str, Any]:
    """What every query has, checked."""
    check_missing_policy(nulls)
    if emit not in ("changes", "net"):
        raise OptionError("is not what can be emitted", value=emit, remedy="use changes or net")
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        raise OptionError("is not a number of parts", value=parts, remedy="give 1 or more")
    named = resolve(df, preference, streams=True)
    kinds = {field.name: field.dataType for field in df.schema}
    check_ordered(kinds[id], id, "ids")
    roles = (named.minimize, named.maximize, named.by)
    return {
        "preference": Preference(*([inner[str(name)] for name in role] for role in roles)),
        "time": inner[time],
        "id": inner[id],
        "kind": _kind_of_time(kinds[time], time, window),
        "lateness": window.lateness,
        "nulls": nulls,
        "emit": emit,
        "parts": parts if named.by else 1,
        "labels": tuple((f"c{position}", name) for position, name in enumerate(df.columns)),
        "types": tuple(field.dataType.simpleString() for field in df.schema),
    }


def _kind_of_time(kind: DataType, name: str, window: Window) -> str:
    from pyspark.sql import types

    if isinstance(kind, types.TimestampType | types.TimestampNTZType | types.DateType):
        form: np.dtype[Any] = np.dtype("datetime64[us]")
    elif isinstance(kind, types.IntegralType):
        form = np.dtype(np.int64)
    elif isinstance(kind, types.FractionalType) and not isinstance(kind, types.DecimalType):
        form = np.dtype(np.float64)
    else:
        raise InputError(
            f"times of type {kind.simpleString()} are not times",
            column=name,
            remedy="cast the column to TIMESTAMP, BIGINT or DOUBLE",
        )
    length = window.duration if window.duration is not None else ("1s" if form.kind == "M" else 1)
    clock = Clock(Window(duration=length, lateness=window.lateness))
    found = clock.kind_of(form)
    if found == "ns":
        fine = next(one for one in (window.lateness, length) if isinstance(one, str) and duration_value(one) % 1000)
        raise WindowError("Spark's times are whole microseconds", value=fine, remedy="round it")
    clock.settle(found)
    return found


def check_ordered(kind: DataType, name: str, what: str) -> None:
    """An error where values of a column have no order."""
    from pyspark.sql import types

    plain = (types.NumericType, types.StringType, types.BooleanType, types.DateType, types.TimestampType)
    if not isinstance(kind, (*plain, types.TimestampNTZType)):
        raise InputError(
            f"{what} of type {kind.simpleString()} have no order", column=name, remedy=f"use numbers or text as {what}"
        )


def _check_probability(kind: DataType, name: str) -> None:
    from pyspark.sql import types

    if not isinstance(kind, types.NumericType):
        raise InputError(
            f"probabilities of type {kind.simpleString()} are not numbers", column=name, remedy="cast them"
        )
