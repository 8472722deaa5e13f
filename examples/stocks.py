"""Which offers of a stock are the best of the last ten minutes, and which stand unbeaten for long?

An offer is among the best if no other one is as cheap and as large. It lives for ten minutes. Offers of a falling
market are beaten soon; one that nobody beats for minutes is worth a second thought.
"""

import numpy as np

import skytide as sk

SECONDS = 2 * 60 * 60
OPEN = np.datetime64("2026-03-02T09:30:00")
random = np.random.default_rng(11)

# About one offer every two seconds: the price wanders, sizes are mostly small.
at = np.flatnonzero(random.random(SECONDS) < 0.5)
price = (100 + np.cumsum(random.normal(0, 0.02, len(at))) + random.exponential(0.3, len(at))).round(2)
size = 100 * random.geometric(0.15, len(at))
names = [f"{shares} at {asked}" for shares, asked in zip(size, price, strict=True)]
ids = [f"#{number} ({name})" for number, name in enumerate(names, start=1)]

window = sk.SlidingWindow(sk.Preference(minimize=["price"], maximize=["size"]), duration="10m")
counted = sk.Frequent(theta=0.9, over=300)
changes = window.extend({"price": price, "size": size}, times=OPEN + at, ids=ids)
steady = counted.extend(changes, snapshots=OPEN + np.arange(at[-1]))

print(f"{len(at):,} offers, {len(changes):,} changes of the best. The last of them:")
for time, sign, offer in list(changes)[-6:]:
    print(f"  {time:%H:%M:%S}  {sign} {offer}")

print("\nThe best now, the cheapest first:")
best = window.skyline()
for place in np.argsort(best.values[:, 0]):
    print(f"  {best.ids[place]}")

print(f"\nIn the best for 90 % of some five minutes: {(steady.signs > 0).sum()} offers. Unbeaten the longest:")
for stay in counted.longest(3):
    print(f"  {stay.snapshots // 60:2} min {stay.snapshots % 60:02} s from {stay.entered:%H:%M:%S}  {stay.id}")
