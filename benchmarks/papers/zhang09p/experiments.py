"""The runs behind zhang09p's Figs. 4 to 12.

SSKY is the paper's: aggregate R-trees. `cells` is what `auto` chooses here, a scan by cells; `trivial` is the paper's
trivial algorithm, a scan of the candidates, compiled. All of them continue from the same full window, the last two for
a limited time, and what they say is compared; probabilities of members are compared with fresh ones over the window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.papers.registry import Place, Row
from benchmarks.peers.uncertain_parts import LEAST, Slide, agree, compared, fresh_error, stream, thresholds
from skytide.errors import InputError
from skytide.monitors.uncertain.engine import UncertainRows
from skytide.streams.uncertainty import probabilities

STOCK = "es_futures_ticks*.parquet"
METHODS = {"SSKY": "tree", "cells": "auto", "trivial": "scan"}
CHECKED = 50
"""So many members of the last answer are computed afresh."""
APART = 1e-9


def warm(d: int) -> None:
    """Load compiled code, so that nobody's time has it."""
    rows = stream("independent", d, 0, 200, 50, 0)
    for method in METHODS.values():
        Slide(method, d, [LEAST]).run(rows)


def dataset(parameters: Row, place: Place) -> list[Row]:
    """Figs. 4 and 8: the largest sizes, and the time of an element; with `pieces`, that time along the stream."""
    d, window = parameters["d"], parameters["N"]
    rows = rows_of(parameters, place)
    warm(d)
    if "pieces" in parameters:
        return along(rows, parameters["pieces"])
    found = compared(rows, window, parameters["limit"])
    share = {
        "candidates": found["candidates"],
        "answer": found["answer"],
        "kept, %": round(100 * found["candidates"] / window, 3),
    }
    return [
        {
            "method": name,
            **share,
            "elements/s": found[f"{method}, rows/s"],
            "µs": round(1e6 / max(1, found[f"{method}, rows/s"]), 2),
            "equal": found["equal"],
        }
        for name, method in METHODS.items()
    ]


def rows_of(parameters: Row, place: Place) -> UncertainRows:
    """The stream of a data set."""
    d, n, window, seed = (parameters[name] for name in ("d", "n", "N", "seed"))
    if parameters["data"] == "stock":
        return trades(place, n, window, seed)
    return stream(parameters["data"], d, 0, n, window, seed, distribution=parameters["P"])


def along(rows: UncertainRows, pieces: int) -> list[Row]:
    """Fig. 8 by n: the time of an element of SSKY in each piece of a stream, from the empty window on."""
    d, many = rows.values.shape[1], -(-len(rows) // pieces)
    tree, cells = Slide("tree", d, [LEAST]), Slide("auto", d, [LEAST])
    found, equal = list[Row](), True
    for first in range(0, len(rows), many):
        piece = rows.pick(slice(first, first + many))
        for one in (tree, cells):
            one.restart()
            one.run(piece, keep=True)
        equal &= agree(cells, tree)
        delay = round(1e6 * tree.seconds / tree.taken, 3)
        found.append({"along": True, "method": "SSKY", "elements": first + len(piece), "delay, µs": delay})
    return [{**row, "equal": equal} for row in found]


def trades(place: Place, n: int, window: int, seed: int) -> UncertainRows:
    """The stand-in for the paper's stock transactions: low prices and high volumes are good, P is uniform."""
    files = sorted(place.data.glob(STOCK)) if place.data is not None else []
    if not files:
        raise InputError("there is no such file", file=STOCK, remedy="name the folder with --data")
    table = pq.read_table(files, columns=["price", "volume"]).slice(0, n)
    columns = [table["price"].to_numpy().astype(float), -table["volume"].to_numpy().astype(float)]
    values = np.ascontiguousarray(np.stack(columns, axis=1))
    numbers = np.arange(len(values), dtype=np.int64)
    return UncertainRows(values, probabilities(len(values), seed), numbers, numbers + window, numbers)


def varied(parameters: Row, place: Place) -> list[Row]:
    """Figs. 5 to 7 and 9 to 11: sizes and time by window, mean probability and threshold."""
    kind, d, window, q, seed = (parameters[name] for name in ("kind", "d", "N", "q", "seed"))
    chances: dict[str, Any] = {}
    if parameters["mean"] is not None:
        chances = {"distribution": "normal", "mean": parameters["mean"]}
    rows = stream(kind, d, 0, parameters.get("n", window + window // 2), window, seed, **chances)
    warm(d)
    rest = rows.pick(slice(window, len(rows)))
    cells = Slide("auto", d, [q])
    cells.run(rows.pick(slice(0, window)))
    retained = cells.engine.retained()
    cells.restart()
    cells.run(rest, sizes=True, keep=True)
    tree = Slide("tree", d, [q])
    tree.engine.load(retained, window - 1)
    tree.run(rest, limit=parameters["limit"], keep=True)
    error = fresh_error(cells.engine.answer(q), rows.pick(slice(-window, None)), CHECKED)
    equal = agree(cells, tree) and error < APART
    sizes = {"candidates": cells.candidates, "answer": cells.answer}
    return [
        {"method": name, **sizes, "µs": round(1e6 * one.seconds / one.taken, 3), "equal": equal}
        for name, one in (("SSKY", tree), ("cells", cells))
    ]


def several(parameters: Row, place: Place) -> list[Row]:
    """Fig. 12: MSKY with k thresholds, and ad-hoc queries."""
    window = parameters["N"]
    warm(3)
    found = next(
        thresholds(
            [parameters["k"]], window + parameters["elements"], window, parameters["queries"], parameters["seed"]
        )
    )
    return [
        {
            "method": name,
            "µs per element": found[f"{method}, µs/element"],
            "µs per query": found[f"{method}, µs/query"],
            "equal": found["equal"],
        }
        for name, method in (("MSKY, QSKY", "tree"), ("cells", "auto"))
    ]
