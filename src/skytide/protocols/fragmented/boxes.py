"""The boxes of PIVOT: those of the filtering protocol, with objects for clients and other boundaries.

`FilterServer` says who is in the skyline, on whom others hang, and who must be looked at again after a crossing. Only
where boundaries lie differs: by the sites' random walks, see `kernel.pivots`.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel.filtering import best_dominators, keep_below
from skytide.kernel.pivots import part_holders, part_members
from skytide.model import Integers
from skytide.protocols.filtering.filter import FilterServer
from skytide.protocols.filtering.offers import Offers
from skytide.protocols.fragmented.tuning import APART


class PivotBoxes(FilterServer):
    """Boxes of objects; a report's floor and roof are the object's values less and plus its reach."""

    apart = APART

    def _construct(self, clients: Integers, offers: Offers) -> Integers:
        """The widest boxes that make sense, made robust. Objects offer none."""
        records = self._records
        _, low, high, floor, roof, fresh = records
        fresh[:] = False
        fresh[clients] = True
        low[clients], high[clients] = floor[clients], roof[clients]
        members = self.skyline()
        below = clients[~self._member[clients]]
        chosen = np.empty(len(below), np.int64)
        best_dominators(records, members, below, chosen)
        self._dominator[below] = chosen
        keep_below(records, self._dominator, np.flatnonzero((self._dominator >= 0) & ~fresh))
        with np.errstate(invalid="ignore", over="ignore"):
            steps = roof - floor
        part_members(records, steps, members)
        below = below[np.argsort(self._dominator[below], kind="stable")]
        holders, starts = np.unique(self._dominator[below], return_index=True)
        part_holders(records, steps, holders, np.append(starts, len(below)), below, self.apart)
        return offers.clients[:0]
