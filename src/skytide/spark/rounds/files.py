"""The files that rounds leave in their folder: a bucket's state, a bucket's rows.

A file is written under a name of its own, never replaced, and counts only when a record names it (`record`). So an
attempt that fails leaves nothing behind but files that nobody names, and these are swept.
"""

from __future__ import annotations

import uuid

import pyarrow as pa

from skytide.errors import StateError
from skytide.spark.sinks.storage import open_folder
from skytide.spark.streaming.packing import one

STATE, ROWS = "state", "rows"


def write_state(folder: str, bucket: int, data: bytes) -> str:
    """Store what a bucket's clients know; the name of the file."""
    return _put(folder, STATE, bucket, data)


def write_rows(folder: str, bucket: int, rows: pa.Table) -> str:
    """Store a bucket's rows; the name of the file."""
    return _put(folder, ROWS, bucket, one(rows))


def _put(folder: str, kind: str, bucket: int, data: bytes) -> str:
    name = f"{kind}-{bucket:05d}-{uuid.uuid4().hex}"
    open_folder(folder).put(name, data)
    return name


def read_state(folder: str, name: str) -> bytes:
    """What was stored under a name."""
    try:
        return open_folder(folder).get(name)
    except FileNotFoundError:
        raise StateError(
            f"the file {name} of the checkpoint is missing",
            remedy="let all machines see the checkpoint's folder, or start with a new one",
        ) from None


def read_rows(folder: str, name: str) -> pa.Table:
    """The rows that were stored under a name."""
    try:
        return pa.ipc.open_stream(read_state(folder, name)).read_all()
    except pa.ArrowException:
        raise StateError(f"the file {name} of the checkpoint is damaged", remedy="start with a new one") from None
