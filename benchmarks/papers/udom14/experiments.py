"""The runs behind udom14's Figs. 4 to 6: `proposed` are the boxes, `naive` is a fresh skyline of every snapshot.

Both are ours; `moocore` is a fresh skyline with another library, on some of the snapshots where there are many. Changes
of all methods are compared, and the skylines that they lead to with moocore's.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from benchmarks.papers.registry import Place, Row
from benchmarks.papers.udom14 import series
from benchmarks.papers.udom14.replay import Contest, Played, better, contest, engine, phases
from skytide.errors import InputError

PHASES = ("PRE", "SKY", "POST")
NBA, STOCKS = "nba_player_box*.parquet", "us_stocks_ohlcv*.parquet"


@cache
def warm() -> None:
    """Load compiled code, once in a process."""
    for d in (2, 3):
        one = series.walk(80, d, 6, 0, share=0.3)
        contest(one, repeats=1, budget=0.01)
        phases(one, 1.0, repeats=1)


def walk_of(parameters: Row) -> series.Series:
    """The paper's synthetic data; each run has rows of its own."""
    sizes = parameters["N"], parameters["m"], parameters["T"]
    seed = parameters["seed"] + parameters["run"]
    return series.walk(*sizes, seed, share=parameters["p, %"] / 100, step=0.5)


def row_of(one: series.Series, found: Contest, repeats: int) -> Row:
    """What a contest came to."""
    boxes, naive = (found.per_snapshot(name) for name in ("mbr", "recompute"))
    split = phases(one, found.played["mbr"].seconds, repeats=repeats)
    return {
        "PRE, µs": round(float(split[0]), 2),
        "SKY, µs": round(float(split[1]), 2),
        "POST, µs": round(float(split[2]), 2),
        "proposed, µs": round(boxes, 2),
        "naive, µs": round(naive, 2),
        "moocore, µs": round(1e6 * found.moocore, 2),
        "ratio, %": round(100 * boxes / naive, 2),
        "candidates": round(found.candidates(), 1),
        "skyline": round(found.skyline(), 1),
        "updates": round(len(one.updates.slots) / one.updates.snapshots, 1),
        "equal": bool(found.equal),
    }


def synthetic(parameters: Row, place: Place) -> list[Row]:
    """Fig. 5: a cell of the paper's Table 2."""
    warm()
    one = walk_of(parameters)
    found = contest(one, repeats=parameters["repeats"], budget=parameters["budget"])
    return [{"value": parameters[parameters["varied"]], **row_of(one, found, parameters["repeats"])}]


def patience(parameters: Row, place: Place) -> list[Row]:
    """Fig. 4: the boxes with another cfp_ths, beside the naive method."""
    warm()
    one, cfp = walk_of(parameters), parameters["cfp"]
    naive, boxes, equal = Played(), Played(), True
    for _ in range(parameters["repeats"]):
        fresh, mine = engine("recompute", one)(), engine("mbr", one, cfp)()
        naive, boxes = better(naive, fresh), better(boxes, mine)
        equal &= np.array_equal(fresh.answer, mine.answer)
    split = phases(one, boxes.seconds, repeats=parameters["repeats"], patience=cfp)
    count = one.updates.snapshots
    return [
        {
            **{f"{name}, µs": round(float(value), 2) for name, value in zip(PHASES, split, strict=True)},
            "proposed, µs": round(1e6 * boxes.seconds / count, 2),
            "naive, µs": round(1e6 * naive.seconds / count, 2),
            "ratio, %": round(100 * boxes.seconds / naive.seconds, 2),
            "candidates": round(boxes.counters["candidates_seen"] / count, 1),
            "rebuilt": round(boxes.counters["demoted"] / count, 3),
            "equal": bool(equal),
        }
    ]


def real(parameters: Row, place: Place) -> list[Row]:
    """Fig. 6: the stand-ins for NBA and STK."""
    if place.data is None:
        raise InputError("there is no folder of data", remedy="name it with --data")
    warm()
    one = series.nba(place.data) if parameters["data"] == "NBA" else series.stocks(place.data)
    if parameters["T"]:
        one = series.beginning(one, parameters["T"])
    found = contest(one, repeats=parameters["repeats"], budget=parameters["budget"])
    about = {
        "objects": one.objects,
        "snapshots": one.updates.snapshots,
        "all updates": len(one.updates.slots),
        "moving, %": round(100 * series.moving(one), 1),
    }
    return [{**about, **row_of(one, found, parameters["repeats"])}]
