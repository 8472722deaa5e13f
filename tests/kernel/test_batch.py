from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import moocore
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError
from skytide.kernel.batch import Tuning, skyline_mask, skyline_work
from skytide.kernel.batch_codes import choose_layout, encode, lower_corner, read_order, spread_table
from skytide.kernel.batch_filter import choose_strong
from skytide.model import Booleans, Floats, Integers
from skytide.reference import batch as reference

EXTREMES = [-np.inf, -1.797e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.797e308, np.inf]

# Small inputs must reach every way of working: the pass with strong rows, the parts, the tree.
SCAN = Tuning(pairs=0, sorted=0, filtered=10**9, shared=1, split=1)
SORTED = Tuning(pairs=0, sorted=10**9, patience=10**6)
IMPATIENT = Tuning(pairs=0, sorted=10**9, patience=-(10**6))
FILTER = Tuning(
    pairs=0,
    sorted=0,
    filtered=2,
    sample=16,
    candidates=4,
    strong=3,
    least_gain=0.0,
    least_share=0.0,
    shared=1,
    split=1,
)
LEAD = replace(FILTER, lead=0.0)
PAIRS = Tuning(pairs=10**9)
TUNINGS = {"default": Tuning(), "scan": SCAN, "filter": FILTER, "lead": LEAD, "pairs": PAIRS}
TUNINGS |= {"sorted": SORTED, "impatient": IMPATIENT}


def expected(values: Floats) -> Booleans:
    mask = np.zeros(len(values), dtype=bool)
    mask[reference.skyline(values.tolist())] = True
    return mask


@st.composite
def matrices(draw: st.DrawFn, most: int = 40) -> Floats:
    n, d = draw(st.integers(0, most)), draw(st.integers(1, 10))
    kind = draw(st.sampled_from(["grid", "extremes", "floats"]))
    cell: st.SearchStrategy[float] = {
        "grid": st.integers(0, 3).map(float),
        "extremes": st.sampled_from(EXTREMES),
        "floats": st.floats(allow_nan=False),
    }[kind]
    rows = draw(st.lists(st.lists(cell, min_size=d, max_size=d), min_size=n, max_size=n))
    return np.array(rows, dtype=np.float64).reshape(n, d)


@given(matrices(), st.sampled_from(sorted(TUNINGS)), st.sampled_from([1, 2, 3]))
@example(np.zeros((0, 3)), "scan", 2)
@example(np.zeros((1, 3)), "scan", 2)
@example(np.full((30, 2), np.inf), "filter", 2)
@example(np.array([[0.0, -0.0], [-0.0, 0.0]]), "scan", 1)
@settings(max_examples=200, deadline=None)
def test_the_mask_is_the_skyline_by_definition(values: Floats, tuning: str, threads: int) -> None:
    before = values.copy()
    mask = skyline_mask(values, threads=threads, tuning=TUNINGS[tuning])
    assert mask.tolist() == expected(values).tolist()
    assert (values == before).all() and mask.dtype == np.bool_


@given(matrices(), st.data())
@settings(max_examples=100, deadline=None)
def test_each_run_has_a_skyline_of_its_own(values: Floats, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=6)))
    offsets = np.array([0, *cuts, len(values)])
    tuning = data.draw(st.sampled_from([Tuning(), Tuning(pairs=3, sorted=0, filtered=5, sample=4, shared=6, split=3)]))
    mask = skyline_mask(values, offsets=offsets, threads=2, tuning=tuning)
    for start, stop in itertools.pairwise(offsets):
        assert mask[start:stop].tolist() == expected(values[start:stop]).tolist()


@pytest.mark.parametrize("n", [15, 16, 17, 63, 64, 65, 66, 127, 128, 129, 130, 257, 4095, 4096, 4097, 66_000])
def test_nothing_is_lost_where_blocks_of_the_tree_end(n: int) -> None:
    line = np.arange(n, dtype=np.float64)
    plane = np.column_stack([line, n - line, np.zeros(n)])
    behind = plane + np.array([0.0, 0.0, 1.0])
    for tuning in (SCAN, Tuning()):
        for threads in (1, 2):
            mask = skyline_mask(np.vstack([behind, plane]), threads=threads, tuning=tuning)
            assert mask[n:].all() and not mask[:n].any()


@pytest.mark.parametrize("d", [2, 3, 4, 5, 8, 12, 20, 21, 32, 33, 40])
@pytest.mark.parametrize("levels", [3, 50, 10**6])
@pytest.mark.parametrize("threads", [1, 2])
def test_larger_tables_with_ties_agree_with_moocore(d: int, levels: int, threads: int) -> None:
    random = np.random.default_rng(d * levels)
    for n, tuning in (
        (3000, SCAN),
        (3000, SORTED),
        (3000, FILTER),
        (3000, LEAD),
        (25_000, Tuning(shared=5000, split=5000)),
    ):
        if d > 12 and n > 3000:
            continue
        # A common part makes rows that dominate, also in many columns.
        drawn = random.integers(0, levels, (n, d)) + random.integers(0, 2 * levels, (n, 1)) // 2
        values = np.vstack([drawn, drawn[: n // 10]]).astype(np.float64)
        mask = skyline_mask(values, threads=threads, tuning=tuning)
        assert (mask == moocore.is_nondominated(values, keep_weakly=True)).all()


@pytest.mark.parametrize("d", [1, 2, 3, 8, 20])
def test_a_million_equal_rows_all_stay_and_are_not_compared_pair_by_pair(d: int) -> None:
    work = skyline_work(np.full((1_000_000, d), 7.0))
    assert work.mask.all()
    assert work.tests + work.screens < 50_000_000


def test_few_distinct_rows_among_many_are_not_compared_pair_by_pair() -> None:
    values = np.random.default_rng(1).integers(0, 3, (200_000, 4)).astype(np.float64)
    values[:, 1] = 2 - values[:, 0]
    work = skyline_work(values, tuning=SCAN)
    assert (work.mask == moocore.is_nondominated(values, keep_weakly=True)).all()
    assert work.tests < 200_000


def test_a_hundred_thousand_small_runs_are_one_call() -> None:
    random = np.random.default_rng(2)
    sizes = random.integers(0, 5, 100_000)
    offsets = np.append(0, np.cumsum(sizes))
    values = random.integers(0, 3, (offsets[-1], 2)).astype(np.float64)
    mask = skyline_mask(values, offsets=offsets)
    runs = np.repeat(np.arange(len(sizes)), sizes)
    best = np.full(len(sizes), np.inf)
    np.minimum.at(best, runs, values.sum(axis=1))
    assert mask[values.sum(axis=1) == best[runs]].all()
    for run in range(0, len(sizes), 997):
        part = slice(offsets[run], offsets[run + 1])
        assert mask[part].tolist() == expected(values[part]).tolist()


@pytest.mark.parametrize("tuning", [Tuning(), SCAN, FILTER])
def test_columns_of_any_scale_and_sign_give_one_answer(tuning: Tuning) -> None:
    values = np.random.default_rng(3).random((5000, 4))
    mask = skyline_mask(values, tuning=tuning)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.column_stack(
            [values[:, 0] * 1e-300, np.exp(700 * values[:, 1]), -1 / (values[:, 2] + 1e-9), values[:, 3] * 1.7e308]
        )
    same = [np.unique(values[:, k]).size == np.unique(scaled[:, k]).size for k in range(4)]
    assert all(same), "the columns must keep their order for the test to mean something"
    assert (skyline_mask(scaled, tuning=tuning) == mask).all()


def test_views_and_other_types_are_taken_and_left_as_they_are() -> None:
    values = np.random.default_rng(4).random((500, 6))
    wanted = expected(values[::2, ::2])
    assert (skyline_mask(values[::2, ::2]) == wanted).all()
    assert (skyline_mask(np.asfortranarray(values[::2, ::2])) == wanted).all()
    frozen = values[::2, ::2].copy()
    frozen.flags.writeable = False
    for tuning in TUNINGS.values():
        assert (skyline_mask(frozen, tuning=tuning) == wanted).all()
    integers: npt.NDArray[Any] = np.array([[1, 2], [2, 1], [2, 2]])
    assert skyline_mask(integers).tolist() == [True, True, False]


def test_threads_do_not_change_the_answer() -> None:
    values = np.random.default_rng(5).integers(0, 40, (30_000, 5)).astype(np.float64)
    masks = [skyline_mask(values, threads=threads, tuning=Tuning(shared=1, split=1)) for threads in (1, 2, 3, 7)]
    assert all((mask == masks[0]).all() for mask in masks)


@pytest.mark.parametrize("shape", [(3,), (2, 0), (2, 2, 2)])
def test_what_is_not_a_matrix_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="matrix of rows"):
        skyline_mask(np.zeros(shape))


@pytest.mark.parametrize("offsets", [[], [0, 2], [1, 3], [0, 3, 2, 3]])
def test_offsets_that_do_not_divide_the_rows_are_refused(offsets: list[int]) -> None:
    with pytest.raises(InputError, match="do not divide 3 rows"):
        skyline_mask(np.zeros((3, 2)), offsets=np.array(offsets, dtype=np.int64))


def test_no_threads_at_all_are_refused() -> None:
    with pytest.raises(OptionError, match="number of threads"):
        skyline_mask(np.zeros((3, 2)), threads=0)


# -- codes and strong rows -------------------------------------------------------------------------------------------


def encoded(values: Floats, sampled: int) -> tuple[list[int], Integers, int, int]:
    """The codes, the scan order, the guards and the width."""
    values = values.view()
    values.flags.writeable = False  # as the batch skyline does: compiled once
    columns, width, bits, steps, guards, thresholds = choose_layout(values, sampled)
    codes, keys = np.empty(len(values), np.uint64), np.empty(len(values), np.uint64)
    shift = len(values).bit_length()
    spread = spread_table(bits, len(columns))
    encode(values, 0, 1, columns, thresholds, bits, steps, width, spread, codes, keys, shift)
    order = np.empty(len(values), np.int64)
    read_order(values, 0, 1, np.sort(keys), shift, order)
    return codes.tolist(), order, int(guards), width


@given(matrices(most=25).filter(len), st.integers(1, 25))
@settings(max_examples=100, deadline=None)
def test_codes_and_order_never_contradict_dominance(values: Floats, sampled: int) -> None:
    codes, order, guards, width = encoded(values, sampled)
    position = np.empty(len(values), np.int64)
    position[order] = np.arange(len(values))
    for i, a in enumerate(values.tolist()):
        for j, b in enumerate(values.tolist()):
            if reference.dominates(a, b):
                assert position[i] < position[j]
            if all(x <= y for x, y in zip(a, b, strict=True)):
                assert ((codes[j] | guards) - codes[i]) & guards == guards
    corner = int(lower_corner(np.uint64(codes[0]), np.uint64(codes[-1]), np.uint64(guards), width))
    for code in (codes[0], codes[-1]):
        assert ((code | guards) - corner) & guards == guards


@given(matrices(most=25).filter(len))
@settings(max_examples=50, deadline=None)
def test_equal_rows_are_neighbours_in_the_scan(values: Floats) -> None:
    _, order, _, _ = encoded(values, 1)
    rows = [tuple(row) for row in values[order].tolist()]
    firsts = [i for i, row in enumerate(rows) if i == 0 or rows[i - 1] != row]
    assert len(firsts) == len(set(rows))


@pytest.mark.parametrize("n", [1000, 70_000])
@pytest.mark.parametrize("d", [3, 4, 5, 8, 13, 40])
def test_levels_are_spread_evenly_over_a_column(n: int, d: int) -> None:
    values = np.random.default_rng(d).random((n, d))
    codes, _, _, width = encoded(np.column_stack([np.ones(n), values]), 1024)
    first = np.array(codes, dtype=np.uint64) & np.uint64((1 << width) - 1)
    counts = np.bincount(first.astype(np.int64))
    # A sample of a few rows per level cuts unevenly, but no level swallows the column.
    assert len(counts) >= 2 and counts.max() < 20 * n / len(counts)
    assert (np.diff(first[np.argsort(values[:, 0])].astype(np.int64)) >= 0).all()


def test_strong_rows_dominate_the_share_that_is_promised() -> None:
    sample = np.random.default_rng(6).random((1024, 3))
    strong, share, first = choose_strong(sample, 64, 16, 0.01)
    dominated = np.zeros(len(sample), dtype=bool)
    for row in sample[strong]:
        dominated |= (sample >= row).all(axis=1) & (sample > row).any(axis=1)
    assert 0 < len(strong) <= 16
    assert dominated[::2].mean() == pytest.approx(share)
    assert share > 0.8 and first == pytest.approx((sample[::2] > sample[strong[0]]).all(axis=1).mean())


def test_where_no_row_dominates_there_are_no_strong_rows() -> None:
    line = np.arange(100.0)
    strong, share, first = choose_strong(np.column_stack([line, -line]), 64, 16, 0.01)
    assert len(strong) == 0 and share == first == 0.0
