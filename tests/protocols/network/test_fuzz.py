"""A short run of the fuzzer over everything that reads what others wrote."""

from __future__ import annotations

from benchmarks.network.fuzz import fuzz


def test_only_our_errors_come_out_of_what_reads_bytes_of_others() -> None:
    found = fuzz(inputs=4000, seed=7)
    assert found["failures"] == []
    assert all(target["inputs"] > 0 for target in found["targets"].values())
    assert sum(target["refused"] for target in found["targets"].values()) > 1000
