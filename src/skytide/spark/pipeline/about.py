"""What a pipeline is about, in a few words that travel: for pages that show its answer, and for its live feed.

Whoever has the pipeline's file has them from there. A live feed carries them in its files, so that its folder is all
that a page needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from skytide.errors import InputError
from skytide.model import Preference
from skytide.spark.pipeline.schema import column_names

if TYPE_CHECKING:
    from skytide.spark.pipeline.plan import Pipeline

TAKEN = ("kind", "time", "change", "id", "threshold")
"""Columns that changes have of their own: rows' columns of these names are called `row_kind` and so on."""
_ALIAS = re.compile(r"\bAS\s+(\w+)", re.IGNORECASE)
_DEFAULT_NAME = "skytide"


@dataclass(frozen=True)
class About:
    """What is asked of which rows.

    >>> about = About("flights", "window", minimize=("delay",), by=("origin",), parameters={"duration": "1d"})
    >>> About.from_json(about.to_json()) == about
    True
    """

    title: str
    kind: str
    minimize: tuple[str, ...] = ()
    maximize: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    id: str = "id"
    """The column that names rows; in changes it is called id."""
    thresholds: tuple[float, ...] = ()
    extra: tuple[str, ...] = ()
    """Further columns of the rows, as far as they are known beforehand."""
    parameters: Mapping[str, str | float] = field(default_factory=dict)

    @classmethod
    def of(cls, pipeline: Pipeline) -> About:
        """What a pipeline's file says."""
        query, named = pipeline.query, ("min", "max", "by")
        title = pipeline.run.name if pipeline.run.name != _DEFAULT_NAME else pipeline.document.file.name
        competing = {*(name for key in named for name in query.get(key, ())), query.get("id")}
        return cls(
            title,
            pipeline.kind.name,
            tuple(query.get("min", ())),
            tuple(query.get("max", ())),
            tuple(query.get("by", ())),
            query.get("id", "id"),
            tuple(sorted(query.get("threshold", ()))),
            tuple(name for name in _columns(pipeline) if name not in competing),
            {key: _shown(value) for key, value in query.items() if key not in named},
        )

    @property
    def preference(self) -> Preference:
        """What is minimised, maximised, and by what the answer is split."""
        return Preference(self.minimize, self.maximize, self.by)

    def column(self, name: str) -> str:
        """What a column of the rows is called in the changes."""
        if name == self.id:
            return "id"
        return f"row_{name}" if name in TAKEN else name

    def to_json(self) -> str:
        """As a feed carries it."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> About:
        """What `to_json` gave; an error for anything else."""
        try:
            given = json.loads(text)
            known: dict[str, Any] = {one.name: given[one.name] for one in fields(cls) if one.name in given}
            known = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
            made = cls(**known)
            _ = made.preference
            return made
        except (ValueError, TypeError, AttributeError) as problem:
            raise InputError(
                f"the feed says what it is of, and it cannot be read ({' '.join(str(problem).split())[:120]})",
                remedy="use the same version of Skytide on both sides",
            ) from None


def _columns(pipeline: Pipeline) -> list[str]:
    """The columns of the rows that the file itself tells of; where SQL picks columns, none but those it makes."""
    prepare = pipeline.prepare
    names = column_names(pipeline.source.schema) if pipeline.source.schema is not None else None
    found = list(names or ())
    if "sql" in prepare:
        found = [*(found if "*" in prepare["sql"] else ()), *_ALIAS.findall(prepare["sql"])]
    found += prepare.get("columns", {})
    return [] if "select" in prepare else list(dict.fromkeys(found))


def _shown(value: Any) -> str | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
