"""What `import skytide` runs on an executor that got the package as a zip: unpack it once per machine, then import it.

`skytide.spark.shipping` puts this file into the zip as `skytide/__init__.py`, beside the package itself. Compiled code
is kept beside its source. Inside a zip there is no such place, and the zip lies in a folder of the job's own, so that
every job would compile anew. Unpacked at a place that only its contents decide, it is compiled once per machine.

It knows nothing of the rest of the package: when it runs, the rest is not there yet.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

PAYLOAD = "payload"
"""The folder of the zip that the package lies in."""


def unpacked(archive: Path) -> Path:
    """The folder that the payload of a zip lies in, unpacked now where it was not; its name is the zip's.

    Tried in turn: the user's cache folder, a folder of the user's among the temporary ones, a new temporary folder.
    Any number of processes may ask at the same time.
    """
    for place in _places():
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _private(place):
                return _unpack(archive, place / archive.stem)
        except OSError:
            continue
    return _unpack(archive, Path(tempfile.mkdtemp(prefix="skytide-")) / archive.stem)


def _places() -> Iterator[Path]:
    given = os.environ.get("XDG_CACHE_HOME", "")
    home = os.path.expanduser("~")  # noqa: PTH111, Path.home() is an error where there is none
    if given and Path(given).is_absolute():
        yield Path(given) / "skytide"
    elif Path(home).is_absolute():
        yield Path(home) / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "skytide"
    yield Path(tempfile.gettempdir()) / f"skytide-{os.getuid() if hasattr(os, 'getuid') else 'packages'}"


def _private(place: Path) -> bool:
    """Whether nobody else can put code there: temporary folders are everybody's, and their names can be guessed."""
    if not hasattr(os, "getuid"):
        return True
    about = place.lstat()
    return about.st_uid == os.getuid() and not about.st_mode & 0o022 and not place.is_symlink()


def _unpack(archive: Path, folder: Path) -> Path:
    if folder.is_dir():
        return folder
    fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".unpacking-"))
    try:
        with zipfile.ZipFile(archive) as file:
            file.extractall(fresh, [name for name in file.namelist() if name.startswith(f"{PAYLOAD}/")])
        # Another process may have been first; then its folder stays.
        with contextlib.suppress(OSError):
            (fresh / PAYLOAD).rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} could not be made")
    return folder


def _become_the_package() -> None:
    """Load the unpacked package in the place of this module; the import that is under way gives it to its caller."""
    archive = next(part for part in Path(__file__).parents if part.is_file())
    home = unpacked(archive) / "skytide"
    spec = importlib.util.spec_from_file_location(
        "skytide", home / "__init__.py", submodule_search_locations=[str(home)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"the package cannot be loaded from {home}")
    sys.modules["skytide"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "skytide":
    _become_the_package()
