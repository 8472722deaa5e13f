"""A few strong rows of a DataFrame as a filter that Spark applies by itself, before a row goes to Python.

The kernel's own pass with strong rows (`kernel.batch_filter`) costs nothing to speak of; what costs is the way of every
row from the JVM to Python. An anti-join with a few broadcast rows is compiled into the scan and drops most rows there.
It is right only while the strong rows are among those that are scanned later. So it is used for stable sources, and
every strong row is also a claim that the merge checks: some row is at least as good. A claim that fails is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skytide.errors import SkytideError
from skytide.model import MissingPolicy, Preference
from skytide.tables import EXACT, oriented

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE = 20_000
"""So many of the first rows are looked at."""
LEAST_SAMPLE = SAMPLE
"""A table with fewer rows is small enough as it is."""
CANDIDATES = 64
STRONG = 12
"""At most so many strong rows of so many candidates."""
LEAST_GAIN = 0.01
LEAST_SHARE = 0.25
"""Each strong row drops at least this share of what those before it leave, and all together at least that share."""
_DECIMAL_DIGITS = 15
"""Decimals of so many digits are exact in float64."""

Claims = tuple[tuple[float, ...], ...]


def filtered(df: DataFrame, preference: Preference, nulls: MissingPolicy) -> tuple[DataFrame, Claims]:
    """The rows that a few strong ones of the first rows do not dominate, and the oriented values of the strong ones.

    The columns have plain names that need no quotes. Runs a small job. The DataFrame comes back as it was, without
    claims, where a filter would not pay: columns of types that are not always exact in float64, few rows, or a sample
    that shows no strong ones. A row with a value that the tasks will complain about passes the filter.
    """
    names = [str(name) for name in preference.names]
    kinds = {field.name: field.dataType for field in df.schema}
    if not all(_is_exact(kinds[name]) for name in names):
        return df, ()
    sample = df.select(*names).limit(SAMPLE).toArrow()
    try:
        found = oriented(sample, preference, "drop")
    except SkytideError:
        return df, ()  # the tasks say the same, with the names that the user knows
    if sample.num_rows < LEAST_SAMPLE or not len(found.values):
        return df, ()
    from skytide.kernel.batch_filter import choose_strong

    chosen, share, _ = choose_strong(found.values, CANDIDATES, STRONG, LEAST_GAIN)
    if not len(chosen) or share < LEAST_SHARE:
        return df, ()
    strong = sample.take(pa.array(chosen if found.rows is None else found.rows[chosen]))
    claims = oriented(strong, preference, nulls).values
    return _without_dominated(df, strong, preference), tuple(map(tuple, claims.tolist()))


def _is_exact(kind: Any) -> bool:
    from pyspark.sql import types

    plain = (types.FloatType, types.DoubleType, types.IntegralType, types.BooleanType, types.DateType)
    return isinstance(kind, plain) or (isinstance(kind, types.DecimalType) and kind.precision <= _DECIMAL_DIGITS)


def _without_dominated(df: DataFrame, strong: pa.Table, preference: Preference) -> DataFrame:
    """An anti-join with the strong rows.

    As constants in a condition they made a method too long for the JVM to compile, and cost more than they saved.
    """
    from pyspark.sql import functions

    rivals = {str(name): f"s{position}" for position, name in enumerate(preference.names)}
    pairs = [(rivals[str(name)], str(name)) for name in preference.minimize]
    pairs += [(str(name), rivals[str(name)]) for name in preference.maximize]
    weakly = " AND ".join(f"{better} <= {worse}" for better, worse in pairs)
    somewhere = " OR ".join(f"{better} < {worse}" for better, worse in pairs)
    condition = f"{weakly} AND ({somewhere}) AND {_is_sound(df, preference)}"
    few = df.sparkSession.createDataFrame(strong.rename_columns(list(rivals.values())))
    # A condition that is NULL, where a value is missing, matches nothing: the row stays.
    return df.join(functions.broadcast(few), functions.expr(condition), "left_anti")


def _is_sound(df: DataFrame, preference: Preference) -> str:
    """Whether no value of a row is a reason to complain."""
    from pyspark.sql import types

    kinds = {field.name: field.dataType for field in df.schema}
    sound = ["TRUE"]
    for name in map(str, preference.names):
        if isinstance(kinds[name], types.FloatType | types.DoubleType):
            sound.append(f"NOT isnan({name})")
        elif isinstance(kinds[name], types.LongType):
            sound.append(f"{name} BETWEEN -{EXACT}L AND {EXACT}L")
    return f"({' AND '.join(sound)})"
