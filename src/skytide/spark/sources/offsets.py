"""Which messages of a Kafka topic a micro-batch reads: offsets as they lie in Spark's log, limits, and lost messages.

An offset of the stream holds the next message of every partition. Spark stores the end of a batch before it runs, and
asks for the beginning of the stream anew where the very first batch is run again. What "latest" means has changed by
then. So the end of a batch also holds where partitions begin that the offset before it does not settle (`since`): a
batch is the same rows whenever it is run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from skytide.errors import InputError, OptionError

Part = tuple[str, int]
"""A partition of a topic."""
Places = dict[Part, int]
"""The next message of each partition."""
EARLIEST, LATEST = -2, -1


@dataclass(frozen=True)
class Offset:
    """The next message of every partition, and what Spark's log must know besides."""

    at: Places
    since: Places = field(default_factory=dict)
    initial: bool = False
    """Whether this is the beginning of the stream, which may be another one when it is asked for again."""

    def to_json(self) -> dict[str, Any]:
        """As Spark stores it, in one order: it compares texts."""
        stored: dict[str, Any] = {"topics": nested(self.at)}
        if self.since:
            stored["since"] = nested(self.since)
        if self.initial:
            stored["initial"] = True
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Offset:
        """The offset out of Spark's log."""
        return cls(flat(stored["topics"]), flat(stored.get("since", {})), bool(stored.get("initial", False)))


def nested(places: Places) -> dict[str, dict[str, int]]:
    """By topic and partition, sorted.

    >>> nested({("b", 10): 1, ("b", 9): 2, ("a", 0): 3})
    {'a': {'0': 3}, 'b': {'9': 2, '10': 1}}
    """
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), place in sorted(places.items()):
        found.setdefault(topic, {})[str(partition)] = place
    return found


def flat(topics: Mapping[str, Mapping[str, int]]) -> Places:
    """The opposite of `nested`."""
    return {(topic, int(partition)): place for topic, inner in topics.items() for partition, place in inner.items()}


def read_places(text: str) -> str | Places:
    """What startingOffsets and endingOffsets may be: earliest, latest, or JSON with -2 and -1 for the two.

    >>> read_places("latest"), read_places('{"t": {"0": 23, "1": -2}}')
    ('latest', {('t', 0): 23, ('t', 1): -2})
    """
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    try:
        places = flat(json.loads(text))
        good = all(type(place) is int and place >= EARLIEST for place in places.values())
    except (ValueError, AttributeError, TypeError):
        good = False
    if not good:
        raise OptionError(
            "is not a place in a topic",
            value=text,
            remedy='use earliest, latest, or JSON like {"topic": {"0": 23, "1": -2}} (-2 earliest, -1 latest)',
        )
    return places


Bounds = Mapping[Part, tuple[int, int]]
"""The first message that each partition still has, and the next one that it will get."""


def resolve(wanted: str | Places, bounds: Bounds, *, option: str) -> Places:
    """Numbers for `earliest`, `latest` or given places; every partition must have one that exists."""
    if isinstance(wanted, str):
        return {part: low if wanted == "earliest" else high for part, (low, high) in bounds.items()}
    missing, unknown = sorted(bounds.keys() - wanted.keys()), sorted(wanted.keys() - bounds.keys())
    if missing or unknown:
        topic, partition = (missing or unknown)[0]
        raise OptionError(
            f"of topic {topic} {'is not in' if missing else 'does not exist but is in'} {option}",
            value=f"partition {partition}",
            remedy="name every partition that is read, and no other",
        )
    found = {}
    for part, place in wanted.items():
        low, high = bounds[part]
        found[part] = low if place == EARLIEST else high if place == LATEST else place
        if not low <= found[part] <= high:
            raise OptionError(
                f"is in {option} for {_name(part)}, which has offsets {low} to {high}",
                value=place,
                remedy="choose one that is there, or earliest",
            )
    return found


Loss = Callable[[str], None]
"""What is called where messages are lost: it raises an error, or lets it pass."""


def fail_on_loss(what: str) -> None:
    """Lost messages are an error."""
    raise InputError(
        f"messages are lost: {what}",
        remedy="start the query anew, or set failOnDataLoss=false to go on with what is there",
    )


def advance(start: Offset, bounds: Bounds, most: int | None, lost: Loss) -> Offset:
    """The end of the batch that follows `start`: all that is there, or `most` messages. O(partitions)."""
    begin: Places = {}
    for part, (low, high) in bounds.items():
        begin[part] = _beginning(part, start.at.get(part), low, high, lost)
    for part in sorted(start.at.keys() - bounds.keys()):
        lost(f"{_name(part)} no longer exists")
    end = limited(begin, {part: high for part, (_, high) in bounds.items()}, most)
    if end == start.at:
        return start
    unsettled = {part: place for part, place in begin.items() if start.initial or start.at.get(part) != place}
    return Offset(end, unsettled)


def _beginning(part: Part, place: int | None, low: int, high: int, lost: Loss) -> int:
    if place is None:
        return low
    if place < low:
        lost(f"{_name(part)} begins at offset {low} by now, and {place} is the next to read")
        return low
    if place > high:
        lost(f"{_name(part)} ends at offset {high}, and {place} is the next to read: it was made anew")
        return low
    return place


def limited(begin: Places, end: Places, most: int | None) -> Places:
    """At most so many messages in all, of each partition in proportion to what waits there, but of each at least one.

    >>> limited({("t", 0): 0, ("t", 1): 5}, {("t", 0): 90, ("t", 1): 15}, 10)
    {('t', 0): 9, ('t', 1): 6}
    """
    waiting = {part: max(0, end[part] - place) for part, place in begin.items()}
    total = sum(waiting.values())
    if most is None or total <= most:
        return dict(end)
    found = dict(begin)
    for part in sorted(waiting, key=lambda part: (waiting[part], part)):
        if waiting[part]:
            share = min(waiting[part], most, max(1, most * waiting[part] // total))
            found[part] += share
            total -= waiting[part]
            most -= share
    return found


def ranges(start: Offset, end: Offset) -> dict[Part, tuple[int, int]]:
    """The messages between two offsets: first and last + 1 of each partition that has any."""
    if end.initial:
        return {}
    found = {}
    for part, last in end.at.items():
        first = end.since[part] if part in end.since else start.at[part]
        if first < last:
            found[part] = first, last
    return found


def pieces(parts: dict[Part, tuple[int, int]], least: int) -> list[tuple[Part, int, int]]:
    """Ranges for tasks: one per partition, or more of long ones where at least so many are wanted.

    >>> pieces({("t", 0): (0, 90), ("t", 1): (0, 10)}, 3)
    [(('t', 0), 0, 30), (('t', 0), 30, 60), (('t', 0), 60, 90), (('t', 1), 0, 10)]
    """
    total = sum(last - first for first, last in parts.values())
    found = []
    for part, (first, last) in sorted(parts.items()):
        size = last - first
        share = (2 * least * size + total) // (2 * total)
        count = 1 if len(parts) >= least else max(1, min(size, share))
        cuts = [first + size * cut // count for cut in range(count + 1)]
        found += [(part, cuts[cut], cuts[cut + 1]) for cut in range(count)]
    return found


def _name(part: Part) -> str:
    return f"partition {part[1]} of topic {part[0]}"
