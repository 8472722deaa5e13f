"""The rules by which tao06's statements are judged, with their bars, and why some of them do not hold here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.papers.registry import Found, Row, Rows, chosen, first_and_last, mean, values

KINDS = ("independent", "anti-correlated")
LISTS, TREES = ("LL-Lazy", "LL-Eager"), ("I-Lazy", "I-Eager")
COST, SPACE = "µs per tuple", "KB kept"
SPIKE = 5.0
"""An arrival with more than so many times the comparisons of the median one is a spike."""
MOST, PART = 0.9, 0.5
"""Shares that are nearly all of something, and a fraction of it at most."""
SIMILAR = 0.8
"""Of two numbers that are similar, the smaller one is at least such a part of the larger one."""
MUCH, CLEARLY, SLIGHTLY = 5.0, 1.2, 1.25
"""Ratios of what is much larger, clearly larger, and at most slightly larger."""
SHORT = "the stream is too short"
PERIOD = 30
"""Seconds from one spike to the next."""
LONG = 100
"""So many tuples that wait are a buffer that fills."""
LAZY_BEHIND = (
    "Lazy's lists are scanned with vector instructions, 33 to 7,900 comparisons a tuple, and each tuple is in a list "
    "of expiries, too; Eager's list is searched by bitmaps over cells, with less than five. I-Lazy's trees hold most "
    "of the window, I-Eager's what can still get into the skyline"
)
ORDER = (
    "where skylines are short lists are ahead of trees, and Lazy's and Eager's differ by no more than the noise; where "
    "an anti-correlated skyline has thousands of tuples, from 3-d on, LL-Lazy falls behind both trees"
)
NO_BUFFER = (
    "over the stream every method takes less than 50 µs a tuple, the mean gap, so that no buffer fills, with lists or "
    "with trees"
)
BYTES = (
    "a tuple has 24 bytes of values, and 53 in the list of events: arrival, expiry, id and links; arrays grow by a "
    "third, so that with LL-Lazy it takes some 100 bytes, and up to 150 with trees. The paper's 225 KB are 11 bytes "
    "for each of the 20,000 tuples of a spike"
)


# -- sizes of skylines -------------------------------------------------------------------------------------------------


def near(known: dict[tuple[str, int, int], int], apart: float, rows: Rows) -> Found:
    """How far sizes are from the paper's; the cell that cannot be right is left out."""
    told = []
    for row in rows:
        cell = (row["kind"], row["d"], row["W"])
        if cell in known and cell != ("independent", 2, 800):
            told.append(abs(row["skyline"] / known[cell] - 1))
    if not told:
        return Found("not at this size", None)
    return Found(f"{len(told)} cells differ from the paper's by at most {max(told):.1%}", max(told) < apart)


def larger(rows: Rows) -> Found:
    """Whether anti-correlated skylines are much larger than independent ones in every cell."""
    cells = dict.fromkeys((row["d"], row["W"]) for row in rows)
    told = [
        mean(rows, "skyline", kind="anti-correlated", d=d, W=seconds)
        / mean(rows, "skyline", kind="independent", d=d, W=seconds)
        for d, seconds in cells
    ]
    return Found(f"{min(told):.1f} to {max(told):.1f} times as large", min(told) >= MUCH)


def by_columns(rows: Rows) -> Found:
    """Whether the skyline grows more with d, from the first to the last, than with W."""
    by_d = [row for row in rows if row["W"] in {one["W"] for one in rows if one["d"] != 3}]
    told, holds = [], True
    for kind in KINDS:
        growth = []
        for x, own in (("d", by_d), ("W", chosen(rows, d=3))):
            first, last = first_and_last(own, x)
            low, high = (mean(own, "skyline", kind=kind, **{x: at}) for at in (first, last))
            growth.append((f"{high / low:.1f} from {x} = {first} to {last}", high / low))
        told.append(f"{kind}: " + ", ".join(text for text, _ in growth))
        holds &= growth[0][1] > growth[1][1]
    return Found("times as large, " + "; ".join(told), holds)


def impossible(rows: Rows) -> Found:
    """The cell that cannot be right."""
    own = chosen(rows, kind="independent", d=2, W=800)
    if not own:
        return Found("not at this size", None)
    return Found(f"{own[0]['skyline']}, where {own[0]['expected']} is expected", False)


# -- costs -------------------------------------------------------------------------------------------------------------


def cells_of(rows: Rows) -> Iterator[dict[str, Row]]:
    """The rows of each cell of a sweep, by method."""
    cells: dict[tuple[str, int, int], dict[str, Row]] = {}
    for row in rows:
        cells.setdefault((row["kind"], row["d"], row["W"]), {})[row["method"]] = row
    yield from cells.values()


def compared(one: str, other: str, rows: Rows) -> tuple[str, float]:
    """In how many cells one method costs less than another, in words and as a share."""
    ratios = [cell[one][COST] / cell[other][COST] for cell in cells_of(rows)]
    less = sum(ratio < 1 for ratio in ratios)
    said = f"{one} is below {other} in {less} of {len(ratios)} cells ({min(ratios):.2f} to {max(ratios):.2f} times)"
    return said, less / len(ratios)


def index_gain(rows: Rows) -> Found:
    """Whether each tree is below its list in all cells."""
    told = [compared(f"I-{way}", f"LL-{way}", rows) for way in ("Lazy", "Eager")]
    return Found("; ".join(said for said, _ in told), all(share == 1 for _, share in told))


def lazy_ahead(rows: Rows) -> Found:
    """Whether Lazy is below Eager in most cells, with lists and with trees."""
    told = [compared(f"{index}-Lazy", f"{index}-Eager", rows) for index in ("LL", "I")]
    return Found("; ".join(said for said, _ in told), all(share > PART for _, share in told))


def same_order(rows: Rows) -> Found:
    """Whether the four methods, by cost, have one order for all d."""
    told, holds = [], True
    for kind in KINDS:
        orders: dict[str, list[str]] = {}
        for cell in cells_of(chosen(rows, kind=kind)):
            order = " < ".join(sorted(cell, key=lambda method: float(cell[method][COST])))
            orders.setdefault(order, []).append(str(next(iter(cell.values()))["d"]))
        told.append(f"{kind}: " + "; ".join(f"{order} (d = {', '.join(ds)})" for order, ds in orders.items()))
        holds &= len(orders) == 1
    return Found(". ".join(told), holds)


def grows(x: str, rows: Rows) -> Found:
    """Whether every method costs more at the last value than at the first."""
    first, last = first_and_last(rows, x)
    told = []
    for kind in values(rows, "kind"):
        for method in values(rows, "method"):
            own = chosen(rows, kind=kind, method=method)
            ratio = mean(own, COST, **{x: last}) / mean(own, COST, **{x: first})
            told.append((f"{method} {ratio:.1f}", ratio > 1, kind))
    said = "; ".join(
        f"{kind}: " + ", ".join(text for text, _, own in told if own == kind) for kind in values(rows, "kind")
    )
    return Found(f"times as much at {x} = {last} as at {first}: {said}", all(good for _, good, _ in told))


def indexed_below(limit: float, rows: Rows) -> Found:
    """Whether both trees stay below so many microseconds in every cell."""
    worst = max(row[COST] for row in rows if row["method"] in TREES and row.get(COST) is not None)
    return Found(f"at most {worst:.1f} µs", worst < limit)


def peaks(kind: str, rows: Rows) -> Found:
    """How far the largest cost is above the middle one, in comparisons: times have other processes' turns in them."""
    told = {}
    for method in values(rows, "method"):
        costs = sorted(row["tests"] for row in rows if row["method"] == method)
        told[method] = costs[-1] / max(1, costs[len(costs) // 2])
    said = ", ".join(f"{method} {ratio:.1f}" for method, ratio in told.items())
    lazy = [told["LL-Lazy"], told["I-Lazy"]]
    there = min(lazy) > SPIKE >= max(told["LL-Eager"], told["I-Eager"])
    return Found(
        f"most comparisons of an arrival over the median: {said}",
        there if kind == "independent" else max(lazy) <= SPIKE,
    )


def shorter_spikes(rows: Rows) -> Found:
    """Whether the largest spike of I-Lazy is below that of LL-Lazy, in comparisons and in time."""
    told, holds = [], True
    for measure, unit in (("tests", "comparisons"), ("µs", "µs")):
        lists, trees = (max(row[measure] for row in chosen(rows, method=name)) for name in ("LL-Lazy", "I-Lazy"))
        told.append(f"{lists:,.0f} {unit} at most with LL-Lazy, {trees:,.0f} with I-Lazy")
        holds &= trees < lists
    return Found("; ".join(told), holds)


def higher(rows: Rows) -> Found:
    """Whether Eager costs clearly more than Lazy in the median."""
    middle = {
        method: sorted(row["µs"] for row in rows if row["method"] == method)[len(rows) // 8]
        for method in values(rows, "method")
    }
    said = ", ".join(f"{method} {cost:.1f} µs" for method, cost in middle.items())
    return Found(
        f"medians: {said}", all(middle[f"{one}-Eager"] > CLEARLY * middle[f"{one}-Lazy"] for one in ("LL", "I"))
    )


# -- space -------------------------------------------------------------------------------------------------------------


def kept(kind: str, judge: Callable[[float, float], bool], rows: Rows, least: int = 0) -> Found:
    """The shares of the window that both ways keep, and whether they are as they should be in every cell."""
    cells = [(row["d"], row["W"]) for row in chosen(rows, kind=kind, method="LL-Lazy") if row["d"] >= least]
    told, holds = [], True
    for d, seconds in dict.fromkeys(cells):
        lazy, eager = (
            mean(rows, "tuples kept", kind=kind, method=f"LL-{way}", d=d, W=seconds) for way in ("Lazy", "Eager")
        )
        told.append(f"d={d}, W={seconds}: {lazy:,.0f} and {eager:,.0f} of {10 * seconds:,}")
        holds &= judge(lazy / (10 * seconds), eager / (10 * seconds))
    return Found("Lazy and Eager keep " + "; ".join(told), holds)


def apart(lazy: float, eager: float) -> bool:
    """Nearly the whole window, and a fraction of it."""
    return lazy >= MOST and eager <= PART


def similar(lazy: float, eager: float) -> bool:
    """Lazy keeps more than Eager, but not by much."""
    return SIMILAR * lazy <= eager < lazy


def less_space(least: int, rows: Rows) -> Found:
    """Whether Lazy takes less memory than Eager in all cells of anti-correlated rows, with lists and with trees."""
    own = [row for row in chosen(rows, kind="anti-correlated") if row["d"] >= least]
    told, holds = [], True
    for index in ("LL", "I"):
        pairs = [[cell[f"{index}-{way}"] for way in ("Lazy", "Eager")] for cell in cells_of(own)]
        less = sum(lazy[SPACE] < eager[SPACE] for lazy, eager in pairs)
        each = [
            sum(1e3 * row[SPACE] / row["tuples kept"] for row in one) / len(pairs) for one in zip(*pairs, strict=True)
        ]
        told.append(f"{index}: less in {less} of {len(pairs)} cells, {each[0]:.0f} bytes a tuple against {each[1]:.0f}")
        holds &= less == len(pairs)
    return Found("; ".join(told), holds)


def index_space(rows: Rows) -> Found:
    """Whether trees take slightly more than lists in all cells of independent rows."""
    told = {}
    for way in ("Lazy", "Eager"):
        told[way] = [
            cell[f"I-{way}"][SPACE] / cell[f"LL-{way}"][SPACE] for cell in cells_of(chosen(rows, kind="independent"))
        ]
    return Found(
        ", ".join(f"I-{way} {min(several):.1f} to {max(several):.1f} times LL-{way}" for way, several in told.items()),
        max(max(several) for several in told.values()) <= SLIGHTLY,
    )


def little_space(rows: Rows) -> Found:
    """Whether Eager takes a fraction of Lazy's memory on independent rows, and in 2-d on both kinds."""
    own = [row for row in rows if row["kind"] == "independent" or row["d"] == 2]
    told = {
        index: [cell[f"{index}-Eager"][SPACE] / cell[f"{index}-Lazy"][SPACE] for cell in cells_of(own)]
        for index in ("LL", "I")
    }
    said = ", ".join(f"{index}-Eager {min(one):.1%} to {max(one):.1%} of {index}-Lazy" for index, one in told.items())
    return Found(said, max(max(one) for one in told.values()) <= PART)


# -- spikes ------------------------------------------------------------------------------------------------------------


def waiting(method: str, most: int, rows: Rows) -> Found:
    """Whether no more tuples wait than so many."""
    largest = max(row["waiting"] for row in rows if row["method"] == method)
    return Found(f"at most {largest:,} tuples wait", largest <= most)


def shorter(rows: Rows) -> Found:
    """Whether a buffer that fills with lists is shorter with trees, for Lazy and for Eager."""
    most = {name: max(row["waiting"] for row in chosen(rows, method=name)) for name in (*LISTS, *TREES)}
    pairs = [(most[lists], most[trees]) for lists, trees in zip(LISTS, TREES, strict=True)]
    said = ", ".join(f"{name} {many:,}" for name, many in most.items())
    return Found(f"most tuples that wait: {said}", all(trees < lists and lists > LONG for lists, trees in pairs))


def cost(method: str, most: float, rows: Rows) -> Found:
    """Whether a tuple takes no longer than so many microseconds, over the whole stream."""
    found = chosen(rows, method=method)[-1][COST]
    return Found(f"{found:.1f} µs per tuple", found <= most)


def surges(method: str, kind: str, rows: Rows) -> Found:
    """Whether a buffer is long at the end of each period."""
    own = [row for row in chosen(rows, method=method, kind=kind) if row["second"] % PERIOD == 0]
    ends = [row["waiting"] for row in own]
    return Found(f"{min(ends):,} to {max(ends):,} tuples wait at the end of a period", min(ends) > LONG)


def settles(method: str, peak: float, rest: float, rows: Rows) -> Found:
    """Whether memory peaks at the end of a period, within one bar, and is within another one afterwards."""
    own = [row for row in chosen(rows, method=method) if row["second"] >= PERIOD]
    ends = [row[SPACE] for row in own if row["second"] % PERIOD == 0]
    after = [row[SPACE] for row in own if row["second"] % PERIOD]
    if not after:
        return Found(SHORT, None)
    return Found(
        f"at most {max(ends):,.1f} KB at the end of a period, {min(after):,.1f} to {max(after):,.1f} else",
        max(ends) <= peak and max(after) < rest,
    )


def after_spike(method: str, most: float, rows: Rows) -> Found:
    """Whether memory is no more than so much while the tuples of a spike live."""
    own = [row[SPACE] for row in chosen(rows, method=method) if PERIOD < row["second"] < PERIOD + 15]
    if not own:
        return Found(SHORT, None)
    return Found(f"{min(own):,.1f} to {max(own):,.1f} KB at seconds {PERIOD + 1} to {PERIOD + 14}", max(own) <= most)


def harder(rows: Rows) -> Found:
    """Whether LL-Eager takes more memory for anti-correlated tuples than for independent ones."""
    most = {kind: max(row[SPACE] for row in chosen(rows, kind=kind, method="LL-Eager")) for kind in KINDS}
    said = ", ".join(f"{kind} {found:,.1f}" for kind, found in most.items())
    return Found(f"at most, in KB: {said}", most["anti-correlated"] > CLEARLY * most["independent"])


def level(method: str, rows: Rows) -> Found:
    """Whether memory at the ends of later periods is no more than half above what it is between them."""
    own = [row for row in chosen(rows, method=method) if row["second"] > PERIOD]
    if not own:
        return Found(SHORT, None)
    ends = [row[SPACE] for row in own if row["second"] % PERIOD == 0]
    between = sorted(row[SPACE] for row in own)[len(own) // 2]
    return Found(f"{max(ends):,.1f} KB at the end of a period, {between:,.1f} in the middle", max(ends) < 1.5 * between)


def falls(method: str, kind: str, rows: Rows) -> Found:
    """Whether memory falls to a fraction once the tuples of a spike have expired, at second 45."""
    own = {row["second"]: row[SPACE] for row in chosen(rows, method=method, kind=kind)}
    if 50 not in own:
        return Found(SHORT, None)
    return Found(f"{own[40]:,.1f} KB at second 40, {own[50]:,.1f} at 50", own[50] <= PART * own[40])


def within(most: float, rows: Rows) -> Found:
    """Whether no method ever takes more memory than so much."""
    by = {name: max(row[SPACE] for row in chosen(rows, method=name)) for name in values(rows, "method")}
    return Found(
        "at most, in KB: " + ", ".join(f"{name} {one:,.0f}" for name, one in by.items()), max(by.values()) <= most
    )
