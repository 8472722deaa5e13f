"""Skytide on Spark beside what Spark can do without it: `skytide bench spark --parts batch streaming rounds fragments`.

`batch`: the skyline of a table beside one task that does it all, `NOT EXISTS` in SQL and the kernel without Spark;
`streaming`: windows beside an identity `mapInArrow` on the same stream; `rounds`: what of a stream of moves reaches the
driver, beside all of it; `fragments`: the same of objects in fragments over sites. Each part has options of its own,
which `--parts batch --help` shows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks.spark import batch, fragments, rounds, streaming

PARTS: dict[str, Callable[[list[str]], int]] = {
    "batch": batch.main,
    "streaming": streaming.main,
    "rounds": rounds.main,
    "fragments": fragments.main,
}


def main(argv: list[str]) -> int:
    """Run the parts asked for, all of them by default; 0 when all answers are right."""
    parts = list(PARTS)
    if argv[:1] == ["--parts"]:
        parts = [part for part in argv[1:] if part in PARTS]
        argv = [word for word in argv[1:] if word not in PARTS]
        if not parts:
            print(f"there are the parts {', '.join(PARTS)}", file=sys.stderr)
            return 2
    elif "--help" in argv:
        print(__doc__)
        return 0
    return max(PARTS[part](argv) for part in parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
