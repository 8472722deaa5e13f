"""The evidence: what the README claims has a line in the report, by a rule that can fail; results are kept."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.evidence import command, parts, report
from benchmarks.evidence.claims import CLAIMS, Claim, judged
from benchmarks.evidence.parts import PARTS, Folder, Part
from benchmarks.peers import verify

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "evidence"
BY_TITLE = {claim.title: claim for claim in CLAIMS}


def kept() -> dict[str, Any]:
    """The results among the documents, by part."""
    folder = Folder(KEPT)
    found = {part.name: folder.get(part, "laptop") for part in PARTS}
    assert all(found.values()), [name for name, one in found.items() if one is None]
    return found


# -- what the documents say --------------------------------------------------------------------------------------------


def claims_of_the_first_page() -> list[str]:
    """The addresses that the rows of its table of claims link to."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## What is claimed, and what shows it")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [address for row in rows for address in re.findall(r"\]\(docs/evidence/index\.md#([\w-]+)\)", row) or [row]]


def test_every_claim_of_the_first_page_links_to_the_line_that_shows_it_and_every_line_is_claimed() -> None:
    assert sorted(claims_of_the_first_page()) == sorted(report.address(claim.title) for claim in CLAIMS)


def test_the_pages_among_the_documents_are_made_of_the_results_beside_them(tmp_path: Path) -> None:
    for path in report.write(tmp_path, kept(), "laptop"):
        assert path.read_text(encoding="utf-8") == (KEPT / path.name).read_text(encoding="utf-8"), path.name


def test_a_claim_that_does_not_hold_has_its_reason() -> None:
    found = report.verdicts(kept(), "laptop")
    assert len(found) == len(CLAIMS)
    assert [claim.title for claim, one in found if one.holds is False and not claim.why] == []
    assert [claim.title for claim, one in found if one.holds is None] == []
    assert all(one.holds for claim, one in found if claim.answers)


def test_the_html_has_the_same_addresses_and_asks_nobody() -> None:
    page = (KEPT / "report.html").read_text(encoding="utf-8")
    for claim in CLAIMS:
        assert f"id='{report.address(claim.title)}'" in page and f"id='part-{claim.part}'" in page
    assert "<script" not in page and "http" not in page and "//" not in re.sub(r"spark://\S+", "", page)


# -- rules that can fail -----------------------------------------------------------------------------------------------

BROKEN: dict[str, Callable[[Any], object]] = {
    "Every method gives the changes of the definition": lambda v: v["lines"][-1].update(result="disagrees"),
    "No cost grows unnoticed": lambda v: v["differences"].append({"run": "x"}),
    "The figures of five papers are reproduced or explained": lambda v: v.update(unexplained=1),
    "All peers give the same answers": lambda v: v["lines"][0].update(equal=False),
    "Every library takes longer": lambda v: v["lines"][0].update(ratio=0.5),
    "A table takes a fraction of what its peers take": lambda v: v["cells"][0].update(ratios={"a": 0.1}),
    "A window is faster than a scan in C++": lambda v: v["parts"]["flat"][0].update(ratio=0.9),
    "A window is faster than computing it anew": lambda v: v["parts"]["recompute"][0].update(ratio=0.9),
    "Uncertain rows are faster than a scan": lambda v: v["parts"]["rates"][0].update({"auto/scan": 0.9}),
    "Probabilities do not drift": lambda v: v["parts"]["drift"][0].update({"largest relative error": "1e-3"}),
    "Boxes save computing anew": lambda v: v["parts"]["synthetic"][0].update({"recompute/auto": 0.5}),
    "Many clients send fewer messages": lambda v: [one.update(total=1.5) for one in v["parts"]["dimensions"]],
    "Objects in fragments need fewer messages": lambda v: [
        one.update(messages=0.9) for one in v["parts"]["correlation"]
    ],
    "Between processes few bytes travel": lambda v: [one.update({"of its bytes": 0.9}) for one in v["parts"]["load"]],
    "What a coordinator publishes as exact is right whatever fails": lambda v: v["parts"]["faults"][0].update(wrong=1),
    "Hostile bytes do no harm": lambda v: v["parts"]["fuzz"][0].update(failures=1),
    "On Spark a table is faster than in SQL": lambda v: [one["seconds"].update(skytide=1e9) for one in v["sql"]],
    "On Spark many tasks are faster than one": lambda v: v["cells"][0]["seconds"].update(skytide=1e9),
    "On Spark a window keeps two fifths of the rate of reading": lambda v: v["streams"][0].update(share=0.1),
    "On Spark fewer moves of clients reach the driver": lambda v: v["streams"][0].update(equal=False),
    "On Spark cost grows no faster than rows": lambda v: v["lines"][0].update(equal=False),
    "No change is lost or doubled while everything fails": lambda v: v["streams"][0].update(missing=1),
    "Memory stays flat": lambda v: v["memory"][0].update(flat=False, bound=1.0),
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: report.address(one.title))
def test_a_claim_is_judged_by_what_was_measured(claim: Claim) -> None:
    values = copy.deepcopy(kept()[claim.part]["found"])
    BROKEN[claim.title](values)
    found = judged(claim, values, all_sizes=True)
    assert found.holds is False and report.word(claim, found).startswith("does not hold: ")
    assert (judged(claim, values, all_sizes=False).holds is False) == claim.answers
    assert judged(claim, None, all_sizes=True).holds is None


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: report.address(one.title))
def test_what_a_part_with_wrong_answers_gains_is_no_merit(claim: Claim) -> None:
    values = kept()[claim.part]["found"]
    usual = judged(claim, values, all_sizes=True)
    assert judged(claim, values, all_sizes=True, status=1).holds == (usual.holds if claim.answers else False)


def test_what_was_left_out_is_not_judged() -> None:
    values: dict[str, Any] = {"parts": {"flat": [], "recompute": []}}
    for title in ("A window is faster than a scan in C++", "A window is faster than computing it anew"):
        found = judged(BY_TITLE[title], values, all_sizes=True)
        assert found.holds is None and "not measured" in found.text


def test_memory_that_could_not_be_judged_neither_holds_nor_fails() -> None:
    roles = [{"role": "driver", "most": 9.0, "slope": None, "bound": 1.0, "flat": None}]
    found = judged(BY_TITLE["Memory stays flat"], {"memory": roles}, all_sizes=True)
    assert found.holds is None and "not judged: driver" in found.text


# -- the command -------------------------------------------------------------------------------------------------------


def test_a_part_is_run_once_told_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--size", "smoke", "--only", "window", "--out", str(tmp_path)]
    assert command.main(call) == 0
    said = capsys.readouterr()
    assert "A window is faster than computing it anew: " in said.out and "recompute: all answers are equal" in said.err
    known = json.loads((tmp_path / "parts" / "window.json").read_text())
    assert known["status"] == 0 and known["found"]["machine"]["numba"] and known["seconds"] > 0
    assert "| fastest anew |" in (tmp_path / "index.md").read_text()
    assert "<th>fastest anew</th>" in (tmp_path / "report.html").read_text()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("nothing is left to run")

    monkeypatch.setattr(command, "run", never)
    assert command.main(call) == 0
    with pytest.raises(AssertionError, match="nothing is left"):
        command.main([*call, "--again"])


def test_a_part_that_fails_is_told_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Part("window", "Nothing", "no-such-benchmark", "x", "x")
    monkeypatch.setattr(parts, "PARTS", (broken,))
    assert command.main(["--size", "smoke", "--only", "window", "--out", str(tmp_path)]) == 1
    assert "the part window has not ended well: exit status 2" in capsys.readouterr().err
    assert Folder(tmp_path).get(broken, "smoke") is None  # so it is run again


def test_the_claims_are_listed_with_their_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(CLAIMS) and all(": skytide bench " in line for line in lines)


def test_what_a_part_prints_is_shown_whole_and_as_it_is() -> None:
    printed = ["a_b *c*", "", "### Title", "- one", "- two", "| x | y |", "|---|---|", "| <1 | 2 |"]
    assert [kind for kind, _ in report.blocks(printed)] == ["text", "title", "list", "table"]
    assert "".join(report._block("table", printed[5:])).count("<td>") == 2
    assert "&lt;1" in "".join(report._block("table", printed[5:]))
    assert report._plain("a_b *c*") == r"a\_b \*c\*"
    assert list(report.blocks(["x"] * (report.LINES + 3)))[-1] == ("text", ["(3 lines more)"])


# -- every command beside the definitions ------------------------------------------------------------------------------


def test_a_command_is_verified_on_a_stream_and_on_its_ties(tmp_path: Path) -> None:
    case = next(case for case in verify.CASES if case.command == "snapshots")
    lines = list(verify.lines_of(case, 0.01, 1, 5.0, tmp_path))
    assert {line["values"] for line in lines} == {"as they are", "tenths"}
    assert {line["result"] for line in lines} == {"agrees"} and {"mbr", "recompute"} <= {line["run"] for line in lines}


def test_rounded_values_have_ties() -> None:
    table = verify.rounded(pa.table({"id": range(100), "x": [place / 99 for place in range(100)]}), ["x"])
    assert len(set(table["x"].to_pylist())) == 11 and table["id"].to_pylist() == list(range(100))
