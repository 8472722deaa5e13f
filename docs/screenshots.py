"""Makes the pictures of the page in docs/figures: `python docs/screenshots.py`. Needs chromium and playwright.

Offers of hotels pass through a sliding window; the page shows the ones that no other beats. The data are drawn with a
fixed seed and time is counted, not read, so that a picture changes only when the page does.
"""

from __future__ import annotations

import shutil
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image
from playwright.sync_api import Page as Tab
from playwright.sync_api import sync_playwright

from skytide import Preference, SlidingWindow
from skytide.dashboard import Board, Page

FIGURES = Path(__file__).parent / "figures"
CITIES = ("Bergen", "Lisboa", "Gdańsk")
STEP, STEPS, LIVE = 20, 180, 36
SIZE = {"width": 1200, "height": 1300}


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1.7e9

    def __call__(self) -> float:
        """The time."""
        return self.now


def offers(random: np.random.Generator, first: int) -> pa.Table:
    """Some offers: near the centre and good ones cost more, most of the time."""
    distance = 0.2 + random.gamma(2.2, 1.1, STEP)
    rating = np.clip(random.normal(7.6, 1.1, STEP), 3, 10)
    price = 30 + 9 * np.maximum(0, rating - 5) + 130 * np.exp(-distance / 1.2) + random.gamma(2, 16, STEP)
    start = np.datetime64("2026-03-02T08:00:00", "ms")
    return pa.table(
        {
            "offer": [f"offer {first + i}" for i in range(STEP)],
            "time": start + (first + np.arange(STEP)) * np.timedelta64(10_000, "ms"),
            "price": np.round(price),
            "distance": np.round(distance, 1),
            "rating": np.round(rating, 1),
            "city": random.choice(CITIES, STEP),
        }
    )


def board() -> Board:
    """A board after all offers have passed."""
    random, clock = np.random.default_rng(7), Clock()
    preference = Preference(minimize=["price", "distance"], by=["city"])
    shown = Board(preference, title="Hotel offers", parameters={"window": "2h"}, extra=("rating",), clock=clock)
    window = SlidingWindow(preference, duration="2h")
    for step in range(STEPS):
        rows = offers(random, step * STEP)
        shown.see(rows.drop_columns(["offer", "time"]), rows["offer"])
        changes = window.extend(rows, times="time", ids="offer")
        if len(changes):
            shown.change(changes.times, changes.signs, changes.ids)
        expired = range((step - LIVE) * STEP, (step - LIVE + 1) * STEP)
        shown.forget([f"offer {i}" for i in expired if i >= 0])
        clock.now += 0.1 + 0.02 * np.sin(step / 7)
        latency = 0.002 + 0.001 * random.random()
        shown.meter(rows=(step + 1) * STEP, retained=window.stats()["retained"], latency=latency)
    return shown


def take(tab: Tab, url: str, name: str) -> None:
    """One picture, in the colours that the name says."""
    tab.goto(url)
    tab.wait_for_selector("#stays .ytick", state="attached")
    tab.wait_for_selector("#table tbody tr")
    tab.wait_for_timeout(2_000)
    below = tab.locator("#ledger-card + section").bounding_box() or {"y": 0.0}
    clip = {"x": 0, "y": 0, "width": SIZE["width"], "height": below["y"]}
    taken = tab.screenshot(animations="disabled", full_page=True, clip=clip)  # type: ignore[arg-type]
    picture = Image.open(BytesIO(taken)).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(FIGURES / f"dashboard-{name}.png", optimize=True)


def main() -> None:
    """Both pictures."""
    browser = shutil.which("chromium") or sys.exit("there is no chromium")
    with Page(board(), port=0) as page, sync_playwright() as started:
        opened = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for name in ("light", "dark"):
            context = opened.new_context(viewport=SIZE, color_scheme=name)  # type: ignore[arg-type]
            take(context.new_page(), page.url, name)
        opened.close()


if __name__ == "__main__":
    main()
