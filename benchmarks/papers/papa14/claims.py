"""The rules by which papa14's statements are judged, with their bars."""

from __future__ import annotations

from typing import Any

from benchmarks.papers.registry import RANKED, Found, Row, Rows, chosen, mean, rank, values
from skytide.protocols.fragmented.messages import Kind, sizes

METHODS = ("PIVOT", "DIRECT")
MESSAGES, BYTES, WHOLE = "messages, %", "bytes, %", "bytes with the beginning, %"
EARLY = 0.15
"""Of the updates: the paper's 1.5 of 10 million."""
FAR = 0.7
"""At most such a part is far fewer."""
STEADY = 1.0
"""Costs that differ by less, in percent of CENTR's, are steady: the paper's own are below 3 %."""
LIKE = 2.0
"""Costs of up to so many times are similar."""
BASELINE = {2: 32, 3: 36, 4: 40, 5: 44}
"""Bytes of an update of CENTR by columns: the paper's 305, 343, 381 and 420 MB for 10 million of them."""


def shares(rows: Rows, column: str) -> dict[str, float]:
    """What the methods send of CENTR's, in percent."""
    return {method: mean(rows, column, method=method) for method in METHODS if chosen(rows, method=method)}


def said(by: dict[str, float]) -> str:
    """In words."""
    return ", ".join(f"{method} {share:.3g} %" for method, share in by.items())


def both(rows: Rows) -> str:
    """Messages and bytes in words."""
    return f"messages {said(shares(rows, MESSAGES))}; bytes {said(shares(rows, BYTES))}"


def at_most(column: str, bars: dict[str, float], rows: Rows, **where: Any) -> Found:
    """Whether methods send no more than the paper says."""
    by = shares(chosen(rows, **where), column)
    if not by:
        return Found("not measured", None)
    return Found(said(by), all(by[method] <= bar for method, bar in bars.items() if method in by))


def both_at_most(bars: dict[str, float], rows: Rows, **where: Any) -> Found:
    """The same, of messages and of bytes."""
    own = chosen(rows, **where)
    if not own:
        return Found("not measured", None)
    return Found(both(own), all(at_most(column, bars, own).holds for column in (MESSAGES, BYTES)))


def kept_below(column: str, bars: dict[str, float], varied: str, rows: Rows) -> Found:
    """Whether methods send no more than the paper says at any value."""
    own = chosen(rows, varied=varied)
    worst = {method: max(mean(own, column, method=method, value=value) for value in values(own, "value"))
             for method in METHODS}  # fmt: skip
    return Found("at most " + said(worst), all(worst[method] <= bar for method, bar in bars.items()))


def cheaper(columns: tuple[str, ...], one: str, other: str, most: float, rows: Rows, **where: Any) -> Found:
    """Whether a method sends at most such a part of another one's messages, or bytes; nothing is said of nothing."""
    by = {column: shares(chosen(rows, **where), column) for column in columns}
    told = "; ".join(f"{column.partition(',')[0]} {said(found)}" for column, found in by.items())
    if not any(share for found in by.values() for share in found.values()):
        return Found(f"{told}: neither sends anything", None)
    return Found(told, all(found[one] <= most * found[other] for found in by.values()))


def from_three(rows: Rows) -> Found:
    """Whether PIVOT sends less than DIRECT, messages and bytes, with 3 functions and with 4."""
    own = [row for row in chosen(rows, varied="functions") if row["value"] >= 3]
    told = [
        (many, cheaper((MESSAGES, BYTES), "PIVOT", "DIRECT", 1.0, own, value=many)) for many in values(own, "value")
    ]
    return Found(". ".join(f"With {many}: {found.text}" for many, found in told), all(found.holds for _, found in told))


def like_linear(rows: Rows) -> Found:
    """Whether norm and variance send at most twice the bytes of linear functions."""
    by = {name: shares(chosen(rows, varied="type", value=name), BYTES) for name in ("column", "norm", "variance")}
    holds = all(by[name][method] <= LIKE * by["column"][method] for name in ("norm", "variance") for method in METHODS)
    return Found("; ".join(f"{name}: {said(found)}" for name, found in by.items()), holds)


def of_data(name: str, bars: dict[str, float], rows: Rows) -> Found:
    """Whether methods send no more than the paper says for real data; with the size of the run."""
    own = chosen(rows, value=name)
    if not own:
        return Found("not measured", None)
    found = both_at_most(bars, own)
    counts = f"{own[0]['updates']:,} updates of {own[0]['objects']:,} objects at {own[0]['sites']:,} sites"
    return found._replace(text=f"{found.text} ({counts})")


def without_grouping(most: float, rows: Rows) -> Found:
    """Whether PIVOT with pivots that are not grouped sends at most such a part of what it sends with groups."""
    own = chosen(rows, value="WEATHER")
    if not own:
        return Found("not measured", None)
    by = {column: {word: mean(own, column, method=f"PIVOT, {word}") for word in ("not grouped", "grouped")}
          for column in (MESSAGES, BYTES)}  # fmt: skip
    told = "; ".join(f"{column.partition(',')[0]} {said(found)}" for column, found in by.items())
    return Found(told, all(found["not grouped"] <= most * found["grouped"] for found in by.values()))


def harder(rows: Rows) -> Found:
    """Whether WEATHER saves less than MOVIES; nothing is said where neither saves anything."""
    by = {name: shares(chosen(rows, value=name), BYTES).get("PIVOT") for name in ("WEATHER", "MOVIES")}
    weather, movies = by["WEATHER"], by["MOVIES"]
    if weather is None or movies is None:
        return Found("not measured", None)
    text = f"bytes of PIVOT: WEATHER {weather:.3g} %, MOVIES {movies:.3g} %"
    if min(weather, movies) >= 99:
        return Found(f"{text}: neither saves anything", None)
    return Found(text, weather > movies)


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
        many = points[-1][0]
        below = [at for at, share in points if share < 100]
        told.append(f"{method} from {below[0]:,} on" if below else f"{method} {points[-1][1]:.0f} % at the end")
        holds &= bool(below) and below[0] <= EARLY * many
    return Found(f"of {many:,} updates: {', '.join(told)}", holds)


def dear_at_first(rows: Rows) -> Found:
    """Whether CENTR has sent less than both at the first mark, with the beginning."""
    own = chosen(rows, kind="anti-correlated")
    first = {method: chosen(own, method=method)[0] for method in METHODS}
    by = {method: float(row[WHOLE]) for method, row in first.items()}
    return Found(f"after {first['PIVOT']['updates']:,} updates {said(by)}", min(by.values()) > 100)


def grows(varied: str, columns: tuple[str, ...], methods: tuple[str, ...], rows: Rows) -> Found:
    """Whether costs rise with what is varied, by rank and from end to end."""
    own = chosen(rows, varied=varied)
    told, holds = [], True
    for column in columns:
        for method in methods:
            several = [mean(own, column, method=method, value=value) for value in values(own, "value")]
            told.append(f"{method}, {column.partition(',')[0]}: {', '.join(f'{one:.3g}' for one in several)} %")
            holds &= rank(several) >= RANKED and several[-1] > several[0]
    return Found("; ".join(told), holds)


def steady(varied: str, columns: tuple[str, ...], rows: Rows) -> Found:
    """Whether shares of CENTR's cost differ little over what is varied."""
    own = chosen(rows, varied=varied)
    told, holds = [], True
    for column in columns:
        for method in METHODS:
            several = [mean(own, column, method=method, value=value) for value in values(own, "value")]
            told.append(f"{method}, {column.partition(',')[0]}: {min(several):.3g} to {max(several):.3g} %")
            holds &= max(several) - min(several) < STEADY
    return Found("; ".join(told), holds)


def similar_in_part(rows: Rows) -> Found:
    """Whether sites with a part of the objects give costs like those of sites with all of them."""
    own = chosen(rows, varied="part")
    if not own:
        return Found("not measured", None)
    told = f"with {own[0]['value']:.0%} of the objects {both(own)}"
    whole = [row for row in chosen(rows, varied="maxRC") if row["value"] == own[0]["maxRC"]]
    if not whole:
        return Found(told, None)
    near = all(
        abs(shares(own, column)[method] - shares(whole, column)[method]) < STEADY
        for column in (MESSAGES, BYTES)
        for method in METHODS
    )
    return Found(f"{told}. With all {both(whole)}", near)


def baseline(columns: tuple[int, ...], rows: Rows) -> Found:
    """What an update takes with CENTR here, by the number of columns."""
    ours = {d: sum(sizes(Kind.UPDATE, d, 2)) for d in columns}
    told = ", ".join(f"{size} bytes in {d}-d" for d, size in ours.items())
    return Found(told, all(ours[d] <= BASELINE[d] for d in columns))


def last(rows: Rows, **where: Any) -> list[Row]:
    """The ends of the runs of Fig. 5."""
    return chosen(rows, last=True, **where)
