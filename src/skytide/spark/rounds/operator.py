"""`skytide.spark.monitor`: the changes of the skyline of clients of whom the driver hears only what matters.

A stream is run by `write`, a table by `run`: both are several jobs for each run of timestamps, so what `monitor` gives
is not a DataFrame.
"""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skytide.errors import OptionError, SkytideError
from skytide.model import MissingPolicy, Preference, Window
from skytide.monitors.frequent.pairs import Pair, Theta
from skytide.spark.faults import need_pyspark
from skytide.spark.rounds.batch import Outcome, SparkGround, run_batch
from skytide.spark.rounds.known import last_record
from skytide.spark.rounds.protocol import Rules
from skytide.spark.rounds.record import FOLDER, Record, Records, checked
from skytide.spark.rounds.traffic import Traffic
from skytide.spark.shipping import needs_shipping
from skytide.spark.sinks.storage import open_folder
from skytide.spark.streaming.asked import check_ordered, common, inner_names
from skytide.spark.streaming.watermark import address
from skytide.spark.streaming.write import Current, check_fresh, deliver, start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from skytide.spark.sinks import Sink


def monitor(
    moves: DataFrame,
    preference: Preference,
    *,
    time: str,
    id: str,
    method: str = "auto",
    theta: Theta | None = None,
    over: int | None = None,
    epsilon: float = 0.2,
    delta: float = 0.1,
    seed: int = 1,
    order: str | None = None,
    nulls: MissingPolicy = "drop",
    lateness: float | int | str = 0,
    buckets: int = 8,
) -> Rounds:
    """The changes of the skyline of clients that say as little as the method allows, over a stream or a whole table.

    Each row is the new point of the client `id` at a `time`; each distinct time is a timestamp; a row whose preference
    columns are all empty takes the client away. With `theta` and `over` the changes are those of who was in the skyline
    in at least that share of the last so many timestamps. `method`, `epsilon`, `delta` and `seed` are those of `skytide
    monitor`, and so are the changes. Rows have no order on Spark, so of several rows of a client at one time the last
    counts by the column `order`, if given, then by values and groups, missing ones first.

    Clients are spread over `buckets`, which stay where the rows lie: there filters are checked, and only what breaks
    them, and answers to the server's questions, travel to the driver. A timestamp is over when a row later than it plus
    the `lateness` has been seen; a table's last one, too.

    ```python
    watched = skytide.spark.monitor(moves, Preference(maximize=["heat", "dust"]), time="minute", id="sensor")
    query = skytide.spark.write(watched, ParquetSink("changes"), checkpoint="checkpoint")   # a stream
    outcome = watched.run()                                                                 # a table
    print(outcome.traffic.described())
    ```
    """
    need_pyspark()
    from skytide.spark.rounds.filtering import FilteringRules
    from skytide.spark.rounds.query import MonitorQuery

    if (theta is None) != (over is None):
        raise OptionError("theta and over go together", remedy="give both, or neither")
    check_buckets(buckets)
    roles = {"time": time, "id": id} | ({} if order is None else {"order": order})
    inner = inner_names(moves, preference, roles)
    length = Window(count=1, lateness=lateness)
    given: dict[str, Any] = common(
        moves, preference, length, inner, time=time, id=id, nulls=nulls, emit="changes", parts=1
    )
    if order is not None:
        check_ordered(moves.schema[order].dataType, order, "orders")
    query = MonitorQuery(
        **given,
        op="set",
        order=None if order is None else inner[order],
        method=method,
        frequent=None if theta is None or over is None else Pair.of(theta, over),
        epsilon=epsilon,
        delta=delta,
        seed=seed,
    )
    query.made()  # refuses what no method takes
    return Rounds(moves, FilteringRules(query, buckets))


def check_buckets(buckets: int) -> None:
    """An error where it is not a number of buckets."""
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= 10_000:
        raise OptionError("is not a number of buckets", value=buckets, remedy="give 1 to 10000")


@dataclass(frozen=True)
class Rounds:
    """A protocol over rows that has not run yet: `run` it over a table, or `write` what it gives over a stream."""

    rows: DataFrame
    rules: Rules

    @property
    def isStreaming(self) -> bool:  # noqa: N802
        """Whether the rows are a stream, by the name that Spark has for it."""
        return self.rows.isStreaming

    def run(self, *, folder: str | None = None, letters: bool = True) -> Outcome:
        """Run it over a table to its end; some jobs for each timestamp at which anybody speaks.

        What the clients know between two jobs lies in `folder`, which all machines must see; on one machine it is a
        temporary one unless given. Without `letters` rows that are not taken are only counted.
        """
        if self.rows.isStreaming:
            raise OptionError("a stream has no end", remedy="write it with skytide.spark.write")
        ground, new = SparkGround(self.rows, self.rules.query), Record(_fingerprint(self.rules))
        with contextlib.ExitStack() as stack:
            if folder is None:
                _check_near(self.rows)
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="skytide-"))
            place = f"{address(folder)}/{FOLDER}-{uuid.uuid4().hex}"
            try:
                return run_batch(ground, self.rules, place, new, 0, whole=True, letters=letters)[0]
            finally:
                with contextlib.suppress(SkytideError):
                    open_folder(place).remove()

    def write(
        self,
        sink: Sink | None = None,
        *,
        checkpoint: str,
        dead_letters: Sink | None = None,
        current: Current | None = None,
        trigger: str | None = None,
        name: str | None = None,
    ) -> StreamingQuery:
        """Start to write what a stream changes: see `skytide.spark.write`. `traffic` says what went to the driver."""
        if not self.rows.isStreaming:
            raise OptionError("a table is not a stream", remedy="use run()")
        targets = {"sink": sink, "dead_letters": dead_letters, "current": current}
        check_fresh(checkpoint, {role: target for role, target in targets.items() if target is not None})
        rules, folder = self.rules, f"{address(checkpoint)}/{FOLDER}"

        def batch_runner(rows: DataFrame, number: int) -> None:
            records = Records(folder)
            before = checked(records.last(), number, _fingerprint(rules))
            if before.batch == number:
                return  # done, results and all; only Spark has not heard of it
            ground, wanted = SparkGround(rows, rules.query), dead_letters is not None
            found, after = run_batch(ground, rules, folder, before, number, whole=False, letters=wanted)
            deliver(number, found.changes, found.letters, sink, dead_letters, current, ())
            records.commit(after)

        return start(self.rows.writeStream.foreachBatch(batch_runner), checkpoint, trigger, name)


def _fingerprint(rules: Rules) -> dict[str, Any]:
    return {**rules.query.fingerprint, "buckets": rules.buckets}


def _check_near(rows: DataFrame) -> None:
    spark = rows.sparkSession
    near = not type(spark).__module__.startswith("pyspark.sql.connect")
    if not near or needs_shipping(spark.conf.get("spark.master") or ""):
        raise OptionError(
            "on several machines the clients' state needs a place that all of them see", remedy="give a folder"
        )


def traffic(checkpoint: str) -> Traffic:
    """What went to the driver and back since a stream began, up to its last micro-batch. O(size of the server's state).

    ```python
    print(skytide.spark.traffic("checkpoint").described())      # 5310 of 2000000 rows (0.4 MB of 88.0 MB) to the driver
    ```
    """
    record = last_record(checkpoint)
    return Traffic() if record is None else record.total
