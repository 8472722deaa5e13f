"""zhang09c's Figs. 9 to 19: what is varied, what is drawn, and what the paper's text says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.papers.registry import Claim, Figure, Found, Panel, Row, Rows, by_size, mean, values
from benchmarks.papers.zhang09c.experiments import LOG, SAMPLED

HERE = "benchmarks.papers.zhang09c.experiments"
NOTE = (
    "Messages are shares of what Naive sends for the same stream; the first timestamp is left out, the time in which "
    "the server learns how far records move is not. FBM is Filter, SBM Sampling, HM Hybrid. auto is ours: clients "
    "offer boxes of their own. CPU is that of server, clients and encoding together."
)
SMALLER = " With fewer records than the paper's 10,000 a skyline is a larger share of them, and FBM sends more."
SENT, RIGHT = ("messages", "uplink", "downlink", "CPU, ms"), ("recall", "precision")
USUAL: Row = {"theta": "0.8", "epsilon": 0.2, "delta": 0.1}
ASKED: dict[str, tuple[Any, ...]] = {
    "epsilon": (0.1, 0.2, 0.3, 0.4),
    "delta": (0.05, 0.1, 0.15, 0.2),
    "theta": ("0.6", "0.7", "0.8", "0.9"),
}


def records_of(size: str) -> Row:
    """The paper's Table 1, or less of it."""
    return {
        "kind": "I",
        "d": by_size(size, 2, 4, 4),
        "u": 0.08,
        "records": by_size(size, 40, 1_000, 10_000),
        "timestamps": by_size(size, 8, 100, 2_000),
        "s": by_size(size, 4, 1_000, 1_000),
    }


def varied(name: str, several: tuple[Any, ...], size: str) -> Iterator[Row]:
    """Figs. 9 to 12: a cell for each value; at smoke, the ends."""
    for value in (several[0], several[-1]) if size == "smoke" else several:
        cell = records_of(size)
        cell[name] = round(value * cell["records"]) if name == "records" else value
        yield cell


def settings(name: str, size: str) -> Iterator[Row]:
    """Figs. 13 to 15: three runs for each value, as in the paper."""
    sizes = by_size(size, (30, 12, 6, 1), (500, 1_300, 1_000, 2), (10_000, 3_000, 1_000, 3))
    records, timestamps, over, runs = sizes
    for value in ASKED[name][::3] if size == "smoke" else ASKED[name]:
        for run in range(runs):
            cell = {"d": by_size(size, 2, 4, 4), "u": 0.08, "records": records, "timestamps": timestamps, "s": over}
            yield {**cell, **USUAL, name: value, "run": run}


def hosts(name: str, size: str) -> Iterator[Row]:
    """Figs. 16 to 19: the log of connections."""
    timestamps, over = by_size(size, (12, 6), (1_300, 1_000), (0, 1_000))
    for value in ASKED[name][::3] if size == "smoke" else ASKED[name]:
        yield {"timestamps": timestamps, "s": over, **USUAL, name: value}


# -- what the paper says -----------------------------------------------------------------------------------------------


def share(rows: Rows, method: str, **where: Any) -> float:
    """What a method sends of Naive's messages."""
    return mean(rows, "messages", method=method, **where)


def ranked(rows: Rows, **where: Any) -> tuple[str, list[str]]:
    """The paper's methods by what they send, fewest first, in words and as a list."""
    by = {method: share(rows, method, **where) for method in ("Naive", "FBM", "SBM", "HM")}
    order = sorted(by, key=lambda method: by[method])
    return ", ".join(f"{method} {by[method]:.3f}" for method in order), order


def best(method: str, x: str, value: Any, rows: Rows) -> Found:
    """Whether a method sends fewest at a value."""
    said, order = ranked(rows, **{x: value})
    return Found(f"at {x} = {value}: {said}", order[0] == method)


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
    told = []
    for d in values(rows, "d"):
        low, high = sorted((share(rows, "FBM", d=d), share(rows, "SBM", d=d)))
        told.append((d, low <= share(rows, "HM", d=d) <= high, share(rows, "HM", d=d)))
    said = ", ".join(f"{found:.3f} at {d} ({'between' if inside else 'below both'})" if inside or found < 1 else
                     f"{found:.3f} at {d}" for d, inside, found in told)  # fmt: skip
    return Found(said, sum(inside for _, inside, _ in told) > len(told) / 2)


def doubled(rows: Rows) -> Found:
    """How many messages a record costs FBM on anti-correlated rows."""
    up, down = (mean(rows, way, method="FBM", kind="A") for way in ("uplink", "downlink"))
    return Found(f"{up:.2f} up and {down:.2f} down for each record and timestamp", up + down > 1)


def stable(rows: Rows) -> Found:
    """Whether Hybrid stays low on anti-correlated rows."""
    found = share(rows, "HM", kind="A")
    return Found(f"{found:.3f} of Naive, FBM {share(rows, 'FBM', kind='A'):.3f}", found < 0.6)


def rises(x: str, rows: Rows) -> Found:
    """Whether FBM and HM send less at the first value than at the last."""
    first, *_, last = values(rows, x)
    told = {method: (share(rows, method, **{x: first}), share(rows, method, **{x: last})) for method in ("FBM", "HM")}
    said = "; ".join(f"{method} {low:.3f} at {first:,}, {high:.3f} at {last:,}" for method, (low, high) in told.items())
    return Found(said, all(low < high for low, high in told.values()))


def scales(rows: Rows) -> Found:
    """Whether the share of Naive's messages falls as there are more records."""
    first, *_, last = values(rows, "records")
    told = {method: (share(rows, method, records=first), share(rows, method, records=last)) for method in ("FBM", "HM")}
    said = "; ".join(f"{method} {low:.3f} at {first:,}, {high:.3f} at {last:,}" for method, (low, high) in told.items())
    return Found(said + "; SBM's share is its rate", all(low > high for low, high in told.values()))


def least(rows: Rows, x: str, value: Any) -> float:
    """The smaller one of recall and precision, of both methods."""
    return min(mean(rows, right, method=method, **{x: value}) for right in RIGHT for method in SAMPLED)


def good(x: str, bars: dict[Any, float], rows: Rows) -> Found:
    """Whether recall and precision are above the paper's bars."""
    told = {value: least(rows, x, value) for value in values(rows, x)}
    said = ", ".join(f"{found:.3f} at {value}" for value, found in told.items())
    judged = [told[value] >= bar for value, bar in bars.items() if value in told]
    return Found(f"the smaller one: {said}", all(judged) if judged else None)


def flat(x: str, rows: Rows) -> Found:
    """How much quality depends on a parameter."""
    told = [least(rows, x, value) for value in values(rows, x)]
    return Found(
        f"the smaller one of recall and precision: {min(told):.3f} to {max(told):.3f}", max(told) - min(told) < 0.1
    )


def worst(x: str, value: Any, rows: Rows) -> Found:
    """Whether quality is worst at a value."""
    told = {one: least(rows, x, one) for one in values(rows, x)}
    found = min(told, key=lambda one: told[one])
    return Found(
        f"worst at {found}: {told[found]:.3f}; {', '.join(f'{v} {q:.3f}' for v, q in told.items())}", found == value
    )


def orders(rows: Rows) -> Found:
    """By how much FBM and HM are below Naive."""
    said = ", ".join(f"{method} {share(rows, method):.3f}" for method in ("FBM", "auto", "HM"))
    return Found(f"{said} of Naive's messages", max(share(rows, "FBM"), share(rows, "HM")) < 0.02)


def like_naive(rows: Rows) -> Found:
    """Whether SBM is near Naive at the smallest epsilon."""
    found = share(rows, "SBM", epsilon=0.1)
    return Found(f"SBM sends {found:.3f} of Naive at epsilon = 0.1", found > 0.8)


def negligible(rows: Rows) -> Found:
    """Whether theta makes little difference to messages."""
    told = {}
    for method in SAMPLED:
        found = [share(rows, method, theta=value) for value in values(rows, "theta")]
        told[method] = max(found) / min(found)
    return Found(
        ", ".join(f"{method} by a factor of {ratio:.2f}" for method, ratio in told.items()), max(told.values()) < 1.2
    )


# -- figures -----------------------------------------------------------------------------------------------------------


def sent(
    number: int, title: str, x: str, several: tuple[Any, ...], claims: tuple[Claim, ...], note: str = ""
) -> Figure:
    """Figs. 9 to 12."""
    panels = tuple(Panel(f"({letter}) {y}", x, y, log="xy" if x in ("u", "records") else "y")
                   for letter, y in zip("abcd", SENT, strict=True))  # fmt: skip
    return Figure("zhang09c", "figure", number, title, f"{HERE}:efficiency", partial(varied, x, several), panels, SENT,
                  claims, NOTE + SMALLER + note, by=(x, "method"))  # fmt: skip


def right(number: int, title: str, x: str, claims: tuple[Claim, ...], note: str) -> Figure:
    """Figs. 13 to 15."""
    panels = tuple(Panel(f"({letter}) {y}", x, y) for letter, y in zip("ab", RIGHT, strict=True))
    return Figure("zhang09c", "figure", number, title, f"{HERE}:quality", partial(settings, x), panels,
                  (*RIGHT, "messages"), claims, note, by=(x, "method"))  # fmt: skip


def real(number: int, title: str, x: str, shown: tuple[str, ...], claims: tuple[Claim, ...], note: str) -> Figure:
    """Figs. 16 to 19."""
    only = shown == RIGHT
    panels = tuple(Panel(f"({letter}) {y}", x, y, log="" if only else "y")
                   for letter, y in zip("abcd", shown, strict=False))  # fmt: skip
    about = "The stand-in is a log of three days and 15,068 remote hosts, with http, ssh, dns and all else. "
    return Figure("zhang09c", "figure", number, title, f"{HERE}:connections", partial(hosts, x), panels, shown, claims,
                  about + note, by=(x, "method"), needs=(LOG,))  # fmt: skip


RESTLESS = " HM samples restless records, and so is below FBM even where FBM is good."
RANDOM = (
    "Single runs differ by more than neighbouring settings do; these are means over the runs. SBM and HM sample the "
    "same timestamps, so that their answers are alike."
)
TRACE = (
    "All its hosts move after the first snapshot, most of them once or twice, and each costs a message at least: that "
    "is 0.13 of Naive's, so that two orders of magnitude cannot be reached on it."
)
FIGURES = [
    sent(9, "Efficiency by dimensionality (independent)", "d", (2, 3, 4, 5, 6), (
        Claim("FBM sends fewest in 2-d", partial(best, "FBM", "d", 2)),
        Claim("FBM is worse than Naive at d = 6", above_naive),
        Claim("SBM does not depend on the dimensionality", partial(steady, "d")),
        Claim("HM sends less than SBM in 2-d", partial(below, "HM", "SBM", "d", 2)),
        Claim("In general HM lies between SBM and FBM", between),
    ), RESTLESS),
    sent(10, "Efficiency by distribution (4-d)", "kind", ("C", "I", "A"), (
        Claim("FBM has a clear advantage on correlated records", partial(best, "FBM", "kind", "C")),
        Claim("Anti-correlated: nearly one uplink and one downlink message for each record and timestamp", doubled),
        Claim("HM is stable even on anti-correlated records", stable),
    ), RESTLESS),
    sent(11, "Efficiency by uncertainty u (independent, 4-d)", "u", (0.01, 0.02, 0.04, 0.08, 0.16), (
        Claim("FBM and HM gain where records move little", partial(rises, "u")),
        Claim("HM is sometimes below FBM", partial(below, "HM", "FBM", "u", 0.16)),
    )),
    sent(12, "Efficiency by the number of records (independent, 4-d)", "records", (0.25, 0.5, 1, 2), (
        Claim("All methods scale better than Naive", scales),
    )),
    right(13, "Quality by error rate epsilon (independent, 4-d)", "epsilon", (
        Claim("Recall and precision exceed 0.9 up to epsilon = 0.2, and 0.8 at 0.4",
              partial(good, "epsilon", {0.1: 0.9, 0.2: 0.9, 0.4: 0.8})),
    ), RANDOM),
    right(14, "Quality by confidence delta (independent, 4-d)", "delta", (
        Claim("The impact of delta is not as large as that of epsilon", partial(flat, "delta")),
    ), RANDOM),
    right(15, "Quality by threshold theta (independent, 4-d)", "theta", (
        Claim("At theta = 0.7 the quality is much worse than else", partial(worst, "theta", "0.7")),
    ), RANDOM + " Where it is worst depends on how many records of the stream are near the threshold."),
    real(16, "Efficiency by error rate epsilon (TCP)", "epsilon", SENT, (
        Claim("FBM and HM are about two orders of magnitude better than Naive", orders),
        Claim("At epsilon = 0.1 SBM is almost equal to Naive", like_naive),
    ), TRACE),
    real(17, "Efficiency by threshold theta (TCP)", "theta", SENT, (
        Claim("The impact of theta is negligible", negligible),
    ), TRACE),
    real(18, "Quality by error rate epsilon (TCP)", "epsilon", RIGHT, (
        Claim("All values are above 0.9", partial(good, "epsilon", dict.fromkeys(ASKED["epsilon"], 0.9))),
    ), RANDOM),
    real(19, "Quality by confidence delta (TCP)", "delta", RIGHT, (
        Claim("All values are above 0.9", partial(good, "delta", dict.fromkeys(ASKED["delta"], 0.9))),
    ), RANDOM),
]  # fmt: skip
