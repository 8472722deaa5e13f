"""What a reader of a coordinator makes of answers that break off, of others' answers and of none."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from skytide.errors import InputError
from skytide.spark.sources.coordinator import Coordinator, access_of
from tests.runtime.network.serving import FakeHub, served


@dataclass
class Answer:
    """What a server says to one request; `cut` bytes of it at the end do not come."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0


def lines(*numbers: int) -> bytes:
    events: list[dict[str, Any]] = [{"number": number, "time": number / 2, "kind": "change"} for number in numbers]
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@contextmanager
def saying(*answers: Answer, timeout: float = 10) -> Iterator[tuple[Coordinator, list[str]]]:
    """A reader of a server that gives these answers, the last one again and again; and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = answers[min(len(asked), len(answers) - 1)]
            asked.append(f"{self.command} {self.path} {self.headers['Authorization']}")
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(answer.body[: len(answer.body) - answer.cut])
            self.close_connection = answer.cut > 0

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        coordinator = Coordinator(access_of(url, token="anna", timeout=timeout))
        try:
            yield coordinator, asked
        finally:
            coordinator.close()
            server.shutdown()
            thread.join()


def numbers(coordinator: Coordinator, after: int, last: int) -> list[int]:
    return [event["number"] for some in coordinator.events(after, last) for event in some]


def test_an_answer_that_breaks_off_is_taken_up_where_it_did() -> None:
    away = Answer(b'{"error":"full"}', status=503)
    answers = [Answer(lines(3, 4, 5, 6), cut=7), away, Answer(lines(6, 7), cut=7), Answer(lines(7), cut=45)]
    with saying(*answers, Answer(lines(7))) as (coordinator, asked):
        assert numbers(coordinator, 2, 7) == [3, 4, 5, 6, 7]
    assert [line.split("&after=")[1][0] for line in asked] == ["2", "5", "5", "6", "6"]
    assert asked[-1] == "GET /changes?format=ndjson&wait=0&after=6&most=1 Bearer anna"


def test_one_connection_serves_many_questions() -> None:
    with served(FakeHub(keep=10)) as server:
        server.publish(5000 + 25)
        access = access_of(f"ws://{server.host}:{server.port}")
        coordinator = Coordinator(access)
        assert coordinator.bounds() == (5016, 5025)
        before = server.metric("skytide_connections")
        assert numbers(coordinator, 5015, 5025) == list(range(5016, 5026)) and coordinator.event(5020)["time"] == 0.5
        with pytest.raises(InputError, match=r"the events after 5014 any more \(the newest is 5025\)"):
            numbers(coordinator, 5014, 5016)
        assert server.metric("skytide_connections") <= before
        coordinator.close()


def test_many_events_come_in_pieces_and_a_reader_may_stop_in_between() -> None:
    with served(FakeHub(keep=20_000)) as server:
        server.publish(20_000, id="x" * 40)
        coordinator = Coordinator(access_of(f"http://{server.host}:{server.port}"))
        pieces = [len(some) for some in coordinator.events(0, 20_000)]
        assert sum(pieces) == 20_000 and len(pieces) > 2
        some = coordinator.events(0, 20_000)
        assert next(some)[0]["number"] == 1
        some.close()  # type: ignore[attr-defined]
        assert coordinator.bounds() == (1, 20_000)
        coordinator.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(b"<html>welcome</html>"), "a line has no end"),
        (Answer(b"<html>welcome</html>\n"), "these are not events"),
        (Answer(b"[1, 2]\n"), "these are not events"),
        (Answer(b'{"number": 3}\n'), "these are not events"),
        (Answer(b"[" * 100_000 + b"\n"), "these are not events"),
        (Answer(lines(4)), "event 4 comes instead of 3"),
        (Answer(lines(3, 4, 5)), "event 5 comes instead of 5"),
        (Answer(status=302, headers={"Location": "http://127.0.0.1:1/"}), "302 Found"),
        (Answer(b'{"error":"no such page"}', status=404), "404 no such page"),
        (Answer(status=401), "refuses the token; give a reader's token, as token or tokenFile"),
        (Answer(), "does not have the events after 2 any more"),
    ],
)
def test_others_answers_are_one_clear_line(answer: Answer, said: str) -> None:
    with saying(answer) as (coordinator, asked), pytest.raises(InputError) as caught:
        numbers(coordinator, 2, 4)
    assert said in str(caught.value) and "\n" not in str(caught.value) and "anna" not in str(caught.value)
    assert len(asked) == 1, "no second attempt will mend it"


def test_a_server_without_numbers_is_no_coordinator() -> None:
    with saying(Answer(b"hello")) as (coordinator, asked), pytest.raises(InputError, match="which events it keeps"):
        coordinator.bounds()
    assert asked == ["HEAD /changes Bearer anna"]


@pytest.mark.parametrize(
    "answer", [Answer(b'{"error":"100 readers follow already"}', status=503), Answer(lines(3), cut=2)]
)
def test_a_coordinator_that_stays_away_is_an_error_in_time(answer: Answer) -> None:
    with saying(answer, timeout=1) as (coordinator, asked), pytest.raises(InputError) as caught:
        numbers(coordinator, 2, 4)
    assert "did not answer for 1 seconds: " in str(caught.value) and len(asked) > 1
    with pytest.raises(InputError, match=r"did not answer for 0\.2 seconds: Connection refused; see that"):
        Coordinator(access_of("http://127.0.0.1:1", timeout=0.2)).bounds()
