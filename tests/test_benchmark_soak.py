"""A short soak: an executor, a worker and the driver are killed, and no change is lost or doubled.

The network beside it has tests of its own (`tests.runtime.network.test_faults`), and so has the query that follows it.
"""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.peers import soak
from benchmarks.soak import processes
from benchmarks.soak.judging import LONG, compared, of_memory
from benchmarks.soak.memory import JVM_BEYOND_HEAP, LEAST, MIB, STEEPEST, WARM_UP, Memory
from benchmarks.soak.playing import Outcome
from benchmarks.soak.processes import Process

from tests.spark.small import JAVA

pytest.importorskip("pyspark")


def test_nothing_is_lost_or_doubled_while_everything_fails() -> None:
    outcome, streams, problems = soak.run(
        2.0, seed=3, rate=2_000.0, pause=1.0, master="local-cluster[1,1,1024]", java=JAVA, network=False
    )
    assert not problems
    assert all(one.equal and one.found > 20 for one in streams), streams
    assert {"driver killed", "executor killed"} <= set(outcome.faults) and outcome.lives >= 2
    assert {processes.DRIVER, processes.EXECUTOR, processes.WORKER} <= {one.role for one in outcome.memory}
    assert "| executor killed |" in "\n".join(soak.tables(outcome, streams))


class Sampled(Process):
    """A process whose memory a test says."""

    def resident(self) -> int:
        return sizes[self]


sizes: dict[Process, int] = {}


def memory_of(role: str, mib_per_minute: float, seconds: float, base: float = 100.0) -> Memory:
    memory = Memory({processes.DRIVER_JVM: 900.0, processes.EXECUTOR: 500.0})
    process = Sampled(1, 0, 0, role)
    for second in range(int(seconds)):
        # What is there at first does not count.
        grown = 50.0 if second < WARM_UP / 2 else mib_per_minute * second / 60
        sizes[process] = int((base + grown) * MIB)
        memory.sample(float(second), [process])
    return memory


@pytest.mark.parametrize(("slope", "flat"), [(0.0, True), (STEEPEST / 2, True), (STEEPEST * 2, False)])
def test_memory_that_grows_is_found(slope: float, flat: bool) -> None:
    (verdict,) = memory_of(processes.DRIVER, slope, WARM_UP + LEAST + 10).verdicts()
    assert verdict.flat is flat and verdict.slope == pytest.approx(slope, abs=1e-6)


def test_a_short_life_is_not_judged_which_is_a_problem_of_a_long_run() -> None:
    verdicts = memory_of(processes.WORKER, 100.0, LEAST).verdicts()
    assert verdicts[0].slope is None and verdicts[0].flat is None
    assert of_memory(Outcome(seconds=LONG - 1, memory=verdicts)) == []
    assert of_memory(Outcome(seconds=LONG, memory=verdicts)) == ["memory of Python worker was not judged"]
    assert "| not judged |" in soak.tables(Outcome(memory=verdicts), [])[-1]
    steep = memory_of(processes.WORKER, 100.0, WARM_UP + LEAST + 10).verdicts()
    assert of_memory(Outcome(memory=steep)) == ["memory of Python worker is not flat"]


def test_a_jvm_is_judged_by_its_most() -> None:
    (jvm,) = memory_of(processes.EXECUTOR, 0.0, 10, base=400 + JVM_BEYOND_HEAP).verdicts()
    assert jvm.flat
    (jvm,) = memory_of(processes.EXECUTOR, 0.0, 10, base=501 + JVM_BEYOND_HEAP).verdicts()
    assert not jvm.flat


def test_a_change_that_is_missing_or_there_twice_makes_streams_unequal() -> None:
    wanted = Counter({(1, "+", 5): 1, (2, "-", 5): 1})
    assert compared("x", wanted, Counter(wanted)).equal
    assert not compared("x", wanted, wanted - Counter({(1, "+", 5): 1})).equal
    assert not compared("x", wanted, wanted + Counter({(1, "+", 5): 1})).equal
    assert not compared("x", Counter(), Counter()).equal
