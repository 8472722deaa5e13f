"""An append-only log with snapshots, for one process: what the coordinator must not forget.

A folder holds one generation: a snapshot, and a log of what came after it. A checkpoint begins the next generation; the
rename of its snapshot is the moment from which it counts, so that a crash leaves either the old one or the new one.

A crash may leave anything in what was not synced. Each entry therefore says how far the log was on the disk when it was
written. Bytes that make no entry are a torn tail, which is cut off, unless an entry behind them says that they had been
synced: then the log is damaged, and is not used. A log that was closed in order ends with such an entry.
The layout is in `log_files`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from skytide.errors import OptionError, OutputError, StateError
from skytide.runtime.network.log_files import (
    CHUNK,
    ENTRY_SIZE,
    FIRST,
    LARGEST,
    REMEDY,
    SEAL,
    Entry,
    Scan,
    current,
    entry_head,
    log_head,
    log_path,
    read_snapshot,
    remove,
    said,
    snapshot_head,
    snapshot_path,
    sync_folder,
    take,
    write_at,
    write_new,
)

logger = logging.getLogger(__name__)


class Log:
    """A folder with a snapshot and what was appended after it; one process has it at a time.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Log.open(folder.name) as log:
    ...     log.append(1, b"first")
    ...     log.sync()
    >>> with Log.open(folder.name) as log:
    ...     [entry.data for entry in log.entries]
    ...     log.checkpoint(b"all so far")
    [b'first']
    >>> with Log.open(folder.name) as log:
    ...     log.snapshot, list(log.entries)
    (b'all so far', [])
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path, lock: int, generation: int, snapshot: bytes | None) -> None:
        self._folder, self._lock, self._generation = folder, lock, generation
        self.snapshot = snapshot
        """The last snapshot as it was when the log was opened, or None."""
        self.note: str | None = None
        """What was cut off when the log was opened, or None."""
        self._file = -1
        self._end = self._synced = FIRST
        self._read_end = FIRST
        self._waiting: list[Entry] = []
        self._waiting_bytes = 0
        self._busy = threading.Lock()  # held by whoever writes, for as long as that takes
        self._counting = threading.Lock()  # held for a moment
        self._checkpointing = self._broken = self._closed = False

    @classmethod
    def open(cls, folder: str | Path) -> Log:
        """The log of a folder, which is made where it is missing. O(bytes of the log and its snapshot)."""
        path = Path(folder)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise OutputError(said(problem), file=str(path), remedy="give a folder that can be written") from None
        try:
            take(lock, path)
            return cls._opened(path, lock)
        except BaseException:
            os.close(lock)
            raise

    @classmethod
    def _opened(cls, path: Path, lock: int) -> Log:
        try:
            generation, begun = current(path)
            snapshot = read_snapshot(path, generation) if generation else None
            if not begun:
                write_new(log_path(path, 0), [log_head(0)])
                sync_folder(path)
            log = cls(path, lock, generation, snapshot)
            log._file = os.open(log_path(path, generation), os.O_RDWR | os.O_CLOEXEC)
            try:
                log._recover()
                remove(path, keep=generation)
            except BaseException:
                os.close(log._file)
                raise
        except OSError as problem:
            raise StateError(f"the log cannot be read: {said(problem)}", file=str(path), remedy=REMEDY) from None
        return log

    def _recover(self) -> None:
        path = log_path(self._folder, self._generation)
        with path.open("rb") as file:
            scan = Scan(file, path, self._generation)
            for _ in scan:
                pass
            good, size = scan.end, scan.size
            if good < size:
                scan.refuse_damage(good)
                self.note = f"{path}: {size - good} bytes at the end were never acknowledged, and are cut off"
                logger.warning(self.note)
                os.ftruncate(self._file, good)
        os.fsync(self._file)
        self._end = self._synced = self._read_end = good

    @property
    def entries(self) -> Iterator[Entry]:
        """What had been appended after the snapshot when the log was opened, in its order. O(bytes)."""
        path = log_path(self._folder, self._generation)
        try:
            with path.open("rb") as file:
                yield from Scan(file, path, self._generation, self._read_end)
        except OSError as problem:
            raise StateError(f"the log cannot be read: {said(problem)}", file=str(path), remedy=REMEDY) from None

    @property
    def size(self) -> int:
        """Bytes of the log, with what waits to be written, without the snapshot."""
        return self._end + self._waiting_bytes

    def append(self, kind: int, data: bytes) -> None:
        """Add an entry; it is on the disk when a `sync` that began later has returned. O(1), never blocks."""
        if not 0 <= kind < SEAL:
            raise OptionError("is not a kind of entry", value=kind, remedy=f"give a number from 0 to {SEAL - 1}")
        if len(data) > LARGEST:
            raise OptionError("bytes are too many for an entry", value=len(data), remedy=f"give {LARGEST} at most")
        self._check()
        if self._checkpointing:
            raise RuntimeError("an entry during a checkpoint belongs to neither generation")
        with self._counting:
            self._waiting.append(Entry(kind, bytes(data)))
            self._waiting_bytes += ENTRY_SIZE + len(data)

    def sync(self) -> None:
        """Write what waits, and return when it is on the disk. It blocks; another thread may append meanwhile.

        An error leaves what waits where it is. When the disk was only full, the next `sync` tries again.
        """
        with self._busy:
            self._check()
            count = len(self._waiting)
            if not count and self._synced == self._end:
                return
            end = self._write(self._waiting[:count])
            try:
                os.fsync(self._file)
            except OSError as problem:
                # What the system could not write it may have forgotten: to try again would succeed without writing.
                self._broken = True
                raise self._failed(problem) from None
            with self._counting:
                self._waiting_bytes -= end - self._end
                del self._waiting[:count]
                self._end = self._synced = end

    def _write(self, entries: list[Entry]) -> int:
        """Write entries behind the end, and say where they end; where that fails, the file is as before."""
        place, pieces, gathered = self._end, list[bytes](), 0
        written = self._end
        try:
            for entry in entries:
                pieces += [entry_head(self._generation, place, entry, self._synced), entry.data]
                place += ENTRY_SIZE + len(entry.data)
                gathered += ENTRY_SIZE + len(entry.data)
                if gathered >= CHUNK:
                    written = write_at(self._file, b"".join(pieces), written)
                    pieces, gathered = [], 0
            return write_at(self._file, b"".join(pieces), written)
        except OSError as problem:
            try:
                os.ftruncate(self._file, self._end)
            except OSError:
                self._broken = True
            raise self._failed(problem) from None

    def checkpoint(self, snapshot: bytes) -> None:
        """Put a snapshot in the place of all that was appended, and begin with an empty log. O(bytes of it), blocks.

        The snapshot must tell of everything that was appended; nothing may be appended until this returns.
        """
        with self._busy:
            self._check()
            self._checkpointing = True
            try:
                self._next_generation(snapshot)
            finally:
                self._checkpointing = False
            with contextlib.suppress(OSError):  # files of the past are in nobody's way
                remove(self._folder, keep=self._generation)

    def _next_generation(self, snapshot: bytes) -> None:
        following = self._generation + 1
        new_log, new_snapshot = log_path(self._folder, following), snapshot_path(self._folder, following)
        file = -1
        try:
            write_new(new_log, [log_head(following)])
            file = os.open(new_log, os.O_RDWR | os.O_CLOEXEC)
            sync_folder(self._folder)  # the log is there before the snapshot that makes it the current one
            write_new(new_snapshot, [snapshot_head(following, snapshot), snapshot])
        except OSError as problem:
            if file >= 0:
                os.close(file)
            # Renamed, but perhaps not for good: nobody knows which generation a crash would leave.
            self._broken = new_snapshot.exists()
            if not self._broken:
                with contextlib.suppress(OSError):
                    remove(self._folder, keep=self._generation)
            raise self._failed(problem) from None
        os.close(self._file)
        self._file, self._generation = file, following
        self._end = self._synced = self._read_end = FIRST
        self._waiting.clear()
        self._waiting_bytes = 0
        try:
            sync_folder(self._folder)
        except OSError as problem:
            self._broken = True
            raise self._failed(problem) from None

    def close(self) -> None:
        """Give the folder free. What was not synced is lost. Safe to call twice."""
        with self._busy:
            if self._closed:
                return
            self._closed = True
            if self._end > self._read_end and not self._broken:
                with contextlib.suppress(OutputError, OSError):  # without a seal the log is as good, only less sure
                    self._write([Entry(SEAL, b"")])
                    os.fsync(self._file)
            os.close(self._file)
            os.close(self._lock)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> None:
        if self._closed:
            raise StateError("the log is closed", file=str(self._folder), remedy="open it again")
        if self._broken:
            raise OutputError(
                "nobody knows what of the log is on the disk since an earlier error",
                file=str(self._folder),
                remedy="look after the disk and start again",
            )

    def _failed(self, problem: OSError) -> OutputError:
        remedy = "look after the disk and start again" if self._broken else "make room on the disk"
        return OutputError(f"the log cannot be written: {said(problem)}", file=str(self._folder), remedy=remedy)
