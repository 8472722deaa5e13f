"""Which command over data is meant, where only its options are given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

KINDS = ("skyline", "window", "uncertain", "snapshots", "monitor", "fragments")

_SAYING = {
    "--prob": "uncertain",
    "--site": "fragments",
    "--count": "window",
    "--duration": "window",
    "--theta": "monitor",
    "--epsilon": "monitor",
    "--delta": "monitor",
    "--seed": "monitor",
    "--cost": "monitor",
}
_METHODS = ("naive", "filter", "sampling", "hybrid")


def deduced(arguments: Sequence[str]) -> str:
    """The command whose options these are, the first of the table that fits; O(arguments).

    >>> deduced(["cars.csv", "--min", "price"]), deduced(["x.csv", "--min=a", "--count=5", "--prob", "p"])
    ('skyline', 'uncertain')
    >>> deduced(["x.csv", "--id", "a", "--time", "t"]), deduced(["x.csv", "--time", "t", "--method", "filter"])
    ('snapshots', 'monitor')
    """
    given = list(arguments)
    options = {one.partition("=")[0] for one in given if one.startswith("--")}
    for option, kind in _SAYING.items():
        if option in options:
            return kind
    methods = [after for one, after in pairwise(given) if one == "--method"]
    methods += [one.partition("=")[2] for one in given if one.startswith("--method=")]
    if any(method in _METHODS for method in methods):
        return "monitor"
    return "snapshots" if "--time" in options else "skyline"
