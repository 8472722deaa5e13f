"""What --plot does: of a table, while its chunks pass; of a run, while it lasts; and of a board."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.cli._watch import About, Watcher
from skytide.errors import OptionError
from skytide.model import Floats, Preference
from skytide.plots import (
    Answer,
    LivingSample,
    Sample,
    Scene,
    Sizes,
    Stay,
    answer_picture,
    check_file,
    check_plot,
    need_matplotlib,
    picture,
    rows_picture,
)
from skytide.plots.stays import MOST_ROWS
from skytide.streams.files import Chunk, Numbers, Source, check_output
from skytide.streams.files.output import as_text, publish, temporary_beside

EXTENSIONS = (".png", ".svg", ".pdf")
WORDS = {"uncertain": "probable skyline", "frequent": "frequent skyline"}


def drawn(path: str | Path, draw: Any) -> None:
    """Have a picture drawn; it appears whole or not at all."""
    target = Path(path)
    temporary = temporary_beside(target)
    try:
        draw(temporary)
        publish(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def check_picture(path: str) -> None:
    """An error where a picture could not be written."""
    check_file(path)
    check_output(path, EXTENSIONS)
    need_matplotlib()


class Picture:
    """A plot of two or three columns: samples the rows that pass, then draws them and the skyline."""

    def __init__(self, path: str, columns: str | None, preference: Preference) -> None:
        default = tuple(str(name) for name in preference.names[:3])
        self.columns = default if columns is None else split(columns)
        check_plot(path, self.columns)
        self._path = Path(path)
        self._preference = preference
        self._sample = Sample(len(self.columns))
        self._numbers = Numbers()

    def _matrix(self, chunk: Chunk) -> Floats:
        return np.column_stack([self._numbers.read(chunk, name) for name in self.columns])

    def see(self, chunk: Chunk) -> None:
        """Take note of rows on their way."""
        self._sample.add(self._matrix(chunk))

    def draw(self, table: pa.Table, source: Source) -> None:
        """Write the picture of the skyline in `table`; it appears whole or not at all."""
        whole = Chunk(table, source.label, 1, 0, 1.0, source.verbatim)
        answer = Answer(self._preference, self.columns, self._matrix(whole), self._sample, self._groups(table))
        drawn(self._path, lambda path: answer_picture(answer, path))

    def _groups(self, table: pa.Table) -> list[str] | None:
        if not self._preference.by:
            return None
        texts = [as_text(table.column(str(name))).to_pylist() for name in self._preference.by]
        return [group_text(row) for row in zip(*texts, strict=True)]


def split(columns: str) -> tuple[str, ...]:
    """The names in --plot-columns."""
    return tuple(part.strip() for part in columns.split(","))


def check_preferred(chosen: Sequence[str], names: Sequence[str]) -> None:
    """An error where a column to draw is not one of the preference."""
    for name in chosen:
        if name not in names:
            raise OptionError(
                "is not a preference column", value=name, remedy=f"draw two or three of: {', '.join(names)}"
            )


def group_text(group: tuple[Any, ...]) -> str:
    """A group as a legend says it."""
    return ", ".join("NULL" if part is None else str(part) for part in group)


class StreamPicture(Watcher):
    """Draws the last answer of a run, and below it how it came to be."""

    def __init__(self, path: str, columns: str | None, preference: Preference | None = None) -> None:
        self._path = path
        self._chosen = None if columns is None else split(columns)
        check_picture(path)
        if self._chosen is not None:
            check_plot(path, self._chosen)
        if preference is not None:
            check_preferred(self._chosen or (), [str(name) for name in preference.names])
        self._times: list[npt.NDArray[Any]] = []
        self._signs: list[npt.NDArray[Any]] = []
        self._thresholds: list[Floats] = []
        self._ids: list[npt.NDArray[Any]] = []
        self._now: Any = None

    def began(self, about: About) -> None:
        """Choose the columns."""
        self._about = about
        names = tuple(str(name) for name in about.preference.names)
        check_preferred(self._chosen or (), names)
        self._columns = self._chosen or names
        self._places = [names.index(name) for name in self._columns]
        self._sample = LivingSample(len(self._columns))

    def saw(self, rows: Any, ids: Any, times: Any = None, life: tuple[Any, float] | None = None) -> None:
        """Take note of rows on their way; objects are looked at in the end."""
        if self._about.kind not in ("window", "uncertain"):
            return
        values = np.column_stack([np.asarray(rows.column(name), np.float64) for name in self._columns])
        if life is None:
            self._sample.add(values)  # how long rows live is not known
        else:
            self._sample.live(values, *life)

    def expired(self, bound: float) -> None:
        """Forget rows."""
        self._sample.expire(bound)

    def changed(self, changes: Any) -> None:
        """Keep when the answer changed."""
        if not len(changes):
            return
        self._times.append(changes.times)
        self._signs.append(changes.signs)
        if hasattr(changes, "thresholds"):
            self._thresholds.append(changes.thresholds)
        if self._about.kind in ("frequent", "monitor", "fragments"):
            self._ids.append(changes.ids)
        self._now = changes.times[-1]

    def clock(self, moment: Any) -> None:
        """Keep the last time."""
        self._now = moment

    def ended(self, window: Any) -> None:
        """Draw."""
        scene = self._scene(window)
        drawn(self._path, lambda path: picture(scene, path))

    # -- the scene -----------------------------------------------------------------------------------------------------

    def _scene(self, window: Any) -> Scene:
        about, word = self._about, WORDS.get(self._about.kind, "skyline")
        ledger = window.ledger() if hasattr(window, "ledger") else None
        axis = "time" if about.parameters.get("time") else "arrival"
        common = {"now": self._now, "word": word, "time": axis, "ledger": ledger}
        sizes = {} if ledger is not None else self._sizes()
        if about.kind == "frequent":
            return Scene(stays=self._stays(), sizes=sizes, **common)
        found, chances = self._answer(window)
        if found.values.shape[1] == 0:
            ranking = [] if chances is None else list(zip(found.ids.tolist(), chances.tolist(), strict=True))
            return Scene(ranking=ranking or [("nobody", 0.0)], sizes=sizes, **common)
        groups = [group_text(group) for group in found.groups] if about.preference.by else None
        answer = Answer(
            about.preference,
            self._columns,
            found.values[:, self._places],
            self._rest(window),
            None if chances is not None else groups,
            chances,
            word=word,
        )
        return Scene(
            answer, self._title(len(found)), len(self._columns) > 2 and self._chosen is None, sizes=sizes, **common
        )

    def _answer(self, window: Any) -> tuple[Any, Floats | None]:
        """The last answer with values, and its probabilities where it has some."""
        if hasattr(window, "query"):
            ranking = window.query() if window.answer_size is None else window.top(window.answer_size)
            return window.skyline(), ranking.probabilities
        if not hasattr(window, "ledger"):
            return window.skyline(), None
        members: dict[Any, None] = {}
        for signs, ids in zip(self._signs, self._ids, strict=True):
            for sign, one in zip(signs.tolist(), ids.tolist(), strict=True):
                if sign > 0:
                    members[one] = None
                else:
                    members.pop(one, None)
        return window.standing(list(members)), None

    def _rest(self, window: Any) -> Sample:
        if not hasattr(window, "standing"):
            return self._sample
        return Sample.of(window.standing().values[:, self._places])

    def _title(self, size: int) -> str:
        word, about = WORDS.get(self._about.kind, "skyline"), self._about
        rows = f"{size:,} {'row' if size == 1 else 'rows'} in the last {word} of {Path(about.title).name}"
        return rows if len(rows) < 90 else rows[:89] + "…"

    def _sizes(self) -> dict[str, Sizes]:
        times = np.concatenate(self._times) if self._times else np.zeros(0)
        signs = np.concatenate(self._signs) if self._signs else np.zeros(0, np.int8)
        if not self._about.thresholds:
            return {"skyline": Sizes.of(times, signs)}
        limits = np.concatenate(self._thresholds) if self._thresholds else np.zeros(0)
        levels = sorted(self._about.thresholds)
        return {f"at least {one:g}": Sizes.of(times[limits == one], signs[limits == one]) for one in levels}

    def _stays(self) -> list[Stay]:
        """The stays of those who stayed longest, from the changes."""
        open_: dict[Any, Any] = {}
        stays: dict[Any, list[Stay]] = {}
        for times, signs, ids in zip(self._times, self._signs, self._ids, strict=True):
            for at, sign, one in zip(times, signs.tolist(), ids.tolist(), strict=True):
                if sign > 0:
                    open_[one] = at
                elif one in open_:
                    stays.setdefault(one, []).append(Stay(one, open_.pop(one), at))
        for one, at in open_.items():
            stays.setdefault(one, []).append(Stay(one, at, None))
        total = {
            one: sum((self._now if s.left is None else s.left) - s.entered for s in of) for one, of in stays.items()
        }
        longest = sorted(total, key=lambda one: total[one], reverse=True)[:MOST_ROWS]
        return [stay for one in longest for stay in stays[one]]


class RowsPicture:
    """Draws rows that pass, whatever they are for."""

    def __init__(self, path: str, title: str, columns: tuple[str, ...]) -> None:
        check_picture(path)
        self._path, self._title, self._columns = path, title, columns
        self._sample = Sample(len(columns))

    def see(self, table: pa.Table) -> None:
        """Take note of rows on their way."""
        self._sample.add(np.column_stack([np.asarray(table.column(name), np.float64) for name in self._columns]))

    def draw(self) -> None:
        """Write the picture; it appears whole or not at all."""
        heading = f"{self._sample.seen:,} {self._title}"
        drawn(self._path, lambda path: rows_picture(self._columns, self._sample, path, heading=heading))


def draw_board(board: Any, path: str, columns: str | None = None) -> None:
    """Draw what a board holds: its last answer and the size of it over time."""
    kept = board.recording()
    state, names = kept["state"], [str(name) for name in board.preference.names]
    chosen = names if columns is None else list(split(columns))
    if columns is not None:
        check_plot(path, tuple(chosen))
        check_preferred(chosen, names)
    places = [names.index(name) for name in chosen]
    inside, rest = (_matrix([row[4] for row in rows], len(names))[:, places] for rows in (state["rows"], kept["rest"]))
    groups = [str(row[2]) for row in state["rows"]] if board.preference.by else None
    chances = [row[5] for row in state["rows"]]
    known = np.array(chances, np.float64) if chances and None not in chances else None
    sample = Sample.of(np.concatenate([rest, inside]))
    times = np.array(kept["sizes"]["time"], np.float64)
    if state["clock"] == "time":
        times = times.astype("datetime64[ms]")
    counts = np.diff(np.array([0, *kept["sizes"]["size"]], np.int64))
    sizes = Sizes(times, np.array(kept["sizes"]["size"], np.int64), np.maximum(counts, 0), np.maximum(-counts, 0))
    answer = Answer(board.preference, tuple(chosen), inside, sample, None if known is not None else groups, known)
    heading = f"{len(inside):,} rows in the skyline of {state['title']}"
    parallel = len(names) > 2 and columns is None
    scene = Scene(answer, heading, parallel, sizes={"skyline": sizes}, ledger=state["ledger"])
    drawn(path, lambda target: picture(scene, target))


def _matrix(rows: list[list[Any]], columns: int) -> Floats:
    """Numbers of a board, of which infinity and what is missing are words."""
    words = {"Infinity": np.inf, "-Infinity": -np.inf, None: np.nan}
    numbers = [[_number(words.get(value, value)) for value in row[:columns]] for row in rows]
    return np.array(numbers, np.float64).reshape(-1, columns)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else np.nan
