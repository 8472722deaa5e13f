"""The checks of `skytide doctor`. Each looks for itself and never ends the others by an error of its own."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from skytide import __version__

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PEERS = ("moocore", "paretoset")


@dataclass(frozen=True)
class Finding:
    """One thing the machine has or lacks; the core does not work without those marked `core`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    core: bool = False

    def as_record(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def examine() -> list[Finding]:
    """All findings, those of the core first."""
    checks: tuple[tuple[str, bool, Callable[[], Finding]], ...] = (
        ("python", True, _python),
        ("numpy", True, lambda: _package("numpy", core=True)),
        ("pyarrow", True, lambda: _package("pyarrow", core=True)),
        ("numba", True, lambda: _package("numba", core=True)),
        ("kernel", True, _kernel),
        ("kernel cache", False, _cache),
        ("threads", False, _threads),
        ("spark", False, lambda: _package("pyspark", name="spark", extra="spark")),
        ("java", False, _java),
        ("matplotlib", False, lambda: _package("matplotlib", extra="plot")),
        ("network", False, lambda: _package("starlette", name="network", extra="network")),
        ("peers", False, _peers),
        ("browser", False, _browser),
    )
    findings = []
    for name, core, check in checks:
        try:
            findings.append(check())
        except Exception as error:
            findings.append(Finding(name, False, " ".join(str(error).split()) or type(error).__name__, core=core))
    return findings


def _python() -> Finding:
    ok = sys.version_info >= (3, 11)
    detail = f"Python {platform.python_version()}, Skytide {__version__}, {platform.system()} {platform.machine()}"
    return Finding("python", ok, detail, "install Python 3.11 or later", core=True)


def _package(package: str, *, name: str | None = None, extra: str | None = None, core: bool = False) -> Finding:
    remedy = f"pip install 'skytide[{extra}]'" if extra else "pip install --force-reinstall skytide"
    try:
        importlib.import_module(package)
    except ImportError as error:
        return Finding(name or package, False, f"{package} cannot be loaded ({error})", remedy, core)
    return Finding(name or package, True, f"{package} {importlib.metadata.version(package)}", core=core)


def _kernel() -> Finding:
    import numpy as np

    from skytide.batch import skyline

    values = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [2.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    ok = skyline(values).tolist() == [True, True, False, True]
    detail = "compiled code runs and answers right" if ok else "compiled code gives a wrong answer"
    return Finding("kernel", ok, detail, "remove the kernel cache and try again", core=True)


def _cache() -> Finding:
    """Where compiled code is kept; without a lasting place every start compiles anew, which takes seconds."""
    import skytide.kernel

    chosen = os.environ.get("NUMBA_CACHE_DIR")
    beside = Path(skytide.kernel.__path__[0]) / "__pycache__"
    remedy = "set NUMBA_CACHE_DIR to a folder that is writable and lasts"
    if chosen:
        folder, usable = Path(chosen), _writable(Path(chosen))
    elif _writable(beside):
        folder, usable = beside, True
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"
        usable = _writable(folder)
    if not usable:
        return Finding("kernel cache", False, f"{folder} is not writable: every start compiles anew", remedy)
    if folder.resolve().is_relative_to(Path(tempfile.gettempdir()).resolve()):
        return Finding("kernel cache", False, f"{folder} is temporary: it may be gone at the next start", remedy)
    return Finding("kernel cache", True, f"{folder} is writable")


def _writable(folder: Path) -> bool:
    """Whether files can be made in the folder, or in the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _threads() -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Finding("threads", True, f"{usable} of {os.cpu_count()} processors usable")


def _java() -> Finding:
    try:
        from skytide.spark.java import find_java
    except ImportError as error:
        return Finding("java", False, f"cannot be looked for ({error})", "pip install 'skytide[spark]'")
    java = find_java()
    return Finding("java", True, f"Java {java.version} of {java.origin}, {java.runtime}")


def _peers() -> Finding:
    missing = [name for name in PEERS if importlib.util.find_spec(name) is None]
    if missing:
        return Finding("peers", False, f"benchmarks lack {', '.join(missing)}", "pip install 'skytide[bench]'")
    found = [f"{name} {importlib.metadata.version(name)}" for name in PEERS]
    return Finding("peers", True, ", ".join(found))


def _browser() -> Finding:
    for name in BROWSERS:
        path = shutil.which(name)
        if path:
            return Finding("browser", True, path)
    return Finding("browser", False, "no chromium on the PATH", "install chromium to test the live page")
