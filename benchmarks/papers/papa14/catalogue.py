"""papa14's Figs. 5 to 7: what is varied, what is drawn, and what the paper's text says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from benchmarks.papers.papa14.experiments import KINDS, TYPES
from benchmarks.papers.papa14.series import MOVIES, STATIONS, WEATHER
from benchmarks.papers.registry import Claim, Figure, Found, Panel, Row, Rows, by_size, chosen, mean, values

HERE = "benchmarks.papers.papa14.experiments"
METHODS = ("PIVOT", "DIRECT")
MESSAGES, BYTES, WHOLE = "messages, %", "bytes, %", "bytes with the beginning, %"
SITES, OBJECTS = (200, 500, 1_000, 1_500, 2_000, 2_500), (1_000, 2_000, 3_000, 4_000, 5_000)
CHANGES = (0.01, 0.02, 0.04, 0.08, 0.16)
NOTE = (
    "Costs are shares of CENTR's, by our encoding on both sides. As in the paper each object has about five updates at "
    "each site; all sites begin at the object's vector, which the paper does not say. Queries of PIVOT are boxes."
)
FEW = " Fewer sites than the paper's 1,000 make orders to all sites of an object a larger share of what can be saved."


def usual(size: str) -> Row:
    """The paper's Table I, with fewer sites."""
    return {
        "kind": "independent",
        "objects": by_size(size, 8, 2_000, 2_000),
        "sites": sites_of(1_000, size),
        "functions": 2,
        "type": "column",
        "maxRC": 0.02,
    }


def sites_of(many: int, size: str) -> int:
    """How many sites there are where the paper has so many."""
    return max(2, round(many * float(by_size(size, 0.002, 0.02, 1))))


def runs(size: str, cells: Iterable[Row]) -> Iterator[Row]:
    """The paper has 40 runs of each; so many more only make means steadier."""
    for cell in cells:
        for run in range(by_size(size, 1, 1, 40)):
            yield {**cell, "run": run}


def kinds(size: str) -> Iterator[Row]:
    """Fig. 5: the correlation of the dimensions."""
    return runs(size, [{**usual(size), "kind": kind} for kind in KINDS])


def ends(several: tuple[Any, ...], size: str) -> tuple[Any, ...]:
    """All values; at smoke, the ends."""
    return (several[0], several[-1]) if size == "smoke" else several


def scale(size: str) -> Iterator[Row]:
    """Fig. 6: maxRC, sites, objects."""
    cells = [{"varied": "maxRC", **usual(size), "maxRC": value} for value in ends(CHANGES, size)]
    cells += [{"varied": "sites", **usual(size), "sites": many} for many in
              dict.fromkeys(sites_of(value, size) for value in ends(SITES, size))]  # fmt: skip
    few = by_size(size, 200, 1, 1)
    cells += [{"varied": "objects", **usual(size), "objects": value // few} for value in ends(OBJECTS, size)]
    return runs(size, cells)


def queries(size: str) -> Iterator[Row]:
    """Fig. 7a and b: the number of functions, and their kind."""
    cells = [{"varied": "functions", **usual(size), "functions": many} for many in ends((2, 3, 4), size)]
    cells += [{"varied": "type", **usual(size), "type": name} for name in TYPES]
    return runs(size, cells)


def weather(size: str) -> Iterator[Row]:
    """Fig. 7c: so many days, 0 for all."""
    yield {"data": "WEATHER", "most": by_size(size, 1, 2, 0)}


def movies(size: str) -> Iterator[Row]:
    """Fig. 7c: so many ratings, 0 for all; half of them are there at the beginning."""
    yield {"data": "MOVIES", "most": by_size(size, 100, 2_000, 0), "sites": 200, "sample": 0.5}


# -- what the paper says -----------------------------------------------------------------------------------------------


def shares(rows: Rows, column: str) -> dict[str, float]:
    """What the methods send of CENTR's, in percent."""
    found = {method: mean(rows, column, method=method) for method in METHODS}
    return {method: share for method, share in found.items() if share == share}


def said(by: dict[str, float]) -> str:
    """In words."""
    return ", ".join(f"{method} {share:.3g} %" for method, share in by.items())


def at_most(column: str, bars: dict[str, float], rows: Rows, **where: Any) -> Found:
    """Whether methods send no more than the paper says."""
    by = shares(chosen(rows, **where), column)
    if not by:
        return Found("not measured", None)
    return Found(said(by), all(by[method] <= bar for method, bar in bars.items() if method in by))


def kept_below(column: str, bars: dict[str, float], varied: str, rows: Rows) -> Found:
    """Whether methods send no more than the paper says at any value."""
    own = chosen(rows, varied=varied)
    worst = {method: max(mean(own, column, method=method, value=value) for value in values(own, "value"))
             for method in METHODS}  # fmt: skip
    return Found("at most " + said(worst), all(worst[method] <= bar for method, bar in bars.items()))


def cheaper(one: str, other: str, rows: Rows, **where: Any) -> Found:
    """Whether a method sends fewer messages than another."""
    by = shares(chosen(rows, **where), MESSAGES)
    return Found(said(by), by[one] <= by[other])


def begins(rows: Rows) -> Found:
    """How much is sent at the beginning."""
    found = max(row["initial, KB/site"] for row in rows)
    return Found(f"up to {found:,.0f} KB for each site", found < 25)


def pays(rows: Rows) -> Found:
    """From where on the whole cost is below CENTR's."""
    own = chosen(rows, kind="anti-correlated")
    told, holds = [], True
    for method in METHODS:
        points = [(row["updates"], row[WHOLE]) for row in chosen(own, method=method)]
        below = [at for at, share in points if share < 100]
        told.append(f"{method} from {below[0]:,} updates on" if below else f"{method} {points[-1][1]:.0f} % at the end")
        holds &= bool(below)
    return Found(", ".join(told), holds)


def grows(rows: Rows) -> Found:
    """Whether more change costs more."""
    own = chosen(rows, varied="maxRC")
    first, *_, last = values(own, "value")
    low, high = (shares(chosen(own, value=value), MESSAGES) for value in (first, last))
    return Found(f"{said(low)} at {first}; {said(high)} at {last}", all(low[name] <= high[name] for name in METHODS))


def last(rows: Rows, **where: Any) -> list[Row]:
    """The ends of the runs of Fig. 5."""
    return chosen(rows, last=True, **where)


# -- figures -----------------------------------------------------------------------------------------------------------


def panels_of(letter: str, name: str, log: str) -> tuple[Panel, Panel]:
    """Bytes and messages over what is varied."""
    where = (("varied", name),)
    return (Panel(f"({letter})", "value", BYTES, where=where, log=log, label=name),
            Panel(f"({letter})", "value", MESSAGES, where=where, log=log, label=name))  # fmt: skip


ALONG = tuple(
    Panel(f"{kind}: {column}", "updates", column, where=(("kind", kind),), log="y")
    for column in (BYTES, MESSAGES, WHOLE)
    for kind in ("independent", "anti-correlated")
)
"""Correlated streams cost nothing, or nearly nothing, at all."""
FIGURES = [
    Figure("papa14", "figure", 5, "Effect of the correlation of the dimensions: (a) bytes, (b) messages, (c) bytes "
           "with the beginning", f"{HERE}:along", kinds, ALONG,
           (MESSAGES, BYTES, WHOLE, "initial, KB/site", "skyline"), (
               Claim("Independent: two to three orders of magnitude less than CENTR (at most 1 % of the bytes)",
                     lambda rows: at_most(BYTES, {"PIVOT": 1.0, "DIRECT": 1.0}, last(rows, kind="independent"))),
               Claim("Correlated: two to three orders of magnitude less than CENTR",
                     lambda rows: at_most(BYTES, {"PIVOT": 1.0, "DIRECT": 1.0}, last(rows, kind="correlated"))),
               Claim("Anti-correlated: around 70 % less than CENTR",
                     lambda rows: at_most(BYTES, {"PIVOT": 30.0, "DIRECT": 30.0}, last(rows, kind="anti-correlated"))),
               Claim("Independent: DIRECT sends less than PIVOT",
                     lambda rows: cheaper("DIRECT", "PIVOT", last(rows, kind="independent"))),
               Claim("Anti-correlated: PIVOT sends far fewer messages than DIRECT",
                     lambda rows: cheaper("PIVOT", "DIRECT", last(rows, kind="anti-correlated"))),
               Claim("The beginning costs less than 25 KB for each site", begins),
               Claim("Anti-correlated: with the beginning, below CENTR after 1.5 of 10 million updates", pays),
           ), NOTE + FEW + " What is sent at the beginning is more than the paper's, since boxes are not grouped.",
           by=("kind", "method", "updates"), tabled=(("last", True),)),
    Figure("papa14", "figure", 6, "Effect of (a) the largest relative change, (b) the number of sites, (c) the number "
           "of objects", f"{HERE}:varied", scale,
           (*panels_of("a", "maxRC", "xy"), *panels_of("b", "sites", "y"), *panels_of("c", "objects", "y")),
           (MESSAGES, BYTES, "late messages, %", "skyline"), (
               Claim("(a) More change costs more", grows),
               Claim("(a) maxRC = 0.16: bytes are 20 % (PIVOT) and 12 % (DIRECT) of CENTR's",
                     lambda rows: at_most(BYTES, {"PIVOT": 20, "DIRECT": 12}, rows, varied="maxRC", value=0.16)),
               Claim("(a) maxRC = 0.16: messages are 10 % of CENTR's",
                     lambda rows: at_most(MESSAGES, {"PIVOT": 10, "DIRECT": 10}, rows, varied="maxRC", value=0.16)),
               Claim("(b) At any number of sites bytes are below 3 % (PIVOT) and 1 % (DIRECT)",
                     partial(kept_below, BYTES, {"PIVOT": 3, "DIRECT": 1}, "sites")),
               Claim("(b) At any number of sites messages are below 1 %",
                     partial(kept_below, MESSAGES, {"PIVOT": 1, "DIRECT": 1}, "sites")),
               Claim("(c) Up to 5,000 objects bytes do not exceed 4 %",
                     partial(kept_below, BYTES, {"PIVOT": 4, "DIRECT": 4}, "objects")),
               Claim("(c) Up to 5,000 objects messages are less than 2 %",
                     partial(kept_below, MESSAGES, {"PIVOT": 2, "DIRECT": 2}, "objects")),
           ), NOTE + FEW, by=("varied", "value", "method")),
    Figure("papa14", "figure", 7, "Effect of (a) the number of functions, (b) their kind; (c) real data",
           f"{HERE}:functions", queries,
           (*panels_of("a", "functions", "y"), *panels_of("b", "type", "y"), *panels_of("c", "data", "")),
           (MESSAGES, BYTES, "late messages, %", "sites", "objects", "skyline"), (
               Claim("(a) 4 functions: PIVOT saves 70 % of the bytes",
                     lambda rows: at_most(BYTES, {"PIVOT": 30}, rows, varied="functions", value=4)),
               Claim("(a) 4 functions: PIVOT saves more than 80 % of the messages",
                     lambda rows: at_most(MESSAGES, {"PIVOT": 20}, rows, varied="functions", value=4)),
               Claim("(a) PIVOT is better than DIRECT from 3 functions on",
                     lambda rows: cheaper("PIVOT", "DIRECT", rows, varied="functions", value=4)),
               Claim("(b) L2 distance: PIVOT sends about 20 % of the bytes, DIRECT 80 %",
                     lambda rows: at_most(BYTES, {"PIVOT": 20, "DIRECT": 80}, rows, varied="type", value="distance")),
               Claim("(b) L2 distance: PIVOT is far better than DIRECT",
                     lambda rows: cheaper("PIVOT", "DIRECT", rows, varied="type", value="distance")),
               Claim("(b) Norm and variance are as good as linear functions",
                     lambda rows: at_most(BYTES, {"PIVOT": 5, "DIRECT": 5},
                                          [row for row in rows if row["value"] in ("norm", "variance")])),
               Claim("(c) WEATHER: PIVOT without grouping sends 10 % of CENTR",
                     lambda rows: at_most(MESSAGES, {"PIVOT": 10}, rows, value="WEATHER")),
               Claim("(c) MOVIES: nearly nothing",
                     lambda rows: at_most(MESSAGES, {"PIVOT": 1, "DIRECT": 1}, rows, value="MOVIES")),
           ), NOTE + FEW + " Real data are stand-ins: Brazil's stations with states for countries, which lie within a "
           "day's swing of each other; and 100,004 ratings instead of 10 million, with nine for a movie, so that one "
           "order to its 200 sites costs more than all that is to come. Neither can be saved much on.",
           by=("varied", "value", "method"),
           also=((weather, (WEATHER, STATIONS)), (movies, (MOVIES,)))),
]  # fmt: skip
