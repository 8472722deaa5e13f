"""The best offers while they come and go: used cars of our own making, streamed through Spark.

`make demo` runs this: a pipeline file, a Spark job on this machine over a stream of files, the changes of the answer,
the answer as it stands at the end, a picture of it, and why one car is not in it. It takes about a minute. Everything
it writes lies in the folder demo-output/ of the current directory.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skytide.cli import app
from skytide.spark import CurrentTable
from skytide.streams.files import csv_bytes, write_table

ROWS = 20_000
FILES = 6
SHOWN = 8
BRANDS = {"Alba": 1.00, "Borea": 1.35, "Cirro": 0.80, "Delta": 1.15}
"""What a brand adds to the price."""
CITIES = ("Bergen", "Lyon", "Porto", "Turin")
FOLDER = Path("demo-output")
START = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
PIPELINE = """\
[source]                         # a folder of files as a stream: two of them in each micro-batch
format = "parquet"
path = "offers/"
stream = true
schema = "offer STRING, posted TIMESTAMP, brand STRING, city STRING, price BIGINT, kilometres BIGINT, litres DOUBLE"
options = { maxFilesPerTrigger = 2 }

[prepare]
sql = "SELECT *, round(litres * 235.2 / 100, 2) AS fuel_cost FROM input WHERE price > 0"

[query]                          # the offers of the last day that no other offer of the brand beats
kind = "window"
min = ["price", "kilometres", "fuel_cost"]
by = ["brand"]
id = "offer"
time = "posted"
duration = "1d"
lateness = "15m"

[sink]
format = "parquet"
path = "changes/"
dead_letters = "dead-letters/"   # offers that lack a value or come too late
current = "current/"

[run]
master = "local[2]"
trigger = "once"
checkpoint = "checkpoint/"
"""


def offers(rows: int = ROWS, seed: int = 7) -> pa.Table:
    """Used cars offered over five days, some posted a little out of order.

    Younger and less driven ones cost more, thirsty ones less; one in fifty lacks its consumption.
    """
    random = np.random.default_rng(seed)
    brand = random.choice(list(BRANDS), rows)
    age = random.gamma(3.0, 2.2, rows).clip(0, 25)
    kilometres = age * random.normal(13_500, 4_000, rows).clip(2_000) + random.uniform(0, 9_000, rows)
    power = random.normal(110, 30, rows).clip(45, 320)
    litres = 3.2 + power / 38 + 0.06 * age + random.normal(0, 0.6, rows)
    worth = 24_000 * np.exp(-0.13 * age - kilometres / 420_000) * (power / 110) ** 0.8
    price = worth * np.vectorize(BRANDS.get)(brand) * random.lognormal(0, 0.18, rows)
    seconds = np.sort(random.uniform(0, 5 * 86_400, rows)) - random.uniform(0, 600, rows)
    return pa.table(
        {
            "offer": [f"C{number:05}" for number in range(1, rows + 1)],
            "posted": pa.array([START + dt.timedelta(seconds=int(one)) for one in seconds], pa.timestamp("us", "UTC")),
            "brand": brand,
            "city": random.choice(CITIES, rows),
            "price": (price / 10 + 35).round().astype(np.int64) * 10,
            "kilometres": (kilometres / 100).round().astype(np.int64) * 100,
            "litres": pa.array(litres.clip(2.9).round(1), mask=random.random(rows) < 0.02),
        }
    )


def write_stream(table: pa.Table, folder: Path) -> None:
    """The offers as files that come one after the other; Spark takes files in the order of their times."""
    folder.mkdir()
    size = -(-table.num_rows // FILES)
    for number in range(FILES):
        file = folder / f"{number:03}.parquet"
        pq.write_table(table.slice(number * size, size), file)
        os.utime(file, (START.timestamp() + number,) * 2)


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
    """Make the data, run the job, say what came out and where it lies."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    table = offers()
    write_stream(table, FOLDER / "offers")
    pipeline = FOLDER / "offers.toml"
    pipeline.write_text(PIPELINE, encoding="utf-8")
    print(f"{table.num_rows:,} offers of used cars, made for this demo, are in {FOLDER / 'offers'}, as {FILES} files.")
    print("Which of the last day's offers are worth a look, if price, kilometres and fuel count? Those that no other")
    print(f"offer of the brand beats. The pipeline that keeps the answer current is {pipeline}:")
    skytide("run", str(pipeline))
    changes = pq.read_table(FOLDER / "changes")
    print(f"\n{changes.num_rows:,} changes of the answer, in order. The last of them:")
    last = changes.slice(changes.num_rows - SHOWN)
    show(last.select(["time", "change", "id", "brand", "price", "kilometres", "fuel_cost"]), SHOWN)
    current = CurrentTable(str(FOLDER / "current")).read()
    assert current is not None
    answer = current[1].drop_columns(["time"])
    print(f"\nThe answer as it stands: {answer.num_rows} offers. The cheapest:")
    show(answer.sort_by("price").drop_columns(["offer", "litres"]), SHOWN)
    write_table(str(FOLDER / "answer.csv"), answer)
    preference = ["--min", "price", "--min", "kilometres", "--by", "brand"]
    picture, best = str(FOLDER / "answer.png"), str(FOLDER / "best.csv")
    skytide("skyline", str(FOLDER / "answer.csv"), *preference, "--plot", picture, "-o", best)
    lasting = table.filter(pc.field("posted") > pc.max(table["posted"]).as_py() - dt.timedelta(hours=20))
    write_table(str(FOLDER / "lasting.csv"), lasting.filter(pc.field("litres").is_valid()))
    outside = lasting.filter(~pc.field("offer").isin(answer["id"].to_pylist()) & (pc.field("price") > 5_000))
    row = outside["offer"][0].as_py()
    skytide("explain", str(FOLDER / "lasting.csv"), *preference, "--id", "offer", "--row", row, "--limit", "3")
    print(f"\nResults: the changes in {FOLDER / 'changes'}, left-out offers in {FOLDER / 'dead-letters'},")
    print(f"the answer in {FOLDER / 'answer.csv'}, and the picture {picture}")


if __name__ == "__main__":
    main()
