"""Pictures of answers, as matplotlib figures. They need matplotlib (`pip install 'skytide[plot]'`).

`skytide.plot` and the `.plot()` of results are for users, `--plot` is for the command line; both come here. Figures are
made without pyplot: nothing is shown, and nothing is remembered. This package knows nothing of the others but errors,
so that all of them can ask it for a picture.
"""

from __future__ import annotations

from pathlib import Path

from skytide.errors import OptionError
from skytide.plots._style import EXTENSIONS, Floats, Goals, check_file, need_matplotlib, save
from skytide.plots.answers import Answer
from skytide.plots.explained import Explained, explained
from skytide.plots.pictures import (
    Scene,
    answer_picture,
    ledger_picture,
    picture,
    ranking_picture,
    rows_picture,
    sizes_picture,
    stays_picture,
)
from skytide.plots.sample import SAMPLE_ROWS, LivingSample, Sample
from skytide.plots.series import Sizes
from skytide.plots.stays import Stay

__all__ = [
    "EXTENSIONS",
    "SAMPLE_ROWS",
    "Answer",
    "Explained",
    "Goals",
    "LivingSample",
    "Sample",
    "Scene",
    "Sizes",
    "Stay",
    "answer_picture",
    "check_file",
    "check_plot",
    "draw_skyline",
    "explained",
    "ledger_picture",
    "need_matplotlib",
    "picture",
    "ranking_picture",
    "rows_picture",
    "save",
    "sizes_picture",
    "stays_picture",
]


def check_plot(path: str, columns: tuple[str, ...]) -> None:
    """An error where the picture cannot be drawn: unknown extension, no such folder, not two or three columns."""
    check_file(path)
    if len(set(columns)) != len(columns) or len(columns) not in (2, 3):
        raise OptionError(
            "is not a choice of two or three columns to draw", value=",".join(columns), remedy="name two or three"
        )
    need_matplotlib()


def draw_skyline(
    path: str | Path,
    columns: tuple[str, ...],
    preference: Goals,
    rest: Sample,
    inside: Floats,
    groups: list[str] | None = None,
    title: str | None = None,
) -> None:
    """Write the picture. `inside` has the skyline's values in `columns`; `groups` names the group of each of them."""
    answer_picture(Answer(preference, columns, inside, rest, groups), path, heading=title)
