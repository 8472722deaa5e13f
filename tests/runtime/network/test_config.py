"""The coordinator's configuration: file and options say the same, and complaints name the place, value and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError
from skytide.runtime.network.config import Config, ConfigError, about, address_of, is_loopback

FULL = """
[coordinator]
listen = "[::1]:9000"
data = "state"
secret_file = "keys/secret"
certificate = "/etc/c.pem"
key = "/etc/k.pem"
revoked = ["site.old", "anna"]
patience = "1500ms"
heartbeat = "1s"
forget_after = "1d"
keep = 500

[query]
protocol = "fragmented"
method = "pivot"
min = "norm(a, b)"
max = ["var(c)"]
nulls = "worst"
theta = 0.8
over = 100
every = "10s"

[limits]
frame = 65536
objects = 1000
connections = 10
new_connections = 5
header = "3s"
readers = 2
stalled = "4s"
"""


def _file(folder: Path, text: str) -> Path:
    file = folder / "coordinator.toml"
    file.write_text(text)
    return file


def test_every_key_is_read_and_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    config = Config.read(_file(tmp_path, FULL))
    assert config == Config(
        listen="[::1]:9000",
        data=tmp_path / "state",
        secret_file=tmp_path / "keys/secret",
        certificate=Path("/etc/c.pem"),
        key=Path("/etc/k.pem"),
        revoked=("site.old", "anna"),
        patience=1.5,
        heartbeat=1.0,
        forget_after=86400.0,
        keep=500,
        protocol="fragmented",
        method="pivot",
        min=("norm(a, b)",),
        max=("var(c)",),
        nulls="worst",
        theta="0.8",
        over=100,
        every=10.0,
        frame=65536,
        objects=1000,
        connections=10,
        new_connections=5,
        header=3.0,
        readers=2,
        stalled=4.0,
    )
    assert (config.host, config.port) == ("::1", 9000)
    assert all(about(name) for name in config.__dataclass_fields__)


def test_options_say_the_same_as_a_file_and_win_over_it(tmp_path: Path) -> None:
    file = _file(tmp_path, '[coordinator]\ndata = "a"\nkeep = 5\n[query]\nmax = ["x"]\n')
    flags: dict[str, Any] = {"data": str(tmp_path / "a"), "keep": "5", "max": ("x",), "min": (), "theta": None}
    assert Config.of(flags) == Config.read(file)
    assert Config.read(file, {"keep": 7, "max": (), "method": "naive"}) == Config.of(
        {**flags, "keep": 7, "method": "naive"}
    )


@pytest.mark.parametrize(
    ("table", "line", "complaint"),
    [
        ("coordinator", 'listen = "8750"', "[coordinator] listen: '8750' is not an address; write host:port"),
        ("coordinator", 'listen = "::1:8750"', "is not an address; write IPv6 addresses in brackets"),
        ("coordinator", 'listen = "a:70000"', "'a:70000' is not an address"),
        ("coordinator", 'listen = "0.0.0.0:1"', "'0.0.0.0:1' is open to other machines, and there is no secret; give"),
        ("coordinator", 'listen = "example.org:1"', "is open to other machines"),
        ("coordinator", "patience = 2", "[coordinator] patience: 2 is not a duration; write text like 500ms, 90s"),
        ("coordinator", 'patience = "2x"', "'2x' is not a duration"),
        ("coordinator", 'patience = "0s"', "'0s' is not a length of time"),
        ("coordinator", 'forget_after = "1s"', "a site is forgotten before it is missed; give more than patience"),
        ("coordinator", "keep = 0", "[coordinator] keep: 0 is not allowed; give a whole number from 1 to"),
        ("coordinator", "keep = true", "True is not allowed"),
        ("coordinator", "keep = 1.0", "1.0 is not allowed"),
        ("coordinator", 'certificate = "c.pem"', "[coordinator] certificate: certificate and key go together"),
        ("coordinator", 'key = "k.pem"', "[coordinator] key: certificate and key go together; give both, or none"),
        ("coordinator", "secret_file = 5", "5 is not a text; expected: the file with the secret"),
        ("coordinator", "revoked = [1]", "1 is not a text"),
        ("coordinator", "pacience = 5", "[coordinator] pacience: there is no such key; did you mean patience?"),
        ("coordinator", "theta = 5", "[coordinator] theta: there is no such key; it belongs to [query]"),
        ("query", 'protocol = "tcp"', "'tcp' is not allowed; use filtering or fragmented"),
        (
            "query",
            'method = "hybrid"',
            "'hybrid' is no method of the filtering protocol on a network; use ",
        ),
        ("query", 'method = "pivot"', "'pivot' is no method of the filtering"),
        ("query", 'nulls = "error"', "[query] nulls: 'error' is not allowed; use drop or worst"),
        ("query", 'max = ["a"]', "min"),
        ("query", "min = [2]", "2 is not a text"),
        ("query", "theta = 1.5\nover = 1\nevery = '1s'", "theta: 1.5"),
        ("query", "theta = 0.5", "[query] theta: theta, over and every go together; give all, or none"),
        ("query", "over = 0", "0 is not allowed"),
        ("limits", "frame = 5", "5 is not allowed; give a whole number from 1024"),
        ("limits", "header = '1 hour'", "'1 hour' is not a duration"),
        ("limit", "frame = 5", "[limit]: there is no such table; did you mean limits?"),
    ],
)
def test_what_cannot_be_is_named_with_its_place_and_remedy(
    tmp_path: Path, table: str, line: str, complaint: str
) -> None:
    tables = {"coordinator": 'data = "x"\n', "query": 'min = ["a"]\n', "limits": ""}
    if line.startswith("min"):
        tables["query"] = ""
    tables[table] = tables.get(table, "") + line + "\n"
    file = _file(tmp_path, "".join(f"[{name}]\n{content}" for name, content in tables.items()))
    with pytest.raises(ConfigError) as caught:
        Config.read(file)
    assert str(caught.value).startswith(f"{file}: [") and complaint in str(caught.value), str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_are_named_as_they_are_written() -> None:
    with pytest.raises(ConfigError, match=r"^--forget-after: 'x' is not a duration"):
        Config.of({"data": "x", "min": ("a",), "forget_after": "x"})
    with pytest.raises(ConfigError, match=r"^--data: it is missing"):
        Config.of({"min": ("a",)})
    with pytest.raises(ConfigError, match=r"^--min: no preference is given"):
        Config.of({"data": "x"})
    with pytest.raises(ConfigError, match=r"^--datum: there is no such option; did you mean data\?"):
        Config.of({"datum": "x"})


def test_an_expression_that_is_none_is_refused_before_a_site_comes() -> None:
    with pytest.raises(ConfigError, match="--min"):
        Config.of({"data": "x", "protocol": "fragmented", "min": ("a +",)})
    assert Config.of({"data": "x", "protocol": "fragmented", "min": ("a + b",)}).min == ("a + b",)


@pytest.mark.parametrize("text", ["[coordinator", "\xff\xfe", "coordinator = 5"])
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "c.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(OptionError if "=" in text else InputError, match=r"c\.toml"):
        Config.read(file)
    for missing in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(InputError):
            Config.read(missing)


@given(st.text("0123456789:[]ab.", max_size=12))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        host, port = address_of(text)
    except OptionError:
        return
    assert host and 0 <= port <= 65535


def test_loopback_is_what_cannot_be_reached_from_elsewhere() -> None:
    inside = ("127.0.0.1", "127.9.9.9", "::1", "localhost")
    outside = ("0.0.0.0", "::", "10.0.0.1", "192.168.0.1", "example.org", "localhost.example.org", "127.0.0.1.nip.io")
    assert all(map(is_loopback, inside)) and not any(map(is_loopback, outside))


def test_the_methods_are_the_exact_ones_of_the_protocols() -> None:
    from skytide.protocols.filtering.methods import EXACT, SAMPLED
    from skytide.protocols.fragmented.methods import METHODS

    for protocol, right, wrong in (("filtering", EXACT, (*SAMPLED, "pivot")), ("fragmented", METHODS, ("filter",))):
        for method in right:
            assert Config.of({"data": "x", "min": ("a",), "protocol": protocol, "method": method}).method == method
        for method in wrong:
            with pytest.raises(ConfigError, match=f"--method: '{method}' is no method of the {protocol} protocol"):
                Config.of({"data": "x", "min": ("a",), "protocol": protocol, "method": method})
