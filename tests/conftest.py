"""What all tests share."""

import os

import pytest
from hypothesis import settings

# Compiled code makes the first example slow, and timings have no place in tests. Where a change is judged, the same
# examples are drawn each time; elsewhere each run looks at new ones.
settings.register_profile("skytide", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("skytide")

_LONG = ("test_shipping", "test_faults", "test_command", "test_connect", "test_machines")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that no process ends long after the other: files that start processes of
    Spark's, then the rest of Spark's, then all others. Only the order is changed."""

    def rank(item: pytest.Item) -> int:
        path = item.path
        if "spark" not in path.parts:
            return 2
        return 0 if path.stem.startswith(_LONG) else 1

    items.sort(key=rank)
