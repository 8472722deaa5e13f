"""What the README claims, each beside the part that shows it, and what that part found.

A claim is judged by a bar that follows from its words. A smoke run is too small for that, and judges answers alone. A
part that was left out, for want of a peer or of data, judges nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from benchmarks.papers.registry import Found, NotMeasuredError
from benchmarks.scale.paper import slope

Values = Mapping[str, Any]
"""What a part has written as JSON."""


@dataclass(frozen=True)
class Claim:
    """A line of the report: its heading, which is its address, the part that shows it, and the rule."""

    title: str
    part: str
    ours: Callable[[Values], Found]
    answers: bool = False
    """Whether it is about answers alone, which are judged at every size."""
    why: str = ""
    """Why it does not hold, as far as is known; it is told where it does not."""


def _span(values: Iterable[float], digits: int = 2) -> str:
    """The least and the largest.

    >>> _span([3.14159, 1, 2])
    '1.00 to 3.14'
    """
    found = sorted(values)
    if not found:
        raise NotMeasuredError("nothing was measured")
    return f"{found[0]:,.{digits}f} to {found[-1]:,.{digits}f}"


def _lines(found: Values, part: str) -> list[Any]:
    """The lines of a table of a part; NotMeasuredError where there is none."""
    lines = list(found["parts"].get(part, ()))
    if not lines:
        raise NotMeasuredError(f"{part} was left out")
    return lines


# -- answers -----------------------------------------------------------------------------------------------------------


def _verified(found: Values) -> Found:
    lines = found["lines"]
    run = [line for line in lines if line["result"] != "not run"]
    wrong = [line for line in run if line["result"] == "disagrees"]
    commands = len({line["command"].split()[0] for line in run})
    checked, instants = sum(line["checked"] for line in run), sum(line["instants"] for line in run)
    agree = f"{len(run) - len(wrong)} of {len(run)} runs of {commands} commands agree"
    return Found(f"{agree}, at {checked:,} of {instants:,} instants", not wrong and bool(run))


def _work(found: Values) -> Found:
    differ = found["differences"]
    return Found(f"{found['runs']} runs, {len(differ)} numbers differ from what is written down", not differ)


def _papers(found: Values) -> Found:
    text = (
        f"{found['figures']} figures and tables; {found['hold']} of {found['judged']} statements of the papers hold, "
        f"{found['unexplained']} of the others without a reason; {found['wrong']} rows from runs with wrong answers, "
        f"{found['failed']} runs failed"
    )
    return Found(text, not (found["unexplained"] or found["wrong"] or found["failed"]))


def _soak_streams(found: Values) -> Found:
    streams, faults = found["streams"], sum(found["faults"].values())
    network = sum(found["network"].get("faults", {}).values()) if found["network"] else 0
    told = ", ".join(f"{one['name']} {one['found']:,} of {one['expected']:,}" for one in streams)
    lost = sum(one["missing"] + one["surplus"] for one in streams)
    wrong = found["network"].get("wrong", 0) if found["network"] else 0
    text = (
        f"{found['seconds'] / 60:.0f} minutes, {found['rows']:,} rows, {faults} faults of Spark and {network:,} of the "
        f"network; {told}; {lost} missing or too many; {wrong} wrong states published as exact"
    )
    return Found(text, not lost and not wrong and bool(streams))


def _soak_memory(found: Values) -> Found:
    roles = [one for one in found["memory"] if one["bound"] is not None]
    bad = [one["role"] for one in roles if one["flat"] is False]
    open_ones = [one["role"] for one in roles if one["flat"] is None]
    told = ", ".join(
        f"{one['role']} at most {one['most']:,.0f} MiB"
        + (f" ({one['slope']:+.2f} MiB a minute)" if one["slope"] is not None and "JVM" not in one["role"] else "")
        for one in roles
    )
    text = told + (f"; not judged: {', '.join(open_ones)}" if open_ones else "")
    return Found(text, False if bad else None if open_ones else True)


def _network_faults(found: Values) -> Found:
    lines = _lines(found, "faults")
    right, wrong = sum(line["right"] for line in lines), sum(line["wrong"] for line in lines)
    faults = sum(line["faults"] for line in lines)
    text = f"{faults:,} faults; {right:,} states published as exact were right, {wrong} wrong"
    return Found(text, not wrong and all(line["equal"] for line in lines) and right > 0)


def _hostile(found: Values) -> Found:
    lines = _lines(found, "fuzz")
    inputs, failures = (sum(line[name] for line in lines) for name in ("inputs", "failures"))
    return Found(f"{inputs:,} inputs, {failures} failures", not failures)


def _peer_answers(found: Values) -> Found:
    lines = found["lines"]
    names = list(dict.fromkeys(line["peer"] for line in lines))
    wrong = sum(not line["equal"] for line in lines)
    left = f"; left out: {'; '.join(found['left out'])}" if found["left out"] else ""
    return Found(f"{', '.join(names)}: {len(lines)} comparisons, {wrong} differ{left}", not wrong and bool(lines))


# -- speed -------------------------------------------------------------------------------------------------------------


LIBRARIES = ("moocore", "paretoset", "pymoo", "river")


def _libraries(found: Values) -> Found:
    told, least = [], math.inf
    for name in LIBRARIES:
        ratios = [line["ratio"] for line in found["lines"] if line["peer"] == name]
        if ratios:
            told.append(f"{name} {geometric_mean(ratios):,.0f} (least {min(ratios):.2f})")
            least = min(least, *ratios)
    if not told:
        raise NotMeasuredError("no library is installed")
    return Found("times as long as ours, geometric means: " + ", ".join(told), least > 1)


def _flat(found: Values) -> Found:
    lines = _lines(found, "flat")
    rates = [line["skytide, rows/s"] / 1e6 for line in lines]
    ratios = [line["ratio"] for line in lines]
    text = f"{_span(rates)} million rows a second; {_span(ratios)} times as fast as the scan, in {len(lines)} cells"
    return Found(text, min(ratios) >= 1)


def _anew(found: Values) -> Found:
    lines = _lines(found, "recompute")
    ratios = [line["ratio"] for line in lines]
    return Found(f"{_span(ratios)} times as fast as the fastest of three who compute anew", min(ratios) > 1)


def _batch(found: Values) -> Found:
    ratios = [next(iter(cell["ratios"].values())) for cell in found["cells"]]
    mean = geometric_mean(ratios)
    cells = f"geometric mean of {len(ratios)} cells, one thread; {_span(ratios, 1)}"
    return Found(f"{mean:.1f} times as fast as the faster peer, {cells}", mean >= 4 and min(ratios) > 0.8)


def _uncertain(found: Values) -> Found:
    ratios = [line["auto/scan"] for line in _lines(found, "rates")]
    return Found(f"{_span(ratios, 1)} times as fast as the plain scan, in {len(ratios)} cells", min(ratios) >= 1)


def _drift(found: Values) -> Found:
    lines = _lines(found, "drift")
    errors = [float(line["largest relative error"]) for line in lines]
    text = f"after {lines[0]['arrivals']:,} arrivals the largest relative error is {max(errors):.1e}"
    return Found(text, max(errors) < 1e-9)


def _snapshots(found: Values) -> Found:
    told, least = [], math.inf
    for part in ("synthetic", "nba", "stocks"):
        ratios = [line["recompute/auto"] for line in found["parts"].get(part, ())]
        if ratios:
            told.append(f"{part} {_span(ratios, 1)}")
            least = min(least, *ratios)
    if not told:
        raise NotMeasuredError("nothing was measured")
    return Found("times as fast as computing anew: " + ", ".join(told), least >= 1)


def _times(cell: Values, peer: str) -> float:
    """How many times as long as ours a peer takes."""
    return float(cell["seconds"][peer] / cell["seconds"]["skytide"])


def _spark_tables(found: Values) -> Found:
    told = sorted((cell["shape"]["rows"], _times(cell, "NOT EXISTS")) for cell in found["sql"])
    text = ", ".join(f"{ratio:.1f} times on {rows:,} rows" for rows, ratio in told)
    return Found(f"NOT EXISTS takes longer: {text}", told[-1][1] > 10)


def _one_task(found: Values) -> Found:
    told = [
        f"{_times(cell, 'one task'):.2f} ({shape['rows']:,} x {shape['dimensions']}, {shape['kind']})"
        for cell in found["cells"]
        for shape in [cell["shape"]]
    ]
    least = min(_times(cell, "one task") for cell in found["cells"])
    return Found(f"one task takes so many times as long as ours: {', '.join(told)}", least >= 1)


def _spark_streams(found: Values) -> Found:
    lines = found["streams"]
    shares = [line["share"] for line in lines]
    travel = [line["sent_per_million"] for line in lines]
    text = (
        f"{_span([line['ours'] / 1e6 for line in lines], 1)} million rows a second, {min(shares):.0%} to "
        f"{max(shares):.0%} of those of a job that takes them to Python and does nothing; of a million rows "
        f"{_span(travel, 0)} reach the merge; changes {'equal' if all(line['equal'] for line in lines) else 'DIFFER'}"
    )
    return Found(text, min(shares) >= 0.4 and all(line["equal"] for line in lines))


def _scale(found: Values) -> Found:
    tables = [line for line in found["lines"] if line["part"] == "rows"]
    most = max(line["rows"] for line in tables)
    masters = list(dict.fromkeys(line["master"] for line in tables))
    largest = [line for line in tables if line["rows"] == most]
    reach = [line["reach"] * 1e6 / line["rows"] for line in largest]
    rates = [line["rows"] / line["skyline s"] / 1e6 for line in largest]
    first = [line for line in tables if line["master"] == masters[0]]
    power = slope([line["rows"] for line in first], [line["skyline s"] for line in first])
    right = all(line["equal"] for line in found["lines"])
    text = (
        f"up to {most:,} rows on {', '.join(masters)}: there {_span(rates)} million rows a second, of a million "
        f"{_span(reach, 0)} reach the merge; seconds grow with the power {power:.2f} of the rows; "
        f"answers {'equal' if right else 'DIFFER'}"
    )
    return Found(text, right and power <= 1.1)


# -- messages ----------------------------------------------------------------------------------------------------------


def _filtering(found: Values) -> Found:
    lines = [line for part in ("dimensions", "distribution") for line in found["parts"].get(part, ())]
    auto = [line["total"] for line in lines if line["method"] == "auto"]
    tcp = [line["total"] for line in found["parts"].get("tcp", ()) if line["method"] == "auto"]
    real = f"; on a log of connections {tcp[0]:.1%}" if tcp else ""
    if not auto:
        raise NotMeasuredError("nothing was measured")
    text = f"auto sends {min(auto):.1%} to {max(auto):.1%} of the messages of sending everything{real}"
    return Found(text, max(auto + tcp) < 1 and all(line["equal"] for line in lines))


def _fragmented(found: Values) -> Found:
    lines = [line for part in found["parts"].values() for line in part]
    auto = [line["messages"] for line in lines if line["method"] == "auto"]
    if not auto:
        raise NotMeasuredError("nothing was measured")
    text = f"auto sends {min(auto):.2%} to {max(auto):.2%} of the messages of sending everything, in {len(auto)} cells"
    return Found(text, max(auto) < 0.5 and all(line["equal"] for line in lines))


def _network_load(found: Values) -> Found:
    lines = _lines(found, "load")
    told = [f"{line['method']} ({line['protocol']}) {line['of its bytes']:.1%}" for line in lines]
    filters = [line["of its bytes"] for line in lines if line["method"] == "filter"]
    return Found("of the bytes of telling everything: " + ", ".join(told), bool(filters) and max(filters) < 0.25)


def _rounds(found: Values) -> Found:
    shares = [line["reached"] / line["rows"] for line in found["streams"]]
    right = all(line["equal"] for line in found["streams"])
    text = (
        f"of the rows {min(shares):.1%} to {max(shares):.1%} reach the driver; changes {'equal' if right else 'DIFFER'}"
    )
    return Found(text, right and max(shares) < 1)


CLAIMS = (
    Claim("Every method gives the changes of the definition", "verify", _verified, answers=True),
    Claim("No cost grows unnoticed", "work", _work, answers=True),
    Claim("The figures of five papers are reproduced or explained", "papers", _papers, answers=True),
    Claim("All peers give the same answers", "peers", _peer_answers, answers=True),
    Claim("Every library takes longer", "peers", _libraries),
    Claim("A table takes a fraction of what its peers take", "batch", _batch),
    Claim("A window is faster than a scan in C++", "window", _flat),
    Claim("A window is faster than computing it anew", "window", _anew),
    Claim("Uncertain rows are faster than a scan", "uncertain", _uncertain),
    Claim("Probabilities do not drift", "uncertain", _drift),
    Claim("Boxes save computing anew", "snapshots", _snapshots),
    Claim("Many clients send fewer messages", "filtering", _filtering),
    Claim("Objects in fragments need fewer messages", "fragmented", _fragmented),
    Claim("Between processes few bytes travel", "network", _network_load),
    Claim("What a coordinator publishes as exact is right whatever fails", "network", _network_faults, answers=True),
    Claim("Hostile bytes do no harm", "network", _hostile, answers=True),
    Claim("On Spark a table is faster than in SQL", "spark-tables", _spark_tables),
    Claim(
        "On Spark many tasks are faster than one",
        "spark-tables",
        _one_task,
        why="one task keeps two cores busy by itself, Java's on one and Python's on the other, and our plan has a "
        "second stage that takes a tenth of a second; with few rows and two cores there is nothing to gain",
    ),
    Claim("On Spark a window keeps two fifths of the rate of reading", "spark-streams", _spark_streams),
    Claim("On Spark fewer moves of clients reach the driver", "spark-rounds", _rounds),
    Claim("On Spark cost grows no faster than rows", "scale", _scale),
    Claim("No change is lost or doubled while everything fails", "soak", _soak_streams, answers=True),
    Claim("Memory stays flat", "soak", _soak_memory),
)


def judged(claim: Claim, found: Values | None, *, all_sizes: bool, status: int = 0) -> Found:
    """What a part with that exit status says of a claim; `all_sizes`: whether the size is large enough for all of them.

    How fast wrong answers come is no merit: where a part has not ended well, only claims about answers may hold.
    """
    if found is None:
        return Found("not measured", None)
    try:
        said = claim.ours(found)
    except NotMeasuredError as reason:
        return Found(f"not measured: {reason}", None)
    if status and said.holds and not claim.answers:
        return Found(f"{said.text}; but the part ended with the exit status {status}", False)
    return said if claim.answers or all_sizes else said._replace(holds=None)
