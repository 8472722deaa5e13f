"""Skylines in Spark SQL: a table function that any session can have.

```sql
SELECT * FROM skyline(TABLE(cars), 'price min', 'mpg max', 'brand by', 'nulls drop')
```

It is a Python table function whose `analyze` reads the arguments, checks them against the table, gives the table's own
schema back and says how Spark must bring the rows together, without which a table function would run once for each
partition and answer for each alone. Without `by` columns one instance gets all rows. With them rows are spread by a
hash of their groups, many groups to an instance: a partition for each group would cost a call for each group, and
pyspark tells partitions apart by Python's `!=`, which calls every NaN a partition of its own.

Rows come as Arrow batches. pyspark takes one by one what its decorator `udtf` makes, at a seventh of the speed, and its
decorator `arrow_udtf` refuses a function with `analyze`, though the worker and the planner know what to do with it; so
the kind of the function is set here. `skytide.spark.skyline` prunes in parallel first and is the faster way.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from skytide.errors import InputError, OptionError, SkytideError
from skytide.model import MissingPolicy, Preference, check_missing_policy
from skytide.spark.columns import resolve
from skytide.spark.faults import need_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType
    from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

BUCKETS = 256
"""Groups are spread over so many instances of the function."""
_FORM = "write 'COLUMN min', 'COLUMN max', 'COLUMN by' or 'nulls error|drop|worst'"


def register(spark: SparkSession, name: str = "skyline") -> None:
    """Give a session the SQL table function `skyline`, or of another name. It stays until the session ends.

    ```python
    skytide.spark.register(spark)
    spark.sql("SELECT * FROM skyline(TABLE(cars), 'price min', 'mpg max')")
    ```

    All columns of the table are kept. A complaint about the arguments comes with `sql`, one about the data with the
    action, both as one clear line inside `skytide.spark.plain_errors()`.
    """
    need_pyspark()
    from pyspark.util import PythonEvalType

    home = "pyspark.sql.connect" if type(spark).__module__.startswith("pyspark.sql.connect") else "pyspark.sql"
    function = importlib.import_module(f"{home}.functions").udtf(SkylineFunction, useArrow=False)
    function.evalType = PythonEvalType.SQL_ARROW_UDTF
    spark.udtf.register(name, function)


class SkylineFunction:
    """The table function: `analyze` once for a query, then an instance for all rows or for some groups."""

    def __init__(self, plan: Any) -> None:
        from skytide.spark.batch_tasks import Survivors

        self._schema = plan.schema
        self._survivors = Survivors(plan.preference, plan.nulls)

    @staticmethod
    def analyze(*arguments: AnalyzeArgument) -> AnalyzeResult:
        """The schema of the answer and how the rows are to come together; errors for arguments that do not fit."""
        schema = _table(arguments)
        asked = read_arguments([_text(argument) for argument in arguments[1:]], schema.fieldNames())
        view = _View(schema)
        preference = resolve(cast("DataFrame", view), asked.preference)
        _check_types(schema)
        return _plan(schema, preference, asked.nulls)

    def eval(self, rows: pa.RecordBatch, *_: Any) -> None:
        """Let a batch of rows compete."""
        self._guarded(lambda: self._survivors.add(rows))

    def terminate(self) -> Iterator[pa.Table]:
        """The rows that are left."""
        survivors = self._guarded(self._survivors.table)
        if survivors is not None:
            yield _as_promised(survivors, self._schema)

    @staticmethod
    def _guarded(work: Any) -> Any:
        try:
            return work()
        except SkytideError as problem:
            problem.row = None  # rows of a table have no numbers; this one would be counted within a run
            raise


def _as_promised(rows: pa.Table, schema: StructType) -> pa.Table:
    """The rows in the very Arrow schema that pyspark makes of this one: what it converts itself may be missing."""
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(schema, timezone="UTC", prefers_large_types="large_" in str(rows.schema))
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(rows.columns, wanted, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


# -- what is asked for -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """The arguments as one preference and one policy."""

    preference: Preference
    nulls: MissingPolicy


def read_arguments(texts: Sequence[str], columns: Sequence[str]) -> Asked:
    """What the arguments ask for; columns are found as SQL finds them, whatever the case where that is clear.

    >>> read_arguments(["Price min", "`top speed` MAX", "brand by", "nulls drop"], ["price", "top speed", "brand"])
    Asked(preference=Preference(minimize=('price',), maximize=('top speed',), by=('brand',)), nulls='drop')
    """
    roles: dict[str, list[str]] = {"min": [], "max": [], "by": []}
    nulls: MissingPolicy | None = None
    for text in texts:
        name, _, word = text.strip().rpartition(" ")
        name = name.strip()
        if word.lower() in roles and name:
            roles[word.lower()].append(_found(name, columns))
        elif name.lower() == "nulls":
            if nulls is not None:
                raise OptionError("is a second policy for missing values", value=text, remedy="give one")
            nulls = check_missing_policy(word.lower())
        else:
            raise OptionError("is not an argument of a skyline", value=text, remedy=_FORM)
    return Asked(Preference(roles["min"], roles["max"], roles["by"]), nulls or "error")


def _found(name: str, columns: Sequence[str]) -> str:
    if name not in columns and len(name) > 1 and name[0] == name[-1] == "`":
        name = name[1:-1].replace("``", "`")
    if name in columns:
        return name
    alike = {known for known in columns if known.lower() == name.lower()}
    return alike.pop() if len(alike) == 1 else name


def _table(arguments: Sequence[AnalyzeArgument]) -> StructType:
    tables = [argument for argument in arguments if argument.isTable]
    if len(tables) != 1 or not arguments[0].isTable:
        raise OptionError(
            "a skyline is of one table, the first argument", remedy="write skyline(TABLE(name), 'COLUMN min', ...)"
        )
    return cast("StructType", tables[0].dataType)


def _text(argument: AnalyzeArgument) -> str:
    if not isinstance(argument.value, str):
        if not argument.isConstantExpression:
            raise OptionError("an argument is not constant", remedy=_FORM)
        raise OptionError("is not text", value=argument.value if argument.value is not None else "NULL", remedy=_FORM)
    return argument.value


@dataclass(frozen=True)
class _View:
    """As much of a DataFrame as the look-up of columns needs."""

    schema: StructType
    isStreaming: bool = False  # noqa: N815 (the name that DataFrames give it)

    @property
    def columns(self) -> list[str]:
        return self.schema.fieldNames()


def _check_types(schema: StructType) -> None:
    from pyspark.sql.pandas.types import to_arrow_type

    for field in schema:
        try:
            to_arrow_type(field.dataType, timezone="UTC")
        except TypeError:
            raise InputError(
                f"the column holds {field.dataType.simpleString()}, which does not pass through Python",
                column=field.name,
                remedy="leave it out, as in skyline(TABLE(SELECT ... FROM name), ...)",
            ) from None


def _plan(schema: StructType, preference: Preference, nulls: MissingPolicy) -> AnalyzeResult:
    from pyspark.sql.udtf import PartitioningColumn

    from skytide.spark.sql_plan import Plan

    plan = Plan(schema=schema, preference=preference, nulls=nulls)
    if preference.by:
        groups = ", ".join("`" + str(name).replace("`", "``") + "`" for name in preference.by)
        plan.partitionBy = [PartitioningColumn(f"pmod(hash({groups}), {BUCKETS})")]
    else:
        plan.withSinglePartition = True
    return plan
