"""The runs behind papa14's Figs. 5 to 7: PIVOT and DIRECT over one stream, as shares of what CENTR sends.

CENTR is counted by our encoding, with a message for every update that changes a local vector. After every block of a
stream answers are compared with the skyline of the true means.
"""

from __future__ import annotations

from functools import cache

from benchmarks.papers.papa14 import series
from benchmarks.papers.papa14.runs import Run, defined, played
from benchmarks.papers.registry import Place, Row
from skytide.errors import InputError
from skytide.protocols.fragmented.tuning import Tuning

KINDS = {"correlated": "correlated", "independent": "independent", "anti-correlated": "anti-correlated"}
METHODS = {"PIVOT": "pivot", "DIRECT": "direct"}
GROUPED = {"PIVOT": Tuning(), "PIVOT, grouped": Tuning(apart=0.0), "PIVOT, not grouped": Tuning(apart=1.0)}
"""Where objects begin that hang on one another: our own way between the paper's two."""
TYPES = {"column": "b", "norm": "norm(b, c)", "distance": "distance(b, c, d, e)", "variance": "var(b)"}
SPREAD = 0.5
"""Sites that all begin alike have no variance: for that function they begin up to so much of the vector away."""
SMALL = 100
"""Streams of up to so many updates are compared with the reference after every single one, too."""


@cache
def warm() -> None:
    """Load compiled code, once in a process."""
    tiny = series.synthetic("independent", 6, 2, ("a", "b"), change=0.1, seed=0, updates=30)
    for method in METHODS.values():
        played(tiny, method)


def functions_of(parameters: Row) -> tuple[str, ...]:
    """The functions of a cell."""
    if parameters["type"] != "column":
        return "a", TYPES[parameters["type"]]
    return tuple("abcd"[: parameters["functions"]])


def stream_of(parameters: Row) -> series.Series:
    """The paper's synthetic stream, about five updates for each object at each site; each run has its own."""
    return series.synthetic(
        KINDS[parameters["kind"]],
        parameters["objects"],
        parameters["sites"],
        functions_of(parameters),
        change=parameters["maxRC"],
        seed=parameters["seed"] + parameters["run"],
        spread=SPREAD if parameters["type"] == "variance" else 0.0,
        part=parameters.get("part", 1.0),
    )


def percent(part: float) -> float:
    """Of CENTR."""
    return round(100 * part, 5)


def row_of(method: str, run: Run, stream: series.Series, right: bool) -> Row:
    """A whole run."""
    messages, volume = run.along[-1].shares
    late = run.along[-1].since(run.along[(len(run.along) - 1) // 2])
    return {
        "method": method,
        "messages, %": percent(messages),
        "bytes, %": percent(volume),
        "late messages, %": percent(late.shares[0]),
        "initial, KB/site": round(run.initial / stream.sites / 1e3, 1),
        "skyline": run.skyline,
        "updates/s": round(run.along[-1].updates / max(run.seconds, 1e-9)),
        "equal": run.equal and right,
    }


def by_definition(stream: series.Series, method: str) -> bool:
    """Whether a small stream is right after every update, too; of others nothing is said."""
    return stream.updates > SMALL or bool(defined(stream, method)["equal"])


def varied(parameters: Row, place: Place) -> list[Row]:
    """Figs. 6 and 7a, b: a cell, with all methods."""
    warm()
    stream = stream_of(parameters)
    value = {"value": parameters[parameters["varied"]]}
    return [
        {**value, **row_of(name, played(stream, method), stream, by_definition(stream, method))}
        for name, method in METHODS.items()
    ]


def along(parameters: Row, place: Place) -> list[Row]:
    """Fig. 5: what was sent up to points of the stream, also with what was sent at its beginning."""
    warm()
    stream = stream_of(parameters)
    found = []
    for name, method in METHODS.items():
        run = played(stream, method)
        right = run.equal and by_definition(stream, method)
        for cost in run.along[1:]:
            messages, volume = cost.shares
            found.append(
                {
                    "method": name,
                    "updates": cost.updates,
                    "messages, %": percent(messages),
                    "bytes, %": percent(volume),
                    "bytes with the beginning, %": percent((cost.volume + run.initial) / max(1, cost.central_volume)),
                    "initial, KB/site": round(run.initial / stream.sites / 1e3, 1),
                    "last": cost is run.along[-1],
                    "skyline": run.skyline,
                    "equal": right,
                }
            )
    return found


def functions(parameters: Row, place: Place) -> list[Row]:
    """Fig. 7: a cell of its synthetic parts, or real data."""
    return real(parameters, place) if "data" in parameters else varied(parameters, place)


def real(parameters: Row, place: Place) -> list[Row]:
    """Fig. 7c: the stand-ins for WEATHER and MOVIES. DIRECT is no method for objects that share no site (Theorem 1)."""
    if place.data is None:
        raise InputError("there is no folder of data", remedy="name it with --data")
    warm()
    if parameters["data"] == "WEATHER":
        stream = series.weather(place.data, parameters["most"] or None)
        found = {name: played(stream, "pivot", tuning) for name, tuning in GROUPED.items()}
    else:
        seed = parameters["seed"]
        stream = series.movies(place.data, seed, parameters["sites"], parameters["most"] or None, parameters["sample"])
        found = {name: played(stream, method) for name, method in METHODS.items()}
    return [
        {"varied": "data", "value": parameters["data"], "sites": stream.sites, "objects": stream.objects}
        | {"updates": stream.updates}
        | row_of(name, run, stream, True)
        for name, run in found.items()
    ]
