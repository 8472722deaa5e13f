"""What all tests share."""

import os
from typing import Any

import pytest
from hypothesis import settings

# Compiled code makes the first example slow, and timings have no place in tests. Where a change is judged, the same
# examples are drawn each time; elsewhere each run looks at new ones.
settings.register_profile("skytide", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("skytide")

_LONG = ("test_shipping", "test_faults", "test_command", "test_connect", "test_machines")
_TOGETHER = ("monitors", "protocols", "runtime")


def _group(nodeid: str) -> str:
    """The files that one process does one after the other: what the first of them compiles, the others find."""
    path = nodeid.partition("::")[0]
    folders = path.split("/")[:-1]
    return "/".join(folders[:3]) if folders[1:] and folders[1] in _TOGETHER else path


def _rank(nodeid: str) -> tuple[int, str]:
    """First groups of files: they compile kernels that Spark's tasks find then, each of which would compile what it
    needs by itself. Next what takes longest, and last the many short files, so that all processes end together."""
    path = nodeid.partition("::")[0]
    group = _group(nodeid)
    if group != path:
        return 0, group
    if "/spark/" in path:
        return (1 if path.rpartition("/")[2].startswith(_LONG) else 2), ""
    return 3, ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Only the order is changed."""
    items.sort(key=lambda item: _rank(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Processes get groups of files."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = _group
    return scheduler
