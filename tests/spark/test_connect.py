"""Spark Connect: a real server in a process of its own, on the JRE of the wheel, and a client without any Java."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skytide.errors import MissingDependencyError, OptionError
from skytide.spark import remote_session
from tests.spark.test_machines import EXPECTED, MISSING, ROOT

pytest.importorskip("pyspark")


@pytest.fixture
def server(bare_environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    environment = {
        **bare_environment,
        "PYTHONPATH": os.pathsep.join([str(ROOT), bare_environment["PYTHONPATH"]]),
    }
    log = tmp_path / "server.txt"
    with (
        log.open("w") as said,
        subprocess.Popen(
            [sys.executable, "-m", "tests.spark.connect_jobs", "server"],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            first = process.stdout.readline()
            assert first, log.read_text()[-4000:]
            found = json.loads(first)
            assert "java-" in found["java"]  # the wrapper before the JRE that lacks a module
            yield f"sc://127.0.0.1:{found['port']}"
        finally:
            process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def test_a_client_without_java_gets_the_same_answers(
    server: str, bare_environment: dict[str, str], tmp_path: Path
) -> None:
    environment = {
        **bare_environment,
        "PATH": "",
        "PYTHONPATH": os.pathsep.join([str(ROOT), bare_environment["PYTHONPATH"]]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_jobs", "client", server],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    other = found.pop("other")
    assert other.startswith(f"'{server}' is not a Spark Connect server that can be used (")
    assert found == {
        "client": "pyspark.sql.connect.session",
        "partitions": "3",
        "skyline": EXPECTED,
        "joined": [29],
        "filtered": True,
        "same": True,
        "groups": 120,
        "sql": 3000,
        "sql groups": 120,
        "task": MISSING,
        "function": "column 'z': there is no such column; choose one of: id, a, b, g",
        "windows": [],
    }


@pytest.mark.parametrize("url", ["host:15002", "http://host", "sc://", "sc://host:port", "local[2]", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(OptionError, match="is not a Spark Connect server; write sc://HOST:PORT"):
        remote_session(url)


def test_a_server_that_does_not_answer_is_an_error_at_once() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(OptionError, match=rf"'sc://127\.0\.0\.1:{port}' does not answer .*; start the server"):
        remote_session(f"sc://127.0.0.1:{port}")


def test_what_is_not_installed_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(MissingDependencyError, match=r'\(grpc\); install it with: pip install "skytide\[connect\]"'):
        remote_session("sc://127.0.0.1:1")
