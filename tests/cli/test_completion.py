"""What shells are offered: by the script in a real bash, and by the program for all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.shell_completion import CompletionItem, get_completion_class

from skytide.cli import app
from tests.cli.command import refused, run


@pytest.fixture
def cars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("cars.csv")
    path.write_text('\ufeffprice,mpg,"power, kW",brand\n1,2,3,x\n', encoding="utf-8")
    return path


def offered(*words: str) -> list[CompletionItem]:
    """What is offered for the last of the words."""
    kind = get_completion_class("bash")
    assert kind is not None
    return kind(app, {}, "skytide", "_SKYTIDE_COMPLETE").get_completions(list(words[:-1]), words[-1])


def values(*words: str) -> list[str]:
    return [str(item.value) for item in offered(*words)]


def test_commands_options_and_choices_are_offered() -> None:
    assert values("sky") == ["skyline"]
    assert values("--log") == ["--log-level"]
    assert values("--log-level", "") == ["debug", "info", "warning", "error"]
    assert values("window", "x.csv", "--dur") == ["--duration"]
    assert values("window", "x.csv", "--method", "e") == ["eager"]
    assert values("generate", "anti") == ["anti-correlated"]
    assert values("completion", "") == ["bash", "zsh", "fish"]


@pytest.mark.parametrize("command", ["skyline", "window", "uncertain", "snapshots", "monitor", "fragments", "explain"])
def test_columns_of_the_data_are_offered_wherever_a_column_is_asked_for(command: str, cars: Path) -> None:
    loaded = app.get_command(app.make_context("skytide", [], resilient_parsing=True), command)
    assert loaded is not None
    asking = [param for param in loaded.params if param.metavar in ("COL", "EXPR")]
    assert asking
    for param in asking:
        assert values(command, str(cars), param.opts[0], "") == ["price", "mpg", "brand"], param.opts
        assert values(command, str(cars), "--min", "price", param.opts[0], "m") == ["mpg"]
        assert values(command, param.opts[0], "") == []


def test_files_are_left_to_the_shell_wherever_a_file_is_asked_for() -> None:
    for name in app.list_commands(app.make_context("skytide", [], resilient_parsing=True)):
        loaded = app.get_command(app.make_context("skytide", [], resilient_parsing=True), name)
        assert loaded is not None
        if name in ("coordinator", "site", "token"):
            continue
        for param in loaded.params:
            if param.metavar in ("FILE", "DATA", "PIPELINE.toml"):
                words = [name, ""] if param.param_type_name == "argument" else [name, param.opts[0], ""]
                assert [item.type for item in offered(*words)] == ["file"], words
    assert [item.type for item in offered("prepare", "prices", "x.parquet", "-o", "")] == ["dir"]


def test_columns_come_from_every_kind_of_data_and_from_folders(cars: Path) -> None:
    folder = Path("folder")
    folder.mkdir()
    (folder / "readme.txt").write_text("nothing")
    (folder / "1.jsonl").write_text('{"heat": 1, "dust": 2}\n{"other": 3}\n')
    pq.write_table(pa.table({"a": [1], "b": [2]}), "data.parquet")
    assert values("skyline", "folder", "--min", "") == ["heat", "dust"]
    assert values("skyline", "data.parquet", "--max", "") == ["a", "b"]
    assert values("skyline", "folder/1.jsonl", "--by", "d") == ["dust"]


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe\x00", b"[1", b'"never closed'])
@pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.parquet", "data.xlsx"])
def test_nothing_is_offered_and_nothing_is_said_where_the_data_is_of_no_use(
    content: bytes, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    for data in (tmp_path / name, tmp_path / "none.csv", "-"):
        offered("skyline", str(data), "--min", "")
    (tmp_path / "empty").mkdir()
    assert values("skyline", str(tmp_path / "empty"), "--min", "") == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_of_the_shell_and_the_program_answers_it(shell: str, cars: Path) -> None:
    script = run("completion", shell).stdout
    assert f"_SKYTIDE_COMPLETE={shell}_complete" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
    # A fish says what is half typed, the others say where it is.
    asked = {"COMP_WORDS": f"skytide skyline {cars} --min ", "COMP_CWORD": "" if shell == "fish" else "4"}
    environment = os.environ | asked | {"_SKYTIDE_COMPLETE": f"{shell}_complete"}
    done = subprocess.run(
        [sys.executable, "-m", "skytide.cli"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert [word for word in ("price", "mpg", "brand", "kW") if word in done.stdout] == ["price", "mpg", "brand"]


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_a_bash_that_has_read_the_script_completes_a_column(cars: Path) -> None:
    asked = (
        'eval "$(skytide completion bash)"\n'
        f"COMP_WORDS=(skytide skyline {cars} --min pr) COMP_CWORD=4\n"
        '_skytide_completion skytide; echo "${COMPREPLY[@]}"; complete -p skytide'
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", asked], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True
    )
    offer, registered = done.stdout.splitlines()
    assert offer == "price"
    assert "_skytide_completion" in registered


def test_a_shell_that_is_not_known_is_refused() -> None:
    assert "tcsh" in refused("completion", "tcsh")
