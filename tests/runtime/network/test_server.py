"""What readers get by HTTP, through real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from skytide.errors import InputError, OptionError, OutputError
from skytide.runtime.network.config import Config
from skytide.runtime.network.secrets import issue
from skytide.runtime.network.server import application, serve
from tests.runtime.network.serving import FakeHub, Served, served

SECRET = bytes(range(32))
# Of no use elsewhere: a self-signed certificate for localhost, of the years 2000 to 2120, and its key.
CERTIFICATE, KEY = Path(__file__).parent / "certificate.pem", Path(__file__).parent / "key.pem"


class Follower:
    """A reader of a stream that takes event after event."""

    def __init__(self, server: Served, path: str, **headers: str) -> None:
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
        self.connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200

    def event(self) -> dict[str, Any]:
        """The next server-sent event: its data, checked against its other lines."""
        lines: dict[str, str] = {}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if not line and "data" in lines:
                data: dict[str, Any] = json.loads(lines["data"])
                assert (lines["id"], lines["event"]) == (str(data["number"]), data["kind"])
                return data
            name, _, value = line.partition(": ")
            if name and not line.startswith(":"):
                lines[name] = value

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


def test_the_answer_the_ledger_and_the_state_of_the_process_can_be_read() -> None:
    with served() as server:
        server.publish(3)
        assert server.json("/skyline") == {
            "number": 3,
            "time": 2.0,
            "exact": False,
            "stale": [{"site": "b", "since": 1.5, "objects": 2}],
            "skyline": ["é", 7],
        }
        assert server.json("/ledger") == {"messages": 3}
        assert server.json("/objects") == server.json("/objects?all=0") == {"objects": ["é", 7]}
        assert server.json("/objects?all=1") == {"objects": ["é", 7, 8]} and server.get("/objects?all=2")[0] == 400
        assert server.json("/health") == {"status": "ok"} and server.json("/ready") == {"ready": True}
        status, headers, body = server.get("/metrics")
        assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
        assert b"# TYPE skytide_connections gauge\nskytide_connections " in body
        status, _, body = server.get("/")
        assert all(path in body.decode() for path in ("/skyline", "/ledger", "/changes", "/metrics", "/ready"))
        server.hub.is_ready = False
        assert server.get("/ready")[0] == 503 and server.get("/health")[0] == 200
        assert server.get("/nothing")[0] == 404 and json.loads(server.get("/nothing")[2]) == {"error": "Not Found"}


def test_changes_that_are_there_are_read_to_the_newest_one() -> None:
    with served(FakeHub(keep=1000)) as server:
        server.publish(1300, id="é")
        for path, headers in (
            ("/changes?wait=0&format=ndjson", {}),
            ("/changes?wait=0", {"Accept": "application/x-ndjson"}),
        ):
            status, got, body = server.get(path, **headers)
            assert status == 200 and got["content-type"].startswith("application/x-ndjson")
            records = [json.loads(line) for line in body.splitlines()]
            assert [record["number"] for record in records] == list(range(301, 1301)) and records[0]["id"] == "é"
        _, got, body = server.get("/changes?wait=0&after=1298")
        assert got["content-type"].startswith("text/event-stream")
        expected = [{"number": n, "time": 0.5, "kind": "change", "id": "é"} for n in (1299, 1300)]
        lines = body.decode().split("\n")
        assert [json.loads(line[6:]) for line in lines if line.startswith("data: ")] == expected
        assert server.get("/changes?wait=0&after=1300")[2] == b""
        [gap] = server.get("/changes?wait=0&after=7&format=ndjson")[2].splitlines()
        assert json.loads(gap) == {
            "number": 1300,
            "time": 0.5,
            "kind": "gap",
            "after": 7,
            "restart": 1300,
            "state": "/skyline",
        }


def test_a_reader_may_ask_for_so_many_and_is_told_which_are_kept() -> None:
    with served(FakeHub(keep=1000)) as server:
        server.publish(1300)
        for after, most, numbers in ((400, 700, range(401, 1101)), (1299, 5, [1300]), (300, 0, [])):
            _, headers, body = server.get(f"/changes?wait=0&format=ndjson&after={after}&most={most}")
            assert [json.loads(line)["number"] for line in body.splitlines()] == list(numbers)
            assert (headers["skytide-oldest"], headers["skytide-newest"]) == ("301", "1300")
        follower = Follower(server, "/changes?most=2&format=ndjson")
        server.publish(3)
        assert [json.loads(line)["number"] for line in follower.answer.read().splitlines()] == [1301, 1302]
        follower.close()


def test_followers_get_each_event_as_it_comes_and_go_on_where_they_were() -> None:
    with served() as server:
        server.publish(2)
        early, late = Follower(server, "/changes?after=0"), Follower(server, "/changes")
        assert [early.event()["number"] for _ in range(2)] == [1, 2]
        server.publish(1, "stale", site="b")
        assert early.event() == late.event() == {"number": 3, "time": 0.5, "kind": "stale", "site": "b"}
        late.close()
        server.publish(2)
        # What a browser sends again: the address of old, and the number it had.
        again = Follower(server, "/changes?after=0", Last_Event_ID="3")
        assert [again.event()["number"], again.event()["number"], early.event()["number"]] == [4, 5, 4]
        server.until(lambda: server.metric("skytide_readers") == 2)
        again.close()
        server.until(lambda: server.metric("skytide_readers") == 1)
        early.close()


def test_readers_get_the_rest_and_an_end_when_the_server_stops() -> None:
    with served() as server:
        follower = Follower(server, "/changes?after=0&format=ndjson")
        server.publish(700)
    numbers = [json.loads(line)["number"] for line in follower.answer.read().splitlines()]
    assert numbers == list(range(1, 701))
    follower.close()
    with pytest.raises(OSError):
        server.connect()


def test_a_quiet_stream_says_that_it_lives() -> None:
    with served(heartbeat=0.05) as server:
        follower = Follower(server, "/changes")
        assert [follower.answer.readline() for _ in range(6)] == [b":\n", b"\n"] * 3
        server.publish()
        assert follower.event()["number"] == 1
        follower.close()


@pytest.mark.parametrize(
    "query",
    [
        "after=-1",
        "most=-1",
        "after=x",
        "after=9223372036854775808",
        "after=%D9%A1",
        "after=" + "9" * 5000,
        "wait=2",
        "format=xml",
    ],
)
def test_questions_that_make_no_sense_are_refused(query: str) -> None:
    with served() as server:
        status, _, body = server.get(f"/changes?{query}")
        assert status == 400 and len(json.loads(body)["error"]) < 120
        assert server.get("/changes?wait=0", Last_Event_ID="x")[0] == 400


def test_a_question_for_the_head_alone_does_not_follow() -> None:
    with served() as server:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
        connection.request("HEAD", "/changes")
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read() == b""
        assert server.metric("skytide_readers") == 0
        connection.request("POST", "/skyline", body=b"x")
        assert connection.getresponse().status == 405
        connection.close()


def test_readers_above_the_limit_are_asked_to_come_later() -> None:
    with served(readers=2) as server:
        followers = [Follower(server, "/changes") for _ in range(2)]
        status, headers, _ = server.get("/changes")
        assert status == 503 and headers["retry-after"]
        assert server.get("/skyline")[0] == 200
        followers.pop().close()
        server.until(lambda: server.metric("skytide_readers") == 1)
        followers.append(Follower(server, "/changes"))
        for follower in followers:
            follower.close()


PROTECTED = ("/", "/skyline", "/objects", "/ledger", "/changes?wait=0", "/metrics")


def test_with_a_secret_a_readers_token_is_needed() -> None:
    hub = FakeHub(secret=SECRET)
    with served(hub) as server:
        reader, site = issue(SECRET, "reader", "anna"), issue(SECRET, "site", "berlin")
        for path in PROTECTED:
            status, headers, body = server.get(path)
            assert (status, headers["www-authenticate"]) == (401, "Bearer") and b"skyline" not in body
            for wrong in ("Bearer x", f"Basic {reader}", reader, f"Bearer {issue(bytes(32), 'reader', 'anna')}"):
                assert server.get(path, Authorization=wrong)[0] == 401
            assert server.get(path, Authorization=f"Bearer {site}")[0] == 403
            assert server.get(path, Authorization=f"Bearer {reader}")[0] == 200
        assert server.get("/health")[0] == server.get("/ready")[0] == 200


def test_without_a_secret_pages_under_other_names_are_kept_out() -> None:
    """A page whose name was made to point to this machine comes with its own name."""
    with served() as server:
        for name in ("evil.example", "evil.example:80", "10.0.0.1", "localhost.evil.example", "[::2]:5"):
            assert server.get("/skyline", Host=name)[0] == 421
        for name in ("localhost", f"localhost:{server.port}", "127.0.0.1:1", "[::1]:80"):
            assert server.get("/skyline", Host=name)[0] == 200
    with served(FakeHub(secret=SECRET)) as server:
        token = issue(SECRET, "reader", "anna")
        assert server.get("/skyline", Host="coordinator.example", Authorization=f"Bearer {token}")[0] == 200


async def _echo(websocket: WebSocket) -> None:
    await websocket.accept()
    async for data in websocket.iter_bytes():
        await websocket.send_bytes(data)


SITES: list[BaseRoute] = [WebSocketRoute("/site", _echo)]


def test_the_route_of_sites_has_its_place_and_frames_have_a_limit() -> None:
    with served(routes=SITES, frame=2000) as server:
        address = f"ws://{server.host}:{server.port}/site"
        with connect(address) as site:
            site.send(bytes(2000))
            assert site.recv() == bytes(2000)
            site.send(bytes(2001))
            with pytest.raises(ConnectionClosed, match="1009"):
                site.recv()
        with pytest.raises(InvalidStatus):
            connect(address, origin=Origin("http://evil.example"))
        with pytest.raises(InvalidStatus):
            connect(address + "s")


def test_tls_serves_readers_and_sites() -> None:
    with served(routes=SITES, certificate=CERTIFICATE, key=KEY) as server:
        server.publish(3)
        context = ssl.create_default_context(cafile=str(CERTIFICATE))
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=30, context=context)
        connection.request("GET", "/changes?wait=0&format=ndjson")
        assert [json.loads(line)["number"] for line in connection.getresponse().read().splitlines()] == [1, 2, 3]
        connection.close()
        with connect(f"wss://localhost:{server.port}/site", ssl=context) as site:
            site.send(b"hello")
            assert site.recv() == b"hello"
        with pytest.raises((OSError, http.client.HTTPException)):
            server.get("/skyline")  # without TLS


def test_a_certificate_that_cannot_be_used_is_said_to(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="the certificate and its key cannot be used"),
        served(certificate=KEY, key=KEY),
    ):
        pass
    with pytest.raises(InputError, match="No such file"), served(certificate=tmp_path / "none", key=KEY):
        pass


def test_a_port_that_is_taken_is_named() -> None:
    from skytide.runtime.network.guard import Door, Guard
    from skytide.runtime.network.metrics import Metrics

    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OutputError, match="cannot listen there"):
        guard = Guard(connections=1, new_connections=1, header=1, stalled=1, metrics=Metrics())
        Door("127.0.0.1", other.getsockname()[1], guard)


def test_other_machines_are_not_let_in_without_a_secret_whatever_the_configuration_says() -> None:
    app = application(FakeHub())
    config = Config(data=Path("unused"), min=("a",), listen="0.0.0.0:0", secret_file=Path("unused"))
    with pytest.raises(OptionError, match="open to other machines"):
        asyncio.run(serve(config, app, stop=asyncio.Event()))
