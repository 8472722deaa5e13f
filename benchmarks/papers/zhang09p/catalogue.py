"""zhang09p's Figs. 4 to 12: what is varied, what is drawn, and what the paper's text says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.papers.registry import Claim, Figure, Found, Panel, Row, Rows, by_size, chosen, mean, values
from benchmarks.papers.zhang09p.experiments import STOCK

HERE = "benchmarks.papers.zhang09p.experiments"
DATA = {"Inde-Uniform": ("independent", "uniform"), "Anti-Uniform": ("anti-correlated", "uniform"),
        "Anti-Normal": ("anti-correlated", "normal")}  # fmt: skip
METHODS = ("SSKY", "cells")
NOTE = (
    "Anti-correlated rows have a plane deviation of 0.05: the paper does not say which it has, and its sizes depend on "
    "it. SSKY is the paper's aggregate R-tree, cells is what is chosen here by default; both give the same answers."
)
STAND_IN = " Stock-Uniform is 500,000 trades of a future in 2013 instead of 2 million of a share in 2001."
OLD = " The paper's times are of a Xeon at 2.4 GHz of before 2009."


def limit(size: str) -> float:
    """Seconds for methods that are not needed for the answers."""
    return float(by_size(size, 0.02, 1.0, 60.0))


def datasets(size: str) -> Iterator[Row]:
    """Figs. 4 and 8: kinds of data and dimensions."""
    n, window = by_size(size, (600, 300), (200_000, 100_000), (2_000_000, 1_000_000))
    for name, (kind, chances) in DATA.items():
        for d in by_size(size, (2, 3, 5), (2, 3, 4, 5), (2, 3, 4, 5)):
            yield {"set": name, "data": kind, "P": chances, "d": d, "n": n, "N": window, "limit": limit(size)}


def shares(size: str) -> Iterator[Row]:
    """The real data of Figs. 4 and 8."""
    n, window = by_size(size, (600, 300), (200_000, 100_000), (500_000, 250_000))
    yield {"set": "Stock-Uniform", "data": "stock", "P": "uniform", "d": 2, "n": n, "N": window, "limit": limit(size)}


def cell(size: str, **varied: float) -> Iterator[Row]:
    """A run for both kinds of rows, with all but what is varied as in the paper's Table II."""
    window = by_size(size, 300, 100_000, 1_000_000)
    for kind in by_size(
        size, ("anti-correlated",), ("independent", "anti-correlated"), ("independent", "anti-correlated")
    ):
        yield {"kind": kind, "d": 3, "N": window, "mean": None, "q": 0.3, "limit": round(limit(size) / 3, 3)} | varied


def windows(size: str) -> Iterator[Row]:
    """Figs. 5 and 9: N."""
    for share in by_size(size, (0.5, 1), (0.1, 0.2, 0.4, 0.6, 0.8, 1), (0.1, 0.2, 0.4, 0.6, 0.8, 1)):
        yield from cell(size, N=round(share * by_size(size, 300, 100_000, 1_000_000)))


def means(size: str) -> Iterator[Row]:
    """Figs. 6 and 10: the mean of P."""
    for value in by_size(size, (0.1, 0.9), (0.1, 0.3, 0.5, 0.7, 0.9), (0.1, 0.3, 0.5, 0.7, 0.9)):
        yield from cell(size, mean=value)


def limits(size: str) -> Iterator[Row]:
    """Figs. 7 and 11: q."""
    for value in by_size(size, (0.1, 0.9), (0.1, 0.3, 0.5, 0.7, 0.9), (0.1, 0.3, 0.5, 0.7, 0.9)):
        yield from cell(size, q=value)


def counts(size: str) -> Iterator[Row]:
    """Fig. 12: k thresholds at once, and 1,000 queries."""
    window, elements, queries = by_size(size, (300, 100, 5), (100_000, 20_000, 1_000), (1_000_000, 1_000_000, 1_000))
    for k in by_size(size, (1, 3), (1, 2, 4, 6, 8, 10), (1, 2, 4, 6, 8, 10)):
        yield {"k": k, "N": window, "elements": elements, "queries": queries}


# -- what the paper says -----------------------------------------------------------------------------------------------


def saving(rows: Rows) -> Found:
    """Whether the hardest data leaves 89 % out."""
    own = chosen(rows, set="Anti-Uniform", d=max(values(rows, "d")))
    return Found(
        f"{mean(own, 'kept, %'):.1f} % are kept of {own[0]['N']:,} in {own[0]['d']}-d", mean(own, "kept, %") < 11
    )


def small(rows: Rows) -> Found:
    """How much is kept in 2-d."""
    own = [row["kept, %"] for row in chosen(rows, d=2)]
    return Found(f"{min(own):.2f} to {max(own):.2f} % are kept", max(own) < 2)


def fewer(rows: Rows) -> Found:
    """Whether answers are much smaller than the candidates."""
    ratios = [row["candidates"] / max(1, row["answer"]) for row in rows]
    return Found(f"{min(ratios):.1f} to {max(ratios):.1f} times as many candidates as members", min(ratios) > 2)


def rate(d: int, least: int, rows: Rows) -> Found:
    """Whether the slowest data of so many dimensions is as fast as the paper says."""
    own = [row for row in chosen(rows, d=d) if row["method"] in METHODS]
    told = {name: min(row["elements/s"] for row in chosen(own, method=name)) for name in METHODS}
    said = ", ".join(f"{name} {many:,} a second" for name, many in told.items())
    return Found(f"at least {said}", told["SSKY"] >= least)


def trivial(rows: Rows) -> Found:
    """How much slower the trivial algorithm is."""
    own = chosen(rows, set="Anti-Uniform", d=3)
    slow = mean(own, "µs", method="trivial")
    said = {name: slow / mean(own, "µs", method=name) for name in METHODS}
    return Found(", ".join(f"{ratio:.1f} times slower than {name}" for name, ratio in said.items()), said["SSKY"] > 10)


def falls(measure: str, x: str, up: bool, rows: Rows) -> Found:
    """Whether a measure falls, or rises, from the first value to the last."""
    first, *_, last = values(rows, x)
    told, holds = [], True
    for kind in values(rows, "kind"):
        for method in values(rows, "method") if measure == "µs" else ["cells"]:
            low, high = (mean(rows, measure, kind=kind, method=method, **{x: at}) for at in (first, last))
            told.append(f"{kind}, {method}: {low:,.4g} and {high:,.4g}" if measure == "µs" else
                        f"{kind}: {low:,.0f} and {high:,.0f}")  # fmt: skip
            holds &= high > low if up else high < low
    return Found(f"at {x} = {first} and {last}: " + "; ".join(told), holds)


def level(rows: Rows) -> Found:
    """Whether ten times the window costs little more."""
    first, *_, last = values(rows, "N")
    told = {}
    for method in METHODS:
        low, high = (mean(rows, "µs", method=method, N=at) for at in (first, last))
        told[method] = high / low
    said = ", ".join(f"{name} {ratio:.2f}" for name, ratio in told.items())
    return Found(f"times the cost for {last // first} times the window: {said}", max(told.values()) < 2)


def with_k(measure: str, up: bool, rows: Rows) -> Found:
    """Whether a cost of the paper's method grows, or falls, with the number of thresholds."""
    first, *_, last = values(rows, "k")
    low, high = (mean(rows, measure, method="MSKY, QSKY", k=at) for at in (first, last))
    return Found(f"{low:.1f} µs for k = {first}, {high:.1f} for {last}", high > low if up else high < low)


# -- figures -----------------------------------------------------------------------------------------------------------


def sized(number: int, x: str, title: str, sweep: object, claims: tuple[Claim, ...]) -> Figure:
    """Figs. 5 to 7."""
    panels = tuple(
        Panel(f"({letter}) largest {what}", x, what, "kind", where=(("method", "cells"),), log="y")
        for letter, what in zip("ab", ("candidates", "answer"), strict=True)
    )
    return Figure("zhang09p", "figure", number, title, f"{HERE}:varied", sweep, panels,  # type: ignore[arg-type]
                  ("candidates", "answer"), claims, NOTE, by=("kind", x))  # fmt: skip


def timed(number: int, x: str, title: str, sweep: object, claims: tuple[Claim, ...]) -> Figure:
    """Figs. 9 to 11."""
    panels = tuple(
        Panel(kind, x, "µs", where=(("kind", kind),), log="y") for kind in ("independent", "anti-correlated")
    )
    return Figure("zhang09p", "figure", number, title, f"{HERE}:varied", sweep, panels,  # type: ignore[arg-type]
                  ("µs",), claims, NOTE + OLD, by=("kind", "method", x))  # fmt: skip


def of_data(number: int, title: str, panels: tuple[Panel, ...], shown: tuple[str, ...], claims: tuple[Claim, ...],
            note: str) -> Figure:  # fmt: skip
    """Figs. 4 and 8."""
    return Figure("zhang09p", "figure", number, title, f"{HERE}:dataset", datasets, panels, shown, claims, note,
                  by=("set", "d") if number == 4 else ("set", "d", "method"), also=((shares, (STOCK,)),))  # fmt: skip


FIGURES = [
    of_data(4, "Space usage by data set: the largest numbers of candidates and of members", tuple(
        Panel(f"largest {what}", "d", what, "set", where=(("method", "cells"),), log="y")
        for what in ("candidates", "answer")
    ), ("candidates", "answer", "kept, %"), (
        Claim("Even 5-d anti-correlated data saves 89 % of the space", saving),
        Claim("A very small portion of 2-d data is kept", small),
        Claim("There are far fewer members than candidates", fewer),
    ), NOTE + STAND_IN + " A window smaller than the paper's keeps a larger share: of 1,000,000 rows in 5-d it is "
       "7.5 %."),
    sized(5, "N", "Space usage by the size of the window", windows, (
        Claim("Space grows with the window", partial(falls, "candidates", "N", True)),
    )),
    sized(6, "mean", "Space usage by the mean of the probabilities", means, (
        Claim("Candidates become fewer as probabilities grow", partial(falls, "candidates", "mean", False)),
        Claim("There are few members where probabilities are small", partial(falls, "answer", "mean", True)),
    )),
    sized(7, "q", "Space usage by the threshold", limits, (
        Claim("Candidates become fewer as q grows", partial(falls, "candidates", "q", False)),
        Claim("Members become fewer as q grows", partial(falls, "answer", "q", False)),
    )),
    of_data(8, "Time per element by data set", tuple(
        Panel(name, "d", "µs", where=(("set", name),), log="y") for name in (*DATA, "Stock-Uniform")
    ), ("µs", "elements/s"), (
        Claim("In 2-d more than 38,000 elements a second, also of stock and anti-correlated data",
              partial(rate, 2, 38_000)),
        Claim("In 5-d anti-correlated data 728 elements a second", partial(rate, 5, 728)),
        Claim("The trivial algorithm is about 20 times slower than SSKY (anti-correlated, 3-d)", trivial),
    ), NOTE + STAND_IN + OLD),
    timed(9, "N", "Delay by the size of the window", windows, (
        Claim("Not sensitive to the size of the window", level),
    )),
    timed(10, "mean", "Delay by the mean of the probabilities", means, (
        Claim("Faster where probabilities are large", partial(falls, "µs", "mean", False)),
    )),
    timed(11, "q", "Delay by the threshold", limits, (
        Claim("Faster where q is large", partial(falls, "µs", "q", False)),
    )),
    Figure("zhang09p", "figure", 12, "Cost by the number of thresholds (MSKY), and of ad-hoc queries (QSKY)",
           f"{HERE}:several", counts,
           (Panel("(a) MSKY, an element", "k", "µs per element"), Panel("(b) QSKY, a query", "k", "µs per query")),
           ("µs per element", "µs per query"), (
               Claim("The cost of an element grows with k", partial(with_k, "µs per element", True)),
               Claim("The cost of a query falls as k grows", partial(with_k, "µs per query", False)),
           ), NOTE + " The cost of an element hardly depends on k here: it moves between all answers at once.",
           by=("k", "method")),
]  # fmt: skip
