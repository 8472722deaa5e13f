"""What a site keeps across crashes: its objects' last values, how far its file was read, and the key it is known by.

Rows are on the disk before the coordinator hears of them, together with the place up to which the file was read: so
what is acknowledged is never lost, and no row is left out or taken twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from skytide.errors import StateError
from skytide.protocols.network.frames import KEY_BYTES, Id, usable_id
from skytide.runtime.network.log import Log
from skytide.runtime.network.rows import Row
from skytide.runtime.network.sources import Place

LARGE = 1 << 20
"""When the log has so many bytes, and several times those of the snapshot, a snapshot takes its place."""
_SITE, _ROWS = 1, 2
_REMEDY = "give the folder it was written to, or an empty one"


class Memory:
    """A folder with what one site has; one process has it at a time."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder, self._log = folder, Log.open(folder)
        self.key = b""
        """The site's key."""
        self.values: dict[Id, tuple[float, ...]] = {}
        """The values of objects when the folder was opened; to be emptied by who has taken them."""
        self.place: Place | None = None
        """How far the file was read."""
        self._columns: list[str] | None = None
        self._small = len(self._log.snapshot or b"")
        try:
            self._restore(name)
        except BaseException:
            self._log.close()
            raise
        self._name = name

    def _restore(self, name: str) -> None:
        named = None
        parts = [] if self._log.snapshot is None else [self._log.snapshot]
        try:
            for data in (*parts, *(entry.data for entry in self._log.entries)):
                plain = json.loads(data)
                named, self._columns = plain.get("name", named), plain.get("columns", self._columns)
                self.key = bytes.fromhex(plain["key"]) if "key" in plain else self.key
                for one, values in plain.get("rows", ()):
                    self._set(one, values)
                self.place = Place(**plain["place"]) if plain.get("place") is not None else self.place
            if named is not None and len(self.key) != KEY_BYTES:
                raise ValueError("its key")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
            reason = f"this is not what a site has written ({problem})"
            raise StateError(reason, file=self._folder, remedy=_REMEDY) from None
        if named not in (None, name):
            raise StateError(f"this belongs to the site {named}, not {name}", file=self._folder, remedy=_REMEDY)
        if named is None:
            self.key = os.urandom(KEY_BYTES)
            self._append(_SITE, {"name": name, "key": self.key.hex()})
            self._log.sync()

    def _set(self, one: Any, values: Any) -> None:
        if not usable_id(one):
            raise ValueError("an id")
        if values is None:
            self.values.pop(one, None)
        else:
            self.values[one] = tuple(map(float, values))

    def _append(self, kind: int, plain: Mapping[str, Any]) -> None:
        self._log.append(kind, json.dumps(plain, separators=(",", ":")).encode())

    def check(self, columns: Sequence[str]) -> None:
        """That the values are of these columns, now and from now on. A `StateError` where they are of others."""
        if self._columns is None:
            self._columns = list(columns)
            self._append(_SITE, {"columns": self._columns})
        elif self._columns != list(columns):
            reason = f"this has the columns {', '.join(self._columns)}, the coordinator asks for {', '.join(columns)}"
            raise StateError(reason, file=self._folder, remedy="give an empty folder for another query")

    def keep(self, rows: Sequence[Row], place: Place | None) -> None:
        """Make rows durable, with the place up to which they were read. It blocks until they are."""
        self._append(_ROWS, {"rows": rows, "place": None if place is None else asdict(place)})
        self.place = place
        self._log.sync()

    @property
    def long(self) -> bool:
        """Whether it is time for `shorten`."""
        return self._log.size >= max(LARGE, 4 * self._small)

    def shorten(self, values: Mapping[Id, Sequence[float]]) -> None:
        """Put what the site has in place of all rows so far. O(objects), blocks."""
        place = None if self.place is None else asdict(self.place)
        plain = {"name": self._name, "key": self.key.hex(), "columns": self._columns, "place": place}
        blob = json.dumps({**plain, "rows": list(values.items())}, separators=(",", ":")).encode()
        self._log.checkpoint(blob)
        self._small = len(blob)

    def close(self) -> None:
        """Give the folder free."""
        self._log.close()
