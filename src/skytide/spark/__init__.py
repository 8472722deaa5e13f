"""Skytide on Spark. `pip install "skytide[spark]"` brings all it needs, a Java included.

- `local_session()`: a Spark session on this machine, quiet, on loopback only. `check_session(spark)`: whether a session
  of your own has the settings that a function needs.
- `skyline(df, preference)`: the exact skyline of a DataFrame, a DataFrame again.
- `plain_errors()`: what a task complains about, as one line, instead of Spark's page.
- `find_java()`, `ensure_java()`: the Java that Spark will run on.

The functions are plain ones, usable with `df.transform`, and work on Spark Connect as well. Importing this module is
cheap and needs no pyspark; calling a function without it gives an error with the remedy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Java": "skytide.spark.java",
    "check_session": "skytide.spark.session",
    "ensure_java": "skytide.spark.java",
    "find_java": "skytide.spark.java",
    "local_session": "skytide.spark.session",
    "plain_error": "skytide.spark.faults",
    "plain_errors": "skytide.spark.faults",
    "skyline": "skytide.spark.batch",
}

if TYPE_CHECKING:
    from skytide.spark.batch import skyline
    from skytide.spark.faults import plain_error, plain_errors
    from skytide.spark.java import Java, ensure_java, find_java
    from skytide.spark.session import check_session, local_session

__all__ = [
    "Java",
    "check_session",
    "ensure_java",
    "find_java",
    "local_session",
    "plain_error",
    "plain_errors",
    "skyline",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'skytide.spark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
