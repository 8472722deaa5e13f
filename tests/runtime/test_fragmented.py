"""Objects in fragments in simulation: after every single update the coordinator's skyline is that of the definition.

SKYTIDE_SCENARIOS=5000 in the environment draws so many scenarios for each method.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skytide.protocols.fragmented.methods import METHODS
from tests.protocols.fragmented.scenarios import Scenario, check, scenarios, walk

SCENARIOS = int(os.environ.get("SKYTIDE_SCENARIOS", "60"))
MANY = settings(max_examples=SCENARIOS, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("method", METHODS)
@MANY
@given(scenario=scenarios(), wire=st.booleans())
def test_the_skyline_is_exact_after_every_update(method: str, scenario: Scenario, wire: bool) -> None:
    check(scenario, method, wire=wire)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=max(SCENARIOS // 6, 1))
@given(seed=st.integers(0, 10**9), wire=st.booleans())
def test_the_skyline_is_exact_along_walks_that_sites_absorb(method: str, seed: int, wire: bool) -> None:
    check(walk(seed, 120), method, wire=wire)
