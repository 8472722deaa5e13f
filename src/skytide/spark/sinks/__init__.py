"""Where results go, each micro-batch once: files, the current answer, Kafka, a live feed, the console.

A sink is idempotent by the number of the micro-batch: the same one again, after a crash, replaces what is there or can
be told from it. Sinks are plain values without connections, so that they travel. None of this needs pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from skytide.errors import OptionError
from skytide.spark.sinks.console import ConsoleSink
from skytide.spark.sinks.feed import Event, Feed, FeedSink
from skytide.spark.sinks.files import CsvSink, CurrentTable, JsonLinesSink, ParquetSink
from skytide.spark.sinks.kafka import KafkaSink, deduplicated

__all__ = [
    "SINKS",
    "ConsoleSink",
    "CsvSink",
    "CurrentTable",
    "Event",
    "Feed",
    "FeedSink",
    "JsonLinesSink",
    "KafkaSink",
    "ParquetSink",
    "Sink",
    "deduplicated",
    "make_sink",
]


@runtime_checkable
class Sink(Protocol):
    """Takes the rows of one micro-batch after the other."""

    def write(self, batch: int, rows: pa.Table) -> None:
        """Write a micro-batch; the same one again replaces it, or can be told from it. Durable when this returns."""
        ...

    def last(self) -> int | None:
        """The last micro-batch that is durably there; None where there is none or it is not known."""
        ...


# -- sinks by name -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """How a sink is asked for by name: what makes it, and its options with the function that reads each."""

    make: Callable[..., Sink]
    options: Mapping[str, Callable[[Any], Any]]
    needed: tuple[str, ...] = ()
    prefix: str | None = None
    """Options that begin so go to the client as they are."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise OptionError("is not a text", value=value, remedy="give a text that is not empty")
    return value


def _count(value: Any) -> int:
    try:
        number = -1 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError):
        number = -1
    if number < 1 or number != float(value):
        raise OptionError("is not such a number", value=value, remedy="give a whole number from 1")
    return number


def _seconds(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise OptionError("is not a number of seconds", value=value, remedy="give a number") from None


def _names(value: Any) -> tuple[str, ...]:
    listed = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) and name for name in listed):
        raise OptionError("is not a list of columns", value=value, remedy='give names, like ["city"] or "city"')
    return tuple(listed)


SINKS: Mapping[str, Form] = {
    "parquet": Form(ParquetSink, {"path": _text}, ("path",)),
    "csv": Form(CsvSink, {"path": _text}, ("path",)),
    "jsonl": Form(JsonLinesSink, {"path": _text}, ("path",)),
    "current": Form(CurrentTable, {"path": _text}, ("path",)),
    "console": Form(ConsoleSink, {"rows": _count}),
    "feed": Form(FeedSink, {"path": _text, "keep": _count, "snapshot_every": _count, "by": _names}, ("path",)),
    "kafka": Form(
        KafkaSink,
        {"servers": _text, "topic": _text, "by": _names, "id": _text, "query": _text, "timeout": _seconds},
        ("servers", "topic"),
        "kafka.",
    ),
}


def make_sink(format: str, options: Mapping[str, Any]) -> Sink:
    """The sink of a format and its options, as a pipeline file gives them.

    `kafka.bootstrap.servers` may stand for `servers`, as it does in Spark.

    >>> make_sink("parquet", {"path": "changes"})
    ParquetSink(path='changes')
    >>> make_sink("parquet", {"paht": "changes"})
    Traceback (most recent call last):
    ...
    skytide.errors.OptionError: 'paht' is not an option of the sink parquet; the options are: path
    """
    if format not in SINKS:
        raise OptionError("is not a kind of sink", value=format, remedy=f"use one of {', '.join(SINKS)}")
    form = SINKS[format]
    found: dict[str, Any] = {}
    client: dict[str, str] = {}
    for name, value in options.items():
        if form.prefix is not None and name.startswith(form.prefix):
            client[name[len(form.prefix) :]] = str(value).lower() if isinstance(value, bool) else str(value)
        elif name not in form.options:
            listed = ", ".join([*form.options, *([f"{form.prefix}..."] if form.prefix else [])]) or "none"
            raise OptionError(f"is not an option of the sink {format}", value=name, remedy=f"the options are: {listed}")
        else:
            found[name] = _read(form.options[name], name, value)
    if "bootstrap.servers" in client:
        found.setdefault("servers", client.pop("bootstrap.servers"))
    if client:
        found["options"] = client
    for name in form.needed:
        if name not in found:
            raise OptionError(f"the option {name} of the sink {format} is missing", remedy="give it")
    return form.make(**found)


def _read(form: Callable[[Any], Any], name: str, value: Any) -> Any:
    try:
        return form(value)
    except OptionError as problem:
        problem.reason = f"is given for the option {name} and {problem.reason}"
        raise
