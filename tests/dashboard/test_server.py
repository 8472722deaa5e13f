"""The server over a real socket."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from skytide.dashboard import Board, Page, write_report
from skytide.errors import MissingDependencyError, OptionError, OutputError
from skytide.model import Preference

PREFERENCE = Preference(minimize=["price"], maximize=["rating"])


@pytest.fixture
def board() -> Board:
    made = Board(PREFERENCE, title="cars", parameters={"count": 3})
    made.see(pa.table({"price": [9, 7, 8], "rating": [4, 5, 3]}), ["ant", "bee", "cow"])
    made.change([1], "+", ["ant"])
    made.change([2, 2], "-+", ["ant", "bee"])
    return made


@pytest.fixture
def page(board: Board) -> Iterator[Page]:
    with Page(board, port=0) as served:
        yield served


def ask(page: Page, path: str, **headers: str) -> tuple[int, Any, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        kind = answer.headers.get("content-type", "")
        return answer.status, json.loads(body) if "json" in kind else body, answer.headers
    finally:
        connection.close()


class Events:
    """Reads server-sent events."""

    def __init__(self, page: Page, path: str = "/api/events", **headers: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
        self.connection.request("GET", path, headers=headers)
        self.answer = self.connection.getresponse()

    def next(self) -> tuple[str, str, Any]:
        fields: dict[str, str] = {}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if not line and "data" in fields:
                return fields["event"], fields["id"], json.loads(fields["data"])
            name, found, value = line.partition(": ")
            if found:
                fields[name] = value

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


def test_every_answer_is_what_the_board_says(page: Page, board: Board) -> None:
    assert ask(page, "/api/state")[1]["rows"] == board.state()["rows"]
    assert ask(page, "/api/at?time=1.5")[1] == {"time": 1.5, "rows": board.at(1.5)}
    assert ask(page, "/api/sizes")[1] == board.sizes()
    assert ask(page, "/api/stays")[1] == {"stays": board.stays()}
    assert ask(page, "/api/stays?key=ant")[1] == {"stays": [["ant", "ant", None, 1.0, 2.0]]}
    assert {row[0] for row in ask(page, "/api/rest")[1]["rows"]} == {"ant", "cow"}
    assert ask(page, "/api/explain?key=cow")[1]["dominators"] == board.state()["rows"]
    assert ask(page, "/api/recording")[1]["versions"] == board.recording()["versions"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/explain?key=nobody",
        "/api/explain",
        "/assets/..%2f..%2fboard.py",
        "/assets/board.py",
        "/assets/nothing.js",
        "/nothing",
    ],
)
def test_what_is_not_there_is_404(page: Page, path: str) -> None:
    assert ask(page, path)[0] == 404


@pytest.mark.parametrize("path", ["/api/at?time=soon", "/api/at", "/api/rest?most=-1", "/api/stays?most=1e9"])
def test_what_makes_no_sense_is_400_with_a_reason(page: Page, path: str) -> None:
    status, answer, _ = ask(page, path)
    assert status == 400 and answer["error"]


def test_events_begin_with_the_state_go_on_with_ticks_and_go_on_after_a_break(page: Page, board: Board) -> None:
    events = Events(page)
    kind, position, state = events.next()
    assert kind == "state" and state["rows"] == board.state()["rows"] and position == state["position"]
    board.change([3], "+", ["cow"])
    kind, position, tick = events.next()
    assert kind == "tick" and [row[0] for row in tick["entered"]] == ["cow"]
    events.close()
    board.change([4], "-", ["cow"])
    again = Events(page, **{"Last-Event-ID": position})
    kind, _, tick = again.next()
    assert kind == "tick" and tick["left"] == [["cow", 4.0]] and not tick["entered"]
    assert [change[:3] for change in tick["changes"]] == [[4.0, "-", "cow"]]
    again.close()
    other = Events(page, f"/api/events?after=ffff.{board.number}.3")
    assert other.next()[0] == "state", "a number of another board is worth nothing"
    other.close()


def test_meters_and_the_end_reach_readers_without_changes(page: Page, board: Board) -> None:
    events = Events(page, f"/api/events?after={board.state()['position']}")
    events.next()
    board.meter(rows=1000, retained=7)
    assert events.next()[2]["meters"]["retained"] == 7
    board.ledger({"messages": 3, "naive_messages": 9, "bytes": 30, "naive_bytes": None, "kinds": []})
    assert events.next()[2]["ledger"]["messages"] == 3
    board.notice(False, ["site north is stale"])
    assert events.next()[2]["notices"] == ["site north is stale"]
    board.end()
    assert events.next()[2]["status"] == "ended"
    events.close()


def test_the_page_and_its_library_are_shipped_and_ask_no_other_host(page: Page) -> None:
    status, body, headers = ask(page, "/")
    assert status == 200 and b"<html" in body
    assert not re.search(rb"(src|href|url\()\W*https?:", body)
    assert "default-src 'self'" in headers["content-security-policy"]
    assert ask(page, "/assets/plotly.min.js")[0] == 200


def test_a_page_elsewhere_cannot_read_through_a_name_that_points_here(page: Page) -> None:
    assert ask(page, "/api/state", Host="evil.example")[0] == 421
    assert ask(page, "/api/state", Host=f"localhost:{page.port}")[0] == 200


def test_with_a_token_only_who_has_it_may_look(board: Board) -> None:
    with Page(board, port=0, token="secret") as page:
        assert ask(page, "/api/state")[0] == 401
        assert ask(page, "/api/state?token=wrong")[0] == 401
        status, _, headers = ask(page, "/?token=secret")
        assert status == 303 and "secret" not in headers["location"]
        cookie = headers["set-cookie"].partition(";")[0]
        assert "HttpOnly" in headers["set-cookie"]
        assert ask(page, "/api/state", Cookie=cookie)[0] == 200
        assert page.url.endswith("?token=secret")


def test_beyond_loopback_a_token_is_made_unasked(board: Board) -> None:
    page = Page(board, host="0.0.0.0", port=0)
    try:
        assert page.token and page.token in page.url
    finally:
        page.close()


def test_a_port_that_is_taken_is_an_error_or_another_one(page: Page, board: Board) -> None:
    with pytest.raises(OutputError, match="cannot listen"):
        Page(board, port=page.port)
    with Page(board, port=page.port, search=True) as other:
        assert other.port != page.port and ask(other, "/api/state")[0] == 200


def test_a_page_that_closes_ends_its_streams_without_a_word(board: Board, capfd: Any, caplog: Any) -> None:
    page = Page(board, port=0).start()
    events = Events(page)
    events.next()
    began = time.monotonic()
    page.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", page.port), timeout=1).close()
    assert time.monotonic() - began < 9
    assert events.answer.read() is not None, "the stream has an end"
    events.close()
    assert capfd.readouterr() == ("", "") and not caplog.records


def test_a_report_is_one_file_and_data_cannot_break_out_of_it(board: Board, tmp_path: Any) -> None:
    board.change([5], "+", ["</script><script>alert(1)</script>"])
    target = tmp_path / "run.html"
    write_report(board, target)
    text = target.read_text()
    assert "assets/" not in text and "<script>alert(1)" not in text
    inner = text.partition('<script id="recording" type="application/json">')[2].partition("</script>")[0]
    assert json.loads(inner) == json.loads(json.dumps(board.recording()))
    assert [one.name for one in tmp_path.iterdir()] == ["run.html"]


def test_a_report_that_cannot_be_written_says_why(board: Board, tmp_path: Any, monkeypatch: Any) -> None:
    with pytest.raises(OptionError, match="extension"):
        write_report(board, tmp_path / "run.pdf")
    with pytest.raises(OptionError, match="folder"):
        write_report(board, tmp_path / "no" / "run.html")
    monkeypatch.setattr("skytide.dashboard.recording.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match="plotly"):
        write_report(board, tmp_path / "run.html")


HOSTILE = [
    "at?time=nan",
    "at?time=inf",
    "at?time=1e999",
    "at?time=" + "9" * 5000,
    "stays?most=-1",
    "nothing",
    "state/x",
]


@pytest.mark.parametrize("path", [*(f"/api/{one}" for one in HOSTILE), "/assets/" + "a" * 5000 + ".js", "/assets/"])
def test_a_hostile_question_gets_an_error_in_words(page: Page, path: str) -> None:
    status, body, _ = ask(page, path)
    assert status in (400, 404) and list(body) == ["error"]


def test_other_ways_of_asking_are_refused_in_words(page: Page) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
    connection.request("POST", "/api/state", body=b"x")
    answer = connection.getresponse()
    assert answer.status == 405 and "error" in json.loads(answer.read())
    connection.close()


def test_asking_for_the_head_of_events_makes_no_reader(page: Page) -> None:
    """Two questions over one connection: the first one must be over for the second to be answered."""
    with socket.create_connection(("127.0.0.1", page.port), 3) as connection:
        for path in (b"/api/events", b"/api/sizes"):
            connection.sendall(b"HEAD " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            found = b""
            while not found.endswith(b"\r\n\r\n"):
                found += connection.recv(4096)
            assert found.startswith(b"HTTP/1.1 200")


def test_names_of_hosts_are_the_same_in_capitals(page: Page) -> None:
    assert ask(page, "/api/sizes", Host=f"LocalHost:{page.port}")[0] == 200


@pytest.mark.parametrize("other", ["a/b=1", "{}=1", "=", "skytide=old", '"'])
def test_cookies_of_other_programs_on_the_host_do_not_lock_anybody_out(board: Board, other: str) -> None:
    with Page(board, "127.0.0.1", 0, token="secret") as page:
        status, _, headers = ask(page, "/?token=secret")
        assert status == 303
        own = headers["set-cookie"].partition(";")[0]
        assert str(page.port) in own
        assert ask(page, "/api/sizes", Cookie=f"{other}; {own}")[0] == 200
        assert ask(page, "/api/sizes", Cookie=other)[0] == 401


def test_an_address_of_another_machine_is_not_said_to_be_taken(board: Board) -> None:
    with pytest.raises(OutputError, match="an address of this machine"):
        Page(board, "192.0.2.1", 0)


def test_a_server_ends_quietly_while_readers_do_not_read(caplog: pytest.LogCaptureFixture) -> None:
    board, count = Board(PREFERENCE), 20_000
    board.see(pa.table({"price": range(count), "rating": range(count)}), list(range(count)))
    board.change(range(count), "+" * count, list(range(count)))
    deaf = []
    with Page(board, port=0) as page:
        for path in ("/api/events", "/api/state") * 6:
            deaf.append(socket.create_connection(("127.0.0.1", page.port), 3))
            deaf[-1].sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    for one in deaf:
        with one, contextlib.suppress(ConnectionError):
            one.settimeout(30)
            while one.recv(1 << 16):  # the end comes at last
                pass
    assert caplog.records == []


def test_pages_share_a_walk_through_a_long_history(page: Page, board: Board, monkeypatch: Any) -> None:
    walks = []

    def walk(key: str | None, most: int) -> list[list[Any]]:
        walks.append(key)
        time.sleep(0.2)
        return [["ant", "ant", None, 1.0, float(len(walks))]]

    monkeypatch.setattr(board, "stays", walk)
    assert [ask(page, "/api/stays")[1]["stays"][0][4] for _ in range(3)] == [1.0, 1.0, 1.0] and walks == [None]
    assert ask(page, "/api/stays?most=5")[1]["stays"][0][4] == 2.0, "another question is another walk"
    assert ask(page, "/api/stays?key=ant")[1]["stays"][0][4] == 3.0
