"""What was sent, by kind, against what it takes to send everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skytide.plots._style import INK, REST, SOFT, plain_axes, title

_UP = ("#0072b2", "#56b4e9", "#88c3e6", "#b9dcf2")
_DOWN = ("#d55e00", "#e69f00", "#f0c36b", "#f6dfae", "#fbefd7")


def draw_ledger(axes: Any, ledger: Mapping[str, Any]) -> None:
    """Messages as stacked bars: what sites said, what they were told, and what sending everything takes.

    `ledger` is `{"messages", "naive_messages" (or None), "kinds": [{"way", "kind", "messages"}, ...]}`.
    """
    everything = ledger.get("naive_messages")
    bars = ["sent"] + ([] if everything is None else ["sending everything"])
    right = 0
    for way, arrow, colours in (("up", "↑", _UP), ("down", "↓", _DOWN)):
        kinds = [one for one in ledger["kinds"] if one["way"] == way and one["messages"]]
        kinds.sort(key=lambda one: (-one["messages"], one["kind"]))
        for at, one in enumerate(kinds):
            label = f"{arrow} {one['kind']} {one['messages']:,}"
            colour = colours[min(at, len(colours) - 1)]
            axes.barh(0, one["messages"], left=right, height=0.62, color=colour, linewidth=0, label=label)
            right += one["messages"]
    if everything is not None:
        axes.barh(1, everything, height=0.62, color=REST, linewidth=0)
        axes.text(everything, 1, f" {everything:,}", va="center", fontsize=9, color=SOFT)
    axes.text(right, 0, f" {ledger['messages']:,}", va="center", fontsize=9, color=SOFT)
    axes.set_yticks(range(len(bars)), bars, color=INK, fontsize=9)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(0, 1.12 * max(right, everything or 0, 1))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=7)
    axes.set_xlabel("messages after the first instant (↑ to the coordinator, ↓ from it)", color=INK, fontsize=9)
    plain_axes(axes, "x")
    axes.tick_params(axis="y", length=0)
    if right:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.04), frameon=False, fontsize=8, labelcolor=INK)
    title(axes, told(ledger), size=11)


def told(ledger: Mapping[str, Any]) -> str:
    """One line: how many messages, and what share of sending everything that is.

    >>> told({"messages": 50, "naive_messages": 1000})
    '50 messages, 5 % of sending everything'
    >>> told({"messages": 1, "naive_messages": None})
    '1 message'
    """
    count, everything = ledger["messages"], ledger.get("naive_messages")
    text = f"{count:,} message{'' if count == 1 else 's'}"
    return f"{text}, {100 * count / everything:.3g} % of sending everything" if everything else text
