"""What must hold at the end: every change stream is the reference's, each change once, and memory has stayed flat."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import skytide as sk
from benchmarks.network import faults
from benchmarks.soak.job import DURATION, PREFERENCE, generated
from benchmarks.soak.playing import Outcome
from skytide.spark.sinks import CurrentTable

CHUNK = 1 << 17
LONG = 900.0
"""Seconds of a run from which each role must be judged: its quiet part is longer than a warm-up and a slope need."""
Change = tuple[int, str, int]


@dataclass(frozen=True)
class Compared:
    """A stream beside what it should be."""

    name: str
    expected: int
    found: int
    missing: int
    surplus: int
    """Changes that should not be there, or are there twice."""

    @property
    def equal(self) -> bool:
        """Whether the two are the same; a stream of nothing shows nothing."""
        return not self.missing and not self.surplus and self.expected > 0


def compared(name: str, expected: Counter[Any], found: Counter[Any]) -> Compared:
    """Both sides as multisets."""
    return Compared(name, expected.total(), found.total(), (expected - found).total(), (found - expected).total())


def expected_changes(seed: int, rows: int) -> tuple[Counter[Change], set[int]]:
    """The changes of one window on one machine over the same rows, and the answer that they lead to."""
    kept = sk.SlidingWindow(PREFERENCE, duration=DURATION, check_ids=False)
    changes: Counter[Change] = Counter()
    answer: set[int] = set()
    batches = generated(seed).batches(0, rows)
    while part := _some(batches):
        table = pa.Table.from_batches(part)
        ids, times = (table.column(name).to_numpy() for name in ("id", "time"))
        for time, change, one in kept.extend(table, times=times, ids=ids):
            changes[time, change, one] += 1
            (answer.add if change == "+" else answer.remove)(one)
    return changes, answer


def _some(batches: Any) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in found) < CHUNK and (batch := next(batches, None)) is not None:
        found.append(batch)
    return found


def written(folder: Path, columns: list[str]) -> Counter[Any]:
    """The rows of a sink, each as often as it is there."""
    files = sorted(folder.glob("*.parquet"))
    if not files:
        return Counter()
    table = pa.concat_tables([pq.read_table(file, columns=columns) for file in files])
    return Counter(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def judged(folder: Path, seed: int, outcome: Outcome) -> tuple[list[Compared], list[str]]:
    """All streams compared, and everything that is wrong, in words."""
    changes, answer = expected_changes(seed, outcome.rows)
    current = CurrentTable(str(folder / "current")).read()
    held = Counter(current[1].column("id").to_pylist()) if current is not None else Counter[Any]()
    streams = [
        compared("window: changes", changes, written(folder / "changes", ["time", "change", "id"])),
        compared("window: answer", Counter(answer), held),
    ]
    problems = [*outcome.problems]
    if outcome.network:
        streams.append(_followed(folder, outcome, problems))
        problems += outcome.network["problems"]
        if faults.failed(outcome.network):
            problems.append(f"the coordinator published {outcome.network['wrong']} wrong states")
    problems += [f"{one.name}: {one.missing} missing, {one.surplus} too many" for one in streams if not one.equal]
    if written(folder / "dead", ["id"]):
        problems.append("rows were turned away")
    return streams, [*problems, *of_memory(outcome)]


def of_memory(outcome: Outcome) -> list[str]:
    """Roles whose memory is not flat; and in a long run, in which each has a long life, those that were not judged."""
    problems = [f"memory of {one.role} is not flat" for one in outcome.memory if one.flat is False]
    if outcome.seconds >= LONG:
        problems += [f"memory of {one.role} was not judged" for one in outcome.memory if one.flat is None]
    return problems


def _followed(folder: Path, outcome: Outcome, problems: list[str]) -> Compared:
    """The events that the second query wrote, beside those that a reader without Spark got.

    An event after the last life is nobody's fault: it must have all up to the rest, and none that is not there.
    """
    events = written(folder / "events", ["number", "kind", "change", "id"])
    reached = max((number for number, *_ in events), default=0)
    if reached < outcome.network["at rest"]:
        problems.append("the follower of the coordinator did not get all events")
    told = Counter(
        (one["number"], one["kind"], one.get("change"), _text(one.get("id")))
        for one in outcome.events
        if one["number"] <= reached
    )
    return compared("coordinator: events", told, events)


def _text(one: Any) -> str | None:
    return None if one is None else str(one)
