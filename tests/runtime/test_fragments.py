"""Tables into the simulation of objects in fragments: instants, groups, what is not taken, and what it cost."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import IdError, InputError, OptionError
from skytide.expressions import parse
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.methods import METHODS
from skytide.reference.functional import expression, fragment_changes
from skytide.runtime.fragments import Fragmented
from tests.reference.test_functional import FIGURE_1

NAN = math.nan


def told(monitor: Fragmented, *rows: tuple[int, str, str, float]) -> list[tuple[Any, ...]]:
    """Extend a monitor over one column x by rows: time, site, object, value."""
    times, sites, ids, values = (list(column) for column in zip(*rows, strict=True))
    return [tuple(change) for change in monitor.extend({"x": values}, times=times, ids=ids, sites=sites)]


def closed(monitor: Fragmented) -> list[tuple[Any, ...]]:
    return [tuple(change) for change in monitor.advance(monitor.latest)]


CELL = st.sampled_from([NAN, 0.0, 1.0, 2.0, 3.0, 0.1])
ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("stu"), st.sampled_from("abcd"), CELL, CELL, st.sampled_from("pq")),
    min_size=1,
    max_size=24,
)
QUERIES = [
    (["x"], ["y"]),
    (["x", "y"], []),
    (["norm(x, y)"], ["x - 2 * y"]),
    (["var(x)"], ["y"]),
    (["sqrt(x - 1)"], ["y"]),
    ([], ["x / y", "x"]),
]


@settings(max_examples=120, deadline=None)
@given(
    rows=ROWS,
    query=st.sampled_from(QUERIES),
    method=st.sampled_from(METHODS),
    nulls=st.sampled_from(["error", "drop", "worst"]),
    by=st.booleans(),
    cuts=st.lists(st.integers(0, 24), max_size=3),
)
def test_any_table_in_any_pieces_gives_the_reference_stream(
    rows: list[Any], query: tuple[list[str], list[str]], method: str, nulls: Any, by: bool, cuts: list[int]
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    functions = Functions(*query)
    times, sites, ids, x, y, groups = (list(column) for column in zip(*rows, strict=True))
    used = functions.columns
    vectors = [{name: row[3 + "xy".index(name)] for name in used} for row in rows]
    texts = [expression(parse(text)) for text in (*functions.minimize, *functions.maximize)]
    signs = [int(sign) for sign in functions.signs]
    expected: Any
    try:
        kinds = groups if by else None
        expected = fragment_changes(times, sites, ids, vectors, texts, signs=signs, nulls=nulls, by=kinds)
    except InputError:
        expected = None
    monitor = Fragmented(functions, method, by=("g",) if by else (), nulls=nulls)
    ends = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    found = []
    try:
        for start, stop in itertools.pairwise(ends):
            piece = slice(start, stop)
            table = {"x": x[piece], "y": y[piece], "g": groups[piece]}
            found += list(monitor.extend(table, times=times[piece], ids=ids[piece], sites=sites[piece]))
        if monitor.latest is not None:
            found += list(monitor.advance(monitor.latest))
    except InputError:
        assert expected is None
    else:
        assert found == expected


def test_an_instant_is_over_when_a_later_row_comes_and_says_only_what_is_left_of_it() -> None:
    monitor = Fragmented(Functions(["x"]))
    assert told(monitor, (1, "s", "a", 1.0), (1, "s", "b", 2.0)) == []
    assert told(monitor, (1, "s", "b", 0.0), (1, "s", "b", 3.0)) == []
    assert told(monitor, (2, "s", "b", 0.0), (2, "s", "b", 9.0)) == [(1, "+", "a")]
    assert told(monitor, (3, "t", "b", -9.0)) == []
    assert closed(monitor) == [(3, "-", "a"), (3, "+", "b")]


def test_rows_of_an_instant_that_is_over_are_late() -> None:
    monitor = Fragmented(Functions(["x"]))
    told(monitor, (5, "s", "a", 1.0))
    closed(monitor)
    rows = {"x": [1.0, 2.0, 3.0, 4.0]}
    found = monitor.extend(rows, times=[5, 7, 6, 7], ids=["a", "b", "c", "c"], sites=["s"] * 4)
    assert found.late.tolist() == [0, 2]


def test_an_object_may_be_without_a_value_within_an_instant_but_not_at_its_end() -> None:
    monitor = Fragmented(Functions(["sqrt(x)"]))
    told(monitor, (1, "s", "a", 4.0), (2, "s", "a", -1.0), (2, "t", "a", 5.0), (3, "s", "a", -9.0))
    with pytest.raises(InputError, match="'a' is an object of which a function has no value at time 3; choose"):
        monitor.advance(3)


def test_an_object_that_changes_its_group_takes_all_its_sites_along() -> None:
    monitor = Fragmented(Functions(["x"]), by=("g",))
    rows = {"x": [4.0, 8.0, 5.0, 7.0, 9.0], "g": ["p", "p", "p", "q", "q"]}
    first = monitor.extend(rows, times=[1] * 5, ids=list("aabcd"), sites=list("stsss"))
    assert len(first) == 0
    found = list(monitor.extend({"x": [2.0], "g": ["q"]}, times=[2], ids=["a"], sites=["s"]))
    assert [tuple(one) for one in found] == [(1, "+", "b"), (1, "+", "c")]
    # a is at 2 and 8 now, on average at 5, better than c's 7
    assert closed(monitor) == [(2, "-", "c"), (2, "+", "a")]
    assert monitor.cost()["kinds"]["up"] == {"join": 2, "leave": 2}


def test_missing_values_follow_the_policy() -> None:
    rows = {"x": [1.0, NAN], "y": [1.0, 0.0]}
    arguments: dict[str, Any] = {"times": [1, 1], "ids": ["a", "b"], "sites": ["s", "s"]}
    functions = Functions(["x", "y"])
    with pytest.raises(InputError, match=r"row 2, column 'x'.*takes the site out"):
        Fragmented(functions).extend(rows, **arguments)
    assert Fragmented(functions, nulls="drop").extend(rows, **arguments).bad.tolist() == [1]
    worst = Fragmented(functions, nulls="worst")
    worst.extend(rows, **arguments)
    assert closed(worst) == [(1, "+", "a"), (1, "+", "b")]


def test_rows_without_time_id_or_site_are_refused() -> None:
    monitor = Fragmented(Functions(["x"]))
    with pytest.raises(InputError, match="row 1: the time is missing"):
        monitor.extend({"x": [1.0]}, times=[NAN], ids=["a"], sites=["s"])
    with pytest.raises(IdError, match="row 1: the id is missing"):
        monitor.extend({"x": [1.0]}, times=[1.0], ids=[None], sites=["s"])
    with pytest.raises(IdError, match="row 1: the site is missing"):
        monitor.extend({"x": [1.0]}, times=[1.0], ids=["a"], sites=[None])
    with pytest.raises(IdError, match="1 sites for 2 rows"):
        monitor.extend({"x": [1.0, 2.0]}, times=[1.0, 1.0], ids=["a", "b"], sites=["s"])
    with pytest.raises(OptionError, match="'best' is not a method"):
        Fragmented(Functions(["x"]), "best")


@pytest.mark.parametrize("method", METHODS)
def test_the_routers_of_figure_1(method: str) -> None:
    monitor = Fragmented(Functions([], ["packets", "var(volume)"]), method)
    routers, targets, packets, volume = (list(column) for column in zip(*FIGURE_1, strict=True))
    rows = {"packets": packets, "volume": volume}
    monitor.extend(rows, times=[1] * len(routers), ids=targets, sites=routers)
    assert closed(monitor) == [(1, "+", "117.3"), (1, "+", "121.11")]
    quiet = monitor.extend({"packets": [161.0], "volume": [1300.0]}, times=[2], ids=["121.11"], sites=[3])
    assert len(quiet) == 0 and closed(monitor) == []
    # Router 4 sees 201.7 in bursts: its volume varies with a second router, more than any other target's.
    burst = {"packets": [630.0], "volume": [100.0]}
    monitor.extend(burst, times=[3], ids=["201.7"], sites=[5])
    assert closed(monitor) == [(3, "-", "121.11"), (3, "+", "201.7")]


def test_the_ledger_adds_up_and_keeps_the_first_instant_apart() -> None:
    source = np.random.default_rng(3)
    monitor = Fragmented(Functions(["x", "y"]), "pivot", by=("g",))
    for time in range(6):
        rows = {"x": source.random(30), "y": source.random(30), "g": source.integers(0, 2, 30)}
        monitor.extend(rows, times=[time] * 30, ids=np.arange(30) % 6, sites=np.arange(30) // 6)
    closed(monitor)
    cost = monitor.cost()
    assert cost["uplink"] == sum(cost["kinds"]["up"].values()) > 0
    assert cost["downlink"] == sum(cost["kinds"]["down"].values()) > 0
    assert cost["messages"] == cost["uplink"] + cost["downlink"]
    assert cost["violations"] == cost["kinds"]["up"].get("violation", 0)
    assert cost["initial"]["messages"] == cost["initial"]["uplink"] + cost["initial"]["downlink"]
    # In the first instant each site tells once of all its objects, in each group.
    assert 5 <= cost["initial"]["uplink"] <= 10


def test_nothing_was_sent_before_the_first_row() -> None:
    cost = Fragmented(Functions(["x"])).cost()
    assert cost["messages"] == cost["initial"]["messages"] == cost["violations"] == cost["updates"] == 0
