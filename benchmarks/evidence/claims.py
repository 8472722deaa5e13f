"""What the README claims, each beside the part that shows it, and what that part found.

A claim is judged by a bar that follows from its words, in every cell that they speak of. A smoke run is too small for
that, and judges answers alone. What was left out, for want of a peer or of data, judges nothing; a part that came to
nothing fails all its claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from benchmarks.papers.registry import Found, NotMeasuredError, figures
from benchmarks.scale.paper import slope
from benchmarks.soak.memory import JUDGED, JVMS

Values = Mapping[str, Any]
"""What a part has written as JSON."""
MANY = 10_000_000
"""Rows from which on two cores are better than one: below, one task has both busy, Java's part and Python's."""
STEEPEST = 1.1
"""The power that still passes for growth as that of the rows."""
UNMEASURED = Found("not measured", None)


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
    every = len(figures())
    text = (
        f"{found['figures']} of {every} figures and tables; {found['hold']} of {found['judged']} statements of the "
        f"papers hold, {found['unexplained']} of the others without a reason; {found['wrong']} rows from runs with "
        f"wrong answers, {found['failed']} runs failed"
    )
    if found["unexplained"] or found["wrong"] or found["failed"]:
        return Found(text, False)
    return Found(text, True if found["figures"] == every and found["judged"] else None)


def _soak_streams(found: Values) -> Found:
    streams, faults = found["streams"], sum(found["faults"].values())
    network = sum(found["network"].get("faults", {}).values()) if found["network"] else 0
    told = ", ".join(f"{one['name']} {one['found']:,} of {one['expected']:,}" for one in streams)
    lost = sum(one["missing"] + one["surplus"] for one in streams)
    wrong = found["network"].get("wrong", 0) if found["network"] else 0
    # Memory has a claim of its own.
    problems = [one for one in found["problems"] if not one.startswith("memory of ")]
    text = (
        f"{found['seconds'] / 60:.0f} minutes, {found['rows']:,} rows, {faults} faults of Spark and {network:,} of the "
        f"network; {told}; {lost} missing or too many; {wrong} wrong states published as exact"
    ) + "".join(f"; {one}" for one in problems)
    right = not lost and not wrong and not problems
    return Found(text, right and bool(streams) and all(one["expected"] for one in streams))


def _soak_memory(found: Values) -> Found:
    roles = [one for one in found["memory"] if one["bound"] is not None]
    bad = [one["role"] for one in roles if one["flat"] is False]
    missing = sorted({*JUDGED, *JVMS} - {one["role"] for one in roles})
    open_ones = [one["role"] for one in roles if one["flat"] is None] + missing
    told = ", ".join(
        f"{one['role']} at most {one['most']:,.0f}"
        + (f" of {one['bound']:,.0f} MiB" if one["role"] in JVMS else " MiB")
        + (f" ({one['slope']:+.2f} MiB a minute)" if one["slope"] is not None else "")
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
    part = sum(line["estimated"] for line in lines)
    text = f"{', '.join(names)}: {len(lines)} comparisons, {part} of them on a part of the rows, {wrong} differ{left}"
    return Found(text, False if wrong or not lines else None if left else True)


# -- speed -------------------------------------------------------------------------------------------------------------


LIBRARIES = ("moocore", "paretoset", "pymoo", "river")


def _libraries(found: Values) -> Found:
    told, least = [], math.inf
    for name in LIBRARIES:
        lines = [line for line in found["lines"] if line["peer"] == name]
        ratios = [line["ratio"] for line in lines]
        if not ratios:
            raise NotMeasuredError(f"{name} is left out")
        guessed = sum(line["estimated"] for line in lines)
        told.append(
            f"{name} {geometric_mean(ratios):,.0f} (least {min(ratios):.2f}"
            + (f"; {guessed} of {len(lines)} estimated)" if guessed else ")")
        )
        least = min(least, *ratios)
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
    return Found(f"{mean:.1f} times as fast as the faster peer, {cells}", mean >= 4 and min(ratios) >= 1)


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
    told = sorted((cell["shape"]["rows"], _times(cell, "NOT EXISTS"), cell["skyline"]) for cell in found["sql"])
    text = ", ".join(f"{ratio:.1f} times on {rows:,} rows (skyline {members:,})" for rows, ratio, members in told)
    slowest = min(ratio for _, ratio, _ in told)
    return Found(f"NOT EXISTS takes longer: {text}", slowest >= 1 and told[-1][1] > 10)


def _one_task(found: Values) -> Found:
    told = [
        f"{_times(cell, 'one task'):.2f} ({shape['rows']:,} x {shape['dimensions']}, {shape['kind']})"
        for cell in found["cells"]
        for shape in [cell["shape"]]
    ]
    large = [_times(cell, "one task") for cell in found["cells"] if cell["shape"]["rows"] >= MANY]
    if not large:
        raise NotMeasuredError(f"no table has {MANY:,} rows")
    return Found(f"one task takes so many times as long as ours: {', '.join(told)}", min(large) > 1)


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
    # What a job takes to begin flattens the whole; at the end it is small beside the rows.
    before, last = sorted(first, key=lambda line: line["rows"])[-2:]
    steep = slope([before["rows"], last["rows"]], [before["skyline s"], last["skyline s"]])
    right = all(line["equal"] for line in found["lines"])
    text = (
        f"up to {most:,} rows on {', '.join(masters)}: there {_span(rates)} million rows a second, of a million "
        f"{_span(reach, 0)} reach the merge; seconds grow with the power {power:.2f} of the rows, "
        f"{steep:.2f} between the two largest; answers {'equal' if right else 'DIFFER'}"
    )
    return Found(text, right and max(power, steep) <= STEEPEST)


# -- messages ----------------------------------------------------------------------------------------------------------


def _filtering(found: Values) -> Found:
    lines = [line for part in ("dimensions", "distribution") for line in found["parts"].get(part, ())]
    auto = [line["total"] for line in lines if line["method"] == "auto"]
    tcp = [line["total"] for line in found["parts"].get("tcp", ()) if line["method"] == "auto"]
    real = f"; on a log of connections {tcp[0]:.1%}" if tcp else ""
    if not auto:
        raise NotMeasuredError("nothing was measured")
    text = f"after the beginning auto sends {min(auto):.1%} to {max(auto):.1%} of the messages of naive{real}"
    return Found(text, max(auto + tcp) < 1 and all(line["equal"] for line in lines))


def _fragmented(found: Values) -> Found:
    made = [line for part in ("correlation", "change", "types") for line in found["parts"].get(part, ())]
    real = {part: found["parts"].get(part, ()) for part in ("weather", "movies")}
    auto = [line["messages"] for line in made if line["method"] == "auto"]
    if not auto:
        raise NotMeasuredError("nothing was measured")
    others = ""
    for part, lines in real.items():
        sent = [line["messages"] for line in lines if line["method"] in ("auto", "pivot")]
        others += f"; {part} {min(sent):.0%} to {max(sent):.0%} (auto, pivot)" if sent else f"; {part} was left out"
    text = (
        f"after the beginning auto sends {min(auto):.2%} to {max(auto):.2%} of the messages of central on generated "
        f"streams, in {len(auto)} cells{others}"
    )
    right = all(line["equal"] for lines in (made, *real.values()) for line in lines)
    return Found(text, max(auto) < 0.5 and right)


def _network_load(found: Values) -> Found:
    lines = _lines(found, "load")
    told = [f"{line['method']} ({line['protocol']}) {line['of its bytes']:.1%}" for line in lines]
    usual = [line["of its bytes"] for line in lines if line["method"] in ("filter", "auto")]
    right = all(line["equal"] for line in lines) and len(usual) > 1
    return Found("of the bytes of telling everything: " + ", ".join(told), right and max(usual) < 0.5)


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
    Claim("A window of 100,000 rows is faster than a scan in C++", "window", _flat),
    Claim("A window of 100,000 rows is faster than computing it anew", "window", _anew),
    Claim("Uncertain rows are faster than a scan", "uncertain", _uncertain),
    Claim("Probabilities do not drift", "uncertain", _drift),
    Claim("Boxes save computing anew", "snapshots", _snapshots),
    Claim("Many clients send fewer messages", "filtering", _filtering),
    Claim("Objects in fragments that drift need fewer messages", "fragmented", _fragmented),
    Claim("Between processes fewer bytes travel", "network", _network_load),
    Claim("What a coordinator publishes as exact is right whatever fails", "network", _network_faults, answers=True),
    Claim("Hostile bytes do no harm", "network", _hostile, answers=True),
    Claim("On Spark large skylines are faster than in SQL", "spark-tables", _spark_tables),
    Claim("On Spark many tasks are faster than one from ten million rows on", "spark-tables", _one_task),
    Claim("On Spark a window keeps two fifths of the rate of a pass through Python", "spark-streams", _spark_streams),
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
        return Found(f"the part came to nothing, with the exit status {status}", False) if status else UNMEASURED
    try:
        said = claim.ours(found)
    except NotMeasuredError as reason:
        return Found(f"not measured: {reason}", None)
    except (LookupError, ValueError, ArithmeticError, TypeError) as problem:  # other claims are judged all the same
        return Found(f"cannot be judged by what was found ({type(problem).__name__}: {problem})", False)
    if status and said.holds and not claim.answers:
        return Found(f"{said.text}; but the part ended with the exit status {status}", False)
    return said if claim.answers or all_sizes else said._replace(holds=None)
