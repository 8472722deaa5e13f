"""A skyline in a minute: used cars of our own making, the table in the terminal, a picture, and why one car is not in.

`make demo` runs this. Everything it writes lies in the folder demo-output/ of the current directory.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.cli import app
from skytide.streams.files import csv_bytes, read_chunks, write_table

ROWS = 20_000
SHOWN = 12
BRANDS = {"Alba": 1.00, "Borea": 1.35, "Cirro": 0.80, "Delta": 1.15}
"""What a brand adds to the price."""
CITIES = ("Bergen", "Lyon", "Porto", "Turin")
FOLDER = Path("demo-output")


def cars(rows: int = ROWS, seed: int = 7) -> pa.Table:
    """Used cars: younger and less driven ones cost more, thirsty ones less; one in fifty lacks its consumption."""
    random = np.random.default_rng(seed)
    brand = random.choice(list(BRANDS), rows)
    age = random.gamma(3.0, 2.2, rows).clip(0, 25)
    kilometres = age * random.normal(13_500, 4_000, rows).clip(2_000) + random.uniform(0, 9_000, rows)
    power = random.normal(110, 30, rows).clip(45, 320)
    litres = 3.2 + power / 38 + 0.06 * age + random.normal(0, 0.6, rows)
    worth = 24_000 * np.exp(-0.13 * age - kilometres / 420_000) * (power / 110) ** 0.8
    price = worth * np.vectorize(BRANDS.get)(brand) * random.lognormal(0, 0.18, rows)
    return pa.table(
        {
            "car": [f"C{number:05}" for number in range(1, rows + 1)],
            "brand": brand,
            "city": random.choice(CITIES, rows),
            "price": (price / 10 + 35).round().astype(np.int64) * 10,
            "kilometres": (kilometres / 100).round().astype(np.int64) * 100,
            "litres": pa.array(litres.clip(2.9).round(1), mask=random.random(rows) < 0.02),
        }
    )


def skytide(*arguments: str) -> None:
    """Run a command as the terminal would, and show what was typed."""
    print(f"\n$ skytide {' '.join(arguments)}", flush=True)
    try:
        app(list(arguments))
    except SystemExit as end:
        if end.code:
            raise


def show(table: pa.Table, rows: int) -> None:
    """The first rows, in columns."""
    lines = [line.split(",") for line in csv_bytes(table.slice(0, rows)).decode().splitlines()]
    widths = [max(len(line[at]) for line in lines) for at in range(table.num_columns)]
    for line in lines:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    if table.num_rows > rows:
        print(f"  ... and {table.num_rows - rows} more")


def main() -> None:
    """Make the data, run the commands, say where the results lie."""
    FOLDER.mkdir(exist_ok=True)
    data, best, picture = (str(FOLDER / name) for name in ("cars.csv", "best.csv", "best.png"))
    table = cars()
    write_table(data, table)
    print(f"{table.num_rows:,} used cars, made for this demo, are in {data}.")
    print("Which of them are worth a look, if price, kilometres and consumption count? Those that no other car beats")
    print("or equals in all three and beats in one.")
    preference = ["--min", "price", "--min", "kilometres", "--min", "litres", "--nulls", "drop"]
    skytide("skyline", data, *preference, "-o", best)
    found = pa.concat_tables(read_chunks(best))
    print(f"{found.num_rows} cars:")
    show(found.sort_by("price"), SHOWN)
    skytide(
        "skyline",
        data,
        "--min",
        "price",
        "--min",
        "kilometres",
        "--by",
        "brand",
        "--plot",
        picture,
        "-o",
        str(FOLDER / "brands.csv"),
    )
    print("The best offers of each brand by price and kilometres are drawn.")
    mid = table.filter((pc.field("price") > 5_000) & (pc.field("price") < 6_000) & pc.field("litres").is_valid())
    inside = set(found["car"].to_pylist())
    choice = next(car for car in mid["car"].to_pylist() if car not in inside)
    skytide("explain", data, *preference, "--id", "car", "--row", choice, "--limit", "3")
    print(f"\nResults: {data}, {best}, {FOLDER / 'brands.csv'}, and the picture {picture}")


if __name__ == "__main__":
    main()
