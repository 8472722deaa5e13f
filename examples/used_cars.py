"""Which used cars are worth a look, and how far must a seller come down for this one?

A car is worth a look if no other car of its brand is better in price or kilometres and no worse in the other. For all
other cars `explain` knows what would change that: for example the price at which nobody beats the car any more.
"""

import numpy as np
import pyarrow as pa

import skytide as sk
from skytide.explain import explain

BEST = sk.Preference(minimize=["price", "kilometres"], by=["brand"])


def market(cars: int, seed: int) -> pa.Table:
    """Cars lose value with every kilometre, and sellers dream, some more than others."""
    random = np.random.default_rng(seed)
    kilometres = random.gamma(3.0, 35_000, cars).round(-2)
    price = 26_000 * np.exp(-kilometres / 110_000) * random.lognormal(0.1, 0.35, cars)
    brand = random.choice(["Alba", "Borea", "Cirro"], cars)
    return pa.table({"brand": brand, "kilometres": kilometres, "price": price.round(-1)})


cars = market(600, seed=4)
worth = sk.skyline(cars, BEST)
print(f"{worth.sum()} of {len(worth):,} cars are worth a look. Those of Borea, the cheapest first:")
for car in cars.filter(pa.array(worth)).sort_by("price").to_pylist():
    if car["brand"] == "Borea":
        print(f"  {car['price']:7,.0f}  {car['kilometres']:7,.0f} km")

wish = 7
car, why = cars.slice(wish, 1).to_pylist()[0], explain(cars, BEST, wish)
print(f"\nYou like the {car['brand']} with {car['kilometres']:,.0f} km for {car['price']:,.0f}?")
print(f"{len(why.dominators)} others of the brand are better. The nearest in price:")
for one in cars.take(why.dominators).sort_by([("price", "descending")]).slice(0, 3).to_pylist():
    print(f"  {one['price']:7,.0f}  {one['kilometres']:7,.0f} km")
price = why.alone[0]
print(f"Offer less than {price.value:,.0f}: then it is worth a look." if price else "No price would do.")
