"""Boards that are fed at random, and what a page says of them."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from skytide.dashboard import Board
from skytide.model import Preference

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

VALUES = [0.0, 1.0, 2.0, 3.0, 3.0, 5.5, -2.0, math.inf, -math.inf, 1e300, 5e-324, None]


class Feeding:
    """Rows enter, move and leave at random; instants have several changes or none."""

    def __init__(self, seed: int = 0, names: int = 60, **given: Any) -> None:
        self.random = np.random.default_rng(seed)
        preference = given.pop("preference", Preference(minimize=["price", "way"], maximize=["stars"], by=["city"]))
        self.board = Board(preference, title=given.pop("title", "hotels"), extra=("owner",), **given)
        self.names = [f"h{i}" for i in range(names)]
        self.inside: set[str] = set()
        self.time = 0

    def table(self, count: int) -> pa.Table:
        def column() -> pa.Array:
            return pa.array([VALUES[i] for i in self.random.integers(len(VALUES), size=count)], pa.float64())

        kept = {str(name): column() for name in self.board.preference.names}
        cities = [f"city {i}" for i in self.random.integers(3, size=count)]
        return pa.table(kept | {"city": cities, "owner": [f"owner {i}" for i in range(count)]})

    def begin(self) -> Feeding:
        """All names are known, none is in the answer."""
        self.board.see(self.table(len(self.names)), self.names)
        return self

    def go(self, steps: int) -> Feeding:
        """Some instants."""
        for _ in range(steps):
            self.time += int(self.random.integers(1, 4))
            chosen = self.random.choice(self.names, size=int(self.random.integers(0, 8)), replace=False).tolist()
            signs = ["-" if name in self.inside else "+" for name in chosen]
            self.inside ^= set(chosen)
            self.board.change([self.time] * len(chosen), signs, chosen)
            moved = self.random.choice(self.names, size=2, replace=False).tolist()
            self.board.see(self.table(2), moved, [self.time] * 2)
        return self


def until(page: Tab, claim: str, argument: Any = None, seconds: float = 30) -> None:
    """Wait until a claim holds on the page. Asked from outside: the page's policy lets nobody evaluate text inside."""
    end = time.monotonic() + seconds
    while not page.evaluate(claim, argument):
        assert time.monotonic() < end, f"never came true: {claim} of {argument}"
        page.wait_for_timeout(30)


def drawn(page: Tab, board: Board) -> None:
    """Wait until the page has drawn what the board has."""
    until(page, "number => skytide.drawn === number && skytide.written === number", board.number)


def answer(rows: list[list[Any]]) -> dict[str, list[Any]]:
    """Rows as the board gives them: values by key."""
    return {row[0]: [_number(value) for value in row[4]] for row in rows}


def _number(value: Any) -> Any:
    return float(value) if value in ("Infinity", "-Infinity") else value


def listed(page: Tab) -> list[list[str]]:
    """The table of the page, all of its pages, cell by cell."""
    read = "() => [...document.querySelectorAll('#table tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    while page.locator("#page-back").is_visible() and page.locator("#page-back").is_enabled():
        page.click("#page-back")
    found = list(page.evaluate(read))
    while page.locator("#page-on").is_visible() and page.locator("#page-on").is_enabled():
        page.click("#page-on")
        found += page.evaluate(read)
    return found
