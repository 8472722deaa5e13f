"""zhang09c's Figs. 9 to 19: what is varied, what is drawn, and what the paper's text says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.papers.registry import Claim, Figure, Panel, Row, by_size
from benchmarks.papers.zhang09c import claims as rules
from benchmarks.papers.zhang09c.claims import ASKED, RIGHT, USUAL
from benchmarks.papers.zhang09c.experiments import LOG

HERE = "benchmarks.papers.zhang09c.experiments"
NOTE = (
    "Messages are shares of what Naive sends for the same stream; the first timestamp is left out, the time in which "
    "the server learns how far records move is not. FBM is Filter, SBM Sampling, HM Hybrid. auto is ours: clients "
    "offer boxes of their own. CPU is that of server, clients and encoding together."
)
SMALLER = (
    " With fewer records than the paper's 2,500 to 20,000 a skyline is a larger share of them, and FBM sends more. "
    "Which number is its usual one is not marked: full has 10,000."
)
SENT = ("messages", "uplink", "downlink", "CPU, ms")


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


def other_errors(size: str) -> Iterator[Row]:
    """Of Fig. 13, what Fig. 14 has not."""
    yield from (cell for cell in settings("epsilon", size) if cell["epsilon"] != USUAL["epsilon"])


def hosts(name: str, size: str) -> Iterator[Row]:
    """Figs. 16 to 19: the log of connections."""
    timestamps, over = by_size(size, (12, 6), (1_300, 1_000), (0, 1_000))
    for value in ASKED[name][::3] if size == "smoke" else ASKED[name]:
        yield {"timestamps": timestamps, "s": over, **USUAL, name: value}


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
    """Figs. 13 to 15; Fig. 14 is compared with the runs of Fig. 13."""
    own = (("epsilon", USUAL["epsilon"]),) if number == 14 else ()
    panels = tuple(Panel(f"({letter}) {y}", x, y, where=own) for letter, y in zip("ab", RIGHT, strict=True))
    shown = (*RIGHT, "messages", *(("frequent", "at the edge") if number == 15 else ()))
    return Figure("zhang09c", "figure", number, title, f"{HERE}:quality", partial(settings, x), panels, shown, claims,
                  note, by=(x, "method"), tabled=own,
                  also=((other_errors, ()),) if number == 14 else ())  # fmt: skip


def real(number: int, title: str, x: str, shown: tuple[str, ...], claims: tuple[Claim, ...], note: str) -> Figure:
    """Figs. 16 to 19."""
    only = shown == RIGHT
    panels = tuple(Panel(f"({letter}) {y}", x, y, log="" if only else "y")
                   for letter, y in zip("abcd", shown, strict=False))  # fmt: skip
    about = (
        "The stand-in is a log of three days and 15,068 remote hosts, with http, ssh, dns and all else, in 2,593 "
        "snapshots, of which laptop has the first 1,300; the paper's trace has 30 days, 782,281 connections, 7,776 "
        "groups of addresses and 25,920 snapshots. "
    )
    return Figure("zhang09c", "figure", number, title, f"{HERE}:connections", partial(hosts, x), panels, shown, claims,
                  about + note, by=(x, "method"), needs=(LOG,))  # fmt: skip


RESTLESS = " HM samples restless records, and so is below FBM even where FBM is good."
FEWER = "HM samples restless records. With 10,000 records FBM sent less than HM in 2-d, 0.059 against 0.062"
RANDOM = (
    "Single runs differ by more than neighbouring settings do; these are means over the runs. SBM and HM sample the "
    "same timestamps, so that their answers are alike."
)
ALIKE = "SBM and HM sample the same timestamps, so that their answers are alike."
ONE_RUN = (
    "there is one run for each value, and an answer hangs on the timestamps that it samples. At epsilon = 0.4 the "
    "theorem's rate is one in 14, some 70 of a window of 1,000, and it promises shares to within epsilon only"
)
TRACE = (
    "Hosts that move after the first snapshot, most of them once or twice, cost a message each at least: that is 0.18 "
    "of Naive's in the first 1,300 snapshots, and 0.13 in the whole log, so that two orders of magnitude cannot be "
    "reached on it."
)
BUSY = "times of a busy machine, of runs of some milliseconds for a timestamp"
FIGURES = [
    sent(9, "Efficiency by dimensionality (independent)", "d", (2, 3, 4, 5, 6), (
        Claim("FBM sends fewest in 2-d", partial(rules.best, "FBM", "messages", "d", 2), FEWER),
        Claim("FBM has the fewest uplink messages in 2-d", partial(rules.best, "FBM", "uplink", "d", 2), FEWER),
        Claim("FBM is worse than Naive at d = 6", rules.above_naive,
              "with 10,000 records FBM sent 0.78 of Naive's messages: a skyline is a smaller share of more records"),
        Claim("SBM does not depend on the dimensionality", partial(rules.steady, "d")),
        Claim("SBM is best in high dimensions", partial(rules.best, "SBM", "messages", "d", 6)),
        Claim("SBM takes the least CPU", partial(rules.least_cpu, "d"), BUSY),
        Claim("HM sends less than SBM in 2-d", partial(rules.below, "HM", "SBM", "d", 2)),
        Claim("In general (for most d) HM lies between SBM and FBM", rules.between,
              "with more records HM is below both others more often: with 10,000 at d = 3 and 4"),
        Claim("Naive sends most in all settings but one", rules.worse_than_naive),
    ), RESTLESS),
    sent(10, "Efficiency by distribution (4-d)", "kind", ("C", "I", "A"), (
        Claim("FBM has a clear advantage on correlated records", partial(rules.best, "FBM", "messages", "kind", "C"),
              "HM samples restless records, and is below FBM: with 10,000 records, too, 0.042 against 0.056"),
        Claim("Anti-correlated: nearly one uplink and one downlink message for each record and timestamp (0.75)",
              rules.doubled,
              "with 10,000 records it was 0.52 up and 0.72 down: a skyline is a smaller share of more records"),
        Claim("HM is stable even on anti-correlated records (below half of Naive and of FBM)", rules.stable),
        Claim("SBM is the method of choice for anti-correlated records",
              partial(rules.best, "SBM", "messages", "kind", "A")),
        Claim("SBM takes the least CPU", partial(rules.least_cpu, "kind"), BUSY),
    ), RESTLESS),
    sent(11, "Efficiency by uncertainty u (independent, 4-d)", "u", (0.01, 0.02, 0.04, 0.08, 0.16), (
        Claim("FBM and HM gain where records move little", partial(rules.rises, "u")),
        Claim("HM is sometimes below FBM where u is below 0.2", rules.sometimes),
        Claim("CPU costs of FBM and HM are much worse than SBM's (twice at least)",
              partial(rules.dearer, "u", ("SBM",)), BUSY),
    )),
    sent(12, "Efficiency by the number of records (independent, 4-d)", "records", (0.25, 0.5, 1, 2), (
        Claim("All scale better than Naive, whose overhead is linear (FBM and HM; SBM's share is its rate)",
              rules.scales),
        Claim("The CPU cost is quadratic in the number of records (a power of 1.5 at least)", rules.quadratic,
              "records are compared with the skyline, which is a small part of them, and not with each other; with "
              "2,500 to 20,000 records, too, CPU grew linearly at most"),
    )),
    right(13, "Quality by error rate epsilon (independent, 4-d)", "epsilon", (
        Claim("Recall and precision exceed 0.9 up to epsilon = 0.2, and 0.8 at 0.4",
              partial(rules.good, "epsilon", {0.1: 0.9, 0.2: 0.9, 0.4: 0.8})),
        Claim("SBM and HM have similar quality", rules.alike),
    ), RANDOM),
    right(14, "Quality by confidence delta (independent, 4-d)", "delta", (
        Claim("The impact of delta is not as large as that of epsilon", rules.lesser,
              "there are a few runs for each value, which differ by more than neighbouring values do"),
        Claim("SBM and HM have similar quality", rules.alike),
    ), RANDOM),
    right(15, "Quality by threshold theta (independent, 4-d)", "theta", (
        Claim("At theta = 0.7 the quality is much worse than else", partial(rules.worst, "theta", "0.7"),
              "it is worst where a large part of the frequent records is within 0.02 of the threshold. In the stream "
              "of laptop size that is 0.9, with 2 of 5, before 0.7, with 3 of 16, and 0.6, with 4 of 24; at 0.8 there "
              "is none of 9"),
    ), RANDOM + " The edge is within 0.02 of the threshold."),
    real(16, "Efficiency by error rate epsilon (TCP)", "epsilon", SENT, (
        Claim("FBM and HM are about two orders of magnitude better than Naive", rules.orders, TRACE),
        Claim("FBM and HM send less than Naive and SBM", rules.below_both,
              "less than Naive they do. SBM sends at sampled timestamps only, fewer of them as epsilon grows; FBM does "
              "not depend on it"),
        Claim("At epsilon = 0.1 SBM is almost equal to Naive (above 0.8)", rules.like_naive),
        Claim("FBM and HM have a significantly higher CPU cost than Naive and SBM (twice at least)",
              partial(rules.dearer, "epsilon", ("Naive", "SBM")),
              "the server takes in every update with Naive, and nearly every one with SBM at epsilon = 0.1, but a "
              "third of them with FBM (see uplink)"),
    ), TRACE),
    real(17, "Efficiency by threshold theta (TCP)", "theta", SENT, (
        Claim("The impact of theta is negligible (a factor below 1.2)", rules.negligible),
    ), TRACE),
    real(18, "Quality by error rate epsilon (TCP)", "epsilon", RIGHT, (
        Claim("All values are above 0.9",
              partial(rules.good, "epsilon", dict.fromkeys(ASKED["epsilon"], 0.9)), ONE_RUN),
    ), ALIKE),
    real(19, "Quality by confidence delta (TCP)", "delta", RIGHT, (
        Claim("All values are above 0.9",
              partial(rules.good, "delta", dict.fromkeys(ASKED["delta"], 0.9)), ONE_RUN),
    ), ALIKE),
]  # fmt: skip
