"""The answers of an uncertain window as of its latest row, which may be later than the last closed instant."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from skytide.model import Floats, Integers
from skytide.monitors.sliding.engine import Engine, Rows
from skytide.monitors.sliding.flow import CountFlow, TimeFlow
from skytide.monitors.sliding.waiting import Arrivals
from skytide.monitors.uncertain.engine import UncertainEngine
from skytide.monitors.uncertain.flow import PackedEngine, TopEngine, most_probable, unpacked


class Found(NamedTuple):
    """Members of an answer: handles, skyline probabilities and the codes of their groups."""

    handles: Integers
    chances: Floats
    codes: Integers

    def pick(self, which: Integers) -> Found:
        """Some of them, in the order asked for."""
        return Found(self.handles[which], self.chances[which], self.codes[which])


class Answers:
    """Asks the engines of a flow; where rows wait, or expire before they are asked, it asks copies that have seen that.

    Copies are kept until the flow moves on: many queries cost one copy.
    """

    def __init__(self, flow: CountFlow | TimeFlow, make: Callable[[], UncertainEngine]) -> None:
        self._flow, self._make = flow, make
        self._known: dict[int, UncertainEngine] | None = None

    def renew(self) -> None:
        """The flow has moved on."""
        self._known = None

    def members(self, least: float, k: int | None = None) -> Found:
        """Who reaches the threshold; with `k`, the most probable of each group alone."""
        parts = []
        for code, engine in self._engines().items():
            handles, chances = engine.answer(least)
            if k is not None:
                inside = most_probable(chances, k)
                handles, chances = handles[inside], chances[inside]
            parts.append(Found(handles, chances, np.full(len(handles), code)))
        nothing = Found(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))
        return Found(*(np.concatenate(columns) for columns in zip(nothing, *parts, strict=True)))

    def rows(self, found: Found) -> tuple[Floats, Integers]:
        """Values and arrivals of members of an answer; of an object, those of one of its instances. O(candidates)."""
        values, arrivals = np.empty((len(found.handles), self._flow.dimensions - 1)), np.empty_like(found.handles)
        for code, engine in self._engines().items():
            mine = np.flatnonzero(found.codes == code)
            rows = engine.retained()
            order = np.argsort(rows.handles, kind="stable")
            place = order[np.searchsorted(rows.handles[order], found.handles[mine])] if len(mine) else mine
            values[mine], arrivals[mine] = rows.values[place], rows.arrivals[place]
        return values, arrivals

    def _engines(self) -> dict[int, UncertainEngine]:
        """An engine per group that is as of the latest row, or the time advanced to."""
        if self._known is None:
            flow = self._flow
            self._known = {code: _innermost(engine) for code, engine in flow.engines.items()}
            if isinstance(flow, TimeFlow):
                at = max(flow.latest, flow.closed)
                waiting = dict(flow.waiting.all().in_order().by_group())
                for code in self._known.keys() | waiting.keys():
                    if code in waiting or self._known[code].next_event() <= at:
                        self._known[code] = self._copy(flow, code, waiting.get(code), at)
        return self._known

    def _copy(self, flow: TimeFlow, code: int, waiting: Arrivals | None, at: int) -> UncertainEngine:
        """The group's engine after the rows that wait; as arrays are copied, not rows taken again, O(candidates)."""
        engine = deepcopy(_innermost(flow.engines[code])) if code in flow.engines else self._make()
        none = np.zeros(0, np.int64)
        rows = Rows(np.zeros((0, flow.dimensions)), none, none, none)
        if waiting is not None:
            rows = Rows(waiting.values, waiting.keys, flow.clock.expiries(waiting.keys), waiting.handles)
        engine.run(unpacked(rows), at)
        return engine


def _innermost(engine: Engine) -> UncertainEngine:
    assert isinstance(engine, PackedEngine)
    return engine.inner.inner if isinstance(engine.inner, TopEngine) else engine.inner
