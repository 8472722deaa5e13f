"""Counters, gauges and histograms in the text form that Prometheus reads (version 0.0.4).

Three kinds and one writer are all that the coordinator needs, which is less than a package for it would bring. Labels
may hold names that others choose: their number is limited.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Container, Sequence

from skytide.errors import OptionError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the buckets of a histogram of durations."""
MOST_LABELS = 1000
"""Values of labels that one metric tells apart at most; all others are counted together, as `other`."""
_NAME = re.compile(r"skytide_[a-z0-9_]+")
_LABEL = re.compile(r"(?!__)[a-z_][a-z0-9_]*")

Labels = tuple[str, ...]


class _Metric(ABC):
    """A name, what it means, and its values by labels."""

    kind = ""

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        self.name, self.help, self.labels = name, help, tuple(labels)

    def _of(self, values: Labels, known: Container[Labels], count: int) -> Labels:
        """The labels' values under which something counts: not those of everyone who can make up names."""
        if values in known:
            return values
        if len(values) != len(self.labels):
            raise OptionError(f"is not a value for each of {self.labels}", value=values)
        return values if count < MOST_LABELS else ("other",) * len(values)

    def names(self) -> set[str]:
        """The names at the beginning of its lines."""
        return {self.name}

    @abstractmethod
    def lines(self) -> list[str]:
        """The values as text, one on each line."""


class Counter(_Metric):
    """What only grows. Labels are given by position.

    >>> metrics = Metrics()
    >>> sent = metrics.counter("skytide_sent_total", "Messages sent.", ["kind"])
    >>> sent.add(2, "order")
    >>> print(metrics.text(), end="")
    # HELP skytide_sent_total Messages sent.
    # TYPE skytide_sent_total counter
    skytide_sent_total{kind="order"} 2
    """

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0}
        self._asked: Callable[[], float] | None = None

    def add(self, amount: float = 1, *labels: str) -> None:
        """Grow by an amount of 0 or more. O(1)."""
        if not amount >= 0:
            raise OptionError("is less than 0, and counters only grow", value=amount, remedy="use a gauge")
        place = self._of(labels, self._values, len(self._values))
        self._values[place] = self._values.get(place, 0) + amount

    def value(self, *labels: str) -> float:
        """What was counted; 0 for labels that never were."""
        return self._values.get(labels, 0)

    def lines(self) -> list[str]:
        """The values as text, one on each line."""
        return [f"{self.name}{_braced(self.labels, key)} {_number(value)}" for key, value in self._values.items()]


class Gauge(Counter):
    """What goes up and down: set, or asked of a function when it is read."""

    kind = "gauge"

    def set(self, value: float, *labels: str) -> None:
        """Be this now. O(1)."""
        place = self._of(labels, self._values, len(self._values))
        self._values[place] = value

    def add(self, amount: float = 1, *labels: str) -> None:
        """Go up, or down by less than 0. O(1)."""
        place = self._of(labels, self._values, len(self._values))
        self._values[place] = self._values.get(place, 0) + amount

    def ask(self, function: Callable[[], float]) -> None:
        """From now on, the value without labels is what a function says when the metrics are read."""
        self._asked = function

    def lines(self) -> list[str]:
        """The values as text, one on each line."""
        if self._asked is not None:
            self._values[()] = self._asked()
        return super().lines()


class Histogram(_Metric):
    """How many observations lie below each of some bounds, how many there are, and their sum.

    >>> metrics = Metrics()
    >>> seconds = metrics.histogram("skytide_dialogue_seconds", "Time of a dialogue.", bounds=[0.1, 1])
    >>> for value in (0.1, 0.5, 7):
    ...     seconds.observe(value)
    >>> print(metrics.text(), end="")
    # HELP skytide_dialogue_seconds Time of a dialogue.
    # TYPE skytide_dialogue_seconds histogram
    skytide_dialogue_seconds_bucket{le="0.1"} 1
    skytide_dialogue_seconds_bucket{le="1"} 2
    skytide_dialogue_seconds_bucket{le="+Inf"} 3
    skytide_dialogue_seconds_sum 7.6
    skytide_dialogue_seconds_count 3
    """

    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Sequence[str] = (), bounds: Sequence[float] = SECONDS) -> None:
        super().__init__(name, help, labels)
        self._bounds = [float(bound) for bound in bounds if bound != math.inf]
        if not self._bounds or any(not one < two for one, two in zip(self._bounds, self._bounds[1:], strict=False)):
            raise OptionError("are not bounds that grow", value=list(bounds), remedy="give one or more, smallest first")
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self._begin(())

    def _begin(self, place: Labels) -> None:
        self._counts[place], self._sums[place] = [0] * (len(self._bounds) + 1), 0.0

    def observe(self, value: float, *labels: str) -> None:
        """Count an observation. O(log bounds)."""
        place = self._of(labels, self._counts, len(self._counts))
        if place not in self._counts:
            self._begin(place)
        self._counts[place][bisect_left(self._bounds, value)] += 1
        self._sums[place] += value

    def names(self) -> set[str]:
        """The names at the beginning of its lines."""
        return {self.name, *(self.name + end for end in ("_bucket", "_sum", "_count"))}

    def lines(self) -> list[str]:
        """The values as text, one on each line."""
        found = []
        for key, counts in self._counts.items():
            total = 0
            for bound, count in zip([*self._bounds, math.inf], counts, strict=True):
                total += count
                braced = _braced((*self.labels, "le"), (*key, _number(bound)))
                found.append(f"{self.name}_bucket{braced} {total}")
            braced = _braced(self.labels, key)
            found += [f"{self.name}_sum{braced} {_number(self._sums[key])}", f"{self.name}_count{braced} {total}"]
        return found


class Metrics:
    """All metrics of one coordinator, in the order in which they were made."""

    def __init__(self) -> None:
        self._metrics: dict[str, _Metric] = {}

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        """A new counter; by custom its name ends with `_total`."""
        made = Counter(name, help, labels)
        self._add(made)
        return made

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> Gauge:
        """A new gauge."""
        made = Gauge(name, help, labels)
        self._add(made)
        return made

    def histogram(
        self, name: str, help: str, labels: Sequence[str] = (), bounds: Sequence[float] = SECONDS
    ) -> Histogram:
        """A new histogram with upper ends of its buckets."""
        made = Histogram(name, help, labels, bounds)
        self._add(made)
        return made

    def _add(self, metric: _Metric) -> None:
        if not _NAME.fullmatch(metric.name):
            raise OptionError("is not a name of a metric", value=metric.name, remedy="write skytide_ and small letters")
        for label in metric.labels:
            if not _LABEL.fullmatch(label) or label == "le":
                raise OptionError("is not a name of a label", value=label, remedy="use small letters and _")
        if any(not metric.names().isdisjoint(one.names()) for one in self._metrics.values()):
            raise OptionError("is there already", value=metric.name, remedy="choose another name")
        self._metrics[metric.name] = metric

    def text(self) -> str:
        """All values as text. O(values)."""
        found = []
        for metric in self._metrics.values():
            help_text = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
            found += [f"# HELP {metric.name} {help_text}", f"# TYPE {metric.name} {metric.kind}", *metric.lines()]
        return "".join(line + "\n" for line in found)


def _braced(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    # Text that UTF-8 cannot say would spoil the whole answer.
    clean = value.encode("utf-8", "replace").decode()
    return clean.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
