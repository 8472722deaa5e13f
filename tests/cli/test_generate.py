"""`skytide generate`: every kind, the same rows for the same seed, a prefix for fewer rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from skytide.streams.generators import generate
from tests.cli.command import rows_of, run

KINDS = {
    "independent": ["id", "x1", "x2", "x3"],
    "correlated": ["id", "x1", "x2", "x3"],
    "anti-correlated": ["id", "x1", "x2", "x3"],
    "spikes": ["id", "time", "x1", "x2", "x3"],
    "uncertain": ["id", "x1", "x2", "x3", "prob"],
    "walk": ["id", "time", "x1", "x2", "x3"],
    "jitter": ["id", "time", "x1", "x2", "x3"],
    "fragments": ["time", "site", "id", "x1", "x2", "x3"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_so_many_rows_and_fewer_are_a_prefix(kind: str) -> None:
    options = ["-d", "3", "--objects", "40", "--sites", "3", "--seed"]
    many = run("generate", kind, "-n", "500", *options, "5").stdout.splitlines()
    assert many[0].split(",") == KINDS[kind]
    assert len(many) == 501
    for fewer in (0, 1, 130, 499):
        assert run("generate", kind, "-n", str(fewer), *options, "5").stdout.splitlines() == many[: fewer + 1]
    assert run("generate", kind, "-n", "500", *options, "6").stdout.splitlines()[1:] != many[1:]


def test_rows_are_those_of_the_library_across_chunks(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    run("generate", "anti-correlated", "-n", "150000", "-d", "2", "--seed", "9", "--deviation", "0.01", "-o", path)
    table = pq.read_table(path)
    expected = generate("anti-correlated", 150_000, 2, 9, deviation=0.01)
    assert np.array_equal(np.column_stack([table["x1"], table["x2"]]), expected)
    assert table["id"].to_pylist() == list(range(1, 150_001))


def test_streams_have_ordered_times_and_probabilities_are_probabilities() -> None:
    for kind in ("spikes", "walk", "jitter", "fragments"):
        rows = rows_of(run("generate", kind, "-n", "400", "--objects", "20", "--sites", "2").stdout)
        times = [float(row["time"]) for row in rows]
        assert times == sorted(times) and times[-1] > 0
    rows = rows_of(run("generate", "uncertain", "-n", "400", "--probabilities", "normal", "--mean", "0.9").stdout)
    assert all(0 < float(row["prob"]) <= 1 for row in rows)
