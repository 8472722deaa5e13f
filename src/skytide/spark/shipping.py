"""Brings the package to executors that do not have it: a zip with a name made of its contents.

Only Skytide itself travels. numba, numpy, pandas and pyarrow are compiled for a machine and must be on it already, as
Spark's own Python functions ask of it, too. `skytide.spark.shipped` says what happens on the other side.

Behind Spark Connect the driver is elsewhere, too, and Spark does not tell the Pythons beside it (those of foreachBatch,
of state and of streaming sources) what was sent. So streams need Skytide on the server; batch jobs need nothing there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import re
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import skytide
from skytide.spark import shipped
from skytide.spark.java import _cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BESIDE = ("pyspark_skytide", "pyspark_skytide_kafka")
"""Packages of ours beside the main one: Spark looks for data sources under names of its own."""

_SENT = "spark.skytide.package"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def ship(spark: SparkSession) -> Path:
    """Send the package to all executors of a session, those of now and those to come; the zip that was sent.

    Works on classic Spark and on Spark Connect. Calling it again sends nothing again. The zip is a few hundred KiB.
    """
    archive = package_zip()
    if spark.conf.get(_SENT, None) != archive.name:
        spark.addArtifacts(str(archive), pyfile=True)
        spark.conf.set(_SENT, archive.name)
    return archive


def needs_shipping(master: str) -> bool:
    """Whether tasks of this master run elsewhere than beside this process.

    >>> [needs_shipping(one) for one in ("local[4]", "local", "local-cluster[2,1,1024]", "spark://host:7077", "yarn")]
    [False, False, True, True, True]
    """
    return re.fullmatch(r"\s*local(\[[^]]*\])?\s*", master) is None


def package_zip(folder: Path | None = None) -> Path:
    """The zip of the package as it is now, in the user's cache folder unless told otherwise.

    The same sources give the same bytes and the same name.
    """
    contents = _contents()
    place = f"skytide-{hashlib.sha256(contents).hexdigest()[:16]}.zip"
    for home in [folder] if folder is not None else [_cache_folder() / "packages", None]:
        try:
            return _kept(home if home is not None else Path(tempfile.mkdtemp(prefix="skytide-")), place, contents)
        except OSError:
            if home is None or folder is not None:
                raise
    raise AssertionError("a place was found or an error raised")


def _kept(home: Path, name: str, contents: bytes) -> Path:
    path = home / name
    if path.is_file() and path.stat().st_size == len(contents):
        return path
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=home, prefix=".zip-", delete=False) as file:
        file.write(contents)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
    return path


def _contents() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, path in sorted(_files()):
            # The time of day and the rights of a file would change the bytes, and with them the name.
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            file.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def _files() -> Iterator[tuple[str, Path]]:
    yield "skytide/__init__.py", Path(shipped.__file__)
    yield from _folder(Path(skytide.__file__).parent, f"{shipped.PAYLOAD}/skytide")
    for name in BESIDE:
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            yield from _folder(Path(found.origin).parent, name)


def _folder(root: Path, name: str) -> Iterator[tuple[str, Path]]:
    for path in root.rglob("*"):
        inner = path.relative_to(root)
        if path.is_file() and "__pycache__" not in inner.parts:
            yield f"{name}/{inner.as_posix()}", path
