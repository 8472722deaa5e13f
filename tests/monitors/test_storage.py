"""Monitors as bytes: what comes back, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from skytide.errors import StateError
from skytide.monitors.storage import pack, unpack

BLOB = pack("Toy", 1, {"k": [1, None, "x"]}, {"rows": np.arange(6.0).reshape(2, 3), "none": np.zeros(0, np.int64)})


@given(
    nps.arrays(st.sampled_from([np.float64, np.int64, np.int8]), nps.array_shapes(min_dims=1, max_dims=2, min_side=0))
)
def test_arrays_come_back_as_they_were(array: np.ndarray) -> None:
    _, parts = unpack(pack("Toy", 1, {}, {"rows": array}), "Toy", 1)
    assert parts["rows"].dtype == array.dtype and parts["rows"].shape == array.shape
    assert parts["rows"].tobytes() == array.tobytes()


@given(st.lists(st.one_of(st.none(), st.text(max_size=5))))
def test_text_and_nothing_come_back(values: list[str | None]) -> None:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    _, parts = unpack(pack("Toy", 1, {}, {"ids": column}), "Toy", 1)
    assert parts["ids"].tolist() == values


@given(st.integers(0, len(BLOB) - 1))
def test_a_truncated_blob_is_refused(length: int) -> None:
    with pytest.raises(StateError):
        unpack(BLOB[:length], "Toy", 1)


@given(st.integers(0, len(BLOB) - 1), st.integers(1, 255))
def test_a_damaged_blob_is_refused(position: int, flip: int) -> None:
    damaged = bytearray(BLOB)
    damaged[position] ^= flip
    with pytest.raises(StateError):
        unpack(bytes(damaged), "Toy", 1)


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused(blob: bytes) -> None:
    with pytest.raises(StateError, match="not a stored monitor"):
        unpack(blob, "Toy", 1)


def test_another_kind_or_version_is_refused() -> None:
    with pytest.raises(StateError, match="hold a Toy"):
        unpack(BLOB, "Other", 1)
    with pytest.raises(StateError, match="version 1"):
        unpack(BLOB, "Toy", 2)


def test_ids_of_mixed_kinds_are_refused() -> None:
    column = np.empty(2, dtype=object)
    column[:] = ["a", 1]
    with pytest.raises(StateError, match="mixed kinds"):
        pack("Toy", 1, {}, {"ids": column})
