"""Pipelines on Spark from a file: `skytide run pipeline.toml`. docs/spark.md lists the keys.

- `Pipeline.load(path)`: the file, checked as far as that goes without Spark.
- `run(pipeline, say)`: the job, to its end or until a signal.
"""

from __future__ import annotations

from skytide.spark.pipeline.document import PipelineError
from skytide.spark.pipeline.faults import RunFailedError
from skytide.spark.pipeline.plan import Pipeline
from skytide.spark.pipeline.running import run

__all__ = ["Pipeline", "PipelineError", "RunFailedError", "run"]
