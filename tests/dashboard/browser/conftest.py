"""A browser, and pages of boards in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.dashboard.browser.feeding import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext
    from playwright.sync_api import Page as Tab

    from skytide.dashboard import Board, Page

WIDE: dict[str, int] = {"width": 1280, "height": 900}
DRAWN = "window.skytide && skytide.drawn !== null"
Shown = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Closed with the module: while it is open its loop is the thread's, and no other one can run there."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("there is no chromium")
    with api.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> BrowserContext:
    """Shared, so that the plotting library is read once."""
    return browser.new_context(viewport={"width": 1280, "height": 900})


@pytest.fixture(scope="module")
def ports() -> list[int]:
    """The port that all servers of a module have, one after the other: what a browser keeps, it keeps by address."""
    return [0]


class Visits:
    """Servers of boards and the tabs that show them. What a tab complains of, or asks of others, fails the test."""

    def __init__(self, browser: Browser, context: BrowserContext, ports: list[int]) -> None:
        self._browser, self._context, self._ports = browser, context, ports
        self.servers: list[Page] = []
        self._tabs: list[Any] = []
        self.problems: list[str] = []

    def serve(self, board: Board) -> Page:
        """A server of a board; it ends with the test."""
        from skytide.dashboard import Page

        server = Page(board, port=self._ports[0], search=True).start()
        self._ports[0] = server.port
        self.servers.append(server)
        return server

    def __call__(self, shown: Board | Path, **options: Any) -> Tab:
        """A tab that has drawn a board or a report; with options of a browser's context."""
        url = shown.as_uri() if isinstance(shown, Path) else self.serve(shown).url
        context = self._browser.new_context(**{"viewport": WIDE, **options}) if options else self._context
        tab = context.new_page()
        self._tabs.append(context if options else tab)
        tab.set_default_timeout(30_000)
        tab.on("pageerror", lambda error: self.problems.append(str(error)))
        tab.on("console", lambda line: self.problems.append(line.text) if _is_problem(line) else None)
        tab.on("request", lambda asked: None if _is_ours(asked.url, url) else self.problems.append(asked.url))
        tab.goto(url)
        until(tab, DRAWN)
        return tab

    def close(self) -> None:
        """Tabs first: a server waits for those who listen."""
        for tab in self._tabs:
            tab.close()
        for server in self.servers:
            server.close()


def _is_problem(line: Any) -> bool:
    """A server that is gone is what some tests are about."""
    return line.type == "error" and "ERR_" not in line.text


def _is_ours(asked: str, page: str) -> bool:
    """Whether an address is the page's own: itself for a file, the same server else."""
    if page.startswith("file:"):
        return asked.startswith(("data:", "blob:", page))
    return asked.startswith(("data:", "blob:", "/".join(page.split("/")[:3]) + "/"))


@pytest.fixture
def visit(browser: Browser, context: BrowserContext, ports: list[int]) -> Iterator[Visits]:
    """Opens a board or a report in a tab."""
    visits = Visits(browser, context, ports)
    try:
        yield visits
    finally:
        visits.close()
    assert not visits.problems
