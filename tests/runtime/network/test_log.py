"""The log: what was acknowledged is there after a crash, and damage is told from a torn tail."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError, OutputError, SkytideError, StateError
from skytide.runtime.network.log import Log
from skytide.runtime.network.log_files import ENTRY_SIZE, FIRST, LARGEST, SEAL

ENTRIES = st.lists(st.tuples(st.integers(0, SEAL - 1), st.binary(max_size=40)), max_size=8)


def _contents(folder: Path) -> list[tuple[int, bytes]]:
    with Log.open(folder) as log:
        return [(kind, data) for kind, data in log.entries]


def _log_file(folder: Path) -> Path:
    [file] = folder.glob("*.log")
    return file


def _written(folder: Path, batches: list[list[tuple[int, bytes]]], *, seal: bool = False) -> bytes:
    """The bytes of a log with a sync after each batch; without a seal it is as after a crash."""
    log = Log.open(folder)
    for batch in batches:
        for kind, data in batch:
            log.append(kind, data)
        log.sync()
    raw = _log_file(folder).read_bytes()
    log.close()
    if not seal:
        _log_file(folder).write_bytes(raw)
    return _log_file(folder).read_bytes()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(ENTRIES, st.none() | st.binary(max_size=30), st.booleans()), max_size=6))
def test_what_was_written_is_read_back_after_any_number_of_openings(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[tuple[int, bytes]], bytes | None, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = Log.open(folder)
    snapshot: bytes | None = None
    expected: list[tuple[int, bytes]] = []
    for entries, checkpoint, again in steps:
        for kind, data in entries:
            log.append(kind, data)
        log.sync()
        expected += entries
        assert log.size == _log_file(folder).stat().st_size
        if checkpoint is not None:
            log.checkpoint(checkpoint)
            snapshot, expected = checkpoint, []
            assert log.size == FIRST
        if again:
            log.close()
            log = Log.open(folder)
            assert (log.snapshot, [tuple(entry) for entry in log.entries], log.note) == (snapshot, expected, None)
    log.close()
    with Log.open(folder) as log:
        assert (log.snapshot, [tuple(entry) for entry in log.entries]) == (snapshot, expected)
    assert len(list(folder.glob("*.log"))) == 1 and len(list(folder.glob("*.snapshot"))) <= 1


def test_a_log_cut_at_any_byte_has_the_entries_before_the_cut(tmp_path: Path) -> None:
    batches = [[(1, b"one"), (2, b"")], [(3, b"three" * 5)], [(4, b"four"), (5, b"\xf5ent" * 9)]]
    raw = _written(tmp_path, batches)
    flat = [entry for batch in batches for entry in batch]
    ends = [FIRST]
    for _, data in flat:
        ends.append(ends[-1] + ENTRY_SIZE + len(data))
    for cut in range(FIRST, len(raw) + 1):
        _log_file(tmp_path).write_bytes(raw[:cut])
        whole = sum(end <= cut for end in ends[1:])
        with Log.open(tmp_path) as log:
            assert [tuple(entry) for entry in log.entries] == flat[:whole]
            assert (log.note is None) == (cut in ends)
            log.append(9, b"goes on")
            log.sync()
        assert _contents(tmp_path) == [*flat[:whole], (9, b"goes on")]
    for cut in range(FIRST):
        _log_file(tmp_path).write_bytes(raw[:cut])
        with pytest.raises(StateError, match="head of the log is damaged"):
            Log.open(tmp_path)


@pytest.mark.parametrize("seal", [False, True])
def test_a_flipped_bit_is_a_torn_tail_in_the_last_batch_only(tmp_path: Path, seal: bool) -> None:
    batches = [[(1, b"one"), (2, b"two")], [(3, b"three")], [(4, b"four"), (5, b"five")]]
    raw = _written(tmp_path, batches, seal=seal)
    flat = [entry for batch in batches for entry in batch]
    last = sum(ENTRY_SIZE + len(data) for batch in batches[:2] for _, data in batch) + FIRST
    safe = len(raw) - ENTRY_SIZE if seal else last
    for place in range(len(raw)):
        damaged = bytearray(raw)
        damaged[place] ^= 1 << place % 8
        _log_file(tmp_path).write_bytes(damaged)
        if place < safe:
            with pytest.raises(StateError) as caught:
                Log.open(tmp_path)
            assert caught.value.remedy
        else:
            with Log.open(tmp_path) as log:
                assert log.note is not None and "cut off" in log.note
                found = [tuple(entry) for entry in log.entries]
            assert found == flat if seal else found in (flat[:3], flat[:4])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_mess_in_what_was_not_synced_leaves_what_was(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """After a loss of power the pages behind the last sync may be there, be zeros, or be anything, in any order."""
    folder = tmp_path_factory.mktemp("log")
    acknowledged = data.draw(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=20)), max_size=4))
    later = data.draw(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=20)), min_size=1, max_size=5))
    batches = [[one] for one in acknowledged]
    _written(folder, batches)
    start = _log_file(folder).stat().st_size
    raw = bytearray(_written(folder, [later]))
    for place in range(start, len(raw)):
        if data.draw(st.booleans()):
            raw[place] = data.draw(st.sampled_from([0, 255, 0xF5]))
    raw += data.draw(st.binary(max_size=30))
    _log_file(folder).write_bytes(raw)
    found = _contents(folder)
    assert found[: len(acknowledged)] == acknowledged
    assert found == (acknowledged + later)[: len(found)]


def test_a_damaged_foreign_or_newer_snapshot_is_refused(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.checkpoint(b"all that there is")
    [file] = tmp_path.glob("*.snapshot")
    raw = file.read_bytes()
    for place in range(len(raw)):
        damaged = bytearray(raw)
        damaged[place] ^= 4
        file.write_bytes(damaged)
        with pytest.raises(StateError):
            Log.open(tmp_path)
        file.write_bytes(raw[:place])
        with pytest.raises(StateError):
            Log.open(tmp_path)
    head = bytearray(raw[:32])
    struct.pack_into("<I", head, 8, 2)
    file.write_bytes(bytes(head) + struct.pack("<I", zlib.crc32(head)) + raw[36:])
    with pytest.raises(StateError, match="version 2, this program reads 1"):
        Log.open(tmp_path)


def test_a_newer_log_is_refused_and_not_touched(tmp_path: Path) -> None:
    raw = bytearray(_written(tmp_path, [[(1, b"x")]]))
    struct.pack_into("<I", raw, 8, 2)
    struct.pack_into("<I", raw, 20, zlib.crc32(raw[:20]))
    _log_file(tmp_path).write_bytes(raw)
    with pytest.raises(StateError, match="version 2, this program reads 1"):
        Log.open(tmp_path)
    assert _log_file(tmp_path).read_bytes() == raw


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.checkpoint(b"state")
        log.append(1, b"x")
        log.sync()
    [snapshot], log_file = tmp_path.glob("*.snapshot"), _log_file(tmp_path)
    kept = snapshot.read_bytes()
    snapshot.unlink()
    with pytest.raises(StateError, match="snapshot of generation 1 is missing"):
        Log.open(tmp_path)
    snapshot.write_bytes(kept)
    log_file.unlink()
    with pytest.raises(StateError, match="log of generation 1 is missing"):
        Log.open(tmp_path)


def test_a_crash_at_any_step_of_a_checkpoint_leaves_the_old_or_the_new_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call that reaches the disk fails once, in its turn, and the files are then as a crash leaves them."""

    class Crash(BaseException):
        pass

    names = ("pwrite", "fsync", "open", "replace", "unlink")
    outcomes = set()
    for step in range(100):
        folder = tmp_path / str(step)
        log = Log.open(folder)
        log.append(1, b"old")
        log.sync()
        left = [step]

        def falling(real: object, left: list[int] = left) -> object:
            def call(*arguments: object, **named: object) -> object:
                left[0] -= 1
                if left[0] < 0:
                    raise Crash
                return real(*arguments, **named)  # type: ignore[operator]

            return call

        crashed = False
        with monkeypatch.context() as patch:
            for name in names[:3]:
                patch.setattr(os, name, falling(getattr(os, name)))
            for name in names[3:]:
                patch.setattr(Path, name, falling(getattr(Path, name)))
            try:
                log.checkpoint(b"new")
            except Crash:
                crashed = True
        os.close(log._lock)
        with Log.open(folder) as again:
            state = (again.snapshot, [tuple(entry) for entry in again.entries])
            assert state in ((None, [(1, b"old")]), (b"new", []))
            outcomes.add(state[0])
            assert again.note is None
        assert len(list(folder.glob("*.log"))) == 1 and not list(folder.glob("*.tmp"))
        if not crashed:
            break
    assert not crashed and outcomes == {None, b"new"} and step > 8


def test_an_error_in_a_checkpoint_leaves_the_log_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log.open(tmp_path)
    log.append(1, b"old")
    log.sync()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OutputError, match="No space left on device"):
            log.checkpoint(b"new")
    log.append(2, b"more")
    log.sync()
    log.close()
    assert _contents(tmp_path) == [(1, b"old"), (2, b"more")]


def test_after_a_sync_that_failed_nothing_more_is_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(_: int) -> None:
        raise OSError(5, "Input/output error")

    log = Log.open(tmp_path)
    log.append(1, b"x")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lost)
        with pytest.raises(OutputError, match="Input/output error"):
            log.sync()
    for use in (Log.sync, lambda log: log.append(1, b""), lambda log: log.checkpoint(b"")):
        with pytest.raises(OutputError, match="nobody knows"):
            use(log)
    log.close()


def test_entries_that_are_too_large_or_of_no_kind_are_refused(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        for kind in (-1, SEAL, 1 << 40):
            with pytest.raises(OptionError):
                log.append(kind, b"")
        with pytest.raises(OptionError):
            log.append(0, bytes(LARGEST + 1))
        log.append(0, bytes(LARGEST))
        log.sync()
    assert [len(data) for _, data in _contents(tmp_path)] == [LARGEST]
    with pytest.raises(StateError, match="closed"):
        log.sync()


def test_what_is_appended_while_another_thread_syncs_is_kept_in_order(tmp_path: Path) -> None:
    log = Log.open(tmp_path)
    done = threading.Event()

    def keep_syncing() -> None:
        while not done.is_set():
            log.sync()

    thread = threading.Thread(target=keep_syncing)
    thread.start()
    for number in range(3000):
        log.append(number, b"%d" % number)
    done.set()
    thread.join()
    log.sync()
    assert log.size == _log_file(tmp_path).stat().st_size
    log.close()
    assert _contents(tmp_path) == [(number, b"%d" % number) for number in range(3000)]


# -- processes ---------------------------------------------------------------------------------------------------------

WRITER = """
import sys
from skytide.runtime.network.log import Log
log = Log.open(sys.argv[1])
begin = sum(1 for _ in log.entries) + int.from_bytes(log.snapshot or b"", "little")
print("begin", begin, flush=True)
number = begin
while True:
    for _ in range(number % 7 + 1):
        log.append(number % 5, number.to_bytes(8, "little") * (number % 400))
        number += 1
    if number % 11 == 0:
        log.checkpoint(number.to_bytes(8, "little"))
    log.sync()
    print(number, flush=True)
"""


def test_all_that_was_acknowledged_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    dice, acknowledged = random.Random(1), 0
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, bufsize=1
        ) as writer:
            assert writer.stdout is not None
            word, begin = writer.stdout.readline().split()
            assert word == "begin" and int(begin) >= acknowledged
            for _ in range(dice.randrange(1, 120)):
                acknowledged = int(writer.stdout.readline())
            threading.Event().wait(dice.random() * 0.003)
            writer.send_signal(signal.SIGKILL)
            rest = writer.stdout.read().split("\n")[:-1]
            acknowledged = int(rest[-1]) if rest else acknowledged
        with Log.open(tmp_path) as log:
            first = int.from_bytes(log.snapshot or b"", "little")
            entries = list(log.entries)
            assert first + len(entries) >= acknowledged
            for number, (kind, data) in enumerate(entries, first):
                assert (kind, data) == (number % 5, number.to_bytes(8, "little") * (number % 400))
    assert acknowledged > 100


def test_a_second_process_is_told_who_has_the_log(tmp_path: Path) -> None:
    code = f"from skytide.runtime.network.log import Log\nLog.open({str(tmp_path)!r})"
    with Log.open(tmp_path):
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert f"another process has the log (process {os.getpid()})" in other.stderr
        with pytest.raises(StateError, match="another process"):
            Log.open(tmp_path)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


FULL = """
import resource, signal, sys
from skytide.errors import OutputError
from skytide.runtime.network.log import Log
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = Log.open(sys.argv[1])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
kept = 0
while True:
    log.append(kept, bytes(700))
    try:
        log.sync()
    except OutputError as problem:
        assert "make room" in str(problem), problem
        break
    kept += 1
try:
    log.checkpoint(bytes(6000))
except OutputError:
    print("refused", kept)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
log.sync()
log.append(99, b"after")
log.sync()
"""


def test_a_full_disk_loses_nothing_and_the_next_sync_tries_again(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    refused, kept = run.stdout.split()
    assert refused == "refused" and int(kept) > 2
    found = _contents(tmp_path)
    assert [kind for kind, _ in found] == [*range(int(kept) + 1), 99]


def test_a_folder_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SkytideError, match="give a folder that can be written"):
        Log.open(tmp_path / "file" / "data")


def test_files_and_the_folder_are_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "data"
    with Log.open(folder) as log:
        log.checkpoint(b"x")
    assert folder.stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())
