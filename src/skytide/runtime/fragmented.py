"""The protocol for objects in fragments in one process: a coordinator, its sites, and a ledger of what they say.

Messages take no time: an update is over when nobody has anything to say. What is sent for the first rows, at time 0, is
the initialisation, counted apart. Sizes are those of the encoding, which is of fixed layout; with `wire` every message
also goes through it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from skytide.kernel.functions import values
from skytide.model import Booleans, Floats, Integers, MissingPolicy
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import Kind, Order, Report, decode, encode, merged, sizes
from skytide.protocols.fragmented.methods import coordinator_of, pairs_of
from skytide.protocols.fragmented.site import SiteBlock


class Coordinator(Protocol):
    """A method of the coordinator: what sites say in, orders out."""

    def take(self, time: int, reports: Sequence[Report]) -> list[Order]:
        """Take what sites say; what they are to do. Empty when there is no more to say about this time."""
        ...

    def skyline(self) -> Integers:
        """The objects in the f-skyline, in order."""
        ...

    def undefined(self) -> Integers:
        """The objects with sites that do not compete, since a function has no value."""
        ...


class FragmentSimulation:
    """Runs a method over updates; sites and objects are numbers from 0, times are whole and do not fall.

    >>> simulation = FragmentSimulation(Functions(["x"], []), "pivot")
    >>> sites, objects = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    >>> simulation.run(0, sites, objects, np.array([[1.0], [3.0], [5.0], [5.0]]))
    >>> simulation.skyline().tolist()
    [0]
    >>> simulation.run(1, sites[:1], objects[2:3], np.array([[-9.0]]))
    >>> simulation.skyline().tolist(), simulation.cost()["uplink"]
    ([1], 1)
    """

    def __init__(
        self,
        functions: Functions,
        method: str = "pivot",
        *,
        nulls: MissingPolicy = "error",
        wire: bool = False,
        **more: Any,
    ) -> None:
        self.functions = functions
        self._coordinator = coordinator_of(method, functions, nulls=nulls, **more)
        self._block = SiteBlock(functions, paired=pairs_of(method, functions))
        self._wire = wire
        self._shape = functions.d, functions.k
        self._counts: dict[tuple[bool, Kind], list[int]] = {}
        self.updates = 0

    def run(
        self,
        time: int,
        sites: Integers,
        objects: Integers,
        values: Floats,
        gone: Booleans | None = None,
        weights: Floats | None = None,
    ) -> None:
        """Let rows come, one after the other: new local values of objects at sites, or (`gone`) the end of them.

        Where an object comes to a site, `weights` says what the site counts in its averages until it leaves.
        """
        for _ in self.steps(time, sites, objects, values, gone, weights):
            pass

    def steps(
        self,
        time: int,
        sites: Integers,
        objects: Integers,
        values: Floats,
        gone: Booleans | None = None,
        weights: Floats | None = None,
    ) -> Iterator[int]:
        """The same, stopping after each row of which the coordinator hears; gives how many rows are done."""
        vectors = self.functions.local(values)
        row = 0
        while row < len(sites):
            if time == 0 and row == 0 and gone is None:
                row, said = len(sites), self._block.join(time, sites, objects, vectors, weights)
            else:
                row, said = self._block.take(time, sites, objects, vectors, gone, row, weights)
            self._converse(time, said)
            if said:
                yield row
        self.updates += len(sites) if time else 0

    def _converse(self, time: int, said: list[Report]) -> None:
        """Carry messages until nobody has anything to say."""
        while True:
            orders = self._coordinator.take(time, self._carried(said, time))
            if not orders:
                return
            said = self._block.obey(*self._carried(orders, time))

    def _carried(self, messages: Sequence[Any], time: int) -> list[Any]:
        """The messages as they arrive, counted."""
        messages = merged(messages)
        for block in messages:
            head, record = sizes(block.kind, *self._shape)
            distinct = 1 if len(block.sites) == 1 else len(np.unique(block.sites))
            entry = self._counts.setdefault((time == 0, block.kind), [0, 0])
            entry[0] += distinct
            entry[1] += distinct * head + len(block.sites) * record
        if not self._wire:
            return messages
        return merged([decode(data) for block in messages for data in encode(block, *self._shape)])

    def skyline(self) -> Integers:
        """The objects in the f-skyline, in order."""
        return self._coordinator.skyline()

    def values(self, one: int) -> Floats | None:
        """The functions of an object as they are now; None where no site has it. O(sites)."""
        mean = self._block.mean(one)
        if mean is None:
            return None
        return np.asarray(values(self.functions.programs, mean[None])[0] * self.functions.signs, np.float64)

    def kinds(self) -> dict[Kind, tuple[int, int]]:
        """Messages and bytes after the initialisation by kind."""
        return {kind: (count, size) for (start, kind), (count, size) in self._counts.items() if not start}

    def undefined(self) -> Integers:
        """Under the policy `drop`: the objects that do not compete, since a function has no value."""
        return self._coordinator.undefined()

    def cost(self) -> dict[str, Any]:
        """What was sent after the initialisation, by kind too, and what was sent in it."""

        def totals(initial: bool) -> dict[str, Any]:
            found = {"uplink": 0, "downlink": 0, "messages": 0, "bytes_up": 0, "bytes_down": 0}
            for (start, kind), (count, size) in self._counts.items():
                if start == initial:
                    found["uplink" if kind.up else "downlink"] += count
                    found["messages"] += count
                    found["bytes_up" if kind.up else "bytes_down"] += size
            return found

        kinds = {kind.name.lower(): tuple(entry) for (start, kind), entry in self._counts.items() if not start}
        return {**totals(False), "kinds": kinds, "initial": totals(True), "updates": self.updates}
