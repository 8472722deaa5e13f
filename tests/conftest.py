"""What all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Compiled code makes the first example slow, and timings have no place in tests. Where a change is judged, the same
# examples are drawn each time; elsewhere each run looks at new ones.
settings.register_profile("skytide", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("skytide")

_LONG = ("test_shipping", "test_faults", "test_command", "test_connect", "test_machines")
_TOGETHER = ("monitors", "protocols", "runtime")
_ROOT = Path(__file__).parent


def _group(path: Path) -> str:
    """The files that one process does one after the other: what the first of them compiles, the others find."""
    inner = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path
    return "/".join(inner.parts[:2]) if inner.parts[0] in _TOGETHER else str(path)


def _rank(path: Path) -> int:
    """What takes longest begins first, so that no process ends long after the other: files that start processes of
    Spark's, then the rest of Spark's, then groups of files, then single ones."""
    if "spark" in path.parts:
        return 0 if path.stem.startswith(_LONG) else 1
    return 2 if _group(path) != str(path) else 3


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Only the order is changed, and which process does what."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item.path)))
    items.sort(key=lambda item: (_rank(item.path), _group(item.path) if _rank(item.path) == 2 else ""))
