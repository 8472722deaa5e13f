"""One Spark session for all tests of a process: starting one takes longer than most of the tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skytide.spark import local_session
from tests.spark.small import SMALL_JVM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    before = dict(os.environ)
    session = local_session("local[2]", **SMALL_JVM)
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def bare_environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine without Java: a PATH with the few programs that Spark's scripts call."""
    programs = tmp_path / "bin"
    programs.mkdir()
    needed = "bash sh env ps dirname cat uname head chmod ls readlink stat id whoami groups mkdir rm"
    for name in needed.split():
        found = next((Path(place, name) for place in ("/usr/bin", "/bin") if Path(place, name).exists()), None)
        if found is not None:
            (programs / name).symlink_to(found)
    home = tmp_path / "home"
    home.mkdir()
    return {
        "PATH": str(programs),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONPATH": os.pathsep.join(part for part in sys.path if part),
        # Compiled code is found where the package lies, as it would be after the first run on any machine.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
