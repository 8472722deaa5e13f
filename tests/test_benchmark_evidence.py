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
from benchmarks import machine
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


def test_the_figures_that_the_first_page_gives_are_those_of_the_lines_that_it_links_to() -> None:
    found = {report.address(claim.title): one.text for claim, one in report.verdicts(kept(), "laptop")}
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    told = [
        (address, figure)
        for words, address in re.findall(r"\[([^\[\]]*)\]\(docs/evidence/index\.md#([\w-]+)\)", text)
        for figure in re.findall(r"\d[\d,.]*\d|\d", words)
    ]
    assert len(told) > 5
    # What a title says is part of the claim.
    assert [(address, figure) for address, figure in told if figure not in found[address] + "100,000"] == []


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

Fault = Callable[[Any], object]


def worse(line: Any, **values: object) -> None:
    line.update(values)


def last(lines: Any, method: str) -> Any:
    """The last line of a method."""
    return [line for line in lines if line["method"] == method][-1]


def largest(found: Any) -> Any:
    """The line of the largest table on the first master."""
    tables = [line for line in found["lines"] if line["part"] == "rows" and line["master"] == "local[2]"]
    return max(tables, key=lambda line: line["rows"])


# Each makes one cell worse, or leaves one thing out, which must be seen however good the others are.
BROKEN: dict[str, list[Fault]] = {
    "Every method gives the changes of the definition": [lambda v: worse(v["lines"][-1], result="disagrees")],
    "No cost grows unnoticed": [lambda v: v["differences"].append({"run": "x"})],
    "The figures of five papers are reproduced or explained": [
        lambda v: v.update(unexplained=1),
        lambda v: v.update(wrong=1),
        lambda v: v.update(failed=1),
    ],
    "All peers give the same answers": [lambda v: worse(v["lines"][0], equal=False)],
    "Every library takes longer": [lambda v: worse(v["lines"][0], ratio=0.5)],
    "A table takes a fraction of what its peers take": [lambda v: worse(v["cells"][0], ratios={"a": 0.99})],
    "A window of 100,000 rows is faster than a scan in C++": [lambda v: worse(v["parts"]["flat"][-1], ratio=0.9)],
    "A window of 100,000 rows is faster than computing it anew": [
        lambda v: worse(v["parts"]["recompute"][-1], ratio=0.9)
    ],
    "Uncertain rows are faster than a scan": [lambda v: worse(v["parts"]["rates"][-1], **{"auto/scan": 0.9})],
    "Probabilities do not drift": [lambda v: worse(v["parts"]["drift"][0], **{"largest relative error": "1e-3"})],
    "Boxes save computing anew": [lambda v: worse(v["parts"]["stocks"][-1], **{"recompute/auto": 0.5})],
    "Many clients send fewer messages": [
        lambda v: worse(last(v["parts"]["dimensions"], "auto"), total=1.5),
        lambda v: worse(last(v["parts"]["tcp"], "auto"), total=1.5),
        lambda v: worse(v["parts"]["dimensions"][0], equal=False),
    ],
    "Objects in fragments that drift need fewer messages": [
        lambda v: worse(last(v["parts"]["types"], "auto"), messages=0.9),
        lambda v: worse(v["parts"]["movies"][0], equal=False),
    ],
    "Between processes fewer bytes travel": [
        lambda v: worse(last(v["parts"]["load"], "filter"), **{"of its bytes": 0.9}),
        lambda v: worse(last(v["parts"]["load"], "auto"), **{"of its bytes": 0.9}),
    ],
    "What a coordinator publishes as exact is right whatever fails": [
        lambda v: worse(v["parts"]["faults"][-1], wrong=1),
        lambda v: worse(v["parts"]["faults"][-1], equal=False),
    ],
    "Hostile bytes do no harm": [lambda v: worse(v["parts"]["fuzz"][-1], failures=1)],
    "On Spark large skylines are faster than in SQL": [
        lambda v: v["sql"][0]["seconds"].update(skytide=1e9),
        lambda v: v["sql"][-1]["seconds"].update(skytide=v["sql"][-1]["seconds"]["NOT EXISTS"] / 5),
    ],
    "On Spark many tasks are faster than one from ten million rows on": [
        lambda v: v["cells"][-1]["seconds"].update(skytide=1e9)
    ],
    "On Spark a window keeps two fifths of the rate of a pass through Python": [
        lambda v: worse(v["streams"][-1], share=0.39),
        lambda v: worse(v["streams"][0], equal=False),
    ],
    "On Spark fewer moves of clients reach the driver": [
        lambda v: worse(v["streams"][0], equal=False),
        lambda v: worse(v["streams"][-1], reached=v["streams"][-1]["rows"]),
    ],
    "On Spark cost grows no faster than rows": [
        lambda v: worse(v["lines"][-1], equal=False),
        lambda v: worse(largest(v), **{"skyline s": 2 * largest(v)["skyline s"]}),
    ],
    "No change is lost or doubled while everything fails": [
        lambda v: worse(v["streams"][-1], missing=1),
        lambda v: worse(v["streams"][-1], expected=0, found=0),
        lambda v: v["problems"].append("the follower of the coordinator did not get all events"),
        lambda v: v["network"].update(wrong=1),
    ],
    "Memory stays flat": [lambda v: worse(v["memory"][0], flat=False)],
}
FAULTS = [(claim, fault) for claim in CLAIMS for fault in BROKEN[claim.title]]


@pytest.mark.parametrize(("claim", "fault"), FAULTS, ids=[report.address(claim.title) for claim, _ in FAULTS])
def test_a_claim_is_judged_by_every_cell_that_was_measured(claim: Claim, fault: Fault) -> None:
    values = copy.deepcopy(kept()[claim.part]["found"])
    fault(values)
    found = judged(claim, values, all_sizes=True)
    assert found.holds is False and report.word(claim, found).startswith("does not hold: ")
    assert (judged(claim, values, all_sizes=False).holds is False) == claim.answers


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: report.address(one.title))
def test_a_part_that_came_to_nothing_fails_its_claims_and_one_that_was_not_run_judges_nothing(claim: Claim) -> None:
    assert judged(claim, None, all_sizes=True, status=3).holds is False
    assert judged(claim, None, all_sizes=True).holds is None
    found = judged(claim, {"parts": {}, "lines": 3}, all_sizes=True)
    assert found.holds is not True


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: report.address(one.title))
def test_what_a_part_with_wrong_answers_gains_is_no_merit(claim: Claim) -> None:
    values = kept()[claim.part]["found"]
    usual = judged(claim, values, all_sizes=True)
    assert judged(claim, values, all_sizes=True, status=1).holds == (usual.holds if claim.answers else False)


def test_what_was_left_out_is_not_judged() -> None:
    values: dict[str, Any] = {"parts": {"flat": [], "recompute": []}}
    for title in (
        "A window of 100,000 rows is faster than a scan in C++",
        "A window of 100,000 rows is faster than computing it anew",
    ):
        found = judged(BY_TITLE[title], values, all_sizes=True)
        assert found.holds is None and "not measured" in found.text


def test_memory_that_could_not_be_judged_neither_holds_nor_fails() -> None:
    claim, values = BY_TITLE["Memory stays flat"], copy.deepcopy(kept()["soak"]["found"])
    (driver,) = (one for one in values["memory"] if one["role"] == "driver")
    driver.update(flat=None, slope=None)
    found = judged(claim, values, all_sizes=True)
    assert found.holds is None and found.text.endswith("not judged: driver")
    values["memory"].remove(driver)  # nor was it seen at all
    assert judged(claim, values, all_sizes=True) == found._replace(text=judged(claim, values, all_sizes=True).text)
    assert judged(claim, {"memory": []}, all_sizes=True).holds is None


def test_peers_that_were_left_out_have_not_given_the_same_answers() -> None:
    values = copy.deepcopy(kept()["peers"]["found"])
    values["left out"] = ["flat-scan is left out: g++ is missing"]
    found = judged(BY_TITLE["All peers give the same answers"], values, all_sizes=True)
    assert found.holds is None and "g++ is missing" in found.text
    values["lines"] = [line for line in values["lines"] if line["peer"] != "river"]
    assert "river is left out" in judged(BY_TITLE["Every library takes longer"], values, all_sizes=True).text


def test_papers_of_which_figures_are_missing_are_not_reproduced() -> None:
    claim, values = BY_TITLE["The figures of five papers are reproduced or explained"], kept()["papers"]["found"]
    assert judged(claim, values, all_sizes=True).holds
    assert judged(claim, {**values, "figures": values["figures"] - 1}, all_sizes=True).holds is None
    assert judged(claim, {**values, "judged": 0, "hold": 0}, all_sizes=True).holds is None


def test_a_busy_machine_is_told_beside_what_depends_on_it() -> None:
    known = {name: {**one, "busy": 3.0} for name, one in kept().items()}
    for claim, found in report.verdicts(known, "laptop"):
        assert found.text.endswith("; on a busy machine") != claim.answers


# -- the command -------------------------------------------------------------------------------------------------------


def test_a_part_is_run_once_told_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--size", "smoke", "--only", "window", "--out", str(tmp_path)]
    assert command.main(call) == 0
    said = capsys.readouterr()
    assert "rows is faster than computing it anew: " in said.out and "recompute: all answers are equal" in said.err
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
    for module in (parts, command):
        monkeypatch.setattr(module, "PARTS", (broken,))
    assert command.main(["--size", "smoke", "--only", "window", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "the part window has not ended well: exit status 2" in said.err
    assert "scan in C++: the part came to nothing, with the exit status 2: does not hold" in said.out
    folder = Folder(tmp_path)
    assert folder.get(broken, "smoke") and folder.done(broken, "smoke") is None  # so it is told, and run again


def test_what_other_code_has_found_is_told_but_does_not_count_as_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, folder = PARTS[0], Folder(tmp_path)
    known = {"call": parts.shown(part.words("smoke")), "status": 0, "found": {"lines": []}, "code": machine.code()}
    folder.put(part, known)
    assert folder.done(part, "smoke") == known and folder.done(part, "laptop") is None
    monkeypatch.setattr(machine, "code", lambda: "other")
    assert folder.done(part, "smoke") is None and folder.get(part, "smoke") == known


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
