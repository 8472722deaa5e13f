"""The files of a log: the heads of files and entries, reading them back, and writing files that are whole or not there.

    N.snapshot      magic, version, N, length, checksum of the data, checksum of the head; the data
    N.log           magic, version, N, checksum; then entries:
                    mark, length, kind, how far the log was synced, checksum of the data, checksum of the head; the data

The checksum of an entry's head covers its place, so that data which looks like an entry is none.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from skytide.errors import StateError

LARGEST = 1 << 26
"""Bytes of an entry at most."""
SEAL = (1 << 32) - 1
"""The kind of the entry that a log ends with when it was closed in order."""
REMEDY = "restore the folder from a copy, or give an empty one: the sites tell all again"

_VERSION = 1
_LOG_HEAD = struct.Struct("<8sIQ")
_SNAPSHOT_HEAD = struct.Struct("<8sIQQI")
_LOG_MAGIC, _SNAPSHOT_MAGIC = b"SKYLOG\r\n", b"SKYSNAP\n"
_ENTRY = struct.Struct("<4sIIQI")
_MARK = b"\xf5ent"
_CHECK = struct.Struct("<I")
ENTRY_SIZE = _ENTRY.size + _CHECK.size
"""Bytes of an entry besides its data."""
FIRST = _LOG_HEAD.size + _CHECK.size
"""Where the first entry of a log begins."""
CHUNK = 1 << 20
_NAME = re.compile(r"(\d{10})\.(log|snapshot)(\.tmp)?")


class Entry(NamedTuple):
    """What was appended: a number that says what the bytes are, and the bytes."""

    kind: int
    data: bytes


# -- reading -----------------------------------------------------------------------------------------------------------


@dataclass
class Scan:
    """The entries of a log file up to the first bytes that are none; `end` is where those begin."""

    file: BinaryIO
    path: Path
    generation: int
    size: int = -1
    end: int = FIRST

    def __post_init__(self) -> None:
        if self.size < 0:
            self.size = os.fstat(self.file.fileno()).st_size
        expected = log_head(self.generation)
        head = self.file.read(FIRST)
        if head[:8] != expected[:8] and len(head) == FIRST:
            raise StateError("this is no log", file=str(self.path), remedy=REMEDY)
        if head[:12] != expected[:12] and len(head) == FIRST and _sound(head):
            (version,) = struct.unpack_from("<I", head, 8)
            reason = f"the log is of version {version}, this program reads {_VERSION}"
            raise StateError(reason, file=str(self.path), remedy="use that version")
        if head != expected:
            raise StateError("the head of the log is damaged", file=str(self.path), remedy=REMEDY)

    def __iter__(self) -> Iterator[Entry]:
        while self.end + ENTRY_SIZE <= self.size:
            head = self.file.read(ENTRY_SIZE)
            if not _is_entry(head, self.generation, self.end):
                return
            _, length, kind, _, check = _ENTRY.unpack_from(head)
            if length > LARGEST or self.end + ENTRY_SIZE + length > self.size:
                return
            data = self.file.read(length)
            if zlib.crc32(data) != check:
                return
            self.end += ENTRY_SIZE + length
            if kind != SEAL:
                yield Entry(kind, data)

    def refuse_damage(self, bad: int) -> None:
        """An error where an entry behind says that the bytes at `bad` had been synced. O(bytes behind)."""
        place = bad + 1
        while place < self.size:
            self.file.seek(place)
            window = self.file.read(CHUNK)
            start = window.find(_MARK)
            while 0 <= start <= len(window) - ENTRY_SIZE:
                head = window[start : start + ENTRY_SIZE]
                if _is_entry(head, self.generation, place + start) and _ENTRY.unpack_from(head)[3] > bad:
                    raise StateError(
                        f"the log is damaged at byte {bad} of {self.size}, before what was acknowledged later",
                        file=str(self.path),
                        remedy=REMEDY,
                    )
                start = window.find(_MARK, start + 1)
            if place + len(window) >= self.size:
                return
            place += len(window) - ENTRY_SIZE + 1


def _is_entry(head: bytes, generation: int, place: int) -> bool:
    return head.startswith(_MARK) and _CHECK.unpack_from(head, _ENTRY.size)[0] == zlib.crc32(
        head[: _ENTRY.size], _seed(generation, place)
    )


def current(path: Path) -> tuple[int, bool]:
    """The generation that counts, and whether it has begun; an error where files are missing."""
    found: dict[str, set[int]] = {"log": set(), "snapshot": set()}
    for file in path.iterdir():
        match = _NAME.fullmatch(file.name)
        if match and not match[3]:
            found[match[2]].add(int(match[1]))
    logs, snapshots = found["log"], found["snapshot"]
    generation = max(snapshots, default=0)
    if generation and generation not in logs:
        raise StateError(f"the log of generation {generation} is missing", file=str(path), remedy=REMEDY)
    begun = generation in logs
    for other in sorted(one for one in logs if one > generation):
        # A checkpoint that was not finished leaves an empty log, and the generation before it.
        if not begun or other != generation + 1 or log_path(path, other).stat().st_size > FIRST:
            raise StateError(f"the snapshot of generation {other} is missing", file=str(path), remedy=REMEDY)
    return generation, begun


def read_snapshot(path: Path, generation: int) -> bytes:
    """The snapshot of a generation, checked."""
    file = snapshot_path(path, generation)
    raw = file.read_bytes()
    start = _SNAPSHOT_HEAD.size + _CHECK.size
    if len(raw) < start or not _sound(raw[:start]):
        raise StateError("the head of the snapshot is damaged", file=str(file), remedy=REMEDY)
    magic, version, named, length, check = _SNAPSHOT_HEAD.unpack_from(raw)
    if magic != _SNAPSHOT_MAGIC or named != generation:
        raise StateError("this is not the snapshot that its name says", file=str(file), remedy=REMEDY)
    if version != _VERSION:
        reason = f"the snapshot is of version {version}, this program reads {_VERSION}"
        raise StateError(reason, file=str(file), remedy="use that version")
    data = raw[start:]
    if len(data) != length or zlib.crc32(data) != check:
        raise StateError("the snapshot is damaged", file=str(file), remedy=REMEDY)
    return data


# -- files -------------------------------------------------------------------------------------------------------------


def take(lock: int, path: Path) -> None:
    """Lock the folder, or an error that names the process that has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(lock, 20, 0).decode("ascii", "replace").strip() or "unknown"
        raise StateError(
            f"another process has the log (process {holder})", file=str(path), remedy="stop it, or give another folder"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def log_path(path: Path, generation: int) -> Path:
    """The log of a generation."""
    return path / f"{generation:010d}.log"


def snapshot_path(path: Path, generation: int) -> Path:
    """The snapshot of a generation."""
    return path / f"{generation:010d}.snapshot"


def snapshot_head(generation: int, data: bytes) -> bytes:
    """What a snapshot begins with."""
    head = _SNAPSHOT_HEAD.pack(_SNAPSHOT_MAGIC, _VERSION, generation, len(data), zlib.crc32(data))
    return head + _CHECK.pack(zlib.crc32(head))


def _seed(generation: int, place: int) -> int:
    return zlib.crc32(struct.pack("<QQ", generation, place))


def _sound(head: bytes) -> bool:
    return bool(zlib.crc32(head[:-4]) == _CHECK.unpack(head[-4:])[0])


def log_head(generation: int) -> bytes:
    """What a log begins with."""
    head = _LOG_HEAD.pack(_LOG_MAGIC, _VERSION, generation)
    return head + _CHECK.pack(zlib.crc32(head))


def entry_head(generation: int, place: int, entry: Entry, synced: int) -> bytes:
    """What stands before the data of an entry at a place."""
    head = _ENTRY.pack(_MARK, len(entry.data), entry.kind, synced, zlib.crc32(entry.data))
    return head + _CHECK.pack(zlib.crc32(head, _seed(generation, place)))


def write_at(file: int, data: bytes, place: int) -> int:
    """Write all of it, and say where it ends."""
    view = memoryview(data)
    while view:
        count = os.pwrite(file, view, place)
        place, view = place + count, view[count:]
    return place


def write_new(path: Path, pieces: list[bytes]) -> None:
    """A file that is there whole or not at all; the caller syncs the folder."""
    draft = path.with_name(path.name + ".tmp")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        place = 0
        for piece in pieces:
            place = write_at(file, piece, place)
        os.fsync(file)
    finally:
        os.close(file)
    draft.replace(path)


def sync_folder(path: Path) -> None:
    """Make names that were given or taken last."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove(path: Path, *, keep: int) -> None:
    """Remove the files of all other generations, and drafts."""
    for file in list(path.iterdir()):
        match = _NAME.fullmatch(file.name)
        if match and (match[3] or int(match[1]) != keep):
            file.unlink(missing_ok=True)


def said(problem: OSError) -> str:
    """What the system said."""
    return problem.strerror or type(problem).__name__
