"""Folders that sinks write whole files into: local ones, and those that pyarrow reaches (s3, gs, hdfs, ...).

A file appears under its name with all of its contents or not at all, also when the machine stops in between; one of the
same name is replaced in the same step. Names that begin with a dot are files not finished, which no reader looks at.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from skytide.errors import OptionError, OutputError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|file:")
_REASONS = {
    errno.ENOSPC: ("the disk is full", "make room and start again: nothing is lost"),
    errno.EDQUOT: ("the quota is used up", "make room and start again: nothing is lost"),
    errno.EFBIG: ("the file would be larger than allowed", "allow more and start again: nothing is lost"),
    errno.EACCES: ("there is no right to write it", "choose another folder, or give the right"),
    errno.EPERM: ("there is no right to write it", "choose another folder, or give the right"),
    errno.EROFS: ("the file system is for reading only", "choose another folder"),
    errno.ENOTDIR: ("a part of the path is a file", "choose another folder"),
    errno.EEXIST: ("a part of the path is a file", "choose another folder"),
}


class Folder(Protocol):
    """A folder of whole files."""

    def put(self, name: str, data: bytes) -> None:
        """Make or replace a file, in one step; it is durable when this returns."""
        ...

    def get(self, name: str) -> bytes:
        """What a file holds; FileNotFoundError where it is not there."""
        ...

    def names(self) -> list[str]:
        """The finished files, sorted; none where the folder does not exist."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def remove(self) -> None:
        """Remove the folder with all files, if it is there."""
        ...


def open_folder(path: str | os.PathLike[str]) -> Folder:
    """The folder of a local path, a `file:` URI, or a URI of a file system that pyarrow knows.

    >>> open_folder("results/changes"), open_folder("file:///tmp/a%20b")
    (LocalFolder('results/changes'), LocalFolder('/tmp/a b'))
    >>> open_folder("gopher://host/x")
    Traceback (most recent call last):
    ...
    skytide.errors.OptionError: 'gopher://host/x' is not in a file system that is known (Unrecognized ...); use ...
    """
    text = os.fspath(path)
    if not text:
        raise OptionError("the path of a sink is empty", remedy="name a folder")
    if not _SCHEME.match(text):
        return LocalFolder(Path(text))
    if text.lower().startswith("file:"):
        return LocalFolder(Path(unquote(urlsplit(text).path)))
    try:
        system, inner = fs.FileSystem.from_uri(text)
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise OptionError(
            f"is not in a file system that is known ({str(problem).splitlines()[0]})",
            value=text,
            remedy="use a local path or a URI that pyarrow knows, such as s3://bucket/folder",
        ) from None
    return RemoteFolder(system, inner)


class LocalFolder:
    """A folder of this machine: files are written under another name, flushed to the disk, and renamed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"LocalFolder({str(self.path)!r})"

    def put(self, name: str, data: bytes) -> None:
        """Make or replace a file, in one step; it is durable when this returns."""
        target = self.path / name
        with _explained(str(target)):
            self.path.mkdir(parents=True, exist_ok=True)
            self._sweep(name)
            fresh = self.path / f".{name}.{uuid.uuid4().hex}"
            try:
                with fresh.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                fresh.replace(target)
            except BaseException:
                with contextlib.suppress(OSError):
                    fresh.unlink(missing_ok=True)
                raise
            _flush_folder(self.path)

    def _sweep(self, name: str) -> None:
        # What a crash left of an earlier attempt at this very file.
        for left in self.path.glob(f".{name}.*"):
            left.unlink(missing_ok=True)

    def get(self, name: str) -> bytes:
        """What a file holds; FileNotFoundError where it is not there."""
        return (self.path / name).read_bytes()

    def names(self) -> list[str]:
        """The finished files, sorted; none where the folder does not exist."""
        with _explained(str(self.path)):
            try:
                return sorted(entry.name for entry in os.scandir(self.path) if not entry.name.startswith("."))
            except FileNotFoundError:
                return []

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        with _explained(str(self.path / name)):
            (self.path / name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder with all files, if it is there."""
        with _explained(str(self.path)), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.path)


class RemoteFolder:
    """A folder that pyarrow reaches: files are written under another name and moved.

    Where moving does not replace, the old file goes first: a reader may then find none for a moment, but never a part.
    """

    def __init__(self, system: Any, path: str) -> None:
        self.system = system
        self.path = path.rstrip("/")

    def put(self, name: str, data: bytes) -> None:
        """Make or replace a file; it is there in full when this returns."""
        target, fresh = f"{self.path}/{name}", f"{self.path}/.{name}.{uuid.uuid4().hex}"
        with _explained(target):
            self.system.create_dir(self.path, recursive=True)
            try:
                with self.system.open_output_stream(fresh) as stream:
                    stream.write(data)
                self._move(fresh, target)
            except BaseException:
                with contextlib.suppress(OSError):
                    self.system.delete_file(fresh)
                raise

    def _move(self, fresh: str, target: str) -> None:
        try:
            self.system.move(fresh, target)
        except OSError:
            if self.system.get_file_info(target).type != fs.FileType.File:
                raise
            self.system.delete_file(target)
            self.system.move(fresh, target)

    def get(self, name: str) -> bytes:
        """What a file holds; FileNotFoundError where it is not there."""
        with self.system.open_input_stream(f"{self.path}/{name}") as stream:
            data: bytes = stream.read()
            return data

    def names(self) -> list[str]:
        """The finished files, sorted; none where the folder does not exist."""
        with _explained(self.path):
            found = self.system.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
            return sorted(one.base_name for one in found if one.is_file and not one.base_name.startswith("."))

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        with _explained(f"{self.path}/{name}"), contextlib.suppress(FileNotFoundError):
            self.system.delete_file(f"{self.path}/{name}")

    def remove(self) -> None:
        """Remove the folder with all files, if it is there."""
        with _explained(self.path), contextlib.suppress(FileNotFoundError):
            self.system.delete_dir(self.path)


@contextlib.contextmanager
def _explained(file: str) -> Iterator[None]:
    """What the system says, as an error with a remedy."""
    try:
        yield
    except OSError as problem:
        said = problem.strerror or str(problem).splitlines()[0]
        reason, remedy = _REASONS.get(
            problem.errno or 0, (f"cannot be written ({said})", "see that the place is there")
        )
        raise OutputError(reason, file=file, remedy=remedy) from problem


def _flush_folder(path: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- files by micro-batch ----------------------------------------------------------------------------------------------


def batch_name(prefix: str, batch: int, extension: str) -> str:
    """The name of a micro-batch's file; names sort as numbers do.

    >>> batch_name("batch", 7, ".parquet")
    'batch-0000000000000000007.parquet'
    """
    return f"{prefix}-{batch:019d}{extension}"


def batches(names: list[str], prefix: str, extension: str) -> list[int]:
    """The micro-batches that have a file, in order.

    >>> batches([batch_name("a", 12, ".csv"), batch_name("b", 3, ".csv"), "a-1.csv"], "a", ".csv")
    [12]
    """
    form = re.compile(rf"{re.escape(prefix)}-(\d{{19}}){re.escape(extension)}")
    return sorted(int(found[1]) for name in names if (found := form.fullmatch(name)))
