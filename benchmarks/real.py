"""Where the real data of the benchmarks lies, which the repository has not; docs/benchmarks.md says what it is."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("SKYTIDE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
"""A folder of Parquet files: SKYTIDE_DATA, or one beside the checkout. What has no files is left out, and says so."""
