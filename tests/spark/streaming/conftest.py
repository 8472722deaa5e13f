"""The stream that the tests of faults read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.streaming.contract import rows_of, write_batch
from tests.spark.streaming.faults import CASE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = rows_of(CASE)
    size = -(-table.num_rows // CASE.batches)
    for number in range(CASE.batches):
        write_batch(table.slice(number * size, size), tmp_path / "in", number)
    return tmp_path
