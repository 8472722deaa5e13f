"""Theorem 5.1 over 1,000 seeded runs: who is reported was in at least (theta - epsilon) s skylines, nearly always."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from skytide.model import Booleans, Integers
from skytide.protocols.filtering.answers import SampledAnswers
from skytide.protocols.filtering.schedule import Schedule, sampling_rate

RUNS = 1_000
S, THETA, EPSILON, DELTA = 400, Fraction("0.8"), 0.3, 0.05
TIMES = 2 * S
ENOUGH = int((THETA - Fraction("0.3")) * S)


def memberships() -> Booleans:
    """Records with one skyline too few in every window of s timestamps, in different rhythms."""
    phase = np.arange(TIMES) % S
    blocks = phase < ENOUGH - 1
    spread = (phase * (ENOUGH - 1)) // S != ((phase + 1) * (ENOUGH - 1)) // S
    drawn = np.isin(phase, np.random.default_rng(1).permutation(S)[: ENOUGH - 1])
    found = np.stack((blocks, spread, drawn), axis=1)
    assert all((found[at : at + S].sum(axis=0) == ENOUGH - 1).all() for at in range(0, S, 7))
    return found


def sampled_at(rate: float) -> Booleans:
    """Which timestamps are sampled, a row for each seed."""
    schedules = [Schedule(seed, rate) for seed in range(RUNS)]
    return np.array([[one.sampled(time) for time in range(TIMES)] for one in schedules])


def wrongly_reported(rate: float) -> float:
    """The largest share of runs, over records and times after s, in which a record is reported that must not be."""
    members, sampled = memberships(), sampled_at(rate)
    counts = np.cumsum(sampled[:, :, None] & members, axis=1)
    totals = np.cumsum(sampled, axis=1)
    inside: Integers = counts[:, S:] - counts[:, :-S]
    seen: Integers = (totals[:, S:] - totals[:, :-S])[:, :, None]
    reported: Booleans = (inside * THETA.denominator >= seen * THETA.numerator) & (seen > 0)
    return float(reported.mean(axis=0).max())


def test_at_the_rate_of_the_theorem_hardly_anybody_is_reported_who_must_not_be() -> None:
    rate = sampling_rate([(THETA, S)], EPSILON, DELTA)
    assert rate < 0.5
    assert wrongly_reported(rate) <= 2 * DELTA
    # The test would notice: at a small part of the rate the guarantee does not hold.
    assert wrongly_reported(rate / 16) > 2 * DELTA


def test_the_answers_of_runs_are_those_that_the_theorem_speaks_of() -> None:
    members, rate = memberships(), sampling_rate([(THETA, S)], EPSILON, DELTA)
    for seed in range(5):
        answers, schedule, now = SampledAnswers([(THETA, S)]), Schedule(seed, rate), set[int]()
        for time in range(TIMES):
            skyline = np.flatnonzero(members[time]) if schedule.sampled(time) else None
            for change in answers.observe(skyline, time):
                now ^= {change.id}
            if time >= S and time % 37 == 0:
                counted = [one for one in range(time + 1 - S, time + 1) if schedule.sampled(one)]
                shares = members[counted].sum(axis=0)
                enough = {one for one in range(3) if shares[one] >= THETA * len(counted)}
                assert now == (enough if counted else set())
