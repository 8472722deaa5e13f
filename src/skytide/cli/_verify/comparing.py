"""A change stream followed beside a population: at each instant that is looked at, the two answers must be equal.

Where all instants are looked at, the stream is then the net difference between consecutive answers, in its order: all
that docs/semantics.md asks of it. Where the time does not allow that, runs of consecutive instants are looked at,
spread over the whole run; the order of the stream and its times are looked at everywhere.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.cli._verify.definition import Members
from skytide.cli._verify.populations import Population
from skytide.model import Integers

STRETCH = 100
"""Consecutive instants that are looked at, where not all are."""
_HEAD_START = 0.1


@dataclass(frozen=True)
class Stream:
    """Changes as columns, in the order in which they came: times as numbers, signs, members."""

    times: npt.NDArray[Any]
    signs: Integers
    members: list[Any]

    def __len__(self) -> int:
        return len(self.members)

    def same(self, other: Stream) -> bool:
        """Whether both say the same."""
        alike = len(self) == len(other) and self.members == other.members
        return alike and bool((self.times == other.times).all() and (self.signs == other.signs).all())


@dataclass(frozen=True)
class Disagreement:
    """What is wrong, at which time; `missing` should be there, `wrong` should not."""

    reason: str
    time: Any = None
    missing: list[Any] = field(default_factory=list)
    wrong: list[Any] = field(default_factory=list)


class Follower:
    """Follows a stream from instant to instant."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._place = stream, 0
        self._cuts = np.flatnonzero(np.diff(stream.times) != 0) + 1 if len(stream) > 1 else np.zeros(0, np.int64)
        self.answer: set[Any] = set()
        self.taken: set[Any] = set()
        """Who changed at the last instant."""

    def to(self, instant: Any) -> Disagreement | None:
        """Take the changes of an instant; all before it must have been taken."""
        stream, start = self._stream, self._place
        self.taken = set()
        if start == len(stream) or stream.times[start] > instant:
            return None
        if stream.times[start] != instant:
            return Disagreement("a change at a time at which there is none, or out of order", stream.times[start])
        stop = int(np.searchsorted(self._cuts, start, side="right"))
        self._place = int(self._cuts[stop]) if stop < len(self._cuts) else len(stream)
        signs, members = stream.signs[start : self._place].tolist(), stream.members[start : self._place]
        order = sorted(range(len(signs)), key=lambda at: (signs[at] > 0, _text(members[at])))
        if order != list(range(len(signs))):
            return Disagreement("changes of one time are out of order: - comes before +, then ids as text", instant)
        self.taken = set(members)
        if len(self.taken) < len(members):
            twice = sorted({member for at, member in enumerate(members) if member in members[:at]}, key=_text)
            return Disagreement("changes twice at one time, where only the difference is told", instant, wrong=twice)
        for sign, member in zip(signs, members, strict=True):
            if (member in self.answer) == (sign > 0):
                word = "enters, but is in the answer" if sign > 0 else "leaves, but is not in the answer"
                return Disagreement(word, instant, wrong=[member])
            self.answer ^= {member}
        return None

    def end(self) -> Disagreement | None:
        """After the last closed instant nothing may follow."""
        if self._place < len(self._stream):
            return Disagreement("a change after the last closed instant", self._stream.times[self._place])
        return None


def _text(member: Any) -> Any:
    return (str(member[0]), member[1]) if isinstance(member, tuple) else (str(member), 0.0)


class Pace:
    """Which instants are looked at: all, or as many as the seconds allow, in stretches spread over the run."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._random = random.Random(1)
        self._spent, self._began = 0.0, 0.0
        self._left = self._skip = 0

    def wants(self, number: int, total: int) -> bool:
        """Whether to look at an instant; the first and the last are always looked at."""
        allowed = self._seconds * (_HEAD_START + (1 - _HEAD_START) * number / total)
        if number in (0, total - 1):
            return True
        if self._left > 0 and self._spent <= allowed + _HEAD_START * self._seconds:
            self._left -= 1
            return True
        self._left = 0  # a stretch that takes too long is cut
        if self._skip > 0:
            self._skip -= 1
            return False
        if self._spent <= allowed:
            self._left = STRETCH - 1
            return True
        self._skip = self._random.randrange(STRETCH)
        return False

    def __enter__(self) -> Pace:
        self._began = self._clock()
        return self

    def __exit__(self, *error: object) -> None:
        self._spent += self._clock() - self._began


@dataclass(frozen=True)
class Comparison:
    """What was looked at, and what was found; one finding per stream, None where all is well."""

    instants: int
    checked: int
    findings: list[Disagreement | None]


def compare(
    population: Population, streams: list[Stream], pace: Pace, watch: Callable[[float], None] = lambda share: None
) -> Comparison:
    """Follow streams beside a population. A stream with a disagreement is followed no more."""
    followers = [Follower(stream) for stream in streams]
    findings: list[Disagreement | None] = [None] * len(streams)
    answers: dict[Hashable, Members] = {}
    expected: Members = Members(set(), set())
    changed: set[Hashable] = set()
    total, checked = len(population.instants), 0
    for number, instant in enumerate(population.instants):
        changed |= set(population.step(number))
        for place, follower in enumerate(followers):
            findings[place] = findings[place] or follower.to(instant)
        if pace.wants(number, total):
            checked += 1
            with pace:
                _renew(population, answers, expected, changed)
                for place, follower in enumerate(followers):
                    findings[place] = findings[place] or _differing(expected, follower.answer, instant)
            changed = set()
        watch((number + 1) / total)
        if all(finding is not None for finding in findings):
            return Comparison(total, checked, findings)
    findings = [finding or follower.end() for finding, follower in zip(findings, followers, strict=True)]
    return Comparison(total, checked, findings)


def told_apart(
    population: Population, streams: list[Stream], watch: Callable[[float], None] = lambda share: None
) -> list[Disagreement | None]:
    """Which of some streams are wrong, each of which is another one, though nothing wrong was found in any so far.

    The definition is asked at every instant at which two of their answers differ: at the first one of the two is
    wrong, unless the last digits decide there, and then at the next. Who is wrong is looked at no more, so that the
    others are told apart as well. O(changes · streams²), and the answers of the definition at those instants.
    """
    followers = [Follower(stream) for stream in streams]
    findings: list[Disagreement | None] = [None] * len(streams)
    answers: dict[Hashable, Members] = {}
    expected: Members = Members(set(), set())
    changed: set[Hashable] = set()
    apart = {pair: set[Any]() for pair in itertools.combinations(range(len(streams)), 2)}
    explained: set[tuple[int, int]] = set()
    for number, instant in enumerate(population.instants):
        changed |= set(population.step(number))
        for place, follower in enumerate(followers):
            findings[place] = findings[place] or follower.to(instant)
        for (one, other), whom in apart.items():
            whom ^= followers[one].taken ^ followers[other].taken
        parted = {pair for pair, whom in apart.items() if whom and not any(findings[place] for place in pair)}
        if parted:
            _renew(population, answers, expected, changed)
            changed = set()
            for place in set().union(*parted):
                findings[place] = _differing(expected, followers[place].answer, instant)
            explained |= parted
        watch((number + 1) / len(population.instants))
    # Equal answers at all instants make one stream, so that one of such a pair is none; which one, nothing says.
    for pair in apart.keys() - explained:
        if not any(findings[place] for place in pair):
            findings = [
                Disagreement("the runs differ from each other, but not in their answers") if place in pair else finding
                for place, finding in enumerate(findings)
            ]
    return findings


def _renew(population: Population, answers: dict[Hashable, Members], expected: Members, changed: set[Hashable]) -> None:
    """Bring what is expected up to date: the answers of the groups that changed."""
    for group in changed:
        for into, old in zip(expected, answers.get(group, ((), ())), strict=True):
            into.difference_update(old)
    for group in changed:
        answers[group] = population.answer(group)
        for into, new in zip(expected, answers[group], strict=True):
            into.update(new)


def _differing(expected: Members, told: set[Any], instant: Any) -> Disagreement | None:
    if told == expected.must:
        return None
    missing, wrong = expected.must - told, told - expected.must - expected.may
    if not missing and not wrong:
        return None
    return Disagreement("the answer is another one", instant, sorted(missing, key=_text), sorted(wrong, key=_text))


def answers_of(stream: Stream, instants: npt.NDArray[Any]) -> Iterator[set[Any]]:
    """The answers of a stream after each instant."""
    follower = Follower(stream)
    for instant in instants:
        follower.to(instant)
        yield follower.answer
