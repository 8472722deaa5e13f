"""The documents are true: what they show is run, what cannot be run is checked or says why, and every link leads on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents.blocks import CODE, DOCUMENTS, ROOT, Block, blocks, name_of, needs_spark, to_run
from tests.documents.session import Session
from tests.documents.shell import complaint, lines_of

HERE = [path for path in DOCUMENTS if to_run(path, "console", "python") and not needs_spark(path)]
"""The others are run in tests/spark/test_guide.py, where there is a session of Spark."""
MARKS = 8
"""So many blocks at most may go without a check."""


@pytest.mark.parametrize("path", HERE, ids=name_of)
def test_a_document_gives_what_it_shows(path: Path, tmp_path: Path) -> None:
    Session(tmp_path).run(path)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if to_run(path, "sh")], ids=name_of)
def test_shell_lines_call_what_is_there(path: Path) -> None:
    for block in to_run(path, "sh"):
        assert [found for line in lines_of(block.text) if (found := complaint(line))] == [], str(block)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if to_run(path, "toml")], ids=name_of)
def test_pipelines_pass_their_check(path: Path, tmp_path: Path) -> None:
    from skytide.spark.pipeline import Pipeline

    for number, block in enumerate(to_run(path, "toml")):
        for folder in re.findall(r'^path = "(.*)"', block.text, re.MULTILINE):
            (tmp_path / folder).mkdir(exist_ok=True)
        file = tmp_path / f"{number}.toml"
        file.write_text(block.text, encoding="utf-8")
        assert Pipeline.load(str(file)).described()


def test_every_block_is_run_or_says_why_not() -> None:
    every = [one for path in DOCUMENTS for one in blocks(path)]
    assert [str(one) for one in every if one.language not in CODE and looks_like_code(one)] == []
    marked = [one for one in every if one.reason is not None]
    assert [str(one) for one in marked if not one.reason or one.language not in CODE] == []
    assert len(marked) <= MARKS, [f"{one}: {one.reason}" for one in marked]


def looks_like_code(block: Block) -> bool:
    """Commands and sessions of Python belong into blocks that are run; directives of the site are something else."""
    return re.search(r"^(\$|>>>|skytide|pip|make|python|curl) ", block.text, re.MULTILINE) is not None


def test_links_between_documents_lead_somewhere() -> None:
    parts = {path.resolve(): {slug(title) for title in titles(path)} for path in DOCUMENTS}
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code(path)):
            if "://" in target:
                continue
            address, _, part = target.partition("#")
            found = (path.parent / address).resolve() if address else path.resolve()
            assert found.exists(), f"{name_of(path)} links to {target}"
            assert found.is_relative_to(ROOT), f"{name_of(path)} links to {target}"
            assert not part or part in parts[found], f"{name_of(path)} links to {target}"


def without_code(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def titles(path: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", without_code(path), re.MULTILINE)


def slug(title: str) -> str:
    """The name of a part, as the site and others that show Markdown make it of its title."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def test_files_that_documents_name_are_there() -> None:
    for path in DOCUMENTS:
        for name in re.findall(r"`((?:src|tests|benchmarks|examples|docs)/[\w./-]+)`", without_code(path)):
            assert (ROOT / name).exists(), f"{name_of(path)} names {name}"


def test_figures_that_pages_quote_were_measured() -> None:
    """Numbers with a point or a comma, where pages speak of measurements, are those of the benchmarks."""
    docs = ROOT / "docs"
    sources = ("benchmarks.md", "filtering.md", "evidence/index.md")
    measured = "".join((docs / name).read_text(encoding="utf-8") for name in sources)
    papers = [path for path in sorted(docs.glob("papers/*.md")) if path.stem != "index"]
    quoted = {path: without_code(path).partition("## What we measured")[2] for path in papers}
    assert all(quoted.values())
    quoted[docs / "choosing.md"] = without_code(docs / "choosing.md")
    for path, text in quoted.items():
        figures = re.findall(r"\d[\d,]*[.,]\d+(?:e-\d+)?", re.sub(r"\]\([^)]*\)", "]", text))
        assert len(figures) > 2
        assert [one for one in figures if one not in measured] == [], name_of(path)
