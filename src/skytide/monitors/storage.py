"""Monitors as bytes: a small container of arrays with a header, versioned and checked, without pickle.

Layout: magic, format version, CRC-32 of all that follows, length of the header, the header as JSON (what is stored, in
which version, and where each part lies), then the parts: plain arrays as they are in memory, everything else as Arrow.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.errors import StateError

_MAGIC = b"SKYTIDE\n"
_FORMAT = 1
_HEAD = struct.Struct("<8sIIQ")

Parts = dict[str, npt.NDArray[Any]]


def pack(kind: str, version: int, meta: dict[str, Any], parts: Parts) -> bytes:
    """The bytes of a monitor: `meta` must be JSON, parts are arrays of numbers, times, text or mixed plain values.

    >>> blob = pack("Toy", 1, {"k": 2}, {"rows": np.array([1.5, 2.5])})
    >>> meta, parts = unpack(blob, "Toy", 1)
    >>> meta, parts["rows"].tolist()
    ({'k': 2}, [1.5, 2.5])
    """
    index, payload, offset = [], [], 0
    for name, part in parts.items():
        entry: dict[str, Any] = {"name": name, "shape": part.shape, "offset": offset}
        if part.dtype.kind == "O":
            data = _arrow_bytes(part)
            entry["type"] = "arrow"
        else:
            data = np.ascontiguousarray(part).tobytes()
            entry["type"] = part.dtype.str
        entry["size"] = len(data)
        index.append(entry)
        payload.append(data)
        offset += len(data)
    header = json.dumps({"kind": kind, "version": version, "meta": meta, "parts": index}).encode()
    body = b"".join([struct.pack("<Q", len(header)), header, *payload])
    return _HEAD.pack(_MAGIC, _FORMAT, zlib.crc32(body), len(body)) + body


def unpack(blob: bytes, kind: str, version: int) -> tuple[dict[str, Any], Parts]:
    """What `pack` was given; a `StateError` says what is wrong with any other bytes."""
    blob = bytes(blob)
    remedy = "restore from bytes that to_bytes() gave"
    if len(blob) < _HEAD.size or not blob.startswith(_MAGIC):
        raise StateError("these bytes are not a stored monitor", remedy=remedy)
    _, form, checksum, length = _HEAD.unpack_from(blob)
    if form != _FORMAT:
        raise StateError(f"the stored form is version {form}, this program reads {_FORMAT}", remedy="use that version")
    body = memoryview(blob)[_HEAD.size :]
    if len(body) != length:
        raise StateError(f"the stored monitor has {len(body)} bytes of {length}", remedy="it is truncated: " + remedy)
    if zlib.crc32(body) != checksum:
        raise StateError("the stored monitor is damaged (its checksum differs)", remedy=remedy)
    (size,) = struct.unpack_from("<Q", body)
    start = 8 + size
    header = json.loads(bytes(body[8:start]))
    if header["kind"] != kind:
        raise StateError(f"the bytes hold a {header['kind']}, not a {kind}", remedy=f"use {header['kind']}.from_bytes")
    if header["version"] != version:
        raise StateError(
            f"the {kind} was stored in version {header['version']}, this program reads {version}",
            remedy="use that version",
        )
    parts: Parts = {}
    for entry in header["parts"]:
        data = body[start + entry["offset"] : start + entry["offset"] + entry["size"]]
        if entry["type"] == "arrow":
            parts[entry["name"]] = _arrow_values(data)
        else:
            parts[entry["name"]] = np.frombuffer(data, dtype=entry["type"]).reshape(entry["shape"]).copy()
    return header["meta"], parts


def _arrow_bytes(values: npt.NDArray[Any]) -> bytes:
    try:
        column = pa.array(values.tolist())
    except pa.ArrowException as reason:
        raise StateError(
            f"ids or group values of mixed kinds cannot be stored ({reason})", remedy="use one kind"
        ) from None
    batch = pa.record_batch([column], names=["values"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _arrow_values(data: memoryview) -> npt.NDArray[Any]:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        values = reader.read_all().column(0).to_pylist()
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
