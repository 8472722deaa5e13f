"""Which faults come, without the processes that they befall."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from benchmarks.network import faults
from benchmarks.network.fault_world import World


async def _nothing() -> None:
    pass


@pytest.mark.parametrize("spared", [False, True])
def test_a_coordinator_that_is_spared_is_left_alone_and_sites_are_not(
    spared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def many() -> World:
        world = World(faults.QUERIES["filtering"], tmp_path, 1, secret=False)
        harmless = {name: (weight, _nothing) for name, (weight, _) in world.faults.items()}
        monkeypatch.setattr(World, "faults", harmless)
        for _ in range(300):
            await world.fault(spared=spared)
        return world

    counts = asyncio.run(many()).counts
    assert {"sites stopped", "sites killed, memory lost", "network split"} <= set(counts)
    assert ({"coordinator killed", "coordinator stopped"} <= set(counts)) is not spared
    assert any(name.startswith("coordinator") for name in counts) is not spared
