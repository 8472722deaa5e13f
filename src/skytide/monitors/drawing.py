"""The present answer of a monitor as a picture: what the `plot()` of windows and snapshots shares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from skytide.errors import OptionError
from skytide.model import Column, Floats, Preference


class Found(Protocol):
    """An answer with values, one row for each member, and groups."""

    @property
    def values(self) -> Floats:
        """The preference columns as they came in."""
        ...

    @property
    def groups(self) -> list[tuple[Any, ...]]:
        """The group of each member."""
        ...


def answer_figure(
    preference: Preference,
    found: Found,
    rest: Floats,
    path: str | Path | None,
    columns: Sequence[Column] | None,
    probabilities: Floats | None = None,
) -> Any:
    """The answer against what else is kept: two or three columns by choice, else all of the preference."""
    from skytide.plots import Answer, Sample, Scene, picture

    places = chosen_places(preference, columns)
    names = tuple(preference.names[place] for place in places)
    texts = [", ".join("NULL" if part is None else str(part) for part in group) for group in found.groups]
    answer = Answer(
        preference,
        names,
        found.values[:, places],
        Sample.of(rest[:, places]),
        texts if preference.by and probabilities is None else None,
        probabilities,
    )
    heading = f"{len(found.values):,} {'row' if len(found.values) == 1 else 'rows'} in the skyline"
    return picture(Scene(answer, heading, parallel=len(names) > 3 or (columns is None and len(names) > 2)), path)


def chosen_places(preference: Preference, columns: Sequence[Column] | None) -> list[int]:
    """The places of the columns to draw in the preference; of all where none are named."""
    if columns is None:
        return list(range(preference.dimensions))
    for name in columns:
        if name not in preference.names:
            known = ", ".join(map(str, preference.names))
            raise OptionError("is not a preference column", value=name, remedy=f"draw some of: {known}")
    if not 1 <= len(set(columns)) == len(columns) <= 3:
        raise OptionError(
            "is not a choice of columns to draw", value=list(columns), remedy="name up to three, once each"
        )
    return [preference.names.index(name) for name in columns]
