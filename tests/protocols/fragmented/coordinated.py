"""A coordinator and a block of sites in dialogue, as tests of the coordinators need it."""

from __future__ import annotations

import numpy as np

from skytide.protocols.fragmented.direct import DirectCoordinator
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import Message, Report, merged
from skytide.protocols.fragmented.pivot import PivotCoordinator
from skytide.protocols.fragmented.site import SiteBlock


class Dialogue:
    """Objects at all of some sites, over columns that are functions themselves; what is said is kept by kind."""

    def __init__(
        self,
        coordinator: PivotCoordinator | DirectCoordinator,
        functions: Functions,
        home: list[list[float]],
        sites: int,
    ) -> None:
        self.coordinator = coordinator
        self.block = SiteBlock(functions, paired=isinstance(coordinator, DirectCoordinator))
        n = len(home)
        where, who = np.repeat(np.arange(sites), n), np.tile(np.arange(n), sites)
        self.said: list[Message] = []
        self._converse(self.block.join(0, where, who, np.array(home)[who]))

    def move(self, site: int, one: int, *values: float) -> list[str]:
        """A site's new values; the kinds of the messages that follow."""
        self.said = []
        _, told = self.block.take(1, np.array([site]), np.array([one]), np.array([values]))
        self._converse(told)
        return [type(message).__name__ for message in self.said]

    def _converse(self, told: list[Report]) -> None:
        while True:
            self.said += told
            orders = merged(self.coordinator.take(1, told))
            self.said += orders
            if not orders:
                return
            told = merged(self.block.obey(*orders))

    def skyline(self) -> list[int]:
        return [int(one) for one in self.coordinator.skyline()]
