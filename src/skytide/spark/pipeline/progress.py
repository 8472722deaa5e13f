"""What a run says of itself: a line per micro-batch and a summary, made of what Spark reports."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skytide.spark.rounds.traffic import Traffic

INPUT = "skytide_input"
"""The observed metrics of the rows that the query sees: `rows`, and `latest`, the latest time where it is one."""
COUNTED = ("retained", "changes", "late", "bad")
LONGEST_LAG = 2 * 366 * 86_400.0
"""Seconds: rows that are older than this are of a past that is played again, and not behind."""


@dataclass
class Tally:
    """Adds up micro-batches as Spark reports them. A report may be given any number of times and counts once."""

    counted: bool = True
    """Whether Spark counts rows at all: behind Spark Connect it does not see what foreachBatch reads."""
    traffic: Callable[[int], Traffic | None] | None = None
    """What a micro-batch of rounds sent to the driver, where it is known."""
    batches: int = 0
    rows: int = 0
    reached: Traffic | None = None
    """What all of them sent."""
    counts: dict[str, int] = field(default_factory=dict)
    latest: dict[str, float] = field(default_factory=dict)
    """The numbers of the last micro-batch: batch, rows, seconds, and those of changes, pruned, late, bad, lag known."""
    _last: int = -1

    def add(self, report: dict[str, Any]) -> str | None:
        """The line about a micro-batch, or None where it was reported before, or nothing was done in it."""
        number = int(report["batchId"])
        spent = report.get("durationMs", {})
        # Between micro-batches Spark reports, from time to time, that it waits: under the number of the next one.
        if number <= self._last or "addBatch" not in spent:
            return None
        self._last = number
        self.batches += 1
        rows = int(report.get("numInputRows") or 0)
        self.rows += rows
        observed = _observed(report)
        passed = None if self.traffic is None else self.traffic(number)
        if passed is not None:
            observed |= {name: getattr(passed, name) for name in ("changes", "late", "bad")}
            self.reached = passed if self.reached is None else self.reached + passed
        for name in ("changes", "late", "bad", "sent", "input"):
            if name in observed:
                self.counts[name] = self.counts.get(name, 0) + observed[name]
        seconds = int(spent.get("triggerExecution") or spent["addBatch"]) / 1000
        self.latest = {"batch": number, "rows": rows, "seconds": seconds}
        self.latest |= {name: observed[name] for name in COUNTED if name in observed}
        parts = [f"{rows} rows in"] if self.counted else []
        if "input" in observed:
            self.latest["pruned"] = observed["input"] - observed.get("sent", 0)
            parts.append(f"{self.latest['pruned']} pruned")
        parts += [f"{observed[name]} {name}" for name in COUNTED if name in observed and _telling(name, observed[name])]
        if passed is not None:
            parts.append(passed.described())
        lag = _lag(report, seconds)
        if lag is not None:
            self.latest["lag"] = lag
            parts.append(f"{_duration(lag)} behind")
        return f"batch {number}: {', '.join([*parts, f'{seconds:.2f} s'])}"

    def summary(self, seconds: float, places: list[str]) -> str:
        """What the whole run did, in a line."""
        speed = f" ({self.rows / seconds:,.0f} rows/s)" if seconds > 0 and self.rows else ""
        rows = f", {_plural(self.rows, 'row')}" if self.counted else ""
        parts = [f"{_plural(self.batches, 'batch', 'batches')}{rows} in {seconds:.1f} s{speed}"]
        parts += [f"{self.counts[name]} {name}" for name in ("changes", "late", "bad") if name in self.counts]
        parts += [] if self.reached is None else [self.reached.described()]
        return ", ".join(parts) + ("; " + ", ".join(places) if places else "")


def _telling(name: str, count: int) -> bool:
    return bool(count) or name in ("retained", "changes")


def _observed(report: dict[str, Any]) -> dict[str, int]:
    """The numbers of all observed metrics, joined; one that no row made is NULL in Spark and 0 here."""
    found: dict[str, int] = {}
    for values in (report.get("observedMetrics") or {}).values():
        for name, value in values.items():
            if name not in ("rows", "latest") and (value is None or isinstance(value, int)):
                found[name] = value or 0
    return found


def _lag(report: dict[str, Any], seconds: float) -> float | None:
    """By how much the latest row of the micro-batch was older than the micro-batch's end."""
    latest = ((report.get("observedMetrics") or {}).get(INPUT) or {}).get("latest")
    began = _moment(report.get("timestamp"))
    when = _moment(latest)
    if began is None or when is None:
        return None
    lag = max(0.0, (began - when).total_seconds() + seconds)
    return lag if lag < LONGEST_LAG else None


def _moment(text: Any) -> datetime.datetime | None:
    if not isinstance(text, str):
        return None
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=datetime.UTC)


def _duration(seconds: float) -> str:
    """A length of time that a reader takes in at a glance.

    >>> [_duration(one) for one in (0.25, 75, 7300, 200000)]
    ['0.2 s', '75 s', '122 min', '56 h']
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    for unit, size in (("s", 1), ("min", 60), ("h", 3600)):
        if seconds < 240 * size or unit == "h":
            return f"{round(seconds / size) if size > 1 else int(seconds)} {unit}"
    raise AssertionError("every length has a unit")


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
