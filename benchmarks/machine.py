"""What a figure was measured on: the processor, the memory, the system and the versions that matter."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("skytide", "numpy", "numba", "llvmlite")
ROOT = Path(__file__).resolve().parents[1]
_JUDGES = ("catalogue.py", "claims.py", "report.py", "drawing.py")


def describe(*packages: str) -> dict[str, str]:
    """The machine and the versions, of the given packages too, as short texts by name.

    >>> sorted(describe())[:2]
    ['cores', 'llvmlite']
    """
    found = {
        "processor": _processor(),
        "cores": str(os.cpu_count() or 1),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    for package in (*PACKAGES, *packages):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def sentence(machine: dict[str, str]) -> str:
    """The description as one line of text."""
    hardware = f"{machine['processor']}, {machine['cores']} cores, {machine['memory']}, {machine['system']}"
    kept = ("processor", "cores", "memory", "system")
    return f"{hardware}; " + ", ".join(f"{name} {text}" for name, text in machine.items() if name not in kept)


def busy() -> float:
    """How many processes wanted to run over the last minute, per core: above 1, times are not to be trusted."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0


@cache
def code() -> str:
    """Some digits that differ where the code differs that is measured or measures; what judges and tells is no part."""
    found = hashlib.sha256()
    for path in sorted([*(ROOT / "src" / "skytide").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.*")]):
        measures = path.suffix in (".py", ".cpp") and path.name not in _JUDGES and path.parent.name != "evidence"
        if measures:
            found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:10]


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if sys.platform == "linux" and facts.exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "memory unknown"
    return f"{total / 2**30:.0f} GiB"
