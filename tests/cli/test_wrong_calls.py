"""Wrong calls of every command: one line that says what, where and what to do, exit status 2, and no file."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import refused, run

HEAD = "id,t,s,a,b,p\nx,1,r,1,2,0.5\n"
FILES = {
    "good.csv": HEAD + "y,2,r,2,1,0.5\nz,3,q,3,0,0.9\n",
    "word.csv": HEAD + "y,2,r,oops,1,0.5\n",
    "time.csv": HEAD + "y,soon,r,2,1,0.5\n",
    "prob.csv": HEAD + "y,2,r,2,1,1.5\n",
    "no-id.csv": HEAD + ",2,r,2,1,0.5\n",
    "no-time.csv": HEAD + "y,,r,2,1,0.5\n",
    "no-site.csv": HEAD + "y,2,,2,1,0.5\n",
    "gap.csv": HEAD + "y,2,r,,1,0.5\n",
    "twice.csv": HEAD + "x,2,r,2,1,0.5\n",
    "header.csv": "id,t,s,a,b,p\n",
    "empty.csv": "",
    "short.csv": HEAD + "y,2\n",
    "broken.toml": "[source\n",
    "readme/readme.txt": "nothing",
}
OF = "--id id --time t"

# The call without DATA's usual options, and what the line must say.
CALLS = {
    "skyline none.csv --min a": ["none.csv", "no such file"],
    "skyline readme --min a": ["readme", "no .csv"],
    "skyline empty.csv --min a": ["empty.csv", "empty", "names of its columns"],
    "skyline good.csv --min c": ["good.csv", "column 'c'", "id, t, s, a, b, p"],
    "skyline good.csv --min": ["skytide skyline", "--min"],
    "skyline good.csv --min a --engine mars": ["--engine", "'mars'", "local"],
    "skyline good.csv --min a --min b --plot p.png --plot-columns a,id": ["good.csv", "row 1", "column 'id'", "'x'"],
    "explain good.csv --min a --row 4": ["good.csv", "'4'", "1 to 3"],
    "explain header.csv --min a --row 1": ["header.csv", "no rows"],
    "explain good.csv --min a --row 1 --limit -1": ["--limit", "-1"],
    "window good.csv --min a": ["--count", "--duration"],
    "window good.csv --min a --count 0": ["--count", "0"],
    "window good.csv --min a --duration 5parsecs --time t": ["'5parsecs'", "15m"],
    "window good.csv --min a --duration 5m --time t": ["good.csv", "'5m'", "plain numbers"],
    "window good.csv --min a --duration 5 --time t --until soon": ["'soon'"],
    "window good.csv --min a --duration 5 --time t --lateness -1": ["-1", "lateness"],
    "window time.csv --min a --duration 5 --time t": ["time.csv", "row 2", "column 't'", "'soon'"],
    "window no-time.csv --min a --duration 5 --time t": ["no-time.csv", "row 2", "column 't'", "--nulls drop"],
    "window no-id.csv --min a --count 5 --id id": ["no-id.csv", "row 2", "column 'id'"],
    "window twice.csv --min a --count 5 --id id": ["twice.csv", "row 2", "column 'id'", "'x'"],
    "window gap.csv --min a --count 5": ["gap.csv", "row 2", "column 'a'", "--nulls drop"],
    "window short.csv --min a --count 5": ["short.csv", "row 2"],
    "uncertain good.csv --min a --prob p --count 2 --threshold 2": ["2.0", "threshold"],
    "uncertain good.csv --min a --prob p --count 2 --threshold nan": ["nan", "threshold"],
    "uncertain prob.csv --min a --prob p --count 2 --threshold 0.5": ["prob.csv", "row 2", "column 'p'", "1.5"],
    "uncertain good.csv --min a --prob c --count 2 --threshold 0.5": ["good.csv", "column 'c'"],
    "uncertain no-id.csv --min a --prob p --count 2 --threshold 0.5 --object id": ["no-id.csv", "row 2", "column 'id'"],
    f"snapshots good.csv --min a {OF} --op divide": ["--op", "'divide'"],
    f"snapshots good.csv --min a {OF} --frequent 1.5 --over 3": ["'1.5'"],
    f"snapshots good.csv --min a {OF} --history none/h.parquet": ["none/h.parquet"],
    f"snapshots time.csv --min a {OF}": ["time.csv", "row 2", "column 't'", "'soon'"],
    f"snapshots no-id.csv --min a {OF}": ["no-id.csv", "row 2", "column 'id'"],
    f"snapshots gap.csv --min a --max b {OF}": ["gap.csv", "row 2", "column 'a'", "--nulls drop"],
    f"monitor good.csv --min a {OF} --theta 2 --over 3": ["'2'"],
    f"monitor good.csv --min a {OF} --theta 0.5 --over 3 --delta 7 --method sampling": ["7.0", "delta"],
    f"monitor word.csv --min a {OF} --cost cost.json": ["word.csv", "row 2", "column 'a'", "'oops'"],
    f"monitor no-time.csv --min a {OF}": ["no-time.csv", "row 2", "column 't'"],
    f"fragments good.csv --max c --site s {OF}": ["good.csv", "'c'", "not a column"],
    f"fragments good.csv --max var( --site s {OF}": ["'var('", "character 5"],
    f"fragments good.csv --max log(a-9) --site s {OF}": ["good.csv", "'x'", "--nulls drop"],
    f"fragments no-site.csv --max a --site s {OF}": ["no-site.csv", "row 2", "column 's'"],
    f"fragments word.csv --max a --site s {OF} --cost cost.json": ["word.csv", "row 2", "column 'a'", "'oops'"],
    "generate walk -n many": ["--rows", "'many'"],
    "generate anti-correlated -n 3 --deviation nan": ["nan", "deviation"],
    "generate walk -n 3 --objects 0": ["--objects", "0"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(content)
    return tmp_path


def everything(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_call_is_refused_in_one_line_and_leaves_no_file(call: str, folder: Path) -> None:
    before = everything(folder)
    writes = [] if call.startswith("explain") else ["-o", "out.csv"]
    words = shlex.split(call)
    arguments = [words[0], *writes, *words[1:]]
    line = refused(*arguments)
    for word in CALLS[call]:
        assert word in line
    assert everything(folder) == before


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("run none.toml", "none.toml"),
        ("run readme", "readme"),
        ("run broken.toml --check", "line 1"),
        ("run broken.toml --master local --remote sc://x", "--master"),
        ("doctor --xml", "--xml"),
        ("bench nothing", "'nothing'"),
        ("completion", "SHELL"),
    ],
)
def test_a_wrong_call_of_a_command_without_data_is_refused_alike(call: str, says: str, folder: Path) -> None:
    before = everything(folder)
    assert says in refused(*shlex.split(call))
    assert everything(folder) == before


WRITING = [
    "skyline good.csv --min a -o {}.csv",
    "skyline good.csv --min a --min b --plot {}.png",
    "window good.csv --min a --count 2 --dead-letters {}.csv -o good-out.csv",
    f"snapshots good.csv --min a {OF} --history {{}}.parquet -o good-out.csv",
    f"monitor good.csv --min a {OF} --cost {{}}.json -o good-out.csv",
    f"fragments good.csv --min a --site s {OF} --cost {{}}.json -o good-out.csv",
    "generate walk -n 3 -o {}.csv",
]


@pytest.mark.parametrize("call", WRITING)
def test_a_folder_that_takes_no_file_is_told_of_by_the_name_that_was_given_and_no_other_file_is_written(
    call: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "locked").mkdir()
    before = everything(folder)
    make = tempfile.mkstemp

    def refuse(*arguments: Any, **options: Any) -> Any:
        if Path(str(options.get("dir"))).name == "locked":
            raise PermissionError(errno.EACCES, "Permission denied", str(Path("locked") / ".temporary"))
        return make(*arguments, **options)

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    line = refused(*shlex.split(call.format("locked/it")))
    assert "locked/it." in line and "Permission denied" in line and ".temporary" not in line
    assert everything(folder) == before


@pytest.mark.parametrize("extension", ["csv", "jsonl", "parquet"])
def test_a_file_that_cannot_be_read_is_told_of(extension: str, folder: Path) -> None:
    (folder / f"data.{extension}").symlink_to("/proc/self/mem")
    if not Path("/proc/self/mem").exists():
        pytest.skip("there is no file here that nobody can read")
    assert f"data.{extension}" in refused("skyline", f"data.{extension}", "--min", "a")


def test_the_cost_appears_whole_with_ordinary_rights_or_not_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["monitor", "good.csv", "--min", "a", *OF.split(), "--cost", "cost.json", "-o", "out.csv"]
    assert run(*call).exit_code == 0
    told = Path("cost.json").read_text()
    assert Path("cost.json").stat().st_mode == Path("good.csv").stat().st_mode

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert "No space left" in refused(*call)
    assert Path("cost.json").read_text() == told
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.skipif(os.name == "nt", reason="shells there close no streams")
@pytest.mark.parametrize(
    ("redirection", "status", "says"),
    [(">&-", 2, "skytide: standard output is closed\n"), ("2>&-", 0, ""), ("<&-", 0, "")],
)
def test_streams_that_are_closed_before_the_start_are_no_reason_for_a_traceback(
    redirection: str, status: int, says: str, folder: Path
) -> None:
    call = f"{shlex.quote(sys.executable)} -m skytide.cli skyline good.csv --min a {redirection}"
    done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, says)
    assert done.stdout == ("" if status else "id,t,s,a,b,p\nx,1,r,1,2,0.5\n")


def test_standard_input_that_is_closed_is_empty(folder: Path) -> None:
    call = f"{shlex.quote(sys.executable)} -m skytide.cli skyline - --min a <&-"
    done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("skytide: standard input: the file is empty")
