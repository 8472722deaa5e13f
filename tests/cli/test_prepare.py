"""`skytide prepare` as far as it goes without Spark: what it offers, and what it refuses before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import refused, run

NAMES = ["box-scores", "connections", "prices", "ratings", "weather"]


def test_the_list_names_all_pipelines_with_what_they_stand_for() -> None:
    done = run("prepare", "--list")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == NAMES
    assert all("'s " in line for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_help_says_what_goes_in_and_what_comes_out(name: str) -> None:
    text = run("prepare", name, "--help").stdout
    assert "In, the" in text and "Out:" in text and "--overwrite" in text and "time:" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["horoscopes", "in", "-o", "out"], "horoscopes"),
        (["prices", "nowhere.parquet", "-o", "out"], "nowhere.parquet"),
        (["prices", "empty", "-o", "out"], "no .parquet"),
        (["prices", "mixed", "-o", "out"], ".csv and .jsonl"),
        (["prices", "in.csv"], "--output"),
        (["prices", "in.csv", "-o", "no/such"], "make it first"),
        (["prices", "in.csv", "-o", "in.csv", "--overwrite"], "not a folder"),
        (["prices", "in.csv", "-o", "full"], "--overwrite"),
        (["prices", "in.csv", "-o", "full", "--overwrite"], "thesis.txt"),
        (["prices", "in.csv", "-o", "out", "--days", "many"], "many"),
        (["prices", "in.csv", "-o", "out", "--price", "high"], "high"),
        (["prices", "in.csv", "-o", "out", "--column", "close"], "NAME=VALUE"),
        (["prices", "in.csv", "-o", "out", "--files", "0"], "0"),
        (["weather", "in.csv", "-o", "out"], "--with stations=FILE"),
        (["weather", "in.csv", "-o", "out", "--with", "moons=in.csv"], "moons"),
        (["weather", "mixed", "-o", "out", "--with", "stations=in.csv"], "inmet_brazil_hourly"),
    ],
)
def test_what_cannot_work_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("skytide.spark.session.local_session", lambda **_: pytest.fail("Spark was started"))
    Path("in.csv").write_text("date,symbol,close\n1,A,2\n")
    for folder in ("empty", "full", "mixed"):
        Path(folder).mkdir()
    for file in ("full/thesis.txt", "mixed/a.csv", "mixed/b.jsonl", "empty/_hidden.csv"):
        Path(file).touch()
    assert words in refused("prepare", *arguments)
    assert Path("full/thesis.txt").exists() and not Path("out").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
