"""`skytide doctor` and `skytide bench`."""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from pathlib import Path

import pytest

from skytide.cli import _checks, bench
from tests.cli.command import refused, run


def test_doctor_says_what_works_and_gives_a_remedy_for_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_checks, "PEERS", ("moocore", "a_package_that_is_not_there"))
    monkeypatch.setattr(_checks, "_java", lambda: _checks.Finding("java", False, "not looked for here"))
    result = run("doctor")
    assert result.exit_code == 0
    lines = {line.split()[1]: line for line in result.stdout.splitlines()}
    assert lines["numba"].startswith("ok")
    assert lines["peers"].startswith("missing") and "pip install" in lines["peers"]
    record = json.loads(run("doctor", "--json").stdout)
    assert record["ok"] is True
    assert {check["name"]: check["ok"] for check in record["checks"]}["peers"] is False


def test_doctor_survives_what_it_finds_and_reports_a_core_that_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> _checks.Finding:
        raise RuntimeError("no\nluck")

    monkeypatch.setattr(_checks, "_kernel", broken)
    monkeypatch.setattr(_checks, "_java", broken)
    result = run("doctor")
    assert result.exit_code == 1
    assert "missing  kernel        no luck" in result.stdout
    assert json.loads(run("doctor", "--json").stdout)["ok"] is False


def test_doctor_warns_of_a_cache_that_is_temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    finding = _checks._cache()
    assert not finding.ok and "temporary" in finding.detail and "NUMBA_CACHE_DIR" in finding.remedy


def test_bench_runs_the_benchmark_of_that_name_with_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peers = tmp_path / "benchmarks" / "peers"
    peers.mkdir(parents=True)
    (peers / "tiny.py").write_text("")
    (peers / "_shared.py").write_text("")
    monkeypatch.setattr(bench, "_checkout", lambda: tmp_path)
    assert run("bench").stdout == "tiny\n"
    line = refused("bench", "huge")
    assert "'huge'" in line and "tiny" in line
    seen: list[list[str]] = []

    class Module:
        @staticmethod
        def main(arguments: list[str]) -> int:
            seen.append(arguments)
            return 3

    load = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda name: Module if name.endswith(".tiny") else load(name))
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert run("bench", "tiny", "--rows", "5", "-x").exit_code == 3
    assert seen == [["--rows", "5", "-x"]]


def test_bench_outside_a_checkout_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "bench.py"))
    monkeypatch.chdir(tmp_path)
    assert "checkout" in refused("bench", "batch")
