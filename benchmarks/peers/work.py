"""The guard of work: what every algorithm does on small fixed inputs, against what is written down.

`skytide bench work` says what differs, `--accept "why"` writes it down (benchmarks/work/), `--show TEXT` prints the
numbers of the runs whose names hold the text. The numbers are counts, not times: they are the same on every machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.work import record


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything; exit status 1 where work differs, or where an answer is wrong."""
    parser = argparse.ArgumentParser(prog="skytide bench work", description=__doc__.partition("\n")[0])
    parser.add_argument("--accept", metavar="WHY", help="write the numbers down, with the reason")
    parser.add_argument("--show", metavar="TEXT", help="print the numbers of these runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what differs")
    given = parser.parse_args(arguments)
    if given.accept is not None and not given.accept.strip():
        parser.error("--accept needs a reason")
    now = record.measured()
    if given.show is not None:
        for name, one in now.items():
            if given.show in name:
                print(name, *(f"  {number}: {count:,}" for number, count in one["work"].items()), sep="\n")
    found = record.differences(record.recorded(), now)
    if given.json:
        report = {"benchmark": "work", "runs": len(now), "differences": [one._asdict() for one in found]}
        given.json.write_text(json.dumps(report, indent=1))
    if given.accept is None:
        print(record.explained(found) if found else f"{len(now)} runs do what is written down.")
        return 1 if found else 0
    wrong = record.wrong_answers(now)
    if wrong:
        print("Answers that are not those of the definition: " + "; ".join(wrong))
        return 1
    record.accept(now, given.accept)
    print(f"{len(now)} runs are written down; {len(found)} numbers differ from before.")
    return 0
