"""tao06's Figs. 12 to 21 and Tables 2 and 3: what is varied, what is drawn, and what the paper's text says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.papers.registry import Claim, Figure, Panel, Row, by_size
from benchmarks.papers.tao06 import claims as rules
from benchmarks.papers.tao06.claims import BYTES, COST, KINDS, LAZY_BEHIND, LISTS, NO_BUFFER, ORDER, SPACE, TREES
from benchmarks.papers.tao06.sizes import PAPER

HERE = "benchmarks.papers.tao06.experiments"
FAST = (
    "The paper's costs are of 2006 (a Pentium IV at 2.5 GHz) and of lists that are followed link by link. Here lists "
    "are arrays: Lazy's are scanned with the processor's vector instructions, Eager's is searched by bitmaps over "
    "cells."
)
DEVIATION = "Anti-correlated rows have a plane deviation of 0.005, which the paper's skyline sizes need."


def windows(size: str) -> Iterator[Row]:
    """Fig. 12 and Table 2: W, for d = 3."""
    for kind in KINDS:
        for seconds in by_size(size, (4, 8), (200, 400, 800, 1600, 3200), (200, 400, 800, 1600, 3200)):
            yield {"kind": kind, "d": 3, "W": seconds, "windows": by_size(size, 2, 10, 500)}


def longer(sweep: Callable[[str], Iterator[Row]], size: str) -> Iterator[Row]:
    """For the tables alone, which take little: a steadier mean."""
    for cell in sweep(size):
        yield {**cell, "windows": by_size(size, 2, 30, 500)}


def columns(size: str) -> Iterator[Row]:
    """Fig. 15 and Table 3: d, for W = 800."""
    for kind in KINDS:
        for d in by_size(size, (2, 3), (2, 3, 4), (2, 3, 4)):
            yield {"kind": kind, "d": d, "W": by_size(size, 4, 800, 800), "windows": by_size(size, 2, 10, 500)}


def other_columns(size: str) -> Iterator[Row]:
    """Of Table 3, what Table 2 has not."""
    yield from (cell for cell in longer(columns, size) if cell["d"] != 3)


def arrivals(kind: str, size: str) -> Iterator[Row]:
    """Figs. 13 and 14: the 50 seconds after the first window."""
    yield {"kind": kind, "d": 3, "W": by_size(size, 8, 800, 800), "arrivals": by_size(size, 20, 500, 500)}


def bursts(kind: str, index: str, size: str) -> Iterator[Row]:
    """Figs. 18 to 21: 300 minutes of spikes in the paper."""
    yield {
        "kind": kind,
        "index": index,
        "W": 15,
        "periods": by_size(size, 1, 4, 600),
        "burst_gap": by_size(size, 0.02, 5e-5, 5e-5),
    }


# -- figures -----------------------------------------------------------------------------------------------------------


def two(y: str, x: str, log: str) -> tuple[Panel, ...]:
    """A panel for each kind of rows."""
    return tuple(Panel(f"({letter}) {kind}", x, y, where=(("kind", kind),), log=log)
                 for letter, kind in zip("ab", KINDS, strict=True))  # fmt: skip


def sizes_table(number: int, title: str, sweep: object, note: str, claims: tuple[Claim, ...]) -> Figure:
    """Table 2 or 3; Table 2 is compared with the cells of Table 3."""
    x, log = ("W", "xy") if number == 2 else ("d", "y")
    own = (("d", 3),) if number == 2 else ()
    return Figure(
        "tao06", "table", number, title, f"{HERE}:table", sweep,  # type: ignore[arg-type]
        (Panel("", x, "skyline", "kind", where=own, log=log),),
        ("skyline", "expected"), claims, note, by=("kind", "d", "W"), tabled=own,
        known={cell: float(size) for cell, size in PAPER.items()},
        also=((other_columns, ()),) if number == 2 else (),
    )  # fmt: skip


def amortized(number: int, title: str, sweep: object, y: str, claims: tuple[Claim, ...], note: str) -> Figure:
    """Figs. 12 and 15 to 17."""
    x = "W" if number in (12, 16) else "d"
    shown = (COST, "tests per tuple") if number in (12, 15) else ("tuples kept", SPACE)
    panels = two(y, x, "xy" if x == "W" else "y")
    if number in (16, 17):
        panels += tuple(Panel(f"{one.title}, tuples", x, "tuples kept", where=one.where, log=one.log) for one in panels)
    return Figure(
        "tao06", "figure", number, title, f"{HERE}:amortized", sweep,  # type: ignore[arg-type]
        panels, shown, claims, f"{note} {DEVIATION}".strip(), by=("kind", "d", "W", "method"),
    )  # fmt: skip


def single(number: int, kind: str, claims: tuple[Claim, ...]) -> Figure:
    """Figs. 13 and 14."""
    return Figure(
        "tao06", "figure", number, f"Processing cost at individual operations ({kind}, W = 800, d = 3)",
        f"{HERE}:operations", partial(arrivals, kind),
        (
            *(Panel(f"({letter}) {method}", "second", "µs", where=(("method", method),))
              for letter, method in zip("abcd", ("LL-Lazy", "I-Lazy", "LL-Eager", "I-Eager"), strict=True)),
            Panel("comparisons of two tuples", "second", "tests", log="y"),
        ),
        ("µs", "tests"), claims, f"{FAST} Of each cost about 10 µs are Python's call. On a busy machine some peaks are "
        f"turns of other processes; comparisons do not depend on them. {DEVIATION}",
        by=("kind", "W", "method"),
    )  # fmt: skip


def spiky(number: int, kind: str, index: str, claims: tuple[Claim, ...], beside: tuple[str, str] | None) -> Figure:
    """Figs. 18 to 21; some are compared with the runs of another one."""
    methods = LISTS if index == "list" else TREES
    panels = tuple(
        Panel(f"({letter}) {what} ({method})", "second", y, where=(("kind", kind), ("method", method)))
        for letter, what, y, method in zip(
            "abcd", ("tuples that wait",) * 2 + ("memory",) * 2, ("waiting",) * 2 + ("KB kept",) * 2, methods * 2,
            strict=True,
        )
    )  # fmt: skip
    note = (
        "The paper's text speaks of half a million tuples a second and of a mean gap of 5e-5 s, which are 20,000: the "
        "gap is taken, as exponential, since the normal one of the paper would be negative half of the time. A tuple "
        "is one call from Python, of which some 10 µs are the call itself. Costs are means over the whole stream, and "
        "means over its seconds of what a tuple took in each. The summary of the paper has 10⁵ tuples in a second, its "
        "footnote 5 more than 500,000 that live, which do not fit the gap either. " + DEVIATION
    )
    return Figure(
        "tao06", "figure", number, f"Space overhead with time ({kind}, {methods[0].partition('-')[0]}-implementations)",
        f"{HERE}:spikes", partial(bursts, kind, index), panels,
        ("µs per tuple", "µs per tuple, by second", "waiting", "KB kept"), claims, note, by=("kind", "method"),
        also=((partial(bursts, *beside), ()),) if beside else (),
    )  # fmt: skip


TABLES = (
    sizes_table(2, "Average skyline size per timestamp versus W (d = 3)", partial(longer, windows), DEVIATION, (
        Claim("The sizes in the table (within 5 %)",
              lambda rows: rules.near(PAPER, 0.05, [row for row in rows if row["d"] == 3])),
        Claim("Independent data have much smaller skylines than anti-correlated data (a fifth at most)", rules.larger),
        Claim("The dimensionality has a stronger impact on the size than the number of live tuples", rules.by_columns),
    )),
    sizes_table(3, "Average skyline size per timestamp versus d (W = 800)", partial(longer, columns), DEVIATION, (
        Claim("The sizes in the table (within 5 %)", partial(rules.near, PAPER, 0.05)),
        Claim("45 skyline tuples of 8,000 independent ones in 2-d", rules.impossible,
              "45 cannot be right: the expected size is the harmonic number of 8,000, which is 9.6"),
        Claim("Independent data have much smaller skylines than anti-correlated data (a fifth at most)", rules.larger),
    )),
)  # fmt: skip
BELOW = Claim("The indexed versions have an amortized overhead below 5 × 10⁻⁴ s (500 µs) per tuple",
              partial(rules.indexed_below, 500.0))  # fmt: skip
HIGHER = "Most of the time Eager costs significantly more than Lazy (by a fifth in the median)"
INDEXES = Claim(
    "In all cases the indexed versions cost less than their counterparts with linked lists", rules.index_gain,
    "Eager's list is compared a batch at a time by bitmaps, with a comparison or so for a tuple of a batch, where its "
    "tree is searched for each tuple, with some 75 to 100; a tree clearly pays for Lazy alone, where its list is long, "
    "on anti-correlated rows")  # fmt: skip
AHEAD = Claim("In general (in most cells) Lazy outperforms Eager, with lists and with indexes", rules.lazy_ahead,
              LAZY_BEHIND)  # fmt: skip
ROOM = (
    "leaves have room for 16 points, a key and a number beside each, and are about 70 % full: with the boxes above it "
    "is some 60 to 90 bytes a tuple. Eager's list, unlike its tree, has no list of events, 53 bytes a tuple more. And "
    "I-Eager has 17 KB of room from its first tuple on (Fig. 20), as much as 100 tuples take"
)
EVENTS = (
    "here Lazy has the list of expiries, for it drops a tuple when it expires, and not at the next expiry in the "
    "skyline; Eager over lists needs none, as it joins a batch at a time. The paper counts d values of a tuple for "
    "Lazy, and d + 3 at least for Eager"
)
FIGURES = [
    *TABLES,
    amortized(12, "Amortized cost versus W (d = 3)", windows, COST, (INDEXES, AHEAD, BELOW), FAST),
    single(13, "independent", (
        Claim("Lazy has spikes; Eager handles every tuple with similar overhead", partial(rules.peaks, "independent")),
        Claim("The spikes of I-Lazy are shorter than those of LL-Lazy", rules.shorter_spikes,
              "the dearest arrival of both looks at some 1,500 tuples: a list is scanned with vector instructions, a "
              "tree is searched point by point. Largest times also have turns of other processes in them"),
        Claim(HIGHER, rules.higher,
              "comparisons are little of it: in the median LL-Lazy makes 16, LL-Eager 185. The rest is Python's call "
              "and the upkeep of what is kept, which for Lazy is nearly all tuples, each with its expiry"),
    )),
    single(14, "anti-correlated", (
        Claim("As in Fig. 13, except that the spikes of Lazy disappear", partial(rules.peaks, "anti-correlated"),
              f"above {rules.SPIKE:g} times the median, in comparisons, is a spike here. Beside the median the largest "
              "is a tenth of Fig. 13's, as each arrival is compared with thousands; but an expiry that uncovers tuples "
              "costs one more such scan for each of them"),
        Claim(HIGHER, rules.higher,
              "with trees it does. Over lists LL-Lazy compares a tuple with some 4,200 in the median, LL-Eager, by "
              "bitmaps over cells, with one"),
    )),
    amortized(15, "Amortized cost versus d (W = 800)", columns, COST, (
        Claim("The relative order of the four methods remains the same", rules.same_order, ORDER),
        INDEXES, AHEAD,
        Claim("All methods deteriorate with the dimensionality", partial(rules.grows, "d"),
              "where skylines are short, in 2-d and 3-d, costs differ by no more than the noise"),
        BELOW,
    ), FAST),
    amortized(16, "Space overhead per timestamp versus W (d = 3)", windows, SPACE, (
        Claim("Independent: Lazy keeps nearly the whole window (90 %), Eager a fraction of it (half at most)",
              partial(rules.kept, "independent", rules.apart)),
        Claim("Anti-correlated: both keep a similar number of tuples (within a fifth), Lazy still more",
              partial(rules.kept, "anti-correlated", rules.similar),
              "Eager keeps what is in the skyline or can get there, and the paper's own Table 2 has a skyline of "
              "three quarters of the window at W = 200, but of a quarter at 3,200"),
        Claim("Anti-correlated: Lazy takes less space, as Eager has an event list", partial(rules.less_space, 0),
              EVENTS),
        Claim("Independent: indexed versions are only slightly larger (by a quarter at most)", rules.index_space, ROOM),
    ), ""),
    amortized(17, "Space overhead per timestamp versus d (W = 800)", columns, SPACE, (
        Claim("As Fig. 16: of independent tuples Lazy keeps nearly all, Eager a fraction",
              partial(rules.kept, "independent", rules.apart)),
        Claim("As Fig. 16: of anti-correlated tuples both keep a similar number, from d = 3 on",
              partial(rules.kept, "anti-correlated", rules.similar, least=3),
              "in 3-d half of the window is in the skyline, by the paper's own Table 2, and Eager keeps what can still "
              "get there beside it; in 4-d, where the skyline is 95 % of the window, both keep nearly all"),
        Claim("As Fig. 16: on anti-correlated data Lazy takes less space, from d = 3 on", partial(rules.less_space, 3),
              EVENTS),
        Claim("Eager needs much less space on independent data, and in 2-d on both kinds (half at most)",
              rules.little_space),
    ), ""),
    spiky(18, "independent", "list", (
        Claim("LL-Lazy: 14 µs per tuple", partial(rules.cost, "LL-Lazy", 14.0),
              "each tuple is one call from Python, which takes most of the time: in calls of many tuples one takes "
              "less than 1 µs (Fig. 12)"),
        Claim("LL-Eager: 85 µs per tuple", partial(rules.cost, "LL-Eager", 85.0)),
        Claim("LL-Lazy: at most 6 tuples wait", partial(rules.waiting, "LL-Lazy", 6)),
        Claim("LL-Eager: the buffer surges every 30 seconds", partial(rules.surges, "LL-Eager", "independent"),
              NO_BUFFER),
        Claim("LL-Lazy: around 225 KB in the first 15 seconds of a period",
              partial(rules.after_spike, "LL-Lazy", 250.0), BYTES),
        Claim("LL-Lazy: memory falls after 15 seconds, when the tuples of the spike have expired",
              partial(rules.falls, "LL-Lazy", "independent")),
        Claim("LL-Eager: peaks around 50 KB at the end of a period, then below 10 KB",
              partial(rules.settles, "LL-Eager", 50.0, 10.0),
              "the peak is lower, as nothing waits. While the 20,000 tuples of a spike live, some 200 of them can get "
              "into the skyline, at 70 bytes each; from second 45 on it is below 10 KB"),
    ), None),
    spiky(19, "anti-correlated", "list", (
        Claim("LL-Lazy, too, has a long buffer at the end of each period",
              partial(rules.surges, "LL-Lazy", "anti-correlated"), NO_BUFFER),
        Claim("LL-Eager: the buffer surges as in Fig. 18", partial(rules.surges, "LL-Eager", "anti-correlated"),
              NO_BUFFER),
        Claim("LL-Lazy: memory falls as in Fig. 18", partial(rules.falls, "LL-Lazy", "anti-correlated")),
        Claim("LL-Eager takes more memory than for independent tuples", rules.harder),
    ), ("independent", "list")),
    spiky(20, "independent", "rtree", (
        Claim("Buffers of both are smaller than with lists", rules.shorter, NO_BUFFER),
        Claim("I-Lazy: memory falls as in Fig. 18", partial(rules.falls, "I-Lazy", "independent")),
        Claim("Eager's memory does not surge at the end of a period", partial(rules.level, "I-Eager")),
    ), ("independent", "list")),
    spiky(21, "anti-correlated", "rtree", (
        Claim("Buffers of both are smaller than with lists", rules.shorter, NO_BUFFER),
        Claim("I-Lazy: memory falls as in Fig. 19", partial(rules.falls, "I-Lazy", "anti-correlated")),
        Claim("With about 250 KB all methods handle 10⁵ tuples in a second", partial(rules.within, 250.0), BYTES),
        BELOW,
    ), ("anti-correlated", "list")),
]  # fmt: skip
