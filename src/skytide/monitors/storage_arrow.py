"""Parts of stored monitors that are no plain arrays: ids and group values of any kind, as Arrow keeps them.

Apart from `skytide.monitors.storage`, so that whoever stores plain arrays only does not load Arrow.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.errors import StateError

_FORMS = (None, pa.timestamp("ns"), pa.duration("ns"))
"""What Arrow is told of plain values: nothing; or nanoseconds, which it would cut by itself."""


def arrow_bytes(values: npt.NDArray[Any]) -> bytes:
    """Mixed plain values as bytes. O(n)."""
    listed = values.tolist()
    column = next((column for column in map(_as_column, itertools.repeat(listed), _FORMS) if column is not None), None)
    if column is None:
        raise StateError("ids or group values of odd or mixed kinds cannot be stored", remedy="use numbers or text")
    batch = pa.record_batch([column], names=["values"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _as_column(values: list[Any], form: pa.DataType | None) -> pa.Array | None:
    """The values as Arrow, or None where they would not come back as they are."""
    try:
        column = pa.array(values, form)
        again = column.to_pylist()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    same = all(one == other or (one != one and other != other) for one, other in zip(values, again, strict=True))
    return column if same else None


def arrow_values(data: memoryview, most: int) -> npt.NDArray[Any]:
    """The values that `arrow_bytes` made into bytes, at most so many; a `ValueError` for what Arrow cannot read."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)
        if table.num_rows > most:  # rows without bytes, to fill the memory
            raise ValueError("a part has more rows than bytes")
        return np.fromiter(table.column(0).to_pylist(), dtype=object)
    except pa.ArrowException as reason:
        raise ValueError(str(reason)) from None
