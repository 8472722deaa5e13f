"""Connections of the last hour, against counting them anew at every instant."""

from __future__ import annotations

import datetime
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError, WindowError
from tests.spark.prepared.tables import Row, same, updates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [
        ("ts", pa.int64()),
        ("host", pa.int32()),
        ("service", pa.string()),
        ("bytes", pa.int64()),
        ("seconds", pa.float64()),
    ]
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-6, 12),
            "host": st.integers(0, 2),
            "service": st.sampled_from(["ssh", "dns", "", None]),
            "bytes": st.one_of(st.none(), st.integers(-3, 2**40)),
            "seconds": st.one_of(st.none(), st.sampled_from([0.1, 0.2, 1e-6, 3.0, math.nan, math.inf])),
        }
    ),
    min_size=8,
    max_size=40,
)


def by_definition(rows: list[Row], window: int, every: int, empty: str, tail: bool) -> list[Row]:
    """At each instant, count what is alive; an instant is one at which something of the group has changed."""
    last = max(row["ts"] for row in rows)
    found = []
    for at in range(-40, 80):
        if at % every or (not tail and at >= last + every):
            continue
        for host in sorted({row["host"] for row in rows}):
            own = [row for row in rows if row["host"] == host]
            ends = [moment for row in own for moment in (row["ts"], row["ts"] + window)]
            if not any(at - every < moment <= at for moment in ends):
                continue
            alive = [row for row in own if row["ts"] <= at < row["ts"] + window]
            kinds = {name: sum(row["service"] == name for row in alive) for name in ("ssh", "dns")}
            seconds = [row["seconds"] or 0.0 for row in alive]
            values: Row = {"connections": len(alive), **kinds, "other": len(alive) - sum(kinds.values())}
            values["bytes"] = sum(row["bytes"] or 0 for row in alive)
            values["seconds"] = math.fsum(one for one in seconds if math.isfinite(one))
            if empty == "null" and not alive:
                values = dict.fromkeys(values)
            found.append({"time": at, "id": host, **values})
    return found


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=ROWS,
    window=st.integers(1, 9),
    every=st.sampled_from([None, 1, 2, 3, 7]),
    empty=st.sampled_from(["zero", "null"]),
    tail=st.booleans(),
)
def test_each_update_counts_what_is_in_the_window_then(
    spark: SparkSession, rows: list[Row], window: int, every: int | None, empty: str, tail: bool
) -> None:
    options: Any = {"window": window, "every": every, "empty": empty, "tail": tail}
    found = updates(
        spark,
        "connections",
        {"connections": (rows, SCHEMA)},
        group="host",
        sums=("bytes", "seconds"),
        kinds="service=ssh,dns",
        **options,
    )
    same(found, by_definition(rows, window, every or 1, empty, tail))


def test_what_has_left_leaves_no_rounding_error(spark: SparkSession) -> None:
    rows = [{"ts": at, "host": 1, "seconds": 0.1} for at in range(10)] + [{"ts": 40, "host": 2, "seconds": 0.0}]
    found = updates(spark, "connections", {"connections": (rows, SCHEMA)}, group="host", sums="seconds", window=5)
    assert [row["seconds"] for row in found if row["id"] == 1][-1] == 0.0


KINDS = [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32(), pa.float64(), pa.decimal128(12, 3)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_times_keep_their_form_and_no_zone_moves_them(spark: SparkSession, kind: pa.DataType) -> None:
    start = datetime.datetime(1968, 11, 1, 2, 3, 4, 567891)  # the clocks of Sao Paulo jump that night
    moments: list[Any] = [start, start + datetime.timedelta(days=400, microseconds=7)]
    window: Any = "1d"
    step: Any = datetime.timedelta(days=1)
    if pa.types.is_date(kind):
        moments = [one.date() for one in moments]
    elif kind == pa.timestamp("us", "UTC"):
        moments = [one.replace(tzinfo=datetime.UTC) for one in moments]
    elif not pa.types.is_timestamp(kind):
        moments, window, step = pa.array([-7.5, 400.25]).cast(kind).to_pylist(), 1.5, pa.scalar(1.5).cast(kind).as_py()
    schema = pa.schema([("ts", kind), ("host", pa.string()), ("n", pa.int8())])
    rows = [{"ts": one, "host": None, "n": 100} for one in moments]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/Sao_Paulo")
    try:
        found = updates(
            spark, "connections", {"connections": (rows, schema)}, group="host", sums="n", window=window, tail=True
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    times = [row["time"] for row in found]
    assert times == [moments[0], moments[0] + step, moments[1], moments[1] + step]
    assert [(row["id"], row["n"]) for row in found] == [("-", 100), ("-", 0)] * 2


def test_several_columns_make_one_group(spark: SparkSession) -> None:
    rows: list[Row] = [{"ts": 1, "host": 7, "service": "ssh"}, {"ts": 2, "host": 7}]
    table = {"connections": (rows, SCHEMA)}
    found = updates(spark, "connections", table, group=("host", "service"), sums="bytes", window=3)
    assert [(row["time"], row["id"]) for row in found] == [(1, "7/ssh"), (2, "7/-")]


@pytest.mark.parametrize(
    ("options", "rows", "words"),
    [
        ({"window": "1h"}, [{"ts": 1, "host": 1}], "numbers"),
        ({"window": 0}, [{"ts": 1, "host": 1}], "more than 0"),
        ({"window": 1.5}, [{"ts": 1, "host": 1}], "whole"),
        ({"window": 5, "group": "nobody"}, [{"ts": 1, "host": 1}], "'nobody'"),
        ({"window": 5, "sums": "service"}, [{"ts": 1, "host": 1}], "not numbers"),
        ({"window": 5, "sums": ("bytes", "BYTES")}, [{"ts": 1, "host": 1}], "twice"),
        ({"window": 5, "sums": "connections"}, [{"ts": 1, "host": 1}], "purpose"),
        ({"window": 5, "kinds": "service"}, [{"ts": 1, "host": 1}], "service=http"),
        ({"window": 5, "empty": "gone"}, [{"ts": 1, "host": 1}], "zero, null"),
        ({"window": 5}, [{"ts": None, "host": 1}], "'ts'"),
        ({"window": 5}, [{"ts": 1, "host": None}], "'host'"),
        ({"window": 5, "speed": 1}, [{"ts": 1, "host": 1}], "'speed'"),
    ],
)
def test_what_cannot_be_used_is_named(spark: SparkSession, options: Row, rows: list[Row], words: str) -> None:
    given = {"group": "host", "sums": "bytes"} | options
    with pytest.raises((InputError, OptionError, WindowError)) as caught:
        updates(spark, "connections", {"connections": (rows, SCHEMA)}, **given)
    assert words in str(caught.value) and "\n" not in str(caught.value)
