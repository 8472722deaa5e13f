"""What all tests share."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Compiled code makes the first example slow, and timings have no place in tests. Where a change is judged, the same
# examples are drawn each time; elsewhere each run looks at new ones.
settings.register_profile("skytide", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("skytide")

_LONG = ("test_shipping", "test_faults", "test_command", "test_connect", "test_machines", "test_benchmark_soak")


def _rank(nodeid: str) -> int:
    """First what takes longest, and last the many short files, so that all processes end together."""
    path = nodeid.partition("::")[0]
    if path.rpartition("/")[2].startswith(_LONG):
        return 0
    return 1 if "/spark/" in path else 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Only the order is changed."""
    items.sort(key=lambda item: _rank(item.nodeid))


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_left() -> Iterator[None]:
    """What a file leaves open is found here, and not by chance in a test of another file."""
    yield
    gc.collect()
