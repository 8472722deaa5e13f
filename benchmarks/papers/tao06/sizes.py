"""Tables 2 and 3: the average skyline size per timestamp against the window length and the dimensionality.

Rows come at 10 a second, so a window of W seconds holds 10 W rows. Anti-correlated rows need a plane deviation of 0.005
to give the paper's sizes. Table 3's 45 for independent rows in 2-d cannot be right: the expected size is the harmonic
number H_8000 = 9.6. The size is averaged over every arrival after the first window.

    python -m benchmarks.papers.tao06.sizes [--windows 20]
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import skytide as sk
from skytide.reference.batch import skyline as reference_skyline
from skytide.streams.generators import generate

RATE = 10
DEVIATION = 0.005
# (kind, dimensions, window in seconds) -> the paper's figure
PAPER = {
    ("independent", 3, 200): 34,
    ("independent", 3, 400): 41,
    ("independent", 3, 800): 49,
    ("independent", 3, 1600): 55,
    ("independent", 3, 3200): 61,
    ("anti-correlated", 3, 200): 1566,
    ("anti-correlated", 3, 400): 2656,
    ("anti-correlated", 3, 800): 4186,
    ("anti-correlated", 3, 1600): 6139,
    ("anti-correlated", 3, 3200): 8452,
    ("independent", 2, 800): 45,
    ("independent", 4, 800): 156,
    ("anti-correlated", 2, 800): 243,
    ("anti-correlated", 4, 800): 7643,
}


def expected_size(rows: int, dimensions: int) -> float:
    """The expected skyline size of independent rows without ties: the generalised harmonic number H_{d-1,n}."""
    level = np.ones(rows)
    for _ in range(dimensions - 1):
        level = np.cumsum(level / np.arange(1, rows + 1))
    return float(level[-1])


def average_size(kind: str, dimensions: int, rows: int, windows: int, seed: int) -> float:
    """The mean size of the skyline over all arrivals after the first window; the last answer is checked."""
    spread = DEVIATION if kind == "anti-correlated" else None
    stream = generate(kind, rows * (windows + 1), dimensions, seed, deviation=spread)
    window = sk.SlidingWindow(sk.Preference.columns(dimensions), count=rows)
    changes = window.extend(stream)
    sizes = np.cumsum(np.bincount(changes.times, weights=changes.signs, minlength=len(stream) + 1))
    last = stream[-rows:]
    sample = np.flatnonzero(sk.skyline(last))
    if set(window.skyline()) != set((sample + len(stream) - rows + 1).tolist()) or sizes[-1] != len(sample):
        raise AssertionError(f"the window's last answer is wrong: {kind}, {dimensions}-d, {rows} rows")
    if rows <= 2000 and sample.tolist() != list(reference_skyline([tuple(row) for row in last.tolist()])):
        raise AssertionError("the batch skyline differs from the reference")
    return float(sizes[rows + 1 :].mean())


def main(argv: list[str]) -> int:
    """Print the sizes as a table."""
    parser = argparse.ArgumentParser(prog="tao06.sizes", description=__doc__)
    parser.add_argument("--windows", type=int, default=20, help="how many windows long each stream is")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    print("| rows | d | W (s) | paper | expected | ours |")
    print("|---|---|---|---|---|---|")
    for (kind, dimensions, seconds), paper in PAPER.items():
        rows = RATE * seconds
        expected = f"{expected_size(rows, dimensions):.1f}" if kind == "independent" else ""
        ours = average_size(kind, dimensions, rows, options.windows, options.seed)
        print(f"| {kind} | {dimensions} | {seconds} | {paper} | {expected} | {ours:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
