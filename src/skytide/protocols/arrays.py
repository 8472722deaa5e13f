"""Arrays with a row for each client, which grow as clients come."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.model import Integers


def room_for(*numbers: Integers) -> int:
    """How many rows these clients need: one more than the largest number.

    >>> room_for(np.array([3, 1]), np.array([], int))
    4
    """
    return max(int(each.max(initial=-1)) for each in numbers) + 1


def grown(array: npt.NDArray[Any], room: int, fill: int = 0) -> npt.NDArray[Any]:
    """The array with at least so many rows, and twice as many as before where there were fewer. Amortised O(1) a row.

    >>> grown(np.array([1, 2]), 3, fill=7).tolist()
    [1, 2, 7, 7]
    """
    before = len(array)
    if room <= before:
        return array
    more = max(room, 2 * before) - before
    return np.concatenate((array, np.full((more, *array.shape[1:]), fill, array.dtype)))
