"""What is written down of the runs' work, and how it differs from what they do now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.work.runs import Run, all_runs
from benchmarks.work.truths import Answer

FOLDER = Path(__file__).parent
HOW = 'skytide bench work --accept "why"'
Record = dict[str, dict[str, Any]]
"""By run: `answer`, a digest of it, and `work`, numbers by name."""


class Difference(NamedTuple):
    """One number of one run, or its answer, before and now; None where it is not there."""

    run: str
    number: str
    before: Any
    now: Any

    def __str__(self) -> str:
        where = f"{self.run}: {self.number}"
        if self.before is None or self.now is None:
            return f"{where} {'is gone' if self.now is None else f'is new: {self.now}'}"
        if not isinstance(self.now, int):
            return f"{where} is another one"
        verb = "grew" if self.now > self.before else "fell"
        share = f" ({100 * (self.now - self.before) / self.before:+.1f} %)" if self.before else ""
        return f"{where} {verb} from {self.before:,} to {self.now:,}{share}"


def digest(answer: Answer) -> str:
    """A short text that another answer does not have."""
    lines = "\n".join(",".join(map(str, one)) for one in answer)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def measured(runs: dict[str, Run] | None = None) -> Record:
    """What the runs do now. Seconds."""
    found: Record = {}
    for name, run in (all_runs() if runs is None else runs).items():
        work, answer = run.run()
        found[name] = {"answer": digest(answer), "work": {key: int(work[key]) for key in sorted(work)}}
    return found


def wrong_answers(record: Record, runs: dict[str, Run] | None = None) -> list[str]:
    """The runs whose answer is not that of the definition. Tens of seconds."""
    known = all_runs() if runs is None else runs
    return [name for name, one in record.items() if one["answer"] != digest(known[name].truth())]


def recorded(folder: Path = FOLDER) -> Record:
    """What is written down."""
    path = folder / "work.json"
    found: Record = json.loads(path.read_text()) if path.exists() else {}
    return found


def differences(before: Record, now: Record) -> list[Difference]:
    """All that differs, run by run."""
    found: list[Difference] = []
    for run in dict.fromkeys((*before, *now)):
        old, new = (_flat(one.get(run, {})) for one in (before, now))
        pairs = [Difference(run, number, old.get(number), new.get(number)) for number in dict.fromkeys((*old, *new))]
        found += [one for one in pairs if one.before != one.now]
    return found


def _flat(one: dict[str, Any]) -> dict[str, Any]:
    return {**({"answer": one["answer"]} if "answer" in one else {}), **one.get("work", {})}


def explained(found: Iterable[Difference]) -> str:
    """Differences for people, and what to do about them."""
    lines = [f"  {one}" for one in found]
    more = any(isinstance(one.now, int) and isinstance(one.before, int) and one.now > one.before for one in found)
    word = "Work grew" if more else "Work differs from what is written down"
    return "\n".join([f"{word}:", *lines, f"If that is right, write it down with a reason: {HOW}"])


def accept(now: Record, reason: str, folder: Path = FOLDER, day: str | None = None) -> None:
    """Write the numbers down, and why they changed."""
    found = differences(recorded(folder), now)
    text = json.dumps(now, indent=1, ensure_ascii=False)
    (folder / "work.json").write_text(text + "\n")
    day = day or datetime.now(UTC).date().isoformat()
    with (folder / "CHANGES.md").open("a") as file:
        file.write(f"\n## {day}: {' '.join(reason.split())}\n\n")
        fresh = {one.run for one in found} - set(_runs_before(found))
        told = [f"{run} is new" for run in now if run in fresh]
        told += [str(one) for one in found if one.run not in fresh]
        file.write("".join(f"- {line}\n" for line in told) or "- nothing differs\n")


def _runs_before(found: Iterable[Difference]) -> Iterable[str]:
    """The runs that were written down before."""
    return (one.run for one in found if one.before is not None)
