"""The driver's side of a run of timestamps: who must be heard next, who is told what, and when that takes a job.

Each bucket says how far it is sure to keep quiet. As long as nobody speaks, timestamps cost no job. When somebody does,
the coordinator begins; who is told something, or was heard, must look ahead anew, and all others stay sure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from skytide.model import Changes
from skytide.spark.rounds.protocol import Coordinator, Run, Said
from skytide.spark.rounds.tasks import Result, Task

LONG_LOG = 1 << 16
"""When so many bytes of messages have gone to a bucket, again and again, its state is stored and they are forgotten."""
SHARE = 8
"""Unless they are less than this part of its state: what tasks store does not pass through the driver."""
MANY = 256
"""Or when there are so many messages."""

Hands = Callable[[Sequence[Task]], Sequence[Result]]
"""Does tasks, each of another bucket, in one job."""


@dataclass
class Place:
    """What the driver knows of a bucket: its files, what it was told since, and when it will speak."""

    state: str | None = None
    rows: str | None = None
    since: int = -1
    start: int = 0
    log: list[tuple[int, bytes]] = field(default_factory=list)
    size: int = 0
    """Of the log, in bytes."""
    spent: int = 0
    """Bytes that went out with tasks since the log began."""
    weight: int = 0
    """Of the state, where it is known."""
    speaks: int = -1
    said: Sequence[bytes] = ()
    sure: bool = False

    @property
    def awake(self) -> bool:
        """Whether there is any client, or a row of one."""
        return self.state is not None or self.rows is not None

    def tell(self, time: int, messages: Sequence[bytes]) -> None:
        """Note what it is told."""
        self.log += [(time, message) for message in messages]
        self.size += sum(map(len, messages))
        self.sure = False

    @property
    def long(self) -> bool:
        """Whether it is time to store its state and forget the log."""
        return self.spent + self.size > max(LONG_LOG, self.weight // SHARE) or len(self.log) > MANY

    def stored(self, name: str, time: int, weight: int) -> None:
        """Its state after a timestamp is in this file, of so many bytes."""
        self.state, self.since, self.weight = name, time, weight
        self.start += len(self.log)
        self.log, self.size, self.spent = [], 0, 0


@dataclass
class Passed:
    """What went between driver and buckets in a run: jobs, bytes up and down."""

    jobs: int = 0
    up: int = 0
    down: int = 0


class Engine:
    """Lets a coordinator and the buckets speak with each other, one timestamp after the other."""

    def __init__(self, coordinator: Coordinator, places: Sequence[Place], run: Run, hands: Hands) -> None:
        self._coordinator, self._places, self._run, self._hands = coordinator, places, run, hands
        self.passed = Passed()
        for place in places:
            place.since, place.start, place.sure = run.first - 1, 0, False

    def timestamps(self) -> Iterator[tuple[int, Changes]]:
        """Run all timestamps: the number and the changes of each."""
        for time in range(self._run.first, self._run.end):
            self._look(time)
            said = {number: place.said for number, place in enumerate(self._places) if self._speaks(place, time)}
            for number in said:
                self._places[number].sure = False
            questions = self._coordinator.begin(time, said)
            while questions:
                questions = self._coordinator.answered(self._asked(time, questions))
            for number, messages in self._coordinator.settle().items():
                self._places[number].tell(time, messages)
            yield time, self._coordinator.changes()

    def _speaks(self, place: Place, time: int) -> bool:
        return place.awake and place.speaks == time

    def _look(self, time: int) -> None:
        """Ask those who are not sure how long they will keep quiet from a timestamp on."""
        unsure = [number for number, place in enumerate(self._places) if place.awake and not place.sure]
        last = self._run.end - 1
        for result in self._do([self._task(number, time - 1, last, self._places[number].long) for number in unsure]):
            place = self._places[result.bucket]
            place.speaks, place.said, place.sure = result.time, result.said, True

    def _asked(self, time: int, questions: Said) -> Said:
        tasks = []
        for number, messages in questions.items():
            place = self._places[number]
            fresh = place.start + len(place.log)
            place.tell(time, messages)
            tasks.append(self._task(number, time, time, fresh=fresh))
        return {result.bucket: result.said for result in self._do(tasks)}

    def store(self) -> None:
        """After the last timestamp: have the state of all buckets stored."""
        last = self._run.end - 1
        awake = [number for number, place in enumerate(self._places) if place.awake]
        self._do([self._task(number, last, last, True) for number in awake])

    def _task(self, number: int, after: int, until: int, store: bool = False, fresh: int | None = None) -> Task:
        place = self._places[number]
        none = place.start + len(place.log)
        return Task(
            bucket=number,
            state=place.state,
            rows=place.rows,
            since=place.since,
            start=place.start,
            log=tuple(place.log),
            fresh=none if fresh is None else fresh,
            after=after,
            until=until,
            store=store,
        )

    def _do(self, tasks: list[Task]) -> Sequence[Result]:
        if not tasks:
            return ()
        self.passed.jobs += 1
        for place in (self._places[task.bucket] for task in tasks):
            self.passed.down += place.size
            place.spent += place.size
        results = self._hands(tasks)
        after = {task.bucket: task.after for task in tasks}
        for result in results:
            self.passed.up += sum(map(len, result.said))
            if result.state is not None:
                self._places[result.bucket].stored(result.state, after[result.bucket], result.size)
        return results
