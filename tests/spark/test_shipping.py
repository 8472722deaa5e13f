"""The package as a zip: the same bytes for the same sources, unpacked once, and on executors that have no Skytide."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skytide.spark.shipped import unpacked
from skytide.spark.shipping import package_zip

ROOT = Path(__file__).parents[2]


def test_the_same_sources_give_the_same_zip(tmp_path: Path) -> None:
    first, second = package_zip(tmp_path / "a"), package_zip(tmp_path / "b")
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert {"skytide/__init__.py", "payload/skytide/__init__.py", "payload/skytide/kernel/batch.py"} <= set(names)
    assert "pyspark_skytide/__init__.py" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]
    assert sum(entry.file_size for entry in zipfile.ZipFile(first).infolist()) < 10_000_000


def test_a_damaged_zip_in_the_cache_is_written_anew(tmp_path: Path) -> None:
    path = package_zip(tmp_path)
    right = path.read_bytes()
    path.write_bytes(right[:100])
    assert package_zip(tmp_path).read_bytes() == right
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_where_the_cache_cannot_be_written_the_zip_lies_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    path = package_zip()
    assert zipfile.is_zipfile(path) and not path.is_relative_to(tmp_path / "file")
    shutil.rmtree(path.parent)


def test_many_processes_may_unpack_at_once_and_nothing_half_done_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = package_zip(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: unpacked(archive), range(16)))
    (folder,) = folders
    assert folder == tmp_path / "cache" / "skytide" / archive.stem
    assert (folder / "skytide" / "kernel" / "batch.py").is_file()
    assert [entry.name for entry in folder.parent.iterdir()] == [folder.name]


def test_code_is_not_taken_from_a_folder_that_others_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = package_zip(tmp_path)
    (tmp_path / "cache" / "skytide").mkdir(parents=True)
    (tmp_path / "cache" / "skytide").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = unpacked(archive)
    assert folder.parent == tmp_path / f"skytide-{os.getuid()}"
    folder.parent.chmod(0o777)
    assert unpacked(archive).parent.name.startswith("skytide-") and unpacked(archive).parent != folder.parent


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has all packages but Skytide, as executors of a cluster may."""
    tmp_path = tmp_path_factory.mktemp("elsewhere")
    packages = tmp_path / "packages"
    packages.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "skytide" not in entry.name and entry.suffix != ".pth":
            (packages / entry.name).symlink_to(entry)
    program = tmp_path / "python"
    # Without `site`, what an installation of this package has put into site-packages is not looked at.
    program.write_text(
        f'#!/bin/sh\necho "$@" >> "{tmp_path}/started.log"\n'
        f'PYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n'
    )
    program.chmod(0o755)
    return program


def clean_environment(cache: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" and not name.startswith("SPARK")}
    return kept | {"XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}


PROBE = """
import json, sys
import numpy, skytide, skytide.kernel.dominance as module
kernels = [one for one in vars(module).values() if hasattr(one, "stats")]
mask = skytide.skyline(numpy.array([[1.0], [2.0]]))
from skytide.kernel import batch_filter, batch
stats = [one.stats for part in (batch, batch_filter) for one in vars(part).values() if hasattr(one, "stats")]
print(json.dumps([skytide.__file__, skytide.__spec__.origin, mask.tolist(),
                  sum(sum(one.cache_misses.values()) for one in stats),
                  sum(sum(one.cache_hits.values()) for one in stats)]))
"""


@dataclass(frozen=True)
class Probed:
    """A cache that a zip has been unpacked into, and what the first two processes found there."""

    cache: Path
    home: Path
    found: list[Any]


@pytest.fixture(scope="module")
def probed(elsewhere: Path, tmp_path_factory: pytest.TempPathFactory) -> Probed:
    """Shared, so that clusters find compiled what the first process has compiled."""
    folder = tmp_path_factory.mktemp("shipped")
    archive, cache = package_zip(folder), folder / "cache"
    environment = clean_environment(cache) | {"PYTHONPATH": str(archive)}
    command = [str(elsewhere), "-c", PROBE]
    found = [json.loads(subprocess.check_output(command, env=environment, text=True)) for _ in range(2)]
    return Probed(cache, cache / "skytide" / archive.stem / "skytide", found)


def test_the_zip_is_the_package_and_compiled_code_stays_beside_its_source(elsewhere: Path, probed: Probed) -> None:
    missing = subprocess.run(
        [elsewhere, "-c", "import skytide"], env=clean_environment(probed.cache), capture_output=True, text=True
    )
    assert "No module named 'skytide'" in missing.stderr
    home, found = probed.home, probed.found
    for origin, specified, mask, _, _ in found:
        assert origin == specified == str(home / "__init__.py")
        assert mask == [True, False]
    assert found[0][3] > 0 and found[1][3] == 0 and found[1][4] > 0, "the second process compiles nothing"
    assert list((home / "kernel" / "__pycache__").glob("*.nbi"))


def test_clusters_run_pipelines_on_executors_that_have_no_skytide(
    elsewhere: Path, probed: Probed, tmp_path: Path
) -> None:
    """A master and a worker, a server of Spark Connect: all on loopback."""
    pyspark = pytest.importorskip("pyspark")
    work = Path(pyspark.__file__).parent / "work"
    before = set(work.iterdir()) if work.exists() else None
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.clusters", str(elsewhere)],
            cwd=tmp_path,
            env=clean_environment(probed.cache) | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=600,
        )
    finally:
        if before is None:
            shutil.rmtree(work, ignore_errors=True)
        elif work.exists():
            for folder in set(work.iterdir()) - before:
                shutil.rmtree(folder, ignore_errors=True)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    homes = probed.cache / "skytide"
    for name in ("standalone", "connect"):
        assert found[name]["status"] == 0, found
        assert found[name]["rows"] == [1, 2, 3], found
        assert found[name]["workers"] > 0, "the Python that has no Skytide ran the tasks"
        assert all(Path(home).is_relative_to(homes) for home in found[name]["homes"]), found
