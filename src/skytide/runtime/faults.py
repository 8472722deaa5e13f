"""A network that loses, doubles, delays and reorders messages, and the link layer that hides it from the protocol.

Every message is numbered, sent again until it is acknowledged, and delivered once: what comes a second time is only
acknowledged again. Acknowledgements get lost like anything else. Time is counted in ticks, of which a timestamp has as
many as it needs. What is late from one timestamp may arrive in a later one; its number tells that it is known.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from random import Random

from skytide.errors import OptionError, OutputError


@dataclass(frozen=True)
class Faults:
    """How bad a network is: probabilities for each message, delays up to so many ticks, and the seed of it all."""

    loss: float = 0.0
    duplicates: float = 0.0
    delay: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        for name, value in (("loss", self.loss), ("duplicates", self.duplicates)):
            if not 0.0 <= value <= 1.0:
                raise OptionError(f"is not a probability of {name}", value=value, remedy="give a number from 0 to 1")
        if self.delay < 0:
            raise OptionError("is not a delay", value=self.delay, remedy="give 0 ticks or more")


class Network:
    """Carries messages in spite of faults; `counts` says what that took.

    >>> network = Network(Faults(loss=0.5, duplicates=0.5, delay=3))
    >>> sorted(network.carry([b"a", b"b", b"c"])), network.counts["lost"] > 0
    ([b'a', b'b', b'c'], True)
    """

    ATTEMPTS = 1000
    """After so many attempts a message is given up, and the run with it."""

    def __init__(self, faults: Faults) -> None:
        self._faults, self._random = faults, Random(faults.seed)
        self._flying: list[tuple[int, int, int, bytes | None]] = []  # tick, order, number, message or acknowledgement
        self._tick = self._number = self._order = 0
        self._delivered: set[int] = set()
        self.counts: Counter[str] = Counter()

    def carry(self, messages: list[bytes]) -> list[bytes]:
        """All messages, each once, in the order of their arrival. O(messages, and attempts, log flying)."""
        numbers = range(self._number, self._number + len(messages))
        self._number += len(messages)
        open_ones, attempts, arrived = dict(zip(numbers, messages, strict=True)), Counter[int](), list[bytes]()
        patience = 2 * (self._faults.delay + 1)
        again = dict.fromkeys(open_ones, self._tick)
        while open_ones:
            for number in [one for one, due in again.items() if due <= self._tick]:
                attempts[number] += 1
                if attempts[number] > self.ATTEMPTS:
                    raise OutputError("a message does not get through", remedy="lose fewer messages")
                self.counts["sent" if attempts[number] == 1 else "repeated"] += 1
                self._send(number, open_ones[number])
                again[number] = self._tick + patience
            self._tick += 1
            while self._flying and self._flying[0][0] <= self._tick:
                _, _, number, message = heapq.heappop(self._flying)
                if message is None:
                    open_ones.pop(number, None)
                    again.pop(number, None)
                    continue
                if number in self._delivered:
                    self.counts["ignored"] += 1
                else:
                    self._delivered.add(number)
                    arrived.append(message)
                self.counts["acknowledged"] += 1
                self._send(number, None)
        return arrived

    def _send(self, number: int, message: bytes | None) -> None:
        copies = 2 if self._random.random() < self._faults.duplicates else 1
        for _ in range(copies):
            if self._random.random() < self._faults.loss:
                self.counts["lost"] += 1
                continue
            self._order += 1
            due = self._tick + 1 + self._random.randint(0, self._faults.delay)
            heapq.heappush(self._flying, (due, self._order, number, message))
