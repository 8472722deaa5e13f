"""What `analyze` of the SQL function tells its instances. A module of its own, since its base class needs pyspark."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql.udtf import AnalyzeResult

from skytide.model import MissingPolicy, Preference


@dataclass
class Plan(AnalyzeResult):
    """The schema and the partitioning that Spark reads, and what is asked for, which goes to every instance."""

    preference: Preference = field(default_factory=lambda: Preference.columns(1))
    nulls: MissingPolicy = "error"
