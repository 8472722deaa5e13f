"""Boxes that clients take unless they are told otherwise: what a server agrees to, it need not say.

A client that has left its box or was asked tells its point and its recent reach. From these and its old box it makes
itself another one, the offer, and so does the server. If the client hears nothing before the timestamp is over, its box
is the offer; an order replaces it. The method Auto accepts offers, the methods Filter and Hybrid always send orders.
Not in zhang09c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skytide.model import Floats, Integers
from skytide.protocols.filtering.messages import Kind, Reports

WIDER = 1.5
"""An offer goes beyond the reach by this share of its width: a client that keeps rising makes itself room by factors,
not by steps."""


class Offers(NamedTuple):
    """The boxes that some clients will have if they hear nothing."""

    clients: Integers
    low: Floats
    high: Floats


def offers_of(told: Reports, low: Floats, high: Floats) -> Offers:
    """The offers of clients with these boxes that have left them (FAILURE) or were asked (ANSWER). O(clients d).

    Who has got better takes the old box, the reach and more below it. Who has got worse, or was in somebody's way so
    that it was asked, begins anew at its point. Above there is no end, unless the old box had one and was left below:
    it may be a member's.

    >>> zero, one = np.zeros((1, 1)), np.ones((1, 1))
    >>> told = Reports(Kind.FAILURE, 7, np.array([0]), -one, -one, zero)
    >>> [corner.tolist() for corner in offers_of(told, zero, zero)[1:]]
    [[[-2.5]], [[inf]]]
    """
    points, floor, roof = told.points, told.floor, told.roof
    still = (low == high).all(axis=1)
    rising = ((points <= high).all(axis=1) | still) & (told.kind == Kind.FAILURE)
    with np.errstate(invalid="ignore", over="ignore"):
        more = WIDER * (roof - floor)
        below = np.where(np.isfinite(more) & np.isfinite(floor), floor - more, points)
    rising, open_ = rising[:, None], (~rising | still)[:, None]
    return Offers(
        told.clients,
        np.where(rising, np.minimum(below, low), points),
        np.where(open_, np.inf, np.maximum(roof, high)),
    )


def together(several: Sequence[Offers], dimensions: int) -> Offers:
    """Offers in one piece. O(clients d)."""
    empty = np.zeros((0, dimensions))
    return Offers(
        np.concatenate([np.zeros(0, np.int64), *(one.clients for one in several)]),
        np.concatenate([empty, *(one.low for one in several)]),
        np.concatenate([empty, *(one.high for one in several)]),
    )
