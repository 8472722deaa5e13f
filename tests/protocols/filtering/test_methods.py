"""What all methods owe: exact ones every skyline, sampled ones the sampled skylines, and silence where it is due."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError
from skytide.monitors.frequent.pairs import pairs_of
from skytide.protocols.filtering.client import ClientBlock
from skytide.protocols.filtering.messages import Kind, Message, Releases, Schedules
from skytide.protocols.filtering.methods import EXACT, METHODS, SAMPLED, method_of
from skytide.protocols.filtering.schedule import Schedule, sampling_rate
from tests.protocols.filtering.series import Step, series, watch

PAIRS = [("0.5", 900)]
NONE = np.zeros(0, np.int64)


@settings(max_examples=60, deadline=None)
@given(steps=series(), name=st.sampled_from(EXACT))
def test_exact_methods_know_every_skyline(steps: list[Step], name: str) -> None:
    for seen in watch(method_of(name, steps[0].points.shape[1]).server, steps):
        assert seen.skyline is not None and seen.skyline.tolist() == seen.truth


@settings(max_examples=100, deadline=None)
@given(steps=series(most=20), name=st.sampled_from(SAMPLED), seed=st.integers(0, 2**64 - 1))
def test_sampled_methods_know_the_skylines_of_sampled_timestamps_and_no_others(
    steps: list[Step], name: str, seed: int
) -> None:
    made = method_of(name, steps[0].points.shape[1], pairs=PAIRS, seed=seed)
    schedule = Schedule(seed, sampling_rate(pairs_of(None, None, PAIRS), 0.2, 0.1))
    assert 0.2 < schedule.rate < 0.5
    for seen in watch(made.server, steps):
        sampled = schedule.sampled(seen.time)
        assert (None if seen.skyline is None else seen.skyline.tolist()) == (seen.truth if sampled else None)


@settings(max_examples=60, deadline=None)
@given(steps=series())
def test_naive_clients_tell_every_move_once_and_hear_nothing(steps: list[Step]) -> None:
    points: dict[int, tuple[float, ...]] = {}
    for seen in watch(method_of("naive", steps[0].points.shape[1]).server, steps):
        before, points = points, seen.points
        gone = set(steps[seen.time].gone.tolist())
        moved = sorted(one for one in points if one in before and one not in gone and points[one] != before[one])
        new = sorted(one for one in points if one not in before or one in gone)
        assert heard(seen.said, Kind.UPDATE) == moved
        assert heard(seen.said, Kind.INSERT) == new
        assert heard(seen.said, Kind.DELETE) == sorted(gone)
        assert not seen.asked and not seen.orders


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("seed", range(2))
def test_a_client_that_never_moves_says_nothing_after_its_first_report(name: str, seed: int) -> None:
    rng, n, still = np.random.default_rng(seed), 30, 12
    home = np.round(rng.random((n, 2)) * 5) / 5  # equal points among them
    steps = [Step(np.arange(n), home, NONE)]
    for time in range(1, 120):
        scale = 0.3 if time % 40 < 20 else 0.01
        moves = home[still:] + rng.normal(0, scale, (n - still, 2))
        # Quiet clients are named too, where they are.
        steps.append(Step(np.arange(n), np.concatenate((home[:still], moves)), NONE))
    for seen in watch(method_of(name, 2, pairs=PAIRS, seed=seed).server, steps):
        said = [one for block in seen.said for one in block.clients.tolist()]
        asked = [one for block in seen.asked for one in block.clients.tolist()]
        assert seen.time == 0 or min([*said, *asked], default=n) >= still


def heard(said: list[Message], kind: Kind) -> list[int]:
    return sorted(one for block in said if block.kind == kind for one in block.clients.tolist())


def test_a_client_that_comes_late_is_sampled_with_the_others() -> None:
    schedule, early, late = Schedule(9, 0.3), ClientBlock(1), ClientBlock(1)
    early.observe(0, np.array([0]), np.array([[0.0]]), NONE)
    early.obey(Schedules(0, np.array([0]), schedule))
    told: list[list[int]] = [[], []]
    for time in range(1, 400):
        point = np.array([[float(time)]])
        if time == 200:
            late.observe(time, np.array([0]), point, NONE)
            late.obey(Schedules(time, np.array([0]), schedule))
        for which, block in enumerate((early, late)):
            if (which == 0 or time > 200) and block.observe(time, np.array([0]), point, NONE):
                told[which].append(time)
    assert [time for time in told[0] if time > 200] == told[1] and 30 < len(told[1]) < 90


def test_a_client_that_has_not_moved_since_it_last_told_says_nothing_when_sampled() -> None:
    block, always = ClientBlock(1), Schedule(1, 1.0)
    block.observe(0, np.array([0]), np.array([[0.0]]), NONE)
    block.obey(Schedules(0, np.array([0]), always))
    said = [block.observe(time, np.array([0]), np.array([[x]]), NONE) for time, x in ((1, 0.0), (2, 1.0), (3, 1.0))]
    assert [[one.kind.name for one in each] for each in said] == [[], ["SAMPLE"], []]


def test_a_client_that_is_released_tells_every_move_again() -> None:
    block = ClientBlock(1)
    block.observe(0, np.array([0]), np.array([[0.0]]), NONE)
    block.obey(Schedules(0, np.array([0]), Schedule(1, 1e-9)))
    assert not block.observe(1, np.array([0]), np.array([[1.0]]), NONE)
    block.obey(Releases(1, np.array([0])))
    assert block.observe(2, np.array([0]), np.array([[2.0]]), NONE)[0].kind == Kind.UPDATE


@pytest.mark.parametrize(
    ("name", "options"),
    [("best", {}), ("sampling", {"epsilon": 0.0}), ("sampling", {"seed": -1}), ("filter", {"pairs": [(2, 5)]})],
)
def test_methods_that_make_no_sense_are_refused(name: str, options: dict[str, float]) -> None:
    with pytest.raises(OptionError):
        method_of(name, 2, **options)  # type: ignore[arg-type]
