"""What `skytide verify` holds runs against: the oracles' answers, and every change of a stream is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.cli._verify import comparing
from skytide.cli._verify.comparing import Pace, Stream, compare, told_apart
from skytide.cli._verify.definition import (
    Members,
    Places,
    exact_probability,
    most_probable,
    probabilities,
    reaching,
    undominated,
)
from skytide.cli._verify.populations import Counted, Fragments, Living, Population, Uncertain, Updates
from skytide.cli._verify.rows import Question, Rows, Unit
from skytide.expressions import parse
from skytide.reference import uncertain
from skytide.reference.batch import skyline, worst_for_missing
from skytide.reference.frequent import frequent_changes
from skytide.reference.functional import expression, fragment_changes
from skytide.reference.snapshots import snapshot_answers, snapshot_changes
from skytide.reference.window import window_changes

CELLS = st.one_of(st.integers(0, 3).map(float), st.sampled_from([np.inf, -np.inf, -0.0, 1.797e308, 5e-324]))
GAPS = st.one_of(CELLS, st.just(float("nan")))


@settings(max_examples=60)
@given(st.lists(st.tuples(GAPS, GAPS, GAPS), min_size=1, max_size=40), st.integers(1, 8))
def test_blocks_find_what_no_row_dominates(rows: list[tuple[float, ...]], block: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("skytide.cli._verify.definition._BLOCK", block)
        patched.setattr("skytide.cli._verify.definition.FEW", 0)
        assert undominated(np.array(rows)).tolist() == skyline(worst_for_missing(rows))


CHANCES = st.integers(1, 4).map(lambda quarter: quarter / 4)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.tuples(CELLS, CELLS, CHANCES), min_size=1, max_size=2), min_size=1, max_size=8),
    st.sampled_from([0.125, 0.25, 0.5, 0.3, 1.0]),
    st.integers(1, 3),
)
def test_probabilities_reach_thresholds_as_in_the_oracle(objects: Any, threshold: float, k: int) -> None:
    halved = [[(x, y, chance / len(one)) for x, y, chance in one] for one in objects]
    places = Places(
        np.array([(x, y) for one in halved for x, y, _ in one]),
        np.array([chance for one in halved for *_, chance in one]),
        np.repeat(np.arange(len(halved)), [len(one) for one in halved]),
    )
    there = [[uncertain.Instance((x, y), Fraction(chance)) for x, y, chance in one] for one in halved]
    true = [uncertain.probability(there, which) for which in range(len(there))]
    assert [exact_probability(places, which) for which in range(len(there))] == true
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("skytide.cli._verify.definition._BLOCK", 2)
        chances = probabilities(places, threshold)
    expected = uncertain.at_least(there, threshold)
    assert all(abs(chances[one] - float(true[one])) < 1e-12 for one in expected)
    must, may = reaching(places, chances, threshold, exact=True)
    assert must.tolist() == expected and not len(may)
    certain, perhaps = (set(part.tolist()) for part in reaching(places, chances, threshold, exact=False))
    assert certain <= set(expected) <= certain | perhaps
    first, doubtful = (set(part.tolist()) for part in most_probable(chances, (must, may), k))
    assert first <= set(uncertain.most_probable(there, threshold, k)) <= first | doubtful


# -- streams -----------------------------------------------------------------------------------------------------------


def rows_of(values: Sequence[Sequence[Any]], ids: Sequence[Any], times: Any = None, **more: Any) -> Rows:
    matrix = np.array([[np.nan if value is None else value for value in row] for row in values])
    none: Any = np.zeros(0, np.int64)
    groups = np.array(more.pop("groups", [0] * len(ids)))
    until, unit, total = more.pop("until", None), Unit(None, []), len(ids)
    stamps = None if times is None else np.array(times)
    return Rows(matrix, list(ids), stamps, groups, np.arange(total), more, none, none, unit, until, total, [("", 1, 0)])


def question(kind: str, **options: Any) -> Question:
    common = {"minimize": ("x",), "maximize": ("y",), "by": (), "nulls": "worst", "top": None, "known": ("x", "y")}
    return Question(kind, {**common, **options}, ("x", "y"))


def stream_of(changes: Sequence[Any]) -> Stream:
    members = [(change[2], change[3]) if len(change) > 3 else change[2] for change in changes]
    signs = np.array([1 if change[1] == "+" else -1 for change in changes], np.int64)
    return Stream(np.array([change[0] for change in changes]), signs, members)


def mutated(draw: st.DrawFn, changes: list[Any]) -> list[Any]:
    """The changes with a fault, or none."""
    found = list(changes)
    if not found:
        return found
    at = draw(st.integers(0, len(found) - 1))
    one = found[at]
    faults: list[Callable[[], Any]] = [
        lambda: None,
        lambda: found.pop(at),
        lambda: found.insert(at, one),
        lambda: found.__setitem__(at, (one[0] + draw(st.sampled_from([-1, 1])), *one[1:])),
        lambda: found.__setitem__(at, (one[0], "-" if one[1] == "+" else "+", *one[2:])),
        lambda: found.__setitem__(at, (*one[:2], draw(st.sampled_from([change[2] for change in found])), *one[3:])),
        lambda: found.append(found.pop(at)),
        lambda: found.extend([(found[-1][0] + 1, sign, *one[2:]) for sign in "-+"]),
    ]
    draw(st.sampled_from(faults))()
    return found


def judged(population: Population, changes: list[Any]) -> bool:
    found = compare(population, [stream_of(changes)], Pace(60.0))
    assert found.findings[0] is not None or found.checked == found.instants
    return found.findings[0] is None


def same(one: list[Any], other: list[Any]) -> bool:
    return [tuple(change) for change in one] == [tuple(change) for change in other]


@st.composite
def drawn(draw: st.DrawFn, cells: st.SearchStrategy[Any] = CELLS) -> tuple[list[Any], list[int], list[int]]:
    """Rows of two values, times in order, and groups."""
    rows = draw(st.lists(st.tuples(cells, cells), min_size=1, max_size=12))
    steps = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    groups = draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows)))
    return rows, np.cumsum(steps).tolist(), groups


@settings(max_examples=120)
@given(st.data(), drawn(GAPS), st.integers(1, 5), st.booleans())
def test_the_stream_of_a_window_passes_and_no_other_one(data: Any, given: Any, length: int, counted: bool) -> None:
    rows, times, groups = given
    ids = [f"r{place}" for place in range(len(rows))]
    span: dict[str, Any] = {"count": length} if counted else {"duration": length, "until": times[-1] + length}
    oriented = worst_for_missing([(x, -y) for x, y in rows])
    true: list[Any] = window_changes(oriented, None if counted else times, ids, by=groups, **span)
    told = mutated(data.draw, true)
    asked = question("window", **({"count": length} if counted else {"duration": str(length)}))
    until = {} if counted else {"until": span["until"]}
    population = Living(asked, rows_of(rows, ids, None if counted else times, groups=groups, **until))
    assert judged(population, told) == same(true, told)


@settings(max_examples=60)
@given(st.data(), drawn(), st.integers(1, 5), st.sampled_from([None, 2]))
def test_the_stream_of_uncertain_rows_passes_and_no_other_one(data: Any, given: Any, length: int, top: Any) -> None:
    rows, times, groups = given
    chances = data.draw(st.lists(CHANCES, min_size=len(rows), max_size=len(rows)))
    objects = uncertain.single([(x, -y) for x, y in rows], chances)
    options: dict[str, Any] = {"thresholds": [0.25, 0.5], "top": top}
    ids = [f"r{place}" for place in range(len(rows))]
    true: list[Any] = uncertain.uncertain_changes(objects, times, ids, duration=length, by=groups, **options)
    told = mutated(data.draw, true)
    taken = rows_of(rows, ids, times, groups=groups, chances=np.array(chances))
    population = Uncertain(question("uncertain", duration=str(length), **options), taken)
    if top is None:  # else the last digits may decide
        assert judged(population, told) == same(true, told)
    elif same(true, told):
        assert judged(population, told)


@settings(max_examples=80)
@given(st.data(), drawn(GAPS), st.sampled_from(["set", "add", "multiply", "average"]))
def test_the_stream_of_snapshots_passes_and_no_other_one(data: Any, given: Any, operation: str) -> None:
    rows, times, groups = given
    ids = data.draw(st.lists(st.sampled_from("abcd"), min_size=len(rows), max_size=len(rows)))
    options: dict[str, Any] = {"operation": operation, "signs": [1, -1], "by": groups, "nulls": "worst"}
    true: list[Any] = snapshot_changes(times, ids, rows, **options)
    told = mutated(data.draw, true)
    taken = rows_of(rows, ids, times, groups=groups)
    assert judged(Updates(question("snapshots", op=operation), taken), told) == same(true, told)
    answers = snapshot_answers(times, ids, rows, **options)
    counts: list[Any] = frequent_changes(answers, "0.5", 3)
    told = mutated(data.draw, counts)
    instants, skylines = np.array([time for time, _ in answers]), [answer for _, answer in answers]
    assert judged(Counted(instants, skylines, Fraction("0.5"), 3), told) == same(counts, told)


@settings(max_examples=60)
@given(st.data(), drawn(GAPS))
def test_the_stream_of_fragments_passes_and_no_other_one(data: Any, given: Any) -> None:
    rows, times, groups = given
    ids, sites = (
        data.draw(st.lists(st.sampled_from(names), min_size=len(rows), max_size=len(rows))) for names in ("abc", "st")
    )
    texts = ("x", "norm(x, y)")
    functions = [expression(parse(text)) for text in texts]
    vectors = [{"x": x, "y": y} for x, y in rows]
    true: list[Any] = fragment_changes(times, sites, ids, vectors, functions, signs=[1, -1], nulls="worst", by=groups)
    told = mutated(data.draw, true)
    asked = question("fragments", minimize=texts[:1], maximize=texts[1:])
    population = Fragments(asked, rows_of(rows, ids, times, groups=groups, sites=sites))
    assert judged(population, told) == same(true, told)


# -- streams that are not what they must be ----------------------------------------------------------------------------


class Said:
    """A population whose answers are given: who must be there, and who may."""

    def __init__(self, *answers: tuple[str, str]) -> None:
        self.instants = np.arange(1, len(answers) + 1)
        self._answers, self._number, self.asked = answers, 0, list[int]()

    def step(self, number: int) -> list[None]:
        self._number = number
        return [None]

    def answer(self, group: Any) -> Members:
        self.asked.append(self._number + 1)
        must, may = self._answers[self._number]
        return Members(set(must), set(may))


def told(text: str) -> Stream:
    """Changes as words: 1+a is a that enters at 1."""
    return stream_of([(int(word[0]), word[1], word[2]) for word in text.split()])


def wrong_at(findings: list[Any]) -> list[Any]:
    return [None if finding is None else finding.time for finding in findings]


def test_who_leaves_and_enters_at_one_instant_is_no_net_difference() -> None:
    said = [("a", ""), ("a", "")]
    found = compare(Said(*said), [told("1+a"), told("1+a 2-a 2+a")], Pace(60.0)).findings
    assert wrong_at(found) == [None, 2] and found[1] is not None and found[1].wrong == ["a"]


def test_a_change_without_a_time_is_seen() -> None:
    stream = Stream(np.array([1.0, np.nan]), np.array([1, 1]), ["a", "b"])
    assert wrong_at(compare(Said(("a", ""), ("ab", "")), [stream], Pace(60.0)).findings) != [None]


def test_of_several_streams_each_wrong_one_is_found_where_it_first_differs() -> None:
    said = Said(("a", ""), ("ab", ""), ("ab", ""), ("abc", ""), ("abc", ""))
    streams = [told("1+a 2+b 4+c"), told("1+a 3+b 4+c"), told("1+a 2+b 5+c"), told("1+a 2+b 4+c 4+d")]
    assert wrong_at(told_apart(said, streams)) == [None, 2, 4, 4]
    assert said.asked == [2, 4]


def test_where_the_last_digits_decide_later_differences_are_still_looked_at() -> None:
    streams = [told("1+a 2+b 3-b"), told("1+a 3+c"), told("1+a 4+c")]
    assert wrong_at(told_apart(Said(("a", ""), ("a", "b"), ("a", ""), ("a", "c")), streams)) == [None, 3, None]
    # The same difference as before is no longer allowed.
    assert wrong_at(told_apart(Said(("a", ""), ("a", "b"), ("ab", "")), [told("1+a 2+b"), told("1+a")])) == [None, 3]


def test_streams_that_differ_though_no_answer_does_are_both_in_doubt() -> None:
    found = told_apart(Said(("a", ""), ("a", "")), [told("1+a"), told("1+a 9+b")])
    assert all(one is not None and "differ from each other" in one.reason for one in found)


class Sometimes(Pace):
    """Looks where it was drawn to look."""

    def __init__(self, wanted: list[bool]) -> None:
        super().__init__(0.0)
        self._wanted = wanted

    def wants(self, number: int, total: int) -> bool:
        return self._wanted[number % len(self._wanted)]


@settings(max_examples=120)
@given(drawn(GAPS), st.integers(1, 9), st.integers(0, 3), st.lists(st.booleans(), min_size=1, max_size=20))
def test_wherever_one_looks_a_right_stream_of_a_window_passes(
    given: Any, length: int, many: int, wanted: list[bool]
) -> None:
    rows, times, groups = given
    ids = [f"r{place}" for place in range(len(rows))]
    true = window_changes(worst_for_missing([(x, -y) for x, y in rows]), times, ids, by=groups, duration=length)
    population = Living(question("window", duration=str(length)), rows_of(rows, ids, times, groups=groups))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("skytide.cli._verify.witnesses._MANY", many)
        assert compare(population, [stream_of(true)], Sometimes(wanted)).findings == [None]


# -- what is looked at -------------------------------------------------------------------------------------------------


def test_with_little_time_stretches_are_looked_at_all_over_the_run() -> None:
    now = [0.0]
    pace, total = Pace(1.0, lambda: now[0]), 10_000
    looked = []
    for number in range(total):
        if pace.wants(number, total):
            looked.append(number)
            with pace:
                now[0] += 0.001
    assert looked[0] == 0 and looked[-1] == total - 1
    assert 900 < len(looked) < 1200
    assert all(any(start <= number < start + 2_000 for number in looked) for start in range(0, total, 2_000))
    runs = np.split(looked, np.flatnonzero(np.diff(looked) > 1) + 1)
    assert np.mean([len(run) for run in runs]) > comparing.STRETCH / 2


def test_no_stretch_takes_much_more_than_the_time_there_is() -> None:
    now = [0.0]
    pace, total = Pace(1.0, lambda: now[0]), 10_000
    for number in range(total):
        if pace.wants(number, total):
            with pace:
                now[0] += 0.1
    assert now[0] < 1.5


def test_with_enough_time_everything_is_looked_at() -> None:
    now = [0.0]
    pace = Pace(1.0, lambda: now[0])
    for number in range(1_000):
        assert pace.wants(number, 1_000)
        with pace:
            now[0] += 0.0009
