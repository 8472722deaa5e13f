"""Where a site's bytes come from: a file, a file that grows, standard input. Each `read` waits for a moment at most."""

from __future__ import annotations

import hashlib
import os
import select
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from skytide.errors import InputError

CHUNK = 1 << 16
ENDS = 1 << 10
"""So many bytes at its beginning, and before a place in it, tell a file from another that took its place."""
MOMENT = 0.1
"""Seconds that a read of a quiet pipe takes."""


class Piece(NamedTuple):
    """Some bytes; `first`: they begin a file."""

    data: bytes
    first: bool = False


@dataclass(frozen=True)
class Place:
    """How far a file was read: so many bytes and rows, and a digest of what it began with and came to."""

    offset: int
    row: int
    seen: str


class Source(Protocol):
    """Where bytes come from."""

    def read(self) -> Piece | None:
        """The next bytes; an empty piece where nothing is there yet; None at the end of all. It blocks for a moment."""
        ...

    def close(self) -> None:
        """Give the file free."""
        ...


def is_plain(path: str) -> bool:
    """Whether a path is a file that can be read again, as a pipe cannot."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except OSError as problem:
        raise InputError(problem.strerror or "it cannot be read", file=path) from None


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise InputError(problem.strerror or "it cannot be read", file=path) from None


class Pipe:
    """Standard input, or a path that is no plain file: read once, as it comes."""

    def __init__(self, file: int | str) -> None:
        self._file = file if isinstance(file, int) else _opened(file)

    def read(self) -> Piece | None:
        """See `Source`."""
        ready, _, _ = select.select([self._file], [], [], MOMENT)
        if not ready:
            return Piece(b"")
        data = os.read(self._file, CHUNK)
        return Piece(data) if data else None

    def close(self) -> None:
        """See `Source`."""
        if self._file > 2:
            os.close(self._file)


class Plain:
    """A file from its beginning to its end."""

    def __init__(self, path: str) -> None:
        self._file = _opened(path)

    def read(self) -> Piece | None:
        """See `Source`."""
        data = os.read(self._file, CHUNK)
        return Piece(data) if data else None

    def close(self) -> None:
        """See `Source`."""
        os.close(self._file)


class Growing:
    """A file that grows, is cut off and begun anew, or is replaced by another of its name.

    A file that is replaced is read to its end before. Of one that is cut off, what was not read by then is lost.
    """

    def __init__(self, path: str) -> None:
        self._path, self._file = path, _opened(path)
        self._offset, self._first = 0, True
        self._head = self._tail = b""

    def read(self) -> Piece | None:
        """See `Source`."""
        if self._begun_anew():
            self._go_to(0)
        piece = self._more()
        following = None if piece.data else self._replaced()
        if following is None:
            return piece
        piece = self._more()  # what was written between the last read and the new file
        if piece.data:
            os.close(following)
            return piece
        os.close(self._file)
        self._file = following
        self._go_to(0)
        return self._more()

    def _more(self) -> Piece:
        data = os.read(self._file, CHUNK)
        if not data:
            return Piece(b"")
        self._head = (self._head + data[:ENDS])[:ENDS]
        self._tail = (self._tail + data[-ENDS:])[-ENDS:]
        self._offset += len(data)
        first, self._first = self._first, False
        return Piece(data, first=first)

    def _begun_anew(self) -> bool:
        if os.fstat(self._file).st_size < self._offset:
            return True
        return self._ends(self._offset) != (self._head, self._tail)

    def _ends(self, offset: int) -> tuple[bytes, bytes]:
        """The first bytes of the file, and the last ones before a place."""
        size = min(ENDS, offset)
        return os.pread(self._file, size, 0), os.pread(self._file, size, offset - size)

    def _replaced(self) -> int | None:
        try:
            there, ours = Path(self._path).stat(), os.fstat(self._file)
            if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                return None
            return os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None  # between two files there may be none

    def _go_to(self, offset: int) -> None:
        os.lseek(self._file, offset, os.SEEK_SET)
        self._offset, self._first = offset, not offset
        self._head, self._tail = self._ends(offset)

    def place(self, offset: int, row: int) -> Place:
        """A place in the file that is read now."""
        return Place(offset, row, self._digest(offset))

    def _digest(self, offset: int) -> str:
        return hashlib.sha256(b"".join(self._ends(offset))).hexdigest()

    def resume(self, place: Place) -> bool:
        """Go on at a place, if it is one of this file; else the file is read from its beginning."""
        same = os.fstat(self._file).st_size >= place.offset and self._digest(place.offset) == place.seen
        self._go_to(place.offset if same else 0)
        return same

    def beginning(self) -> bytes:
        """The first bytes, a record of the largest size and more."""
        return os.pread(self._file, 2 << 20, 0)

    def close(self) -> None:
        """See `Source`."""
        os.close(self._file)
