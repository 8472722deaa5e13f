"""Streams, batches and tables that the tests of windows share."""

import itertools
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import skytide as sk
from skytide.monitors.sliding.engines import ENGINES

KINDS = [("auto", "auto"), *ENGINES]
CELLS = st.one_of(st.integers(0, 3).map(float), st.sampled_from([float("inf"), float("-inf"), -0.0, 1e308]))


@st.composite
def streams(
    draw: st.DrawFn, *, jitter: bool = False
) -> tuple[list[tuple[float, ...]], list[Any], list[str], list[int]]:
    """Rows with ties, times that repeat, groups and cuts into batches."""
    dimensions = draw(st.integers(1, 3))
    rows = draw(st.lists(st.tuples(*[CELLS] * dimensions), min_size=1, max_size=14))
    n = len(rows)
    if jitter:
        times: list[Any] = draw(st.lists(st.integers(-5, 12), min_size=n, max_size=n))
    else:
        times = sorted(draw(st.lists(st.integers(-3, 15), min_size=n, max_size=n)))
    groups = draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return rows, times, groups, cuts


def batches(n: int, cuts: list[int]) -> list[slice]:
    edges = [0, *cuts, n]
    return [slice(start, stop) for start, stop in itertools.pairwise(edges)]


def table(rows: list[tuple[float, ...]], groups: list[str], part: slice) -> pa.Table:
    columns: dict[str, Any] = {
        f"x{k}": pa.array([row[k] for row in rows[part]], pa.float64()) for k in range(len(rows[0]))
    }
    return pa.table(columns | {"g": pa.array(groups[part], pa.string())})


def preference(rows: list[tuple[float, ...]], by: bool) -> sk.Preference:
    return sk.Preference(minimize=[f"x{k}" for k in range(len(rows[0]))], by=["g"] if by else [])


def listed(changes: sk.Changes) -> list[tuple[Any, str, Any]]:
    return [tuple(change) for change in changes]
