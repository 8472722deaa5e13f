"""`skytide skyline --engine spark`: the same rows in the same order as without it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import refused, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("policy", ["drop", "worst"])
@pytest.mark.parametrize("groups", [[], ["--by", "g"]])
def test_spark_gives_the_same_rows_in_the_same_order(
    spark: SparkSession, tmp_path: Path, policy: str, groups: list[str]
) -> None:
    rows = [f"{place % 7},{place * 5 % 11},{'' if place % 3 else 'g'},{place:03}" for place in range(200)]
    (tmp_path / "in.csv").write_text("a.b,row,g,id\n" + "\n".join(rows) + "\n,99,g,x\n")
    options = ["skyline", str(tmp_path / "in.csv"), "--min", "a.b", "--max", "row", *groups, "--nulls", policy]
    here, there = run(*options), run(*options, "--engine", "spark")
    assert here.stdout.count("\n") > 2
    assert (there.exit_code, there.stdout) == (0, here.stdout)


def test_bad_values_are_named_before_spark_sees_them(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a\n1\n\n")
    line = refused("skyline", tmp_path / "in.csv", "--min", "a", "--engine", "spark", "-o", tmp_path / "out.csv")
    assert "row 2" in line and "'a'" in line
    assert not (tmp_path / "out.csv").exists()
