"""What checks the documents finds what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import blocks
from tests.documents.blocks import to_run
from tests.documents.session import Session
from tests.documents.shell import complaint


@pytest.mark.parametrize(
    "line",
    [
        "skytide skyline cars.csv --min price -o best.csv > log",
        "skytide bench window --quick   # seconds",
        "umask 077 && skytide token --secret-file secret --new",
        "make test",
        "SKYTIDE_PLAIN=0 python -m benchmarks.peers.batch",
        "python examples/stocks.py",
    ],
)
def test_a_right_line_passes(line: str) -> None:
    assert complaint(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "skytide skyline cars.csv --minimum price",
        "skytide skylines cars.csv",
        "skytide window cars.csv --count many",
        "skytide bench nothing",
        "curl x | skytide site --data -",
        "make nothing",
        "python -m benchmarks.nothing",
        "python examples/nothing.py",
        "pip install skytide",
    ],
)
def test_a_wrong_line_is_found(line: str) -> None:
    assert complaint(line) is not None


def document(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(blocks, "ROOT", folder)
    path = folder / "one.md"
    path.write_text(text, encoding="utf-8")
    return path


RIGHT = """
```console
$ cat a.csv
x,y
1,2
2,1
2,2
$ skytide skyline a.csv --min x --min y
x,y
1,2
...
```

```python
>>> from pathlib import Path
>>> Path("a.csv").read_text()[:3]
'x,y'

```
"""


def test_a_right_document_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Session(tmp_path).run(document(tmp_path, RIGHT, monkeypatch))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("\n1,2\n...", "\n1,3\n..."), ("--min x --min y", "--min z"), ("'x,y", "'x,z"), ("$ skytide sky", "$ false; sky")],
)
def test_a_wrong_document_is_found(right: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = document(tmp_path, RIGHT.replace(right, wrong), monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        Session(tmp_path).run(path)


def test_a_program_that_ends_too_early_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = document(tmp_path, "```console\n$ false &\n$ sleep 1\n```\n", monkeypatch)
    with pytest.raises(AssertionError):
        Session(tmp_path).run(path)


def test_a_mark_is_a_reason_on_the_line_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "<!-- not run: far away -->\n```sh\nssh x\n```\n\n<!-- not run: a gap -->\n\n```sh\nmake test\n```\n"
    path = document(tmp_path, text, monkeypatch)
    assert [one.reason for one in blocks.blocks(path)] == ["far away", None]
    assert [one.text for one in to_run(path)] == ["make test\n"]
