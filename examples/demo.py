"""The flights that no other beats, while they take off: a live page over a Spark stream. `make demo` runs this.

Two weeks of flights from New York's airports appear as small files, in the order in which they took off. A Spark job on
this machine keeps the answer current: of the last day's flights of each airport, those of which no other was at least
as punctual, as quick and as far, and better in one of these. A page shows the answer as it moves.

It takes about a minute, once everything is installed. Then demo-output/ holds the changes, the answer, a picture of it,
and a report: the page with all that it showed, in one file.
"""

from __future__ import annotations

import argparse
import shutil
import threading
import time
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from flights import Departures, flights

from skytide.cli._picture import draw_board
from skytide.dashboard import Board, Page, write_report
from skytide.dashboard.pipeline import PipelineFollower
from skytide.dashboard.values import moment_text
from skytide.spark import CurrentTable
from skytide.spark.pipeline import Pipeline, run
from skytide.spark.pipeline.reports import read_report
from skytide.streams.files import csv_bytes, write_table

FOLDER = Path("demo-output")
SHOWN = 6
QUIET_SECONDS = 2.0
"""So long after the last file was read the answer is taken to have settled."""
PIPELINE = """\
[source]                         # a folder in which files appear, each whole
format = "parquet"
path = "flights/"
stream = true
schema = '''flight STRING, scheduled TIMESTAMP, origin STRING, dest STRING, carrier STRING,
            dep_delay DOUBLE, arr_delay DOUBLE, air_time DOUBLE, distance DOUBLE'''
options = { maxFilesPerTrigger = 8 }

[prepare]
sql = "SELECT *, dep_delay + arr_delay AS delay FROM input"

[query]                          # of the last day's flights of each airport, those that no other beats
kind = "window"
min = ["delay", "air_time"]
max = ["distance"]
by = ["origin"]
id = "flight"
time = "scheduled"
duration = "1d"
lateness = "2h"                  # a flight is known when it takes off: that much later than scheduled, at most

[sink]
format = "parquet"
path = "changes/"
current = "current/"
dead_letters = "dead-letters/"   # flights that were cancelled, and those that took off too late

[run]
name = "Flights from New York"
master = "local[2]"
trigger = "1s"
checkpoint = "checkpoint/"
"""


def show(table: pa.Table, rows: int) -> None:
    """The first rows, in columns."""
    lines = [line.split(",") for line in csv_bytes(table.slice(0, rows)).decode().splitlines()]
    widths = [max(len(line[at]) for line in lines) for at in range(table.num_columns)]
    for line in lines:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    if table.num_rows > rows:
        print(f"  ... and {table.num_rows - rows} more")


def stream(pipeline: Pipeline, departures: Departures, rows: int) -> None:
    """Run the job; flights take off when it is ready, and it ends when it has read all of them."""
    settled = [0.0]

    def enough() -> bool:
        departures.go.set()
        report = read_report(pipeline.run.checkpoint)
        if report is not None and report.batches:
            departures.warm.set()
        if not departures.done.is_set() or report is None or report.totals["rows"] < rows:
            settled[0] = time.monotonic()
        return time.monotonic() - settled[0] > QUIET_SECONDS

    status = run(pipeline, lambda line: print(f"  {line}", flush=True), enough=enough)
    if status:
        raise SystemExit(status)


def summary(board: Board, answer: pa.Table, seconds: float, rows: int) -> None:
    """What happened, in a few lines."""
    state = board.state()
    print(f"\n{rows:,} flights in {seconds:.0f} s ({rows / seconds:,.0f} a second, as they were paced)")
    print(f"{state['meters']['changes']:,} changes of the answer, the last at {moment_text(state['time'], 'time')} UTC")
    print(f"\nThe answer as it stands: {answer.num_rows} flights. The most punctual:")
    show(answer.sort_by("delay").select(["id", "dest", "delay", "air_time", "distance", "origin"]), SHOWN)
    _, longest, _, begin, end = max(board.stays(most=1), key=lambda stay: (stay[4] or state["time"]) - stay[3])
    hours = ((end or state["time"]) - begin) / 3_600_000
    print(f"\nLongest in it: {longest}, {hours:.1f} hours from {moment_text(begin, 'time')} on")
    print(f"Not in it: {why_not(board)}")


def why_not(board: Board) -> str:
    """Why one of the flights is not in the answer."""
    outside: list[list[Any]] = board.rest(most=50)["rows"]
    found = board.explain(outside[-1][0])
    ways = "; ".join(found["ways"][:2])
    return f"{found['id']}. {found['summary']}" + (f" It would be with {ways}." if ways else "")


def main() -> None:
    """Make the data, run the job under the eyes of a page, say what came out and where it lies."""
    parser = argparse.ArgumentParser(prog="make demo", description="A live page over a Spark stream of flights.")
    parser.add_argument("--days", type=int, default=14, help="days of 2013, up to 365")
    parser.add_argument("--seconds", type=float, default=25.0, help="how long it takes them to take off")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument("--stay", action="store_true", help="serve the page until Ctrl-C")
    asked = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "flights").mkdir(parents=True)
    file = FOLDER / "flights.toml"
    file.write_text(PIPELINE, encoding="utf-8")
    pipeline = Pipeline.load(file)
    follower = PipelineFollower(pipeline, fresh=True)
    with Page(follower.board, search=True) as page:
        print(f"Watch it at {page.url}", flush=True)
        if asked.open:
            webbrowser.open(page.url)
        table = flights(asked.days)
        print(
            f"{table.num_rows:,} flights, all of the first {asked.days} days of 2013 from New York's airports, take off"
        )
        print(
            f"within {asked.seconds:.0f} seconds. Before, Spark gets warm, which takes longest the first time: kernels"
        )
        print(f"are compiled then. The pipeline is {file}.\n", flush=True)
        departures = Departures(table, FOLDER / "flights", asked.seconds, follower)
        departures.start()
        began = time.monotonic()
        with follower:
            stream(pipeline, departures, table.num_rows)
        follower.close()
        finish(follower.board, time.monotonic() - began, table.num_rows)
        if asked.stay:
            print(f"\nThe page is still at {page.url}, until Ctrl-C.", flush=True)
            with suppress(KeyboardInterrupt):
                threading.Event().wait()


def finish(board: Board, seconds: float, rows: int) -> None:
    """Keep the answer in files, and say where."""
    current = CurrentTable(str(FOLDER / "current")).read()
    assert current is not None, "the job has written it"
    answer = current[1]
    summary(board, answer, seconds, rows)
    write_table(str(FOLDER / "answer.csv"), answer)
    draw_board(board, str(FOLDER / "answer.png"))
    write_report(board, FOLDER / "report.html")
    print(f"\nThe changes are in {FOLDER / 'changes'}, flights that were left out in {FOLDER / 'dead-letters'},")
    print(
        f"the answer in {FOLDER / 'answer.csv'}, its picture in {FOLDER / 'answer.png'}, and all that the page showed"
    )
    print(f"in {FOLDER / 'report.html'}: open it in a browser.")


if __name__ == "__main__":
    main()
