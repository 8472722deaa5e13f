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

from skytide.errors import StateError

_MAGIC = b"SKYTIDE\n"
_FORMAT = 1
_HEAD = struct.Struct("<8sIIQ")

HOSTILE = (
    ArithmeticError,
    AttributeError,
    ImportError,  # of Arrow, where it is not installed: who stored without it has nothing of it
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
"""What reading bytes that nobody's `pack` wrote can raise."""

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
            from skytide.monitors.storage_arrow import arrow_bytes

            data = arrow_bytes(part)
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
    try:
        return _contents(body, kind, version)
    except StateError:
        raise
    except HOSTILE as reason:
        # The checksum is right: the bytes were written so, by another program or with intent.
        raise StateError(f"the stored monitor is not in order ({_line(reason)})", remedy=remedy) from None


def _contents(body: memoryview, kind: str, version: int) -> tuple[dict[str, Any], Parts]:
    (size,) = struct.unpack_from("<Q", body)
    header = json.loads(bytes(body[8 : 8 + size]))
    if header["kind"] != kind:
        raise StateError(f"the bytes hold a {header['kind']}, not a {kind}", remedy=f"use {header['kind']}.from_bytes")
    if header["version"] != version:
        raise StateError(
            f"the {kind} was stored in version {header['version']}, this program reads {version}",
            remedy="use that version",
        )
    payload = body[8 + size :]
    return header["meta"], {str(entry["name"]): _part(entry, payload) for entry in header["parts"]}


def _part(entry: dict[str, Any], payload: memoryview) -> npt.NDArray[Any]:
    start, size, shape = entry["offset"], entry["size"], tuple(entry["shape"])
    if not (0 <= start <= start + size <= len(payload)):
        raise ValueError(f"the part {entry['name']!r} lies outside")
    data = payload[start : start + size]
    if entry["type"] == "arrow":
        from skytide.monitors.storage_arrow import arrow_values

        return arrow_values(data, len(payload))
    form = np.dtype(str(entry["type"]))
    if form.kind not in "biufM" or min(shape, default=0) < 0:
        raise ValueError(f"the part {entry['name']!r} is of no known form")
    return np.frombuffer(data, dtype=form).reshape(shape).astype(form.newbyteorder("="))


def _line(reason: BaseException) -> str:
    return " ".join(str(reason).split())[:120]
