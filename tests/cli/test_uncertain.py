"""`skytide uncertain` against the reference, and what it says to bad input."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import skytide.cli.uncertain
from skytide.reference.uncertain import consecutive, most_probable, probability, single, uncertain_changes
from tests.cli.command import refused, rows_of, run

HEADER = "at,offer,price,days,trust\n"
ROWS = ["1,a,30,4,0.9", "2,b,20,3,0.5", "4,c,25,7,1", "9,d,40,3,0.2"]
PLAIN = ["--min", "price", "--min", "days", "--id", "offer", "--prob", "trust"]
TIMED = ["--time", "at", "--duration", "5"]


@pytest.fixture
def offers(tmp_path: Path) -> Path:
    path = tmp_path / "offers.csv"
    path.write_text(HEADER + "\n".join(ROWS) + "\n")
    return path


def lines(result: Any, header: str = "time,change,id,threshold") -> list[str]:
    assert result.exit_code == 0, result.stderr
    first, *rest = result.stdout.splitlines()
    assert first == header
    return list(rest)


EXPECTED = ["1,+,a,0.4", "1,+,a,0.6", "2,-,a,0.6", "2,+,b,0.4", "4,+,c,0.4", "6,-,a,0.4", "7,-,b,0.4", "7,+,c,0.6"]
EXPECTED += ["9,-,c,0.4", "9,-,c,0.6"]


def test_changes_carry_their_threshold_and_the_last_instant_is_closed(offers: Path) -> None:
    both = ["--threshold", "0.6", "--threshold", "0.4"]
    assert lines(run("uncertain", offers, *PLAIN, *TIMED, *both)) == EXPECTED
    assert lines(run("uncertain", offers, *PLAIN, *TIMED, *both, "--until", "20")) == EXPECTED
    alone = lines(run("uncertain", offers, *PLAIN, *TIMED, "--threshold", "0.4"))
    assert alone == [line for line in EXPECTED if line.endswith("0.4")]


def test_the_final_answer_is_ranked(offers: Path) -> None:
    found = lines(run("uncertain", offers, *PLAIN, "--count", "4", "--threshold", "0.1", "--final"), "id,probability")
    assert [line.split(",")[0] for line in found] == ["b", "c", "a", "d"]
    assert [float(line.split(",")[1]) for line in found] == pytest.approx([0.5, 0.5, 0.45, 0.1])
    top = ["--count", "4", "--threshold", "0.1", "--final", "--top", "1"]
    assert [row["id"] for row in rows_of(run("uncertain", offers, *PLAIN, *top).stdout)] == ["b", "c"]
    ended = lines(
        run("uncertain", offers, *PLAIN, *TIMED, "--threshold", "0.1", "--final", "--until", "14"), "id,probability"
    )
    assert ended == []


def test_other_formats_give_the_same(offers: Path, tmp_path: Path) -> None:
    options = [*PLAIN, *TIMED, "--threshold", "0.6", "--threshold", "0.4"]
    assert lines(run("uncertain", "-", *options, stdin=offers.read_bytes())) == EXPECTED
    columns = list(zip(*(row.split(",") for row in ROWS), strict=True))
    table = pa.table(
        {
            "at": [int(one) for one in columns[0]],
            "offer": list(columns[1]),
            "price": [int(one) for one in columns[2]],
            "days": [int(one) for one in columns[3]],
            "trust": [float(one) for one in columns[4]],
        }
    )
    pq.write_table(table, tmp_path / "offers.parquet")
    assert lines(run("uncertain", tmp_path / "offers.parquet", *options)) == EXPECTED
    assert run("uncertain", offers, *options, "-o", tmp_path / "changes.jsonl").exit_code == 0
    found = [json.loads(line) for line in (tmp_path / "changes.jsonl").read_text().splitlines()]
    assert [f"{one['time']},{one['change']},{one['id']},{one['threshold']}" for one in found] == EXPECTED


CELLS = st.integers(0, 3)
LINES = st.lists(
    st.tuples(st.integers(0, 9), CELLS, CELLS, st.sampled_from("xy"), st.integers(0, 10), st.integers(0, 3)),
    min_size=1,
    max_size=9,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=LINES,
    length=st.sampled_from([("count", 1), ("count", 4), ("duration", 3)]),
    by=st.booleans(),
    thresholds=st.lists(st.sampled_from([0.05, 0.3, 0.5, 1.0]), min_size=1, max_size=3, unique=True),
    top=st.sampled_from([None, 1, 2]),
    method=st.sampled_from(["auto", "tree", "scan"]),
    final=st.booleans(),
)
def test_any_file_gives_the_reference_stream(
    tmp_path: Path,
    rows: list[tuple[int, int, int, str, int, int]],
    length: tuple[str, int],
    by: bool,
    thresholds: list[float],
    top: int | None,
    method: str,
    final: bool,
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    path = tmp_path / "rows.csv"
    path.write_text("t,a,b,g,p\n" + "".join(f"{t},{a},{b},{g},{p / 10}\n" for t, a, b, g, p, _ in rows))
    timed = length[0] == "duration"
    options = ["--min", "a", "--max", "b", "--prob", "p", "--method", method, f"--{length[0]}", str(length[1])]
    options += [text for one in thresholds for text in ("--threshold", str(one))]
    options += (["--time", "t"] if timed else []) + (["--by", "g"] if by else [])
    options += [] if top is None else ["--top", str(top)]
    objects = single([(a, -b) for _, a, b, _, _, _ in rows], [p / 10 for *_, p, _ in rows])
    times = [row[0] for row in rows] if timed else None
    if final and not by:
        last = [k for k in range(len(rows)) if (rows[k][0] > rows[-1][0] - 3 if timed else k >= len(rows) - length[1])]
        live = [objects[k] for k in last]
        found = rows_of(run("uncertain", path, *options, "--final").stdout)
        inside = most_probable(live, min(thresholds), top or len(rows))
        assert {int(row["id"]): float(row["probability"]) for row in found} == pytest.approx(
            {last[place] + 1: float(probability(live, place)) for place in inside}
        )
        return
    expected = uncertain_changes(
        objects,
        times,
        list(range(1, len(rows) + 1)),
        thresholds=thresholds,
        by=[row[3] for row in rows] if by else None,
        top=top,
        **{length[0]: length[1]},  # type: ignore[arg-type]
    )
    assert lines(run("uncertain", path, *options)) == [",".join(map(str, change)) for change in expected]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=LINES, count=st.integers(1, 5), chunk=st.integers(1, 4), files=st.integers(1, 3))
def test_objects_stay_whole_wherever_chunks_and_files_end(
    tmp_path: Path, rows: list[tuple[int, int, int, str, int, int]], count: int, chunk: int, files: int
) -> None:
    folder = tmp_path / "data"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    keys: list[str] = []
    for row in rows:  # a new name for each run, so that no name comes twice
        same = keys and row[5] and keys.count(keys[-1]) < 3
        keys.append(keys[-1] if same else f"o{len(keys)}")
    texts = [f"{k},{a},{b},{p / 30}\n" for k, (_, a, b, _, p, _) in zip(keys, rows, strict=True)]
    for number in range(files):
        part = texts[number * len(rows) // files : (number + 1) * len(rows) // files]
        (folder / f"{number}.csv").write_text("k,a,b,p\n" + "".join(part))
    names, objects = consecutive([(a, -b) for _, a, b, _, _, _ in rows], [p / 30 for *_, p, _ in rows], keys)
    expected = uncertain_changes(objects, None, names, thresholds=[0.1, 0.3], count=count)
    options = ["--min", "a", "--max", "b", "--prob", "p", "--object", "k", "--count", str(count)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skytide.streams.files.source.Source.chunks.__kwdefaults__", {"rows": chunk})
        found = lines(run("uncertain", folder, *options, "--threshold", "0.1", "--threshold", "0.3"))
    assert found == [",".join(map(str, change)) for change in expected]


def test_rows_that_are_not_taken_are_dead_letters(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("t,v,p\n1,5,0.5\n4,6,1\n2,4,1\n9,4,\n")
    options: list[str | Path] = [
        "uncertain",
        path,
        "--min",
        "v",
        "--prob",
        "p",
        "--time",
        "t",
        "--duration",
        "9",
        "--threshold",
        "0.5",
    ]
    letters = tmp_path / "dead.csv"
    result = run(*options, "--nulls", "drop", "--dead-letters", letters)
    assert lines(result) == ["1,+,1,0.5", "4,+,2,0.5"] and result.stderr == ""
    assert [row["row"] for row in rows_of(letters.read_text())] == ["3", "4"]


BASE = ["--min", "price", "--prob", "trust", "--threshold", "0.5"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--min", "price", "--threshold", "0.5", "--count", "2"], ["--prob"]),
        (["--min", "price", "--prob", "trust", "--count", "2"], ["--threshold"]),
        ([*BASE], ["--count", "--duration"]),
        ([*BASE, "--count", "2", "--threshold", "1.5"], ["1.5", "threshold"]),
        ([*BASE, "--count", "2", "--threshold", "nan"], ["nan", "threshold"]),
        ([*BASE, "--count", "2", "--top", "0"], ["--top"]),
        ([*BASE, "--count", "2", "--object", "offer", "--id", "offer"], ["--object", "--id"]),
        ([*BASE, "--count", "2", "--object", "offer", "--method", "tree"], ["--object", "tree"]),
        ([*BASE, "--count", "2", "--object", "nobody"], ["offers.csv", "nobody"]),
        (["--min", "price", "--threshold", "0.5", "--count", "2", "--prob", "sure"], ["offers.csv", "sure"]),
        (["--min", "price", "--threshold", "0.5", "--count", "2", "--prob", "offer"], ["row 1", "offer", "'a'"]),
        (["--min", "days", "--threshold", "0.5", "--count", "2", "--prob", "price"], ["row 1", "'price'", "30"]),
        (["--min", "days", "--threshold", "0.5", "--count", "2", "--prob", "hole"], ["row 3", "'hole'", "missing"]),
        ([*BASE, "--count", "9", "--object", "twice"], ["row 4", "'k'", "live"]),
        ([*BASE, "--count", "9", "--object", "same"], ["row 1", "sum", "1.9"]),
        ([*BASE, "--time", "at", "--duration", "9", "--object", "same"], ["row 2", "times"]),
        ([*BASE, "--count", "2", "-o", "out.xlsx"], ["out.xlsx"]),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(tmp_path: Path, arguments: list[str], says: list[str]) -> None:
    path = tmp_path / "offers.csv"
    header = "at,offer,price,days,trust,hole,twice,same"
    path.write_text(f"{header}\n1,a,30,4,0.9,0.5,m,s\n2,b,20,3,0.5,0.5,k,s\n3,c,20,3,0.5,,l,s\n4,d,1,1,1,1,k,z\n")
    extra = [] if "-o" in arguments else ["-o", str(tmp_path / "changes.csv")]
    said = refused("uncertain", path, *arguments, *extra)
    assert all(part in said for part in says), said
    assert [one.name for one in tmp_path.iterdir()] == ["offers.csv"]


def test_a_file_without_rows_gives_the_header_alone(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("k,v,p\n")
    options = ["--min", "v", "--prob", "p", "--threshold", "0.5", "--count", "3"]
    assert lines(run("uncertain", path, *options)) == []
    assert lines(run("uncertain", path, *options, "--object", "k")) == []
    assert lines(run("uncertain", path, *options, "--final"), "id,probability") == []


def test_the_command_is_found_and_described() -> None:
    assert skytide.cli.uncertain.command.name == "uncertain"
    assert "--object" in run("uncertain", "--help").stdout
