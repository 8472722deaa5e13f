"""`skytide.spark.fragments`: the changes of the skyline of objects whose values are averages over sites.

What `skytide fragments` gives, with the sites where their rows lie: see `sites`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skytide.errors import OptionError
from skytide.model import Booleans, Integers, MissingPolicy, Preference, Window
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import MOST
from skytide.protocols.fragmented.methods import coordinator_of
from skytide.spark.faults import need_pyspark
from skytide.spark.rounds.operator import Rounds, check_buckets
from skytide.spark.streaming.asked import check_ordered, common, inner_names
from skytide.spark.streaming.query import as_mask
from skytide.spark.streaming.snapshots.query import UpdateQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class FragmentQuery(UpdateQuery):
    """Local values of objects at sites, and functions of their averages; `preference` has the columns these use."""

    site: str
    minimize: tuple[str, ...]
    maximize: tuple[str, ...]

    @cached_property
    def functions(self) -> Functions:
        """The functions, over the user's names of columns; their columns are in the order of the preference's."""
        return Functions(self.minimize, self.maximize)

    def _keys(self, table: pa.Table, good: Booleans) -> Integers:
        self._sort_out(good, as_mask(table.column(self.site)), self.site, "the site is missing")
        return super()._keys(table, good)

    def _particular(self, names: dict[str, str]) -> dict[str, Any]:
        return {
            "kind": "fragments",
            "minimize": list(self.minimize),
            "maximize": list(self.maximize),
            "site": names[self.site],
            "method": self.method,
            "order": None if self.order is None else names[self.order],
        }


def fragments(
    updates: DataFrame,
    preference: Preference,
    *,
    site: str,
    time: str,
    id: str,
    method: str = "auto",
    order: str | None = None,
    nulls: MissingPolicy = "drop",
    lateness: float | int | str = 0,
    buckets: int = 8,
) -> Rounds:
    """The changes of the skyline of objects in fragments over sites, over a stream or a whole table.

    Each row is the new local vector of the object `id` at a `site` and a `time`. A site counts for an object from its
    first row on, until a row whose columns are all empty takes it out. The preference holds expressions over columns
    averaged over an object's sites, such as `norm(a, b)`, `var(v)` or `loss / sent`; they, the `method` and the changes
    are those of `skytide fragments`. All rows of one time are one instant. Rows have no order on Spark, so of several
    rows of an object at one site and time the last counts by the column `order`, if given, then by values, missing ones
    first.

    Sites are spread over `buckets`, which stay where the rows lie: there each row is checked against what its site was
    told to keep to, and only what leaves it travels to the driver. A time is over when a row later than it plus the
    `lateness` has been seen; a table's last one, too.

    ```python
    slow = Preference(minimize=["norm(delay, jitter)"], maximize=["var(load)"])
    watched = skytide.spark.fragments(updates, slow, site="probe", time="minute", id="host")
    query = skytide.spark.write(watched, ParquetSink("changes"), checkpoint="checkpoint")   # a stream
    outcome = watched.run()                                                                 # a table
    print(outcome.traffic.described())
    ```
    """
    need_pyspark()
    from skytide.spark.rounds.sites import FragmentRules

    check_buckets(buckets)
    functions = functions_of(preference, updates.columns)
    coordinator_of(method, functions)  # refuses what is no method
    plain = Preference(minimize=functions.columns)
    roles = {"site": site, "time": time, "id": id} | ({} if order is None else {"order": order})
    inner = inner_names(updates, plain, roles)
    length = Window(count=1, lateness=lateness)
    given: dict[str, Any] = common(
        updates, plain, length, inner, time=time, id=id, nulls=nulls, emit="changes", parts=1
    )
    for column, what in ((site, "sites"), *(() if order is None else ((order, "orders"),))):
        check_ordered(updates.schema[column].dataType, column, what)
    query = FragmentQuery(
        **given,
        op="set",
        order=None if order is None else inner[order],
        method=method,
        site=inner[site],
        minimize=functions.minimize,
        maximize=functions.maximize,
    )
    return Rounds(updates, FragmentRules(query, buckets))


def functions_of(preference: Preference, columns: list[str] | None = None) -> Functions:
    """The functions that a preference names; an error for one that cannot be read, or that no message has room for."""
    if preference.by:
        raise OptionError(
            "is a column to group by, which rounds over sites do not", value=preference.by[0], remedy="leave `by` out"
        )
    minimize, maximize = ([str(name) for name in role] for role in (preference.minimize, preference.maximize))
    functions = Functions(minimize, maximize, columns)
    if max(functions.d, functions.k) > MOST:
        raise OptionError(f"the functions use more than {MOST} columns and squares", remedy="leave some of them out")
    return functions
