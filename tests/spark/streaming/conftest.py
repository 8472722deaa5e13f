"""The stream that the tests of faults read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.streaming.faults import put_stream


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put_stream(tmp_path)
    return tmp_path
