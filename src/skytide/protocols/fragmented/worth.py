"""What zones have cost each object and what they have saved, so that those which do not pay are given up for a while.

papa14 goes from zones to streaming by the estimate of a random walk. Where sites move together, as weather stations do
in the course of a day, a walk tells nothing: zones that should last for long are left at once, again and again. Here
the account itself decides: messages that zones have caused against updates that were not told. After a loss all of the
object is told, for twice as long each time.
"""

from __future__ import annotations

import numpy as np

from skytide.model import Floats, Integers
from skytide.protocols.arrays import grown
from skytide.protocols.fragmented.messages import Report, Violations
from skytide.protocols.stored import Contents

UNHEARD = 2.0
"""So often an object is given a zone without its sites having said anything before that counts as a loss."""
FIRST, LAST = 32, 1024
"""For so many updates of each site all is told after a loss: at first, and at most."""


class Worth:
    """An account for each object.

    >>> worth, one, vector = Worth(), np.array([0]), np.zeros((1, 1))
    >>> worth.reserve(1)
    >>> worth.give(one, np.array([10]))
    >>> worth.hear(Violations(0, one, one, vector, np.array([30]), vector))
    >>> worth.losing(0, 10), int(worth.wait[0])
    (False, 0)
    >>> for _ in range(40):
    ...     worth.give(one, np.array([10]))
    >>> worth.losing(0, 10), int(worth.wait[0])
    (True, 320)
    """

    def __init__(self) -> None:
        self.wait: Integers = np.zeros(0, np.int64)
        """So many updates are to be heard before zones are tried again."""
        self._spent: Floats = np.zeros(0)
        self._quiet: Floats = np.zeros(0)  # updates that sites kept to themselves until they spoke
        self._reports: Floats = np.zeros(0)

    def reserve(self, room: int) -> None:
        """See to it that there are so many objects at least. Amortised O(1) for each."""
        self.wait = grown(self.wait, room)
        self._spent, self._quiet, self._reports = (
            grown(column, room) for column in (self._spent, self._quiet, self._reports)
        )

    def hear(self, report: Report) -> None:
        """Sites say something. O(rows)."""
        if isinstance(report, Violations):
            np.add.at(self._spent, report.objects, 1.0)
            np.add.at(self._reports, report.objects, 1.0)
            np.add.at(self._quiet, report.objects, report.updates)

    def give(self, objects: Integers, messages: Integers) -> None:
        """The coordinator sends messages about objects, each named once. O(objects)."""
        self._spent[objects] += messages

    def losing(self, one: int, members: int) -> bool:
        """Whether zones of an object with so many sites have not paid; begins a new account where they have not.

        Sites that have not spoken are taken to have seen as many updates as those that have. O(1).
        """
        spent, reports = self._spent[one], self._reports[one]
        saved = self._quiet[one] * max(1.0, members / reports) if reports else UNHEARD * members
        loss = spent > saved
        if loss:
            self._spent[one] = self._quiet[one] = self._reports[one] = 0.0
            self.wait[one] = min(max(2 * self.wait[one], FIRST * members), LAST * members)
        elif reports and spent >= members:  # a gain, which counts less as time goes on
            self._spent[one], self._quiet[one], self._reports[one] = 0.5 * spent, 0.5 * self._quiet[one], 0.5 * reports
            self.wait[one] //= 2
        return bool(loss)

    def contents(self) -> Contents:
        """The accounts as they are stored."""
        return Contents(
            {"objects": len(self.wait)},
            {"wait": self.wait, "spent": self._spent, "quiet": self._quiet, "reports": self._reports},
        )

    @classmethod
    def restored(cls, contents: Contents) -> Worth:
        """The accounts that were stored."""
        made, room = cls(), contents.whole("objects")
        made.wait = contents.integers("wait", room, 0, 1 << 62)
        made._spent, made._quiet, made._reports = (contents.reals(name, room) for name in ("spent", "quiet", "reports"))
        return made
