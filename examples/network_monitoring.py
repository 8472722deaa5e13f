"""Is somebody under attack? Eight routers, each of which sees a part of the traffic to two hundred targets.

A target is suspicious if no other one has more packets on average over the routers *and* more variance between them.
That can be known by telling everything to one place. The routers here tell only what may change the answer.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from skytide.protocols.fragmented.functions import Functions
from skytide.runtime.fragments import Fragmented

ROUTERS, TARGETS, SECONDS, BEGIN, END = 8, 200, 120, 60, 80
SUSPICIOUS = Functions(minimize=[], maximize=["packets", "var(packets)"])


def traffic(seed: int) -> Iterator[tuple[int, Any, list[str], dict[str, Any]]]:
    """Second by second: the packets to some targets at some routers. The last target is attacked for a while."""
    random = np.random.default_rng(seed)
    usual = random.gamma(2.0, 50.0, (TARGETS, ROUTERS))
    attack = np.where(np.arange(ROUTERS) < 2, 80, 20)  # it comes from everywhere, mostly through two routers
    names = np.array([f"10.0.{number // 100}.{number % 100}" for number in range(TARGETS)])
    for second in range(SECONDS):
        news = random.random(usual.shape) < (1.0 if second == 0 else 0.05)
        if second in (BEGIN, END):
            usual[-1] = usual[-1] * attack if second == BEGIN else usual[-1] / attack
            news[-1] = True
        targets, routers = np.nonzero(news)
        packets = usual[news] * random.normal(1.0, 0.03, len(targets))
        yield second, names[targets], [f"r{number}" for number in routers], {"packets": packets.round()}


def watch(method: str, show: bool) -> dict[str, Any]:
    """Play the two minutes through; what was sent after the first second."""
    monitor = Fragmented(SUSPICIOUS, method)
    for second, targets, routers, rows in traffic(seed=3):
        monitor.extend(rows, times=np.full(len(targets), second), ids=targets, sites=routers)
        for time, sign, target in monitor.advance(second):
            if show and time > 0:
                print(f"  second {time:3}  {'suspicious' if sign == '+' else 'calm again'}  {target}")
    return monitor.cost()


print(f"{TARGETS} targets, {ROUTERS} routers. What changes in two minutes:")
told, everything = (watch(method, show=method == "auto")["messages"] for method in ("auto", "central"))
print(f"\nMessages after the first second: {told:,}, {told / everything:.0%} of the {everything:,} for everything.")
