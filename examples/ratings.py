"""Which restaurants of a town would nobody argue with, week by week?

Guests rate food and service from 1 to 10. A new rating counts half, the one before it a quarter, and so on. A place is
on the list if no other place in its town is rated as well in both. The monitor tells who comes on and who goes, and
it can be stored at night and go on in the morning.
"""

from typing import Any

import numpy as np

import skytide as sk

TOWNS = {"Lyon": ["Anis", "Brume", "Caillou", "Dorade", "Escale"], "Porto": ["Fado", "Galo", "Horta", "Ilha"]}
HOME = {place: town for town, places in TOWNS.items() for place in places}
WEEKS = 12
random = np.random.default_rng(2)
talent = {place: random.uniform(5, 9, 2) for place in HOME}
talent["Horta"] = np.array([5.5, 5.5])  # until a new cook comes, in week 7


def ratings_of(week: int) -> dict[str, Any]:
    """Thirty guests a week, each at one place."""
    if week == 7:
        talent["Horta"] = np.array([9.5, 8.5])
    places = random.choice(list(HOME), 30)
    given = np.array([random.normal(talent[place], 1.0) for place in places]).clip(1, 10).round()
    return {"place": places, "town": [HOME[one] for one in places], "food": given[:, 0], "service": given[:, 1]}


guide = sk.Snapshots(sk.Preference(maximize=["food", "service"], by=["town"]), op="average")
for week in range(1, WEEKS + 1):
    rows = ratings_of(week)
    changes = guide.apply(rows, time=week, ids=rows["place"])
    on, off = ([f"{one} ({HOME[one]})" for _, sign, one in changes if sign == which] for which in "+-")
    print(f"week {week:2}  on: {', '.join(on) or '-':57}  off: {', '.join(off) or '-'}")
    guide = sk.Snapshots.from_bytes(guide.to_bytes())  # as if the program had been stopped between the weeks

print("\nThe list as it stands:")
answer = guide.skyline()
for place, (food, service) in zip(answer, answer.values, strict=True):
    print(f"  {HOME[place]:6} {place:8} food {food:4.1f}  service {service:4.1f}")
