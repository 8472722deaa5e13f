"""The documents as a site: it is built without a warning, asks no other host, and forgets nothing that is public."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import click
import pytest
from sphinx.util.inventory import InventoryFile

import skytide
import skytide.dashboard
import skytide.errors
import skytide.spark
from skytide.cli import app

ROOT = Path(__file__).parent.parent
LOADS = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src"), ("form", "action"), ("source", "src")}
"""What a browser asks for by itself."""


@dataclass
class Page(HTMLParser):
    """What a page loads, where it leads, and the names of its parts."""

    text: str
    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    parts: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) in LOADS:
                self.loads.append(value or "")
            if (tag, name) == ("a", "href"):
                self.links.append(value or "")
            if name == "id":
                self.parts.add(value or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", "docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_document_is_a_page(site: Path) -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        assert (site / path.relative_to(ROOT / "docs")).with_suffix(".html").exists()


def test_no_page_asks_another_host(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert [one for one in page.loads if urlsplit(one).netloc] == [], path.name
    for path in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)]*", path.read_text(encoding="utf-8")) == []
    for path in site.rglob("*.js"):
        assert re.findall(r"(?:fetch|import|src\s*=)\s*\(?[\"'`](?:https?:)?//", path.read_text(encoding="utf-8")) == []


def test_every_link_within_the_site_leads_to_a_part_of_a_page(site: Path, pages: dict[Path, Page]) -> None:
    known = {path.resolve(): page.parts for path, page in pages.items()}
    for path, page in pages.items():
        for link in page.links:
            address, part = urldefrag(link)
            if urlsplit(address).scheme:
                continue
            target = (path.parent / unquote(address)).resolve() if address else path.resolve()
            assert target.exists(), f"{path.name} leads to {link}"
            assert not part or unquote(part) in known[target], f"{path.name} leads to {link}"


def test_no_public_name_is_forgotten(site: Path) -> None:
    with (site / "objects.inv").open("rb") as stream:
        inventory = InventoryFile.load(stream, "", lambda base, address: address)
    known = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    parts = (skytide, skytide.spark, skytide.dashboard)
    public = [f"{part.__name__}.{name}" for part in parts for name in part.__all__]
    errors = [f"skytide.errors.{name}" for name, one in vars(skytide.errors).items() if is_error(one)]
    assert [name for name in [*public, *errors] if name not in known | {"skytide.errors.SkytideError"}] == []


def is_error(one: object) -> bool:
    return isinstance(one, type) and issubclass(one, skytide.SkytideError)


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command, click.Context]]:
    """All commands below a group, by their full names."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield f"{path} {name}", found, click.Context(found, context, name)
        if isinstance(found, click.Group):
            yield from commands(found, f"{path} {name}")


def test_no_command_and_no_option_is_forgotten(site: Path, pages: dict[Path, Page]) -> None:
    parts = pages[site / "reference" / "cli.html"].parts
    for name, command, context in commands(app, "skytide"):
        dashed = name.replace(" ", "-")
        assert dashed in parts
        for option in command.get_params(context):
            if isinstance(option, click.Option) and "--help" not in option.opts:
                assert f"cmdoption-{dashed}-{option.opts[-1].lstrip('-')}" in parts, f"{name} {option.opts}"
