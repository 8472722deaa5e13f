"""Plain and compiled: a site without numba says and keeps, to the last bit, what one with it does."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import InputError
from skytide.kernel import compiled
from skytide.protocols.filtering.client import ClientBlock
from skytide.protocols.filtering.messages import Message, Questions
from skytide.protocols.filtering.messages import encode as encoded
from skytide.protocols.filtering.methods import method_of
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import encode
from skytide.runtime.fragmented import FragmentSimulation
from tests.kernel import replayed
from tests.protocols.filtering.series import Step, series
from tests.protocols.filtering.test_hybrid import walks
from tests.protocols.fragmented.scenarios import EXTREMES, Scenario, scenarios, send, texts, walk

Play = Callable[[dict[str, Any]], Any]


class Elsewhere:
    """Another process that plays recordings."""

    def __init__(self, *options: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, replayed.__file__, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.modules: list[str] = self._line()

    def _line(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def play(self, recording: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        print(json.dumps(recording), file=self._process.stdin, flush=True)
        return self._line()

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def bare() -> Iterator[Elsewhere]:
    """A process in which numba, Arrow and others cannot be loaded."""
    elsewhere = Elsewhere("--refuse")
    yield elsewhere
    elsewhere.end()


def assert_same(bare: Elsewhere, recording: dict[str, Any]) -> None:
    here = json.loads(json.dumps(replayed.play(json.loads(json.dumps(recording)))))
    there = bare.play(recording)
    assert there == here


# -- what is loaded ----------------------------------------------------------------------------------------------------


def test_here_kernels_are_compiled() -> None:
    assert not compiled.PLAIN


def test_a_site_needs_numpy_alone_and_no_code_of_the_other_side(bare: Elsewhere) -> None:
    tops = {name.partition(".")[0] for name in bare.modules} - sys.stdlib_module_names
    assert {name for name in tops if not name.startswith("_")} <= {"numpy", "skytide", "sitecustomize"}
    mine = {name for name in bare.modules if name.startswith("skytide.")}
    kernels = {name for name in mine if name.startswith("skytide.kernel.")}
    assert kernels == {
        f"skytide.kernel.{name}"
        for name in ("compiled", "filtering_clients", "fragmented", "functions", "intervals", "relaxations")
    }
    assert not mine & {"skytide.tables", "skytide.batch", "skytide.monitors.storage_arrow"}


def test_what_is_installed_is_not_loaded_where_plain_code_is_wanted() -> None:
    wanted = Elsewhere(SKYTIDE_PLAIN="1")
    wanted.end()
    assert not {name.partition(".")[0] for name in wanted.modules} & set(replayed.REFUSED)


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain() -> ModuleType:
    """The module as it is where nothing is compiled."""
    spec = importlib.util.spec_from_file_location("plain_compiled", Path(str(compiled.__file__)))
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKYTIDE_PLAIN", "1")
        spec.loader.exec_module(made)
    return made


@compiled.njit(error_model="numpy")
def in_c(x: float, y: float) -> tuple[float, float, float, float]:
    return compiled.power(x, y), compiled.over(x, y), compiled.exp(x), compiled.log(x)


NUMBERS = st.one_of(
    st.floats(),
    st.sampled_from([*EXTREMES, -1.0, -2.0, 0.5, -0.5, 3.0, -3.0, 710.0, 2.0**53, -(2.0**53) - 2, math.nan]),
)


@settings(max_examples=1_000)
@given(x=NUMBERS, y=NUMBERS)
def test_plain_arithmetic_is_that_of_c(plain: ModuleType, x: float, y: float) -> None:
    found = plain.power(x, y), plain.over(x, y), plain.exp(x), plain.log(x)
    assert list(map(exact, found)) == list(map(exact, in_c(x, y)))


def exact(x: float) -> str:
    return float(x).hex()


POOL = st.one_of(
    st.integers(-2, 3).map(float), st.sampled_from(EXTREMES), st.floats(0.5, 4.0), st.floats(allow_nan=False)
)


@settings(max_examples=300)
@given(data=st.data(), query=texts())
def test_values_and_bounds_of_functions_are_the_same_to_the_last_bit(
    bare: Elsewhere, data: st.DataObject, query: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    minimize, maximize = query
    vectors = st.lists(POOL, min_size=(d := Functions(minimize, maximize).d), max_size=d)
    e, u = (data.draw(st.lists(vectors, min_size=6, max_size=6)) for _ in range(2))
    recording = {
        "protocol": "functions",
        "minimize": minimize,
        "maximize": maximize,
        "e": [*e, *e[:2]],
        "u": [*u, *e[:2]],
    }
    assert_same(bare, recording)


# -- objects in fragments ----------------------------------------------------------------------------------------------


class Recorder:
    """A block of sites that notes what it is given."""

    def __init__(self, simulation: FragmentSimulation) -> None:
        self._block, self._functions = simulation._block, simulation.functions
        self.steps: list[Any] = []
        simulation._block = self  # type: ignore[assignment]

    def join(self, time: int, sites: Any, objects: Any, vectors: Any, weights: Any) -> Any:
        self._note("join", time, sites, objects, vectors, None, 0, weights)
        return self._block.join(time, sites, objects, vectors, weights)

    def take(self, time: int, sites: Any, objects: Any, vectors: Any, gone: Any, start: int, weights: Any) -> Any:
        self._note("take", time, sites, objects, vectors, gone, start, weights)
        return self._block.take(time, sites, objects, vectors, gone, start, weights)

    def obey(self, *orders: Any) -> Any:
        shape = self._functions.d, self._functions.k
        self.steps.append(["obey", [data.hex() for order in orders for data in encode(order, *shape)]])
        return self._block.obey(*orders)

    def _note(self, *step: Any) -> None:
        self.steps.append([each.tolist() if isinstance(each, np.ndarray) else each for each in step])


def recorded(scenario: Scenario, method: str) -> dict[str, Any]:
    """What the sites of a scenario are given, row by row; up to an error, if there is one."""
    simulation = FragmentSimulation(scenario.functions, method, nulls=scenario.nulls, wire=True)
    paired, recorder = simulation._block._paired, Recorder(simulation)
    try:
        for _ in send(simulation, 0, scenario.start):
            pass
        for time, cut in enumerate(range(0, len(scenario.updates), 4), start=1):
            for _ in send(simulation, time, scenario.updates[cut : cut + 4]):
                pass
    except InputError:
        pass
    query = {"minimize": scenario.minimize, "maximize": scenario.maximize, "paired": paired}
    return {"protocol": "fragmented", **query, "steps": recorder.steps}


@settings(max_examples=100)
@given(scenario=scenarios(), method=st.sampled_from(["pivot", "direct"]))
def test_sites_of_fragments_say_and_keep_the_same(bare: Elsewhere, scenario: Scenario, method: str) -> None:
    assert_same(bare, recorded(scenario, method))


@pytest.mark.parametrize("method", ["pivot", "direct", "auto"])
@pytest.mark.parametrize("seed", range(8))
def test_sites_of_fragments_that_are_quiet_for_a_while_say_and_keep_the_same(
    bare: Elsewhere, seed: int, method: str
) -> None:
    assert_same(bare, recorded(walk(seed, 200), method))


# -- clients -----------------------------------------------------------------------------------------------------------


def recorded_clients(steps: list[Step], name: str) -> dict[str, Any]:
    """What clients are given: runs without a word where it can be, else timestamps, questions and orders."""
    d = steps[0].points.shape[1]
    method, block, noted = method_of(name, d, pairs=[("0.5", 900)], seed=3), ClientBlock(d), list[Any]()
    for time, step in enumerate(steps):
        said, quiet = list[Message](), 0
        if not len(step.gone):
            cuts = np.array([0, len(step.clients)])
            noted.append(["absorb", time, cuts.tolist(), step.clients.tolist(), step.points.tolist()])
            quiet = block.absorb(time, cuts, step.clients, step.points)
        if not quiet:
            noted.append(["observe", time, *(part.tolist() for part in step)])
            said = block.observe(time, *step)
        whom = method.server.begin(time, said)
        while len(whom):
            asked = Questions(time, whom)
            noted.append(["answer", encoded(asked, d).hex()])
            whom = method.server.answered(block.answer(asked))
        for order in method.server.settle():
            if len(order.clients):
                noted.append(["obey", encoded(order, d).hex()])
            block.obey(order)
    return {"protocol": "filtering", "dimensions": d, "steps": noted}


@settings(max_examples=150)
@given(steps=series(), name=st.sampled_from(["filter", "auto", "hybrid", "naive"]))
def test_clients_say_and_keep_the_same(bare: Elsewhere, steps: list[Step], name: str) -> None:
    assert_same(bare, recorded_clients(steps, name))


@pytest.mark.parametrize("name", ["filter", "auto", "hybrid"])
@pytest.mark.parametrize("grid", [False, True])
def test_clients_in_long_runs_say_and_keep_the_same(bare: Elsewhere, name: str, grid: bool) -> None:
    assert_same(bare, recorded_clients(walks(5, 150, grid=grid), name))


@pytest.mark.parametrize("steps", [1, 2, 63, 64, 1_000, 47_000, 65_536, 65_537, 10**6, 2**32 - 3])
def test_a_reach_fades_the_same_over_any_time(bare: Elsewhere, steps: int) -> None:
    noted = [
        ["observe", 0, [0], [[0.0]], []],
        ["observe", 1, [0], [[8.0]], []],
        ["observe", 1 + steps, [0], [[1e-3]], []],
    ]
    assert_same(bare, {"protocol": "filtering", "dimensions": 1, "steps": noted})
