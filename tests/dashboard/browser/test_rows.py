"""Choosing rows, opening one, and rows whose names are not nice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skytide.dashboard import Board, write_report
from skytide.model import Preference
from skytide.reference.batch import dominates
from tests.dashboard.browser.conftest import Visits
from tests.dashboard.browser.feeding import Feeding, answer, drawn, listed, until

EVIL = [
    "<img src=x onerror='window.hacked=1'>",
    "<a href='javascript:window.hacked=1'>press</a>",
    "</script><script>window.hacked=1</script>",
    "&lt;b&gt; & <b>bold</b>",
    "<i>x</i>",
    "__proto__",
    "constructor",
    "a\u202eb\n\t$x$ %{y}",
]


def hotels(**given: Any) -> Board:
    """Three hotels in the answer, and one outside that two of them dominate."""
    board = Board(Preference(minimize=["price", "way"], maximize=["stars"]), title="hotels", **given)
    values = {"price": [10, 20, 30, 35], "way": [9, 5, 1, 6], "stars": [3.0, 4.0, 5.0, 2.0]}
    board.see(pa.table(values), ["ant", "bee", "cat", "dog"])
    board.change([1, 2, 3], "+++", ["ant", "bee", "cat"])
    return board


@pytest.fixture(scope="module")
def seen(browser: Any, context: Any, ports: list[int]) -> Iterator[Any]:
    """A tab with the hotels that several tests look at."""
    visits = Visits(browser, context, [0])
    yield visits(hotels())
    visits.close()
    # one test asks for a hotel that is not there
    assert [problem for problem in visits.problems if "404" not in problem] == []


@pytest.fixture
def page(seen: Any) -> Any:
    """The tab as it was when it was opened."""
    seen.keyboard.press("Escape")
    seen.fill("#filter", "")
    seen.evaluate("document.getElementById('brush-clear').click()")
    until(seen, "document.querySelectorAll('#table tbody tr').length === 3")
    return seen


def test_hostile_names_are_text_everywhere(visit: Any, tmp_path: Path) -> None:
    column = "<img src=x onerror='window.hacked=1'>"
    preference = Preference(minimize=[column, "b", "c"], by=["g"])
    board = Board(preference, title=EVIL[0], parameters={EVIL[1]: EVIL[2]})
    numbers = [float(i) for i in range(len(EVIL))]
    board.see(pa.table({column: numbers, "b": numbers[::-1], "c": numbers, "g": EVIL}), EVIL)
    board.change(list(range(len(EVIL))), "+" * len(EVIL), EVIL)
    board.notice(False, EVIL)
    board.end(EVIL[0])
    write_report(board, tmp_path / "report.html")
    for shown in (board, tmp_path / "report.html"):
        page = visit(shown)
        assert page.evaluate("skytide.rows()") == sorted(EVIL)
        until(page, "document.querySelectorAll('#stays .ytick').length > 0")
        ticks = page.eval_on_selector_all("#stays .ytick", "all => all.map(e => e.textContent)")
        assert {"<i>x</i>", "__proto__"} <= set(ticks)
        assert page.text_content("#scatter .xtitle") == f"{column} (lower is better)"
        assert {line[0] for line in listed(page)} == set(EVIL)
        page.hover("#scatter")
        page.click("#feed li:first-child button")
        until(page, "document.getElementById('details-body').textContent.includes('in the skyline')")
        assert page.text_content("#details-title") == EVIL[-1]
        page.wait_for_timeout(200)
        assert page.evaluate("document.querySelectorAll('img, a:not(.skip), b b, main script').length") == 0
        assert page.evaluate("window.hacked") is None


def test_the_keyboard_alone_opens_a_row(page: Any) -> None:
    page.focus("#filter")
    while not page.evaluate("document.activeElement.closest('#table tbody') !== null"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement !== document.body")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('details-body').textContent.includes('Stays in the skyline')")
    assert page.text_content("#details-title") == "bee"
    page.keyboard.press("Escape")
    assert not page.is_visible("#details")
    assert page.evaluate("document.activeElement.textContent") == "bee"


def explained(page: Any) -> None:
    """What dominates the hotel that is outside, and from there to one that does."""
    page.fill("#search-id", "dog")
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('.dominators li').length > 0")
    names = page.eval_on_selector_all(".dominators button", "all => all.map(e => e.textContent)")
    assert sorted(names) == ["bee", "cat"]
    page.click(".dominators button >> text=cat")
    until(page, "document.getElementById('details-title').textContent === 'cat'")
    page.click("#details-close")
    page.fill("#search-id", "nobody")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#details-body [role=alert]') !== null")


def test_a_row_outside_says_what_dominates_it_and_leads_there(page: Any) -> None:
    explained(page)


def test_a_report_knows_what_dominates_a_row_outside(visit: Any, tmp_path: Path) -> None:
    write_report(hotels(), tmp_path / "report.html")
    explained(visit(tmp_path / "report.html"))


def test_a_press_on_a_point_opens_it(page: Any) -> None:
    page.uncheck("#rest")
    page.evaluate("document.getElementById('scatter').scrollIntoView({block: 'center'})")
    page.wait_for_timeout(400)
    x, y = page.evaluate("skytide.place('bee')")
    page.mouse.move(x, y)
    assert page.text_content("#scatter .tip strong") == "bee"
    page.mouse.click(x, y)
    until(page, "document.getElementById('details').open")
    assert page.text_content("#details-title") == "bee"


def test_sorting_filtering_and_brushing(page: Any) -> None:
    page.click("#table thead button >> text=stars")
    page.click("#table thead button >> text=stars")
    assert [line[0] for line in listed(page)] == ["cat", "bee", "ant"]
    assert page.get_attribute("#table thead th:nth-child(4)", "aria-sort") == "descending"
    page.fill("#filter", "b")
    assert [line[0] for line in listed(page)] == ["bee"]
    page.fill("#filter", "")
    page.fill("[aria-label='price from']", "15")
    until(page, "skytide.shown().join() === 'bee,cat'")
    until(page, "document.querySelectorAll('#table tbody tr').length === 2")
    page.click("#brush-clear")
    until(page, "skytide.shown().length === 3")
    x, top, bottom = page.evaluate("skytide.axis(1)")
    page.mouse.move(x, (top + bottom) / 2)
    page.mouse.down()
    page.mouse.move(x, top - 5, steps=4)
    page.mouse.up()
    until(page, "skytide.shown().length < 3")
    assert "cat" in page.evaluate("skytide.shown()")
    assert "ant" not in page.evaluate("skytide.shown()")


def test_a_staircase_is_the_border_of_what_the_rows_dominate(page: Any) -> None:
    """A corner lies on it: moved a little toward better in both columns, no row is as good in both any more."""
    random = np.random.default_rng(12)
    grids = [random.integers(0, 6, size=(int(random.integers(0, 9)), 2)).tolist() for _ in range(300)]
    ask = """async grids => { const { staircase } = await import('/assets/geometry.js');
        return grids.map(points => staircase(points, 9, 9)); }"""
    for points, corners in zip(grids, page.evaluate(ask, grids), strict=True):
        best = {(a, b) for a, b in points if not any(c <= a and d <= b and (c, d) != (a, b) for c, d in points)}
        assert best <= {(a, b) for a, b in corners}
        for a, b in corners:
            assert any(c <= a and d <= b for c, d in points)
            assert not any(c < a and d < b for c, d in points)
        assert all(a == c or b == d for (a, b), (c, d) in pairwise(corners))
        assert not points or ([corners[0][1], corners[-1][0]] == [9, 9])


def test_dominance_in_the_page_is_the_reference(page: Any) -> None:
    random = np.random.default_rng(13)
    values = [0.0, 1.0, 2.0, math.inf, -math.inf]
    pairs = [[[values[i] for i in random.integers(5, size=3)] for _ in range(2)] for _ in range(400)]
    ask = """async pairs => { const { dominates } = await import('/assets/geometry.js');
        return pairs.map(([a, b]) => dominates(a, b, ['min', 'max', 'min'])); }"""
    signs = [1, -1, 1]
    expected = [
        dominates([s * x for s, x in zip(signs, a, strict=True)], [s * x for s, x in zip(signs, b, strict=True)])
        for a, b in pairs
    ]
    assert page.evaluate(ask, pairs) == expected
    assert True in expected


def test_the_threshold_hides_rows_below_it(visit: Any) -> None:
    board = Board(Preference(minimize=["price", "way"]), kind="uncertain", thresholds=(0.3, 0.5))
    board.see(pa.table({"price": [1, 2, 3], "way": [3, 2, 1]}), ["ant", "bee", "cat"])
    board.change([1, 1, 1], "+++", ["ant", "bee", "cat"], thresholds=[0.3, 0.3, 0.3])
    board.probabilities(["ant", "bee", "cat"], [0.35, 0.6, 0.9])
    page = visit(board)
    assert page.evaluate("skytide.shown()") == ["ant", "bee", "cat"]
    page.fill("#q-number", "0.5")
    page.keyboard.press("Enter")
    until(page, "skytide.shown().join() === 'bee,cat'")
    until(page, "document.querySelectorAll('#table tbody tr').length === 2")
    assert [line[3] for line in listed(page)] == ["0.6", "0.9"]
    page.focus("#q")
    page.keyboard.press("End")
    until(page, "skytide.shown().length === 0")
    page.keyboard.press("Home")
    until(page, "skytide.shown().length === 3")
    board.probabilities(["ant", "bee", "cat"], [0.35, 0.6, 0.4])
    page.fill("#q-number", "0.5")
    page.keyboard.press("Enter")
    until(page, "skytide.shown().join() === 'bee'")


def test_a_report_is_the_page_without_a_server(visit: Any, tmp_path: Path) -> None:
    feeding = Feeding(11).begin().go(80)
    feeding.board.end()
    write_report(feeding.board, tmp_path / "report.html")
    page = visit(tmp_path / "report.html")
    drawn(page, feeding.board)
    assert page.evaluate("skytide.values()") == answer(feeding.board.state()["rows"])
    until(page, "document.getElementById('instant').max > 1")
    times = feeding.board.sizes()["time"]
    page.focus("#instant")
    page.keyboard.press("Home")
    for time in times[:12]:
        until(page, "time => skytide.past === time", time)
        assert page.evaluate("skytide.values()") == answer(feeding.board.at(time))
        page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    until(page, "skytide.past === null")
    assert page.text_content("#status") == "recording"


def test_times_read_as_they_are_in_the_data(visit: Any) -> None:
    board = Board(Preference(minimize=["price"]), title="one column")
    page = visit(board)
    board.see(pa.table({"price": [1.0, 2.0]}), ["ant", "bee"])
    board.change(np.array(["2013-01-05 10:00", "2013-01-05 12:30:15"], "datetime64[ms]"), "++", ["ant", "bee"])
    until(page, "document.querySelectorAll('#table tbody tr').length === 2")
    assert [line[-1] for line in listed(page)] == ["2013-01-05 10:00", "2013-01-05 12:30:15"]
    assert page.text_content("#time") == "2013-01-05 12:30:15 UTC"


def test_dates_have_places_like_numbers(visit: Any) -> None:
    board = Board(Preference(minimize=["day", "price", "way"]), title="days")
    days = np.array(["2024-02-01", "2024-02-09", "2024-02-20T06:00"], "datetime64[ms]")
    board.see(pa.table({"day": days, "price": [3, 2, 1], "way": [1, 1, 1]}), ["ant", "bee", "cat"])
    board.change([1, 1, 1], "+++", ["ant", "bee", "cat"])
    page = visit(board)
    across = [page.evaluate("name => skytide.place(name)[0]", name) for name in ("ant", "bee", "cat")]
    assert across == sorted(set(across))
    until(page, "document.querySelector('#scatter .xtick')?.textContent.includes('Feb')")
    page.fill("[aria-label='day to']", "2024-02-10")
    until(page, "skytide.shown().join() === 'ant,bee'")


def test_the_skyline_of_a_table_has_no_past(visit: Any, tmp_path: Path) -> None:
    board = Board(Preference(minimize=["price"], maximize=["stars"]), kind="skyline")
    board.change([0, 0], "++", ["1", "2"], values=pa.table({"price": [1, 2], "stars": [3, 4]}))
    board.end()
    write_report(board, tmp_path / "table.html")
    page = visit(tmp_path / "table.html")
    until(page, "skytide.written !== null")
    assert not page.is_visible("#history-card")
    assert page.text_content("#time") == "" and "since" not in page.text_content("#table thead")
    page.click("#table tbody tr button")
    until(page, "document.getElementById('details-body').textContent.includes('lower is better')")
    assert "since" not in page.text_content("#details-body") and "Stays" not in page.text_content("#details-body")
