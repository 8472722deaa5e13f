"""What the driver of rounds knows of clients and objects: their values, for pages that show the answer.

Changes of rounds have no values, as most rows never reach the driver. What it was told lies in the checkpoint, with the
record of the last micro-batch: of a client where it was when it last spoke, of an object in fragments the functions at
what its sites told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skytide.missing import without_worst
from skytide.model import Preference
from skytide.monitors.storage import unpack
from skytide.protocols.filtering.methods import Method
from skytide.spark.rounds import filtering
from skytide.spark.rounds.record import FOLDER, Record, Records
from skytide.spark.streaming.packing import unpacked
from skytide.spark.streaming.watermark import address


def last_record(checkpoint: str) -> Record | None:
    """The state of a stream after its last micro-batch, if there is any."""
    return Records(f"{address(checkpoint)}/{FOLDER}").last()


def known_rows(record: Record, preference: Preference, query: Mapping[str, Any]) -> pa.Table | None:
    """The ids, values and groups that are known after a micro-batch, None where nothing is. O(clients).

    `query` has the options of the pipeline's query; one with `site` is over fragments.
    """
    if record.coordinator is None:
        return None
    if "site" in query:
        return _objects(record.coordinator, preference, query)
    return _clients(record.coordinator, preference, query.get("nulls") == "worst")


def _clients(state: bytes, preference: Preference, worst: bool) -> pa.Table | None:
    _, parts = unpack(state, filtering.SERVER, filtering.VERSION)
    ids = unpacked([parts["ids"].tobytes()])
    if ids is None:
        return None
    points = Method.from_bytes(parts["method"].tobytes()).server.points
    here = parts["numbers"] < len(points)
    points = points[parts["numbers"][here]]
    values = points[:, : preference.dimensions]
    values = (without_worst(values) if worst else values) * preference.signs + 0.0
    columns = {"id": ids.column(filtering.ID).filter(pa.array(here))}
    columns |= {str(name): pa.array(values[:, place]) for place, name in enumerate(preference.names)}
    groups = unpacked([parts["groups"].tobytes()]) if "groups" in parts else None
    if groups is not None:
        codes = pa.array(points[:, preference.dimensions].astype(np.int64))
        for place, name in enumerate(preference.by):
            columns[str(name)] = groups.column(place).take(codes)
    return pa.table(columns)


def _objects(state: bytes, preference: Preference, query: Mapping[str, Any]) -> pa.Table | None:
    from skytide.kernel.functions import values as values_at
    from skytide.protocols.fragmented.functions import Functions
    from skytide.protocols.fragmented.methods import coordinator_of
    from skytide.spark.rounds import sites

    _, parts = unpack(state, sites.COORDINATOR, sites.VERSION)
    ids = unpacked([parts["ids"].tobytes()])
    if ids is None:
        return None
    functions = Functions([str(name) for name in preference.minimize], [str(name) for name in preference.maximize])
    kind = type(coordinator_of(query.get("method", "auto"), functions))
    known = kind.from_bytes(parts["method"].tobytes()).known
    present = np.flatnonzero(known.members)
    values = values_at(functions.programs, known.means(present)) * functions.signs + 0.0
    columns = {"id": ids.column(sites.ID).take(pa.array(present))}
    columns |= {str(name): pa.array(values[:, place]) for place, name in enumerate(preference.names)}
    return pa.table(columns)
