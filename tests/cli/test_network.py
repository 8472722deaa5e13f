"""A coordinator and its sites as processes on this machine, by their commands."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cli.command import refused, rows_of, run

SKYTIDE = [sys.executable, "-m", "skytide.cli"]
PATIENCE = 20.0
SITE_IMPORTS = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numba", "llvmlite", "pyarrow", "pandas", "pyspark", "starlette", "uvicorn"}:
            raise ImportError(f"{name} is not for sites")
sys.meta_path.insert(0, Refuse())
from skytide.cli import main
main()
"""

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command in the test's folder; whatever still runs at the end is ended."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str, program: list[str] = SKYTIDE) -> subprocess.Popen[bytes]:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([*program, *arguments], cwd=tmp_path, **pipes)
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
            with contextlib.suppress(OSError):
                pipe.close()


def line_of(pipe: IO[bytes] | None) -> str:
    assert pipe is not None
    return pipe.readline().decode()


def coordinator(start: Start, *arguments: str, listen: str = "127.0.0.1:0") -> tuple[str, subprocess.Popen[bytes]]:
    """A coordinator that listens; its address, and the process."""
    process = start("coordinator", "--data", "state", "--listen", listen, *arguments)
    greeting = line_of(process.stderr)
    found = re.search(r"sites connect to wss?://([\d.:]+);", greeting)
    assert found, greeting + (process.stderr.read().decode() if process.stderr else "")
    return found[1], process


def asked(address: str, token: str | None = None, certificate: Path | None = None) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    context = None if certificate is None else ssl.create_default_context(cafile=certificate)
    request = urllib.request.Request(f"http{'s' if context else ''}://{address}/skyline", headers=headers)
    with urllib.request.urlopen(request, context=context) as answer:
        return json.load(answer)


def until(holds: Callable[[], bool], what: object = "") -> None:
    limit = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < limit, what() if callable(what) else what
        time.sleep(0.02)


def shows(address: str, *ids: object) -> None:
    """Wait for the answer to be exact and these."""
    until(lambda: (state := asked(address))["exact"] and state["skyline"] == list(ids), lambda: asked(address))


def say(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text.encode())
    process.stdin.flush()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, complaint = process.communicate(timeout=PATIENCE)
    return process.returncode, complaint.decode()


def site(address: str, name: str, data: str, *more: str) -> list[str]:
    return ["site", "--connect", f"ws://{address}", "--name", name, "--data", data, "--id", "item", *more]


def test_three_sites_have_the_skyline_of_all_their_rows_and_load_no_compiler(tmp_path: Path, start: Start) -> None:
    """One site has CSV, one lines of JSON, one standard input; ids are the same things in each."""
    rows = [(number, (number * 37) % 101, (number * 53) % 97) for number in range(60)]
    union = "item,price,rating\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows)
    (tmp_path / "union.csv").write_text(union)
    found = rows_of(run("skyline", tmp_path / "union.csv", "--min", "price", "--max", "rating").stdout)
    header, *lines = union.splitlines(keepends=True)
    (tmp_path / "a.csv").write_text(f"{header}3,1,9999\n{''.join(lines[:20])}3,,\n{lines[3]}")
    objects = [{"item": str(a) if a % 2 else a, "price": b, "rating": c} for a, b, c in rows[20:40]]
    (tmp_path / "b.ndjson").write_text("\n".join(map(json.dumps, objects)))

    address, process = coordinator(start, "--min", "price", "--max", "rating")
    light = [sys.executable, "-c", SITE_IMPORTS]
    first = start(*site(address, "a", "a.csv"), program=light)
    second = start(*site(address, "b", "b.ndjson"))
    third = start(*site(address, "c", "-"))
    say(third, header + "".join(lines[40:]) + "oops\n41,cheap,1\n42,cheap,1\n")
    third.stdin.close()  # type: ignore[union-attr]
    third.stdin = None
    ends = [ended(one) for one in (first, second, third)]
    assert [status for status, _ in ends] == [0, 0, 0], ends
    assert re.fullmatch(
        r"skytide site: a: 23 rows, 23 acknowledged, 0 refused, \d+ bytes sent, \d+ received\n", ends[0][1]
    )
    connected, short, cheap, told = ends[2][1].splitlines()
    assert "c is connected; columns: price, rating" in connected
    assert "standard input, row 21: the row has 1 values for 3 columns" in short
    assert "standard input, row 22, column 'price': 'cheap' is not a number" in cheap
    assert "20 rows, 20 acknowledged, 0 refused, 3 bad" in told

    state = asked(address)
    assert (state["exact"], state["stale"]) == (True, [])
    assert state["skyline"] == sorted((int(row["item"]) for row in found), key=str)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (0, "")


def test_sites_of_fragments_have_the_skyline_of_the_functions(tmp_path: Path, start: Start) -> None:
    rows = [
        (router, target, (router * 31 + target * 17) % 23, (router * router * 7 + target * 29) % 41)
        for router in range(3)
        for target in range(12)
    ]
    union = "time,router,item,packets,volume\n" + "".join(f"1,{a},{b},{c},{d}\n" for a, b, c, d in rows)
    (tmp_path / "union.csv").write_text(union)
    functions = ["--max", "packets", "--max", "var(volume)"]
    options = ["--site", "router", "--id", "item", "--time", "time", *functions]
    found = rows_of(run("fragments", tmp_path / "union.csv", *options).stdout)
    address, _ = coordinator(start, "--protocol", "fragmented", *functions)
    sites = []
    for router in range(3):
        text = "".join(f"{b},{c},{d}\n" for a, b, c, d in rows if a == router)
        (tmp_path / f"{router}.csv").write_text("item,packets,volume\n" + text)
        sites.append(start(*site(address, f"router-{router}", f"{router}.csv", "--stay")))
    for one in sites:
        assert "has told all 12 rows, and stays" in line_of(one.stderr)
    shows(address, *sorted((int(row["id"]) for row in found), key=str))
    for one in sites:
        one.send_signal(signal.SIGINT)
    assert [ended(one)[0] for one in sites] == [0, 0, 0]
    until(lambda: len(asked(address)["stale"]) == 3)


def test_a_site_that_is_killed_returns_with_all_it_had_and_so_does_the_coordinator(start: Start) -> None:
    address, process = coordinator(start, "--min", "price")
    stream = site(address, "c", "-", "--state", "kept", "--format", "ndjson")
    killed = start(*stream)
    say(killed, '{"item": "tea", "price": 3}\n{"item": "ale", "price": 2}\n{"item": "pie", "price": 1}\n')
    shows(address, "pie")
    killed.kill()
    killed.wait()
    until(lambda: not asked(address)["exact"])
    (stale,) = asked(address)["stale"]
    assert (stale["site"], sorted(stale["objects"])) == ("c", ["ale", "pie", "tea"])

    back = start(*stream)
    shows(address, "pie")
    say(back, '{"item": "pie", "price": null}\n')
    shows(address, "ale")

    process.kill()
    process.wait()
    _, process = coordinator(start, "--min", "price", listen=address)
    say(back, '{"item": "ale", "price": null}\n')
    shows(address, "tea")
    back.send_signal(signal.SIGTERM)
    assert ended(back)[0] == 0


def test_a_followed_file_may_grow_be_replaced_and_be_cut_off(tmp_path: Path, start: Start) -> None:
    address, _ = coordinator(start, "--min", "price")
    path = tmp_path / "rows.csv"
    path.write_text("item,price\ntea,5\n")
    follow = site(address, "f", "rows.csv", "--follow", "--state", "kept")
    process = start(*follow)
    shows(address, "tea")
    with path.open("a") as file:
        file.write("ale,4\npie,1")
    shows(address, "ale")
    with path.open("a") as file:
        file.write("0\n")
    process.kill()  # before or after it has seen the last line
    process.wait()
    with path.open("a") as file:
        file.write("ale,\nbun,4.5\n")
    process = start(*follow)
    shows(address, "bun")
    path.rename(tmp_path / "rows.1")
    path.write_text("price,item\n3,jam\n")
    shows(address, "jam")
    path.write_text("item,price\nfig,2\n")
    shows(address, "fig")
    process.send_signal(signal.SIGINT)
    status, complaint = ended(process)
    assert (status, "rows.csv" in complaint) == (0, False)
    assert len(asked(address)["stale"][0]["objects"]) == 5


def test_tokens_tell_sites_and_readers_apart_over_tls(tmp_path: Path, start: Start) -> None:
    made = run("token", "--secret-file", tmp_path / "secret", "--new", "berlin", "paris")
    assert made.exit_code == 0
    berlin, paris = made.stdout.split()
    (reader,) = run("token", "--secret-file", tmp_path / "secret", "--reader", "anna").stdout.split()
    for name, token in (("berlin", berlin), ("paris", paris), ("reader", reader), ("forged", berlin[:-2] + "xx")):
        (tmp_path / f"{name}.token").write_text(token + "\n")
    (tmp_path / "rows.csv").write_text("item,price\ntea,5\n")
    certificate = Path(__file__).parent.parent / "runtime" / "network" / "certificate.pem"
    tls = ["--certificate", str(certificate), "--key", str(certificate.with_name("key.pem"))]
    address, _ = coordinator(start, "--min", "price", "--secret-file", "secret", *tls)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        asked(address, certificate=certificate)
    unsure = ["site", "--connect", f"wss://{address}", "--data", "rows.csv", "--id", "item"]
    here = [*unsure, "--certificate", str(certificate)]
    tries = {
        "wrong": start(*here, "--token-file", "forged.token"),
        "reader's": start(*here, "--name", "berlin", "--token-file", "reader.token"),
        "none": start(*here, "--name", "berlin"),
        "another's": start(*here, "--name", "berlin", "--token-file", "paris.token"),
        "right": start(*here, "--token-file", "berlin.token"),
        "unsure": start(*unsure, "--token-file", "paris.token"),
    }
    ends = {name: ended(process) for name, process in tries.items()}
    for name in ("wrong", "reader's", "none"):
        assert ends[name] == (2, "skytide: the coordinator refuses the token; give this site's token\n"), name
    assert ends["another's"][0] == 2
    assert "refuses the site" in ends["another's"][1]
    assert ends["unsure"][0] == 2
    assert "the coordinator's certificate is not trusted" in ends["unsure"][1]
    assert ends["right"][0] == 0
    assert asked(address, reader, certificate)["skyline"] == ["tea"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--data: it is missing"),
        (["--data", "state"], "--min: no preference is given"),
        (["--data", "state", "--min", "a", "--listen", "0.0.0.0:0"], "open to other machines, and there is no secret"),
        (
            ["--data", "state", "--min", "a", "--method", "sampling"],
            "--method: 'sampling' is no method of the filtering",
        ),
        (["--data", "state", "--min", "a", "--patience", "2"], "--patience: '2'"),
        (["bad.toml"], "bad.toml: [query] mim: there is no such key; did you mean min?"),
        (["nowhere.toml"], "nowhere.toml: No such file or directory"),
        (["--data", "rows.csv", "--min", "a"], "rows.csv"),
    ],
)
def test_a_coordinator_that_cannot_be_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text('[coordinator]\ndata = "state"\n[query]\nmim = ["a"]\n')
    Path("rows.csv").write_text("item,price\ntea,5\n")
    assert said in refused("coordinator", *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "nowhere.csv", "--name", "s"], "nowhere.csv: No such file or directory"),
        (["--data", "rows.csv"], "the site has no name; give --name, or --token-file"),
        (["--data", "rows.txt", "--name", "s"], "'rows.txt' does not say which form its rows have"),
        (["--data", "rows.csv", "--name", "s p"], "'s p' is not a name for a site"),
        (["--data", "rows.csv", "--name", "s", "--state", "kept"], "--state is for --follow and streams"),
        (["--data", "-", "--follow", "--name", "s"], "only a plain file can be followed"),
        (["--data", "rows.csv", "--token-file", "rows.csv"], "rows.csv: this is not a token"),
        (["--data", "rows.csv", "--token-file", "nowhere"], "nowhere: No such file or directory"),
        (
            ["--data", "rows.csv", "--name", "s", "--connect", "ftp://x"],
            "'ftp://x' is not the address of a coordinator",
        ),
    ],
)
def test_a_site_that_cannot_be_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKYTIDE_PLAIN", os.environ.get("SKYTIDE_PLAIN", "0"))
    for name in ("rows.csv", "rows.txt"):
        Path(name).write_text("item,price\ntea,5\n")
    assert said in refused("site", "--connect", "ws://127.0.0.1:9", "--id", "item", *arguments)


def test_a_plain_file_with_a_bad_row_is_refused_whole(tmp_path: Path, start: Start) -> None:
    address, _ = coordinator(start, "--min", "price")
    (tmp_path / "rows.csv").write_text("item,price\ntea,5\nale,cheap\n")
    (tmp_path / "short.csv").write_text("item\ntea\n")
    first = start(*site(address, "s", "rows.csv"))
    second = start(*site(address, "t", "short.csv"))
    assert ended(first) == (
        2,
        "skytide: rows.csv, row 2, column 'price': 'cheap' is not a number; give numbers, or nothing\n",
    )
    assert ended(second)[1].startswith("skytide: short.csv: 'price' is no column; the header has item")
    assert asked(address)["skyline"] == []


def test_what_is_not_installed_is_named_with_the_remedy() -> None:
    probe = "import sys; sys.modules['{}'] = None\nfrom skytide.cli import main\nsys.argv[1:] = {!r}\nmain()"
    site_of_nobody = ["site", "--connect", "ws://127.0.0.1:9", "--name", "s", "--data", "-", "--id", "i"]
    for package, arguments in (
        ("starlette", ["coordinator", "--data", "d", "--min", "a"]),
        ("websockets", site_of_nobody),
    ):
        done = subprocess.run(
            [sys.executable, "-c", probe.format(package, arguments)], capture_output=True, check=False
        )
        assert done.returncode == 2
        assert b"pip install 'skytide[network]'" in done.stderr
        assert done.stderr.count(b"\n") == 1
