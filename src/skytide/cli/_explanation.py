"""What `skytide explain` says: an explanation in the words and values of the file it speaks of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skytide.cli._engines import competitors
from skytide.cli._progress import Progress
from skytide.errors import IdError, InputError
from skytide.explain import MEASURE, Bound, Explanation, Move, explain
from skytide.model import MissingPolicy, Preference
from skytide.streams.files import Chunk, Source
from skytide.streams.files.output import as_text


@dataclass(frozen=True)
class Report:
    """An explanation with the file's own values: `values` has the preference columns as text, by row position."""

    found: Explanation
    preference: Preference
    label: str
    wanted: str
    ids: dict[int, str]
    values: dict[int, dict[str, str | None]]
    listed: list[int]

    @classmethod
    def of(
        cls,
        source: Source,
        preference: Preference,
        nulls: MissingPolicy,
        wanted: str,
        id_column: str | None,
        limit: int,
        progress: Progress,
    ) -> Report:
        """Read DATA, find the row, explain it, and fetch the rows that the explanation names."""
        if id_column is not None:
            source.check_names([id_column])
        matches: list[int] = []

        def watch(chunk: Chunk) -> None:
            progress.update(chunk.done)
            if id_column is not None:
                same = np.array(as_text(chunk.table.column(id_column)).to_pylist(), dtype=object) == wanted
                matches.extend((np.flatnonzero(same) + chunk.start).tolist())

        more = () if id_column is None else (id_column,)
        parts = [part.values for part in competitors(source, preference, nulls, watch=watch, more=more)]
        table = pa.concat_tables(parts) if parts else pa.table({})
        row = _the_row(source, table.num_rows, wanted, id_column, matches)
        try:
            found = explain(table, preference, row, nulls=nulls)
        except InputError as error:
            error.file = source.label
            raise
        listed = found.dominators[:limit].tolist()
        rows = np.unique([row, *listed, *(bound.like for bound in _bounds(found))])
        taken = source.take(rows)
        names = [str(name) for name in preference.names]
        texts = {name: as_text(taken.column(name)).to_pylist() for name in names}
        ids = [str(place + 1) for place in rows] if id_column is None else as_text(taken.column(id_column)).to_pylist()
        values = {int(place): {name: texts[name][at] for name in names} for at, place in enumerate(rows)}
        return cls(found, preference, source.label, wanted, dict(zip(rows.tolist(), ids, strict=True)), values, listed)

    def draw(self, path: str) -> None:
        """The explanation as a picture, which appears whole or not at all."""
        from skytide.cli._picture import drawn

        drawn(path, lambda target: self.found.plot(target, name=self.wanted))

    # -- for people ----------------------------------------------------------------------------------------------------

    def as_text(self) -> str:
        """A few paragraphs."""
        return "\n".join(self._inside() if self.found.inside else self._outside())

    def _inside(self) -> list[str]:
        lines = [
            f"Row {self.wanted} of {self.label} is in the skyline. It dominates {_rows(self.found.dominated)}.",
            "",
            "How far each column may worsen on its own before the row leaves:",
        ]
        for name, bound in zip(self.preference.names, self.found.slack, strict=True):
            if bound is None:
                limit = "without limit"
            elif bound.strict:
                side = "below" if name in self.preference.minimize else "above"
                limit = f"from {self._current(name)} to anything {side} {self._bound(bound)}"
            elif _plain(self._bound(bound)) == _plain(self._current(name)):
                limit = f"not at all from {self._current(name)}: another row is equal to it"
            else:
                limit = f"from {self._current(name)} to {self._bound(bound)}"
            lines.append(f"  {name}: {limit}")
        return lines

    def _outside(self) -> list[str]:
        count = len(self.found.dominators)
        verb = "row dominates" if count == 1 else "rows dominate"
        lines = [f"Row {self.wanted} of {self.label} is not in the skyline: {count:,} {verb} it.", ""]
        lines += self._table()
        if len(self.listed) < count:
            lines.append(f"  ... and {count - len(self.listed):,} more")
        lines += ["", "What each column would need on its own:"]
        for name, bound in zip(self.preference.names, self.found.alone, strict=True):
            need = "no value would do" if bound is None else f"from {self._current(name)} to {self._need(bound)}"
            lines.append(f"  {name}: {need}")
        move = self.found.smallest
        if move is not None:
            proof = "the least there is" if move.exact else "the least that was found"
            lines += ["", f"The smallest change, {_number(move.cost)} by {MEASURE} ({proof}):"]
            lines += [
                f"  {bound.column}: from {self._current(bound.column)} to {self._need(bound)}" for bound in move.bounds
            ]
        return lines

    def _table(self) -> list[str]:
        names = [str(name) for name in self.preference.names]
        cells = [["", "row", *names], ["this", self.wanted, *(self._current(name) for name in names)]]
        cells += [["", str(self.ids[row]), *(_shown(self.values[row][name]) for name in names)] for row in self.listed]
        widths = [max(len(line[at]) for line in cells) for at in range(len(cells[0]))]
        return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]

    def _current(self, name: Any) -> str:
        return _shown(self.values[self.found.row][str(name)])

    def _bound(self, bound: Bound) -> str:
        return _shown(self.values[bound.like][str(bound.column)])

    def _need(self, bound: Bound) -> str:
        if self.values[bound.like][str(bound.column)] is None:
            return "any value"
        lower = bound.column in self.preference.minimize
        if bound.strict:
            return f"{'less' if lower else 'more'} than {self._bound(bound)}"
        return f"{self._bound(bound)} or {'less' if lower else 'more'}"

    # -- for machines --------------------------------------------------------------------------------------------------

    def as_json(self) -> str:
        """One object. Bounds hold `value` and `strict`: whether the value must be bettered or may be equalled."""
        found = self.found
        names = self.preference.names
        answer: dict[str, Any] = {
            "row": self.wanted,
            "in_skyline": found.inside,
            "values": {str(name): _plain(self.values[found.row][str(name)]) for name in names},
            "dominates": found.dominated,
            "dominated_by_count": len(found.dominators),
            "dominated_by": [self.ids[row] for row in self.listed],
        }
        if found.inside:
            answer["may_worsen_to"] = self._per_column(found.slack)
        else:
            answer["needs_alone"] = self._per_column(found.alone)
            answer["smallest_change"] = None if found.smallest is None else self._move(found.smallest)
        return json.dumps(answer, ensure_ascii=False)

    def _per_column(self, bounds: tuple[Bound | None, ...]) -> dict[str, Any]:
        return {str(name): self._one(bound) for name, bound in zip(self.preference.names, bounds, strict=True)}

    def _one(self, bound: Bound | None) -> dict[str, Any] | None:
        if bound is None:
            return None
        return {"value": _plain(self.values[bound.like][str(bound.column)]), "strict": bound.strict}

    def _move(self, move: Move) -> dict[str, Any]:
        return {
            "measure": MEASURE,
            "cost": move.cost,
            "exact": move.exact,
            "columns": {str(bound.column): self._one(bound) for bound in move.bounds},
        }


def _the_row(source: Source, rows: int, wanted: str, id_column: str | None, matches: list[int]) -> int:
    if id_column is None:
        if not wanted.isdecimal() or not 1 <= int(wanted) <= rows:
            raise InputError(
                "is not the number of a row",
                value=wanted,
                file=source.label,
                remedy=f"rows are 1 to {rows}; --id names a column of ids" if rows else "the file has no rows",
            )
        return int(wanted) - 1
    if not matches:
        raise InputError(
            "is not the id of a row", value=wanted, file=source.label, column=id_column, remedy="check the id"
        )
    if len(matches) > 1:
        raise IdError(
            f"is the id of {len(matches)} rows, the first are rows {matches[0] + 1} and {matches[1] + 1}",
            value=wanted,
            file=source.label,
            column=id_column,
            remedy="leave --id out and give the row's number",
        )
    return matches[0]


def _bounds(found: Explanation) -> list[Bound]:
    moved = () if found.smallest is None else found.smallest.bounds
    return [bound for bound in (*found.alone, *found.slack, *moved) if bound is not None]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _shown(text: str | None) -> str:
    return "(missing)" if text is None else text


def _number(value: float) -> str:
    return f"{value:.4g}"


def _plain(text: str | None) -> Any:
    """A number where the text is one, else the text; so that 0.1 is 0.1 and a time stays a time."""
    if text is None:
        return None
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
