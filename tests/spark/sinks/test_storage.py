"""Folders of whole files: nothing half-written is ever seen, and what goes wrong is said in one line."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyarrow import fs

from skytide.errors import OptionError, OutputError
from skytide.spark.sinks.storage import Folder, LocalFolder, RemoteFolder, batch_name, batches, open_folder


@pytest.fixture(params=["local", "remote"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    if request.param == "local":
        return LocalFolder(tmp_path / "deep" / "folder")
    return RemoteFolder(fs._MockFileSystem(), "bucket/folder")


def test_a_file_is_made_replaced_and_removed(folder: Folder) -> None:
    assert folder.names() == []
    folder.put("b", b"1")
    folder.put("a", b"2" * 100_000)
    folder.put("b", b"3")
    assert folder.names() == ["a", "b"]
    assert folder.get("b") == b"3" and len(folder.get("a")) == 100_000
    folder.delete("b")
    folder.delete("b")
    assert folder.names() == ["a"]
    with pytest.raises(FileNotFoundError):
        folder.get("b")


def test_a_file_system_that_moves_onto_nothing_only_still_replaces() -> None:
    class Strict(fs._MockFileSystem):  # type: ignore[misc]
        def move(self, source: str, target: str) -> None:
            if self.get_file_info(target).type != fs.FileType.NotFound:
                raise OSError("it is there already")
            super().move(source, target)

    strict = RemoteFolder(Strict(), "bucket")
    strict.put("a", b"1")
    strict.put("a", b"2")
    assert strict.get("a") == b"2" and strict.names() == ["a"]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The system itself refuses what is larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_the_system_stops_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    folder.put("a", b"old")
    with largest_file(4096), pytest.raises(OutputError, match=r"a: the file would be larger than allowed; .*again"):
        folder.put("a", b"new" * 10_000)
    assert folder.get("a") == b"old" and [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="the system has no device that is always full")
def test_a_full_disk_is_said_to_be_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        with open("/dev/full", "wb", buffering=0) as device:  # noqa: PTH123
            device.write(b"x")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="the disk is full; make room and start again: nothing is lost"):
        LocalFolder(tmp_path).put("a", b"1")
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/inner/a: a part of the path is a file"):
        LocalFolder(tmp_path / "file" / "inner").put("a", b"1")
    with pytest.raises(OutputError, match=r"a: .*(written|right)"):
        LocalFolder(Path("/proc/skytide")).put("a", b"1")


def test_a_missing_right_is_named(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    everything_allowed = os.geteuid() == 0
    if everything_allowed:
        os.seteuid(65534)
    try:
        with pytest.raises(OutputError, match=r"a: there is no right to write it; choose another folder"):
            LocalFolder(tmp_path / "closed").put("a", b"1")
    finally:
        if everything_allowed:
            os.seteuid(0)


def test_what_a_crash_left_is_swept_away_and_never_listed(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    (tmp_path / ".a.0123").write_bytes(b"half of a")
    (tmp_path / ".b.0123").write_bytes(b"half of b")
    assert folder.names() == []
    folder.put("a", b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.0123", "a"]


def test_paths_and_uris_name_folders(tmp_path: Path) -> None:
    for text in (str(tmp_path / "a b"), (tmp_path / "a b").as_uri(), f"file:{tmp_path}/a%20b"):
        found = open_folder(text)
        assert isinstance(found, LocalFolder) and found.path == tmp_path / "a b"
    assert isinstance(open_folder("mock:///x"), RemoteFolder)
    with pytest.raises(OptionError, match="is not in a file system that is known"):
        open_folder("nonsense://x/y")
    with pytest.raises(OptionError, match="empty"):
        open_folder("")


def test_names_of_batches_sort_as_numbers() -> None:
    numbers = [0, 9, 10, 2**62]
    names = sorted(batch_name("batch", number, ".csv") for number in numbers)
    assert batches(names, "batch", ".csv") == numbers and names == [batch_name("batch", n, ".csv") for n in numbers]
    assert batches(names, "other", ".csv") == []
