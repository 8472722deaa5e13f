"""The rules by which zhang09c's statements are judged, with their bars."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.papers.registry import Found, Row, Rows, chosen, first_and_last, mean, rank, values
from benchmarks.papers.zhang09c.experiments import SAMPLED

NEARLY = 0.75
"""Messages for each record and timestamp that are nearly one."""
METHODS = ("Naive", "FBM", "SBM", "HM")
"""The paper's."""
HALF = 0.5
MUCH = 2.0
"""So many times the CPU is much worse."""
QUADRATIC = 1.5
"""CPU that grows as a higher power of the number of records than this is nearer to quadratic than to linear."""
ORDERS, ALMOST, NEGLIGIBLE = 0.02, 0.8, 1.2
"""A share two orders of magnitude below; a share almost equal; the factor of a negligible impact."""
SAME = 0.02
"""Recall and precision that differ by no more are similar."""
RIGHT = ("recall", "precision")
USUAL: Row = {"theta": "0.8", "epsilon": 0.2, "delta": 0.1}
ASKED: dict[str, tuple[Any, ...]] = {
    "epsilon": (0.1, 0.2, 0.3, 0.4),
    "delta": (0.05, 0.1, 0.15, 0.2),
    "theta": ("0.6", "0.7", "0.8", "0.9"),
}


def share(rows: Rows, method: str, **where: Any) -> float:
    """What a method sends of Naive's messages."""
    return mean(rows, "messages", method=method, **where)


def best(method: str, column: str, x: str, value: Any, rows: Rows) -> Found:
    """Whether a method has the least of something at a value, of those that have any."""
    by = {one: mean(rows, column, method=one, **{x: value}) for one in METHODS}
    order = sorted(by, key=lambda one: by[one])
    return Found(f"{column} at {x} = {value}: {', '.join(f'{one} {by[one]:.3f}' for one in order)}", order[0] == method)


def least_cpu(x: str, rows: Rows) -> Found:
    """Whether SBM takes the least CPU of all methods at every value."""
    several = values(rows, x)
    won = [value for value in several if best("SBM", "CPU, ms", x, value, rows).holds]
    by = {one: [mean(rows, "CPU, ms", method=one, **{x: value}) for value in several] for one in METHODS}
    said = ", ".join(f"{one} {min(costs):.2f} to {max(costs):.2f} ms" for one, costs in by.items())
    return Found(f"least at {len(won)} of {len(several)} values; {said}", len(won) == len(several))


def dearer(x: str, others: tuple[str, ...], rows: Rows) -> Found:
    """Whether FBM and HM take much more CPU than others at every value."""
    told = {}
    for method in ("FBM", "HM"):
        for other in others:
            pairs = [[mean(rows, "CPU, ms", method=one, **{x: value}) for one in (method, other)]
                     for value in values(rows, x)]  # fmt: skip
            ratios = [left / right for left, right in pairs]
            told[f"times {other}, {method}"] = min(ratios), max(ratios)
    said = "; ".join(f"{name} {low:.1f} to {high:.1f}" for name, (low, high) in told.items())
    return Found(said, min(low for low, _ in told.values()) >= MUCH)


def worse_than_naive(rows: Rows) -> Found:
    """Whether Naive sends most in all settings but one."""
    several = values(rows, "d")
    lost = [f"{one} at d = {d}" for d in several for one in METHODS[1:] if share(rows, one, d=d) > 1]
    return Found(f"above Naive: {', '.join(lost) or 'none'}", len(lost) <= 1)


def quadratic(rows: Rows) -> Found:
    """By which power of the number of records the CPU grows, from the first to the last."""
    first, last = first_and_last(rows, "records")
    powers = {}
    for method in METHODS:
        low, high = (mean(rows, "CPU, ms", method=method, records=many) for many in (first, last))
        powers[method] = math.log(high / low) / math.log(last / first)
    said = ", ".join(f"{method} {power:.2f}" for method, power in powers.items())
    return Found(f"power of the number of records: {said}", min(powers.values()) >= QUADRATIC)


def above_naive(rows: Rows) -> Found:
    """Whether FBM ends above Naive."""
    last = max(values(rows, "d"))
    found = share(rows, "FBM", d=last)
    return Found(f"{found:.2f} times Naive at d = {last}", found > 1)


def steady(x: str, rows: Rows) -> Found:
    """Whether what SBM sends does not depend on what is varied."""
    found = [share(rows, "SBM", **{x: value}) for value in values(rows, x)]
    return Found(f"{min(found):.3f} to {max(found):.3f}", max(found) < 1.1 * min(found))


def below(one: str, other: str, x: str, value: Any, rows: Rows) -> Found:
    """Whether a method sends less than another at a value."""
    left, right = (share(rows, method, **{x: value}) for method in (one, other))
    return Found(f"{one} {left:.3f}, {other} {right:.3f} at {x} = {value}", left < right)


def between(rows: Rows) -> Found:
    """At how many values of d Hybrid lies between the two."""
    told, inside = [], 0
    for d in values(rows, "d"):
        low, high = sorted((share(rows, "FBM", d=d), share(rows, "SBM", d=d)))
        found = share(rows, "HM", d=d)
        place = "below both" if found < low else "above both" if found > high else "between"
        inside += place == "between"
        told.append(f"{found:.3f} at {d} ({place})")
    return Found(", ".join(told), inside > len(told) / 2)


def doubled(rows: Rows) -> Found:
    """How many messages a record costs FBM on anti-correlated rows."""
    up, down = (mean(rows, way, method="FBM", kind="A") for way in ("uplink", "downlink"))
    return Found(f"{up:.2f} up and {down:.2f} down for each record and timestamp", min(up, down) >= NEARLY)


def stable(rows: Rows) -> Found:
    """Whether Hybrid stays below half of Naive, and of FBM, on anti-correlated rows."""
    found, filtered = share(rows, "HM", kind="A"), share(rows, "FBM", kind="A")
    return Found(f"{found:.3f} of Naive, FBM {filtered:.3f}", found < HALF and found < HALF * filtered)


def rises(x: str, rows: Rows) -> Found:
    """Whether FBM and HM send more with every step of what is varied."""
    told, holds = [], True
    for method in ("FBM", "HM"):
        several = [share(rows, method, **{x: value}) for value in values(rows, x)]
        told.append(f"{method} {', '.join(f'{one:.3f}' for one in several)}")
        holds &= rank(several) == 1
    return Found("; ".join(told), holds)


def sometimes(rows: Rows) -> Found:
    """At which values of u HM sends less than FBM."""
    won = [u for u in values(rows, "u") if share(rows, "HM", u=u) < share(rows, "FBM", u=u)]
    return Found(f"at u = {', '.join(f'{u:g}' for u in won) or 'none'}", bool(won))


def scales(rows: Rows) -> Found:
    """Whether the share of Naive's messages falls as there are more records."""
    first, *_, last = values(rows, "records")
    told = {method: (share(rows, method, records=first), share(rows, method, records=last)) for method in ("FBM", "HM")}
    said = "; ".join(f"{method} {low:.3f} at {first:,}, {high:.3f} at {last:,}" for method, (low, high) in told.items())
    return Found(said, all(low > high for low, high in told.values()))


def least(rows: Rows, x: str, value: Any) -> float:
    """The smaller one of recall and precision, of both methods."""
    return min(mean(rows, right, method=method, **{x: value}) for right in RIGHT for method in SAMPLED)


def good(x: str, bars: dict[Any, float], rows: Rows) -> Found:
    """Whether recall and precision are above the paper's bars."""
    told = {value: least(rows, x, value) for value in values(rows, x)}
    said = ", ".join(f"{found:.3f} at {value}" for value, found in told.items())
    judged = [told[value] >= bar for value, bar in bars.items() if value in told]
    return Found(f"the smaller one: {said}", all(judged) if judged else None)


def spread(x: str, rows: Rows) -> float:
    """How far apart the best and the worst quality are, over the values of a parameter."""
    told = [least(rows, x, value) for value in values(rows, x)]
    return max(told) - min(told)


def lesser(rows: Rows) -> Found:
    """Whether quality depends less on delta than on epsilon; all else as usual."""
    by_delta, by_epsilon = (chosen(rows, **{name: USUAL[name]}) for name in ("epsilon", "delta"))
    delta, epsilon = spread("delta", by_delta), spread("epsilon", by_epsilon)
    return Found(f"best and worst are {delta:.3f} apart over delta, {epsilon:.3f} over epsilon", delta < epsilon)


def alike(rows: Rows) -> Found:
    """Whether SBM and HM have similar recall and precision at all values."""
    cells: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["method"] in SAMPLED:
            cell = str([row.get(name) for name in (*ASKED, "run")])
            cells.setdefault(cell, {})[row["method"]] = row
    apart = max(abs(cell["SBM"][one] - cell["HM"][one]) for cell in cells.values() for one in RIGHT)
    return Found(f"at most {apart:.3f} apart", apart <= SAME)


def worst(x: str, value: Any, rows: Rows) -> Found:
    """Whether quality is worst at a value; beside it, which part of the frequent records is hard to tell."""
    told = {one: least(rows, x, one) for one in values(rows, x)}
    found = min(told, key=lambda one: told[one])
    said = ", ".join(f"{one} {quality:.3f}" for one, quality in told.items())
    if all("at the edge" in row for row in rows):
        edge = {one: mean(rows, "at the edge", **{x: one}) / max(1, mean(rows, "frequent", **{x: one})) for one in told}
        said += f"; at the edge: {', '.join(f'{one} {part:.0%}' for one, part in edge.items())} of the frequent ones"
    return Found(f"worst at {found}; {said}", found == value)


def orders(rows: Rows) -> Found:
    """By how much FBM and HM are below Naive."""
    said = ", ".join(f"{method} {share(rows, method):.3f}" for method in ("FBM", "auto", "HM"))
    return Found(f"{said} of Naive's messages", max(share(rows, "FBM"), share(rows, "HM")) < ORDERS)


def below_both(rows: Rows) -> Found:
    """Whether FBM and HM send less than Naive and SBM at every epsilon."""
    told, holds = [], True
    for value in values(rows, "epsilon"):
        by = {method: share(rows, method, epsilon=value) for method in METHODS}
        told.append(f"{value}: " + ", ".join(f"{method} {by[method]:.3f}" for method in METHODS[1:]))
        holds &= max(by["FBM"], by["HM"]) < min(by["Naive"], by["SBM"])
    return Found("; ".join(told), holds)


def like_naive(rows: Rows) -> Found:
    """Whether SBM is near Naive at the smallest epsilon."""
    found = share(rows, "SBM", epsilon=0.1)
    return Found(f"SBM sends {found:.3f} of Naive at epsilon = 0.1", found > ALMOST)


def negligible(rows: Rows) -> Found:
    """Whether theta makes little difference to messages."""
    told = {}
    for method in SAMPLED:
        found = [share(rows, method, theta=value) for value in values(rows, "theta")]
        told[method] = max(found) / min(found)
    said = ", ".join(f"{method} by a factor of {ratio:.2f}" for method, ratio in told.items())
    return Found(said, max(told.values()) < NEGLIGIBLE)
