"""How missing values compare under the policy `worst`: worse than every value, infinity included."""

from __future__ import annotations

import numpy as np

from skytide.model import Floats

# float64 has nothing above infinity. So the values above this one, infinity too, move down by one step to make room:
# this value and its upper neighbour become equal, and no other order changes.
SEAM = 1.2345678901234567e300


def with_worst(values: Floats) -> Floats:
    """Oriented values with NaN as the policy `worst` compares them: what is missing is worse than every value. O(n)."""
    return np.where(np.isnan(values), np.inf, make_room(values))


def without_worst(values: Floats) -> Floats:
    """What `with_worst` was given, up to the values that are equal there: NaN where a value is missing. O(n)."""
    with np.errstate(all="ignore"):
        risen = np.where(values > SEAM, np.nextafter(values, np.inf), values)
    return np.where(np.isposinf(values), np.nan, risen)


def make_room(values: Floats) -> Floats:
    """Oriented values, none of which is infinity any more, in the same order. O(n)."""
    with np.errstate(all="ignore"):
        return np.where(values > SEAM, np.nextafter(values, -np.inf), values)
