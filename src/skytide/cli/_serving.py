"""The live page while a command lasts: where it is served, and that somebody hears of it."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from skytide.errors import MissingDependencyError

if TYPE_CHECKING:
    from skytide.dashboard import Board, Page

ADDRESS = "127.0.0.1:8760"

listen_option = click.option(
    "--listen", metavar="HOST:PORT", help=f"Where the page is served; port 0 is any.  [default: {ADDRESS}]"
)
open_option = click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")


@contextmanager
def page_packages() -> Iterator[None]:
    """Around imports of the page: what is missing is told, with the remedy."""
    try:
        yield
    except ModuleNotFoundError as problem:
        if problem.name is None or problem.name.partition(".")[0] == "skytide":
            raise
        reason = f"the page needs starlette, uvicorn and plotly; {problem.name} is missing"
        raise MissingDependencyError(reason, remedy="pip install 'skytide[dashboard]'") from None


@contextmanager
def serving(board: Board, listen: str | None, open_browser: bool, say: Callable[[str], None]) -> Iterator[Page]:
    """Serve a board; where it is, is said at once. The usual port may be taken: then it is another one."""
    with page_packages():
        from skytide.dashboard import Page
        from skytide.runtime.network.config import address_of
    host, port = address_of(listen or ADDRESS)
    with Page(board, host, port, search=listen is None) as page:
        say(f"watch it at {page.url}")
        if open_browser:
            webbrowser.open(page.url)
        yield page
