"""Crashes, stops and a bad network between real processes: what is published as exact is exact, and it heals."""

from __future__ import annotations

import pytest
from benchmarks.network import faults


@pytest.mark.parametrize("protocol", faults.QUERIES)
def test_what_is_published_as_exact_is_exact_whatever_happens(protocol: str) -> None:
    (line,) = faults.run(seconds=8.0, seed=5, protocols=(protocol,))
    assert not line["problems"] and not line["wrong"], line
    assert line["right"] > 20 and line["events"] > 5 and sum(line["faults"].values()) > 3, line
