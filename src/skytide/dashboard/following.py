"""Followers: what happens elsewhere, brought to a board. `follower_of` has the one for an address, a file or a folder.

A follower looks again and again, in a thread of its own, and goes on over whatever happens to what it follows: the
board says `lost` while it is away, and why.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from skytide.dashboard.board import Board
from skytide.errors import InputError, SkytideError

_ADDRESS = re.compile(r"(https?|wss?)://", re.IGNORECASE)
_FEED = ("changes-*.arrow", "snapshot-*.arrow")
PATIENCE_SECONDS = 10.0


class Follower(ABC):
    """Feeds a board from something that runs elsewhere."""

    interval = 0.2
    """Seconds between two looks where nothing is new."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._away = False

    @abstractmethod
    def look(self) -> bool:
        """Take some of what is new; whether there was anything."""

    def catch_up(self) -> None:
        """Take all that is there now, without a thread."""
        while self.look():
            pass

    def start(self) -> Self:
        """Follow from now on."""
        self._thread = threading.Thread(target=self._follow, name="skytide-follower", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Follow no longer."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE_SECONDS)
        self.release()

    def release(self) -> None:  # noqa: B027
        """Give up what is held open; a look after this opens it again."""

    def close(self, reason: str = "") -> None:
        """Follow no longer, take what is there, and say that it has ended."""
        self.stop()
        self.catch_up()
        self.release()
        self.end(reason)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until what is followed has ended; False where it has not by then."""
        return self._ended.wait(seconds)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                news = self.look()
            except Exception as problem:  # whatever it is: a page that stands still must say so
                said = str(problem) if isinstance(problem, SkytideError | OSError) else repr(problem)
                self.lose(" ".join(said.split()))
                news = False
            if not news:
                self._stopping.wait(self.interval)

    # -- what the board says -------------------------------------------------------------------------------------------

    def lose(self, reason: str) -> None:
        """What is followed is away."""
        self._away = True
        self.board.status("lost", reason)

    def go_on(self) -> None:
        """What is followed is there, and runs."""
        if self._away or self._ended.is_set():
            self._away = False
            self._ended.clear()
            self.board.status("running")

    def end(self, reason: str = "") -> None:
        """What is followed has ended; it may begin again."""
        if not self._ended.is_set() or self._away:
            self._away = False
            self.board.end(reason)
            self._ended.set()


def looks_followed(what: str) -> bool:
    """Whether this is something to follow: an address, a pipeline file, or a folder with a live feed.

    >>> looks_followed("http://127.0.0.1:8750"), looks_followed("flights.toml"), looks_followed("flights.csv")
    (True, True, False)
    """
    path = Path(what)
    if _ADDRESS.match(what) or path.suffix.lower() == ".toml":
        return True
    return path.is_dir() and any(True for form in _FEED for _ in path.glob(form))


def follower_of(
    what: str,
    *,
    minimize: Sequence[str] = (),
    maximize: Sequence[str] = (),
    by: Sequence[str] = (),
    token: str | None = None,
    token_file: str | None = None,
    certificate: str | None = None,
) -> Follower:
    """The follower of a coordinator's address, a pipeline file, or a folder with a live feed, with its board.

    The columns are for a feed that does not say what it is of; the token and the certificate are for a coordinator.
    """
    if _ADDRESS.match(what):
        from skytide.dashboard.coordinator import CoordinatorFollower

        return CoordinatorFollower.of(what, token=token, token_file=token_file, certificate=certificate)
    from skytide.dashboard.pipeline import FeedFollower, PipelineFollower

    if Path(what).suffix.lower() == ".toml":
        return PipelineFollower.of(what)
    if Path(what).is_dir():
        return FeedFollower.of(what, minimize=minimize, maximize=maximize, by=by)
    raise InputError("is nothing to follow", value=what, remedy="give http://host:port, a pipeline.toml, or a folder")
