"""A page that is open while its board moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skytide.dashboard import Board, write_report
from tests.dashboard.browser.feeding import Feeding, answer, drawn, listed, until

LABELS = """() => [...document.querySelectorAll('button, input, select')].filter(e => !(
    e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map(e => e.outerHTML)"""
CONTRAST = """pairs => pairs.map(([a, b]) => {
    const style = getComputedStyle(document.documentElement);
    const light = name => {
        const hex = style.getPropertyValue('--' + name).trim();
        const part = i => { const c = parseInt(hex.slice(i, i + 2), 16) / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
        return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
    };
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return [a, b, (high + 0.05) / (low + 0.05)];
})"""  # noqa: E501


@pytest.mark.parametrize("seed", [0, 1])
def test_the_page_is_the_board_after_hundreds_of_changes(visit: Any, seed: int) -> None:
    feeding = Feeding(seed).begin().go(20)
    page = visit(feeding.board)
    for _ in range(12):
        feeding.go(10)
        page.wait_for_timeout(60)
    drawn(page, feeding.board)
    state = feeding.board.state()
    assert page.evaluate("skytide.values()") == answer(state["rows"])
    assert sorted(line[0] for line in listed(page)) == sorted(row[1] for row in state["rows"])
    feed = page.evaluate("[...document.querySelectorAll('#feed li')].map(e => [e.dataset.sign, e.dataset.key])")
    assert feed == [[change[1], change[2]] for change in reversed(state["changes"])]
    assert page.text_content("[data-meter=size] dd") == str(len(state["rows"]))


def test_a_new_server_on_the_same_port_takes_over(visit: Any) -> None:
    first = Feeding(3).begin().go(30)
    page = visit(first.board)
    drawn(page, first.board)
    visit.servers.pop().close()
    page.wait_for_selector("#status[data-status=gone]")
    second = Feeding(4, title="other hotels").begin().go(31)
    visit.serve(second.board)
    page.wait_for_selector("#status[data-status=running]")
    second.go(20)
    drawn(page, second.board)
    until(page, "document.getElementById('title').textContent === 'other hotels'")
    assert page.evaluate("skytide.values()") == answer(second.board.state()["rows"])


def test_the_slider_shows_the_past_and_goes_back_to_now(visit: Any) -> None:
    feeding = Feeding(5).begin().go(60)
    board = feeding.board
    page = visit(board)
    until(page, "document.getElementById('instant').max > 1")
    times = board.sizes()["time"]
    for time in (times[0], times[len(times) // 2], times[-3]):
        page.evaluate(
            "t => { const s = document.getElementById('instant'); s.value = t; s.dispatchEvent(new Event('input')) }",
            time,
        )
        until(page, "t => skytide.past === t", time)
        assert page.evaluate("skytide.values()") == answer(board.at(time))
        page.wait_for_selector("#past-now")
    feeding.go(5)
    until(page, "number => skytide.number === number", board.number)
    assert page.evaluate("skytide.values()") == answer(board.at(times[-3]))
    page.focus("#instant")
    page.keyboard.press("ArrowLeft")
    until(page, "t => skytide.past === t", times[-4])
    page.click("#past-now")
    drawn(page, board)
    assert page.evaluate("skytide.values()") == answer(board.state()["rows"])
    page.wait_for_selector("#past-now", state="hidden")


def test_a_paused_page_stands_still_and_misses_nothing(visit: Any) -> None:
    feeding = Feeding(6).begin().go(30)
    page = visit(feeding.board)
    drawn(page, feeding.board)
    page.click("#pause")
    before = page.evaluate("skytide.values()")
    feeding.go(30)
    until(page, "number => skytide.number === number", feeding.board.number)
    assert page.evaluate("skytide.values()") == before
    page.click("#pause")
    drawn(page, feeding.board)
    assert page.evaluate("skytide.values()") == answer(feeding.board.state()["rows"])


def test_a_phone_scrolls_in_one_direction_only(visit: Any) -> None:
    feeding = Feeding(7).begin().go(40)
    feeding.board.notice(False, ["site " + "north" * 40 + " is stale"])
    feeding.board.ledger(LEDGER)
    page = visit(feeding.board, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    page.wait_for_timeout(400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.text_content("#notices strong") == "Not exact"


LEDGER = {
    "messages": 30,
    "naive_messages": 120,
    "bytes": 4_000,
    "naive_bytes": None,
    "kinds": [
        {"way": "up", "kind": "violation", "messages": 20, "bytes": 3_000},
        {"way": "down", "kind": "filter", "messages": 10, "bytes": 1_000},
    ],
}


def test_messages_stand_against_sending_everything(visit: Any) -> None:
    feeding = Feeding(8, kind="monitor").begin().go(3)
    page = visit(feeding.board)
    assert not page.is_visible("#ledger-card")
    feeding.board.ledger(LEDGER)
    page.wait_for_selector("#ledger-card:not([hidden])")
    assert "30 sent, 25 % of the 120" in page.text_content("#ledger .bars")
    kinds = page.eval_on_selector_all("#ledger tbody tr", "rows => rows.map(r => r.cells[0].textContent)")
    assert kinds == ["violation", "filter"]


def test_every_control_has_a_name_and_text_has_contrast(visit: Any) -> None:
    page = visit(Feeding(9).begin().go(40).board, color_scheme="light")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        until(page, "scheme => document.documentElement.dataset.theme === scheme", scheme)
        until(page, "document.querySelectorAll('#table tbody tr').length > 0")
        assert page.evaluate(LABELS) == []
        names = page.eval_on_selector_all("[role=img]", "all => all.map(e => e.getAttribute('aria-label'))")
        assert len(names) == 4
        assert all(names)
        texts = [("ink", "page"), ("ink", "card"), ("soft", "page"), ("soft", "card"), ("accent", "card")]
        marks = [("good", "good-wash"), ("bad", "bad-wash"), ("warn", "warn-wash"), ("on-accent", "accent")]
        assert [pair for pair in page.evaluate(CONTRAST, [*texts, *marks]) if pair[2] < 4.5] == []
    page.click("#theme")
    assert page.evaluate("[document.documentElement.dataset.theme, localStorage.length]") == ["light", 1]


def test_a_board_without_rows_has_a_page(visit: Any) -> None:
    board = Board(Feeding().board.preference)
    page = visit(board)
    assert page.evaluate("skytide.rows()") == []
    board.end("the source broke")
    page.wait_for_selector("#status[data-status=ended]")
    assert page.text_content("#status") == "ended: the source broke"


@pytest.mark.parametrize("recorded", [False, True])
def test_the_slider_begins_where_the_history_does(
    visit: Any, recorded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skytide.dashboard.board.RECORDED_VERSIONS", 20)
    feeding = Feeding(6, keep=10_000 if recorded else 20).begin().go(150)
    board, report = feeding.board, tmp_path / "run.html"
    if recorded:
        write_report(board, report)
    page = visit(report if recorded else board)
    begins = (board.recording()["sizes"] if recorded else board.sizes())["from"]
    assert begins > board.sizes()["time"][0]
    page.wait_for_selector("#instant:not([disabled])")
    page.focus("#instant")
    page.keyboard.press("Home")
    until(page, f"skytide.past === {begins}")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("PageDown")
    page.wait_for_timeout(300)
    assert page.evaluate("skytide.past") == begins
    assert page.evaluate("skytide.rows()") == sorted(row[0] for row in board.at(begins))
