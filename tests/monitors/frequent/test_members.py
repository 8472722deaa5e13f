"""The difference of two answers against sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skytide.monitors.frequent.members import difference, members_of


@given(st.sets(st.integers(-3, 6)), st.lists(st.integers(-3, 6), max_size=12), st.booleans())
def test_the_difference_is_that_of_the_sets(before: set[int], after: list[int], whole: bool) -> None:
    form = np.int64 if whole else object
    known = members_of(np.array(sorted(before), dtype=form))
    found = difference(known, np.array(after, dtype=form), whole)
    assert sorted(found.entered.tolist()) == sorted(set(after) - before)
    assert sorted(found.left.tolist()) == sorted(before - set(after))
    assert sorted(found.members) == sorted(set(after))
    again = difference(found.members, np.array(sorted(set(after)), dtype=form), whole)
    assert len(again.entered) == len(again.left) == 0


def test_nobody_is_in_before_the_kind_of_ids_is_known() -> None:
    assert difference(np.zeros(0, np.int64), np.array(["a"], dtype=object), whole=False).entered.tolist() == ["a"]
    assert difference(set(), np.array([1]), whole=True).entered.tolist() == [1]
