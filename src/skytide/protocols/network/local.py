"""A site's part of a protocol behind one interface: rows in, messages out; orders in, messages out.

The coordinator numbers objects for all sites. Here they are numbered anew, from 0, so that a site's arrays are as long
as it has objects.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, Self

import numpy as np

from skytide.errors import InputError
from skytide.model import Booleans, Floats, Integers
from skytide.protocols.filtering import messages as filtering
from skytide.protocols.filtering.client import ClientBlock
from skytide.protocols.fragmented import messages as fragmented
from skytide.protocols.fragmented.site import SiteBlock
from skytide.protocols.network.query import Query


class Part(Protocol):
    """What a site does in a protocol. Objects are the coordinator's numbers, each named once in a call."""

    def copy(self) -> Self:
        """The same again, to go back to."""
        ...

    def absorb(self, time: int, objects: Integers, values: Floats, gone: Booleans) -> bool:
        """Take new values if nothing has to be said of them; else nothing happens."""
        ...

    def take(self, time: int, objects: Integers, values: Floats, gone: Booleans) -> list[bytes]:
        """Take new values, and say what has to be said."""
        ...

    def obey(self, messages: Sequence[bytes]) -> list[bytes]:
        """Follow orders and answer questions."""
        ...

    def last(self, time: int) -> list[bytes]:
        """Tell where all objects are, which is where they stay."""
        ...


def part_of(query: Query, site: int, *, paired: bool) -> Part:
    """The part of a site, as the coordinator numbers it, that has no objects yet; see `frames.Welcome`."""
    return Clients(query) if query.protocol == "filtering" else Fragments(query, site, paired=paired)


def _foreign() -> InputError:
    return InputError("an order is for somebody else", remedy="use the same version on both sides")


class _Dense:
    """Numbers from 0 for some of the coordinator's.

    >>> dense = _Dense()
    >>> dense.inner(np.array([70, 3, 70])).tolist(), dense.outer(np.array([1])).tolist()
    ([0, 1, 0], [3])
    """

    def __init__(self) -> None:
        self._inner: dict[int, int] = {}
        self._outer: list[int] = []

    def inner(self, numbers: Integers) -> Integers:
        """The own numbers, new ones where there are none. O(numbers)."""
        found = np.empty(len(numbers), np.int64)
        for place, number in enumerate(numbers.tolist()):
            known = self._inner.get(number)
            if known is None:
                known = self._inner[number] = len(self._outer)
                self._outer.append(number)
            found[place] = known
        return found

    def known(self, numbers: Integers) -> Integers:
        """The own numbers, where all have one; an `InputError` where not. O(numbers)."""
        try:
            return np.array([self._inner[number] for number in numbers.tolist()], np.int64)
        except KeyError:
            raise _foreign() from None

    def outer(self, numbers: Integers) -> Integers:
        """The coordinator's numbers. O(numbers)."""
        return np.array([self._outer[number] for number in numbers.tolist()], np.int64)


class Clients:
    """Objects that are clients of the filtering protocol."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._dimensions = len(query.columns)
        self._block = ClientBlock(self._dimensions)
        self._dense = _Dense()  # shared by copies: numbers stay what they are

    def copy(self) -> Self:
        """See `Part`."""
        other = copy.copy(self)
        other._block = self._block.copy()
        return other

    def absorb(self, time: int, objects: Integers, values: Floats, gone: Booleans) -> bool:
        """See `Part`. O(objects of the site)."""
        if gone.any():
            return False
        cuts = np.array([0, len(objects)])
        return self._block.absorb(time, cuts, self._dense.inner(objects), self._query.vectors(values)) == 1

    def take(self, time: int, objects: Integers, values: Floats, gone: Booleans) -> list[bytes]:
        """See `Part`."""
        who = self._dense.inner(objects)
        return self._encoded(self._block.observe(time, who[~gone], self._query.vectors(values[~gone]), who[gone]))

    def obey(self, messages: Sequence[bytes]) -> list[bytes]:
        """See `Part`."""
        said: list[filtering.Message] = []
        for message in map(filtering.decode, messages):
            if isinstance(message, filtering.Reports | filtering.Departures):
                raise InputError(
                    "the coordinator says what only sites say", remedy="use the same version on both sides"
                )
            order: Any = replace(message, clients=self._dense.known(message.clients))
            if not np.isin(order.clients, self._block.present()).all():
                raise _foreign()
            if isinstance(order, filtering.Questions):
                said.append(self._block.answer(order))
            else:
                self._block.obey(order)
        return self._encoded(said)

    def last(self, time: int) -> list[bytes]:
        """See `Part`."""
        here = self._block.present()
        return self._encoded([self._block.answer(filtering.Questions(time, here))] if len(here) else [])

    def _encoded(self, said: Sequence[filtering.Message]) -> list[bytes]:
        known = [replace(block, clients=self._dense.outer(block.clients)) for block in said]
        return [filtering.encode(block, self._dimensions) for block in known]


class Fragments:
    """Fragments of objects, at one site."""

    def __init__(self, query: Query, site: int, *, paired: bool) -> None:
        self._query, self._site = query, site
        self._shape = query.functions.d, query.functions.k
        self._block = SiteBlock(query.functions, paired=paired)
        self._dense = _Dense()
        self._nowhere = np.zeros(0, np.int64)

    def copy(self) -> Self:
        """See `Part`."""
        other = copy.copy(self)
        other._block = self._block.copy()
        return other

    def _sites(self, count: int) -> Integers:
        if len(self._nowhere) < count:
            self._nowhere = np.zeros(count, np.int64)
        return self._nowhere[:count]

    def absorb(self, time: int, objects: Integers, values: Floats, gone: Booleans) -> bool:
        """See `Part`."""
        if gone.any():
            return False
        who = self._dense.inner(objects)
        return self._block.absorb(self._sites(len(who)), who, self._query.vectors(values))

    def take(self, time: int, objects: Integers, values: Floats, gone: Booleans) -> list[bytes]:
        """See `Part`."""
        who, vectors = self._dense.inner(objects), self._query.vectors(values)
        times = np.full(len(who), time)
        row, said = 0, list[fragmented.Report]()
        while row < len(who):
            row, more = self._block.instant(times, self._sites(len(who)), who, vectors, gone, row)
            said += more
        return self._encoded(said)

    def obey(self, messages: Sequence[bytes]) -> list[bytes]:
        """See `Part`."""
        orders: list[Any] = []
        order: Any
        for order in map(fragmented.decode, messages):
            if order.kind.up or (order.sites != self._site).any():
                raise _foreign()
            names = [name for name in ("objects", "others") if hasattr(order, name)]
            own = {name: self._dense.inner(getattr(order, name)) for name in names}
            orders.append(replace(order, sites=self._sites(len(order.sites)), **own))
        return self._encoded(self._block.obey(*orders)) if orders else []

    def last(self, time: int) -> list[bytes]:
        """See `Part`."""
        return self._encoded(self._block.tell(time))

    def _encoded(self, said: Sequence[fragmented.Report]) -> list[bytes]:
        found: list[bytes] = []
        for block in fragmented.merged(said):
            sites = np.full(len(block.sites), self._site)
            known = replace(block, sites=sites, objects=self._dense.outer(block.objects))
            found += fragmented.encode(known, *self._shape)
        return found
