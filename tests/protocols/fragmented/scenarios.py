"""Random scenarios of objects in fragments, and what the reference says after each update."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from skytide.errors import InputError, SkytideError
from skytide.expressions import parse
from skytide.model import MissingPolicy
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.tuning import Tuning
from skytide.reference.functional import Local, expression, functional_skyline
from skytide.runtime.fragmented import FragmentSimulation
from tests.protocols.fragmented.expressions import SAMPLES, drawn_text

EXTREMES = (0.0, -0.0, 1.0, 5e-324, 1e-300, 1e300, 1.797e308, -1.797e308, math.inf, -math.inf)
WEIGHTS = (1.0, 2.0, 0.5, 3.0, 0.1)
USUAL = Tuning()


class Row(NamedTuple):
    """One update: a site's new local values of an object, or none where the object leaves it."""

    site: int
    one: int
    values: tuple[float, ...] | None
    weight: float


class Scenario(NamedTuple):
    """A query, the rows at the start (each pair of site and object once) and the updates after it."""

    minimize: tuple[str, ...]
    maximize: tuple[str, ...]
    nulls: MissingPolicy
    start: list[Row]
    updates: list[Row]

    @property
    def functions(self) -> Functions:
        return Functions(self.minimize, self.maximize)


class Truth:
    """The definition: local vectors by object and site, and the reference's answer to them."""

    def __init__(self, scenario: Scenario) -> None:
        functions = scenario.functions
        self._columns, self._nulls = functions.columns, scenario.nulls
        self._functions = [expression(parse(text)) for text in (*functions.minimize, *functions.maximize)]
        self._signs = [int(sign) for sign in functions.signs]
        self._local: dict[int, dict[int, tuple[Local, float]]] = {}

    def take(self, row: Row) -> None:
        at_sites = self._local.setdefault(row.one, {})
        if row.values is None:
            at_sites.pop(row.site, None)
        else:
            weight = at_sites[row.site][1] if row.site in at_sites else row.weight
            at_sites[row.site] = dict(zip(self._columns, row.values, strict=True)), weight

    def answer(self) -> set[int] | None:
        """The f-skyline; None where a function has no value, which the policy forbids."""
        here = {one: list(at_sites.values()) for one, at_sites in self._local.items() if at_sites}
        objects = {one: [vector for vector, _ in cells] for one, cells in here.items()}
        weights = {one: [weight for _, weight in cells] for one, cells in here.items()}
        try:
            return functional_skyline(objects, self._functions, signs=self._signs, nulls=self._nulls, weights=weights)
        except InputError:
            return None


def send(simulation: FragmentSimulation, time: int, rows: list[Row]) -> Iterator[int]:
    """Let rows come; see `FragmentSimulation.steps`."""
    width = len(simulation.functions.columns)
    values = [row.values if row.values is not None else (math.nan,) * width for row in rows]
    gone = np.array([row.values is None for row in rows])
    return simulation.steps(
        time,
        np.array([row.site for row in rows], np.int64),
        np.array([row.one for row in rows], np.int64),
        np.array(values, np.float64).reshape(-1, width),
        gone if gone.any() else None,
        np.array([row.weight for row in rows]),
    )


def check(scenario: Scenario, method: str, *, wire: bool = False, tuning: Tuning = USUAL) -> FragmentSimulation:
    """After every single update the coordinator's skyline is the reference's, and so are its errors."""
    simulation = FragmentSimulation(scenario.functions, method, nulls=scenario.nulls, wire=wire, tuning=tuning)
    truth = Truth(scenario)
    for time, rows in enumerate([scenario.start, *([row] for row in scenario.updates)]):
        for row in rows:
            truth.take(row)
        wanted = truth.answer()
        try:
            for _ in send(simulation, time, rows):
                pass
        except InputError as error:
            assert wanted is None and "a function has no value" in str(error), (time, error)
            return simulation
        assert wanted is not None, (time, "an error was expected")
        found = set(simulation.skyline().tolist())
        assert found == wanted, (time, found, wanted)
    return simulation


# -- drawn by hypothesis -----------------------------------------------------------------------------------------------


TUNINGS = st.builds(Tuning, *[st.booleans()] * 6, zones=st.just(True), apart=st.floats(0, 1))
"""All that a coordinator may be told to do or not to do."""


@st.composite
def texts(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Functions to minimise and to maximise: plain columns, samples of every kind, and random trees."""
    one = st.one_of(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(SAMPLES),
        st.builds(lambda seed: drawn_text(random.Random(seed), 3), st.integers(0, 10**6)),
    )
    found = draw(st.lists(one, min_size=1, max_size=3, unique=True))
    cut = draw(st.integers(0, len(found)))
    minimize, maximize = tuple(found[:cut]), tuple(found[cut:])
    try:
        Functions(minimize, maximize)
    except SkytideError:
        return ("a",), ("b",)
    return minimize, maximize


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Small grids, so that ties are the rule, or extreme values, or steps from where a cell was."""
    minimize, maximize = draw(texts())
    nulls: MissingPolicy = draw(st.sampled_from(["error", "drop", "drop", "worst"]))
    columns = Functions(minimize, maximize).columns
    sites, objects = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    pool: st.SearchStrategy[float] = draw(
        st.sampled_from(
            [
                st.integers(0, 3).map(float),
                st.integers(1, 3).map(float),
                st.integers(-2, 2).map(float),
                st.integers(0, 30).map(lambda tenths: tenths / 10),
                st.sampled_from(EXTREMES),
                st.floats(0.5, 4.0),
            ]
        )
    )
    if nulls == "worst" and draw(st.booleans()):
        pool = st.one_of(pool, pool, pool, st.just(math.nan))
    vector = st.tuples(*([pool] * len(columns)))
    vector = vector.filter(lambda values: not all(map(math.isnan, values)))
    weight = draw(st.sampled_from([st.just(1.0), st.sampled_from(WEIGHTS)]))
    row = st.builds(Row, st.integers(0, sites - 1), st.integers(0, objects - 1), vector, weight)
    pairs = [(site, one) for site in range(sites) for one in range(objects)]
    everywhere = draw(st.booleans())
    chosen = pairs if everywhere else draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1))
    if draw(st.booleans()):
        home = draw(st.lists(vector, min_size=objects, max_size=objects))
        start = [Row(site, one, home[one], draw(weight)) for site, one in chosen]
    else:
        start = [Row(site, one, draw(vector), draw(weight)) for site, one in chosen]
    leave = st.builds(lambda row: row._replace(values=None), row)
    updates = draw(st.lists(st.one_of(row, row, row, row, row, leave), max_size=16))
    return Scenario(minimize, maximize, nulls, start, updates)


# -- long walks --------------------------------------------------------------------------------------------------------


def walk(seed: int, length: int) -> Scenario:
    """Objects that drift at their sites by small steps, so that zones and pairs hold for a while; some come and go."""
    source = np.random.default_rng(seed)
    kinds = ["a", "b", "2 * a - b", "norm(a, b)", "distance(a, b, c, d)", "var(a)", "a * b", "a / b", "exp(a - b)"]
    kinds += ["sqrt(a) + b", "log(a) - c", "max(a, b)", "min(b, c) + a", "a ** 3 - b", "sqrt(var(b) + 1)", "1 / a + c"]
    chosen = [kinds[place] for place in source.permutation(len(kinds))[: source.integers(1, 4)]]
    cut = int(source.integers(0, len(chosen) + 1))
    minimize, maximize = tuple(chosen[:cut]), tuple(chosen[cut:])
    columns = len(Functions(minimize, maximize).columns)
    objects, sites = int(source.integers(2, 9)), int(source.integers(1, 12))
    home = source.uniform(1.0, 3.0, (objects, columns))
    scale, leaving = source.choice([0.003, 0.03, 0.3]), source.choice([0.0, 0.03])
    weighted, present = source.random() < 0.3, source.choice([0.6, 1.0])
    local: dict[tuple[int, int], tuple[float, ...]] = {}

    def row(site: int, one: int, values: tuple[float, ...] | None) -> Row:
        if values is None:
            local.pop((site, one), None)
        else:
            local[site, one] = values
        return Row(site, one, values, float(source.choice(WEIGHTS)) if weighted else 1.0)

    pairs = [(site, one) for site in range(sites) for one in range(objects) if source.random() < present] or [(0, 0)]
    start = [row(site, one, tuple(home[one].tolist())) for site, one in pairs]
    updates = []
    for _ in range(length):
        site, one = int(source.integers(sites)), int(source.integers(objects))
        if source.random() < leaving:
            updates.append(row(site, one, None))
        elif leaving or (site, one) in local:
            before = np.array(local.get((site, one), home[one]))
            updates.append(row(site, one, tuple((before * (1 + scale * source.uniform(-1, 1, columns))).tolist())))
    return Scenario(minimize, maximize, "drop", start, updates)
