"""`skytide bench evidence`: all that the README claims, run by one command, judged, in one report.

    skytide bench evidence --list
    skytide bench evidence --only window batch --out evidence/
    skytide bench evidence --size full

Parts run one after the other, with nothing beside them. What has ended is kept in --out and is not run again there;
`--again` does, and other code. The exit status is 1 where a part fails or finds a wrong answer.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from benchmarks.evidence import report
from benchmarks.evidence.claims import CLAIMS
from benchmarks.evidence.parts import PARTS, SIZES, Folder, part_of, run, shown
from benchmarks.soak.homes import end_in_order


def options(argv: list[str]) -> argparse.Namespace:
    """The options as given."""
    parser = argparse.ArgumentParser(prog="skytide bench evidence", description=(__doc__ or "").partition("\n")[0])
    names = [part.name for part in PARTS]
    parser.add_argument("--size", choices=list(SIZES), default="laptop", help="smoke, laptop or full (laptop)")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="PART", help=", ".join(names))
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where results go and are found (evidence-SIZE)")
    parser.add_argument("--again", action="store_true", help="run what has ended before, too")
    parser.add_argument("--list", action="store_true", help="say what there is, and end")
    chosen = parser.parse_args(argv)
    chosen.out = chosen.out or Path(f"evidence-{chosen.size}")
    return chosen


def main(argv: list[str]) -> int:
    """Run what was asked for, and write the report of all that is known."""
    chosen = options(argv)
    if chosen.list:
        for claim in CLAIMS:
            print(f"{claim.title}: {shown(part_of(claim.part).words(chosen.size))}")
        return 0
    end_in_order()
    folder, failed = Folder(chosen.out), dict[str, int]()
    for name in chosen.only:
        part = part_of(name)
        known = None if chosen.again else folder.done(part, chosen.size)
        if known is None:
            print(f"{name}: {shown(part.words(chosen.size))}", file=sys.stderr, flush=True)
            say = partial(print, file=sys.stderr, flush=True)
            known = run(part, chosen.size, folder.papers, say, again=chosen.again)
            folder.put(part, known)
        if known["status"] or known["found"] is None:
            failed[name] = known["status"]
    kept = {part.name: known for part in PARTS if (known := folder.get(part, chosen.size)) is not None}
    document, page = report.write(chosen.out, kept, chosen.size)
    for claim, found in report.verdicts(kept, chosen.size):
        if claim.part in chosen.only:
            print(f"{claim.title}: {found.text}: {report.word(claim, found)}")
    print(f"see {page} or {document}")
    for name, status in failed.items():
        print(f"the part {name} has not ended well: exit status {status}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
