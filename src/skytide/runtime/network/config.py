"""What the coordinator is told: a TOML file, options of the command line with the same names, or both; options win.

    [coordinator]               listen data secret_file certificate key revoked patience heartbeat forget_after keep
    [query]                     protocol method min max nulls theta over every
    [limits]                    frame objects connections new_connections header readers stalled

Paths in a file are relative to it. A complaint names the file or the option, the key, the value and the remedy.
"""

from __future__ import annotations

import difflib
import ipaddress
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from skytide.errors import InputError, OptionError, SkytideError
from skytide.expressions import parse
from skytide.model import Preference, duration_value
from skytide.monitors.frequent.pairs import Pair
from skytide.protocols.network.query import METHODS

_LARGEST_FILE = 1 << 20


class ConfigError(OptionError):
    """The coordinator is told something that cannot be.

    >>> raise ConfigError("is not allowed", where="c.toml: [query] nulls", value="error", remedy="use drop or worst")
    Traceback (most recent call last):
    ...
    skytide.runtime.network.config.ConfigError: c.toml: [query] nulls: 'error' is not allowed; use drop or worst
    """

    def __init__(self, reason: str, *, where: str, value: Any = None, remedy: str = "") -> None:
        super().__init__(reason, value=value, remedy=remedy)
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {super().__str__()}"


# -- forms: each gives the value as it is used, or raises a SkytideError -----------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise OptionError("is not a text", value=value)
    return value


def _path(value: Any) -> Path:
    return Path(value) if isinstance(value, Path) else Path(_text(value)).expanduser()


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple | str):
        raise OptionError("is not a list of texts", value=value)
    return tuple(map(_text, [value] if isinstance(value, str) else value))


def _seconds(value: Any) -> float:
    if not isinstance(value, str):
        raise OptionError("is not a duration", value=value, remedy="write text like 500ms, 90s, 15m, 2h")
    seconds = duration_value(value) / 1e9
    if not 0 < seconds <= 1e9:
        raise OptionError("is not a length of time", value=value, remedy="give more than 0s")
    return seconds


def _whole(least: int, most: int = 1 << 40) -> Callable[[Any], int]:
    def form(value: Any) -> int:
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise OptionError("is not allowed", value=value, remedy=f"give a whole number from {least} to {most}")
        return number

    return form


def _choice(*names: str) -> Callable[[Any], str]:
    def form(value: Any) -> str:
        if value not in names:
            raise OptionError("is not allowed", value=value, remedy="use " + " or ".join(names))
        return str(value)

    return form


def _theta(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise OptionError("is not a share", value=value, remedy="give a number above 0, up to 1")
    Pair.of(value, 1)
    return str(value)


def _listen(value: Any) -> str:
    address_of(_text(value))
    return str(value)


def address_of(listen: str) -> tuple[str, int]:
    """Host and port of `host:port`; an IPv6 address stands in brackets.

    >>> address_of("127.0.0.1:8750"), address_of("[::1]:0")
    (('127.0.0.1', 8750), ('::1', 0))
    """
    host, colon, port = listen.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    name = host[1:-1] if bracketed else host
    if not colon or not name or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise OptionError("is not an address", value=listen, remedy="write host:port, like 127.0.0.1:8750")
    if (":" in name) != bracketed or any(character in name for character in "[]/ "):
        raise OptionError("is not an address", value=listen, remedy="write IPv6 addresses in brackets, like [::1]:8750")
    return name, int(port)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone. Of names only `localhost` is known to be such."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_ours(named: str, own: str) -> bool:
    """Whether the name that a request asks for, with or without a port, is the own one or of this machine alone.

    A page elsewhere whose name was made to point here could read everything.

    >>> is_ours("LOCALHOST:80", "10.0.0.7"), is_ours("[::1]:80", "10.0.0.7"), is_ours("evil.example", "10.0.0.7")
    (True, True, False)
    """
    name = named.lower()
    host = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    return host == own.lower() or is_loopback(host)


# -- the configuration -------------------------------------------------------------------------------------------------


class _Key(NamedTuple):
    """A key of the file: its table, the form of its value, and what it means."""

    table: str
    form: Callable[[Any], Any]
    about: str


_KEYS = {
    "listen": _Key("coordinator", _listen, "the address to listen on"),
    "data": _Key("coordinator", _path, "the folder of the log"),
    "secret_file": _Key("coordinator", _path, "the file with the secret behind all tokens"),
    "certificate": _Key("coordinator", _path, "the certificate for TLS, and its chain, as PEM"),
    "key": _Key("coordinator", _path, "the certificate's private key, as PEM"),
    "revoked": _Key("coordinator", _texts, "names whose tokens do not count, like site.berlin"),
    "patience": _Key("coordinator", _seconds, "how long a dialogue waits for a site"),
    "heartbeat": _Key("coordinator", _seconds, "how often a quiet connection is asked whether it lives"),
    "forget_after": _Key("coordinator", _seconds, "after so long a site that is away is forgotten"),
    "keep": _Key("coordinator", _whole(1, 100_000_000), "events that readers can still get"),
    "protocol": _Key("query", _choice(*METHODS), "filtering, or fragmented"),
    "method": _Key("query", _text, "who tells what, and when"),
    "min": _Key("query", _texts, "columns, or expressions, of which less is better"),
    "max": _Key("query", _texts, "columns, or expressions, of which more is better"),
    "nulls": _Key("query", _choice("drop", "worst"), "what a missing value is"),
    "theta": _Key("query", _theta, "instead: who is in at least this share of the ticks"),
    "over": _Key("query", _whole(1), "the share is of so many ticks"),
    "every": _Key("query", _seconds, "the time between two ticks"),
    "frame": _Key("limits", _whole(1 << 10, 1 << 26), "bytes of a message of a site"),
    "objects": _Key("limits", _whole(1, 1 << 31), "objects that sites may speak of"),
    "connections": _Key("limits", _whole(1, 1_000_000), "open connections"),
    "new_connections": _Key("limits", _whole(1, 1_000_000), "new connections in a second"),
    "header": _Key("limits", _seconds, "how long the head of a request may take"),
    "readers": _Key("limits", _whole(1, 1_000_000), "readers that follow the changes"),
    "stalled": _Key("limits", _seconds, "a reader that takes nothing for so long is dropped"),
}
_TABLES = {
    table: [name for name, key in _KEYS.items() if key.table == table] for table in ("coordinator", "query", "limits")
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """What the coordinator is told, checked. Durations are seconds, sizes bytes.

    >>> config = Config.of({"data": "state", "min": ("price",), "patience": "500ms"})
    >>> config.host, config.port, config.patience, config.secret_file
    ('127.0.0.1', 8750, 0.5, None)
    >>> Config.of({"data": "state", "min": ("price",), "listen": "0.0.0.0:8750"})
    Traceback (most recent call last):
    ...
    skytide.runtime.network.config.ConfigError: --listen: '0.0.0.0:8750' is open to other machines, and there is no
        secret; give secret_file, or listen on 127.0.0.1
    """

    listen: str = "127.0.0.1:8750"
    data: Path
    secret_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    revoked: tuple[str, ...] = ()
    patience: float = 2.0
    heartbeat: float = 5.0
    forget_after: float | None = None
    keep: int = 100_000

    protocol: str = "filtering"
    method: str = "auto"
    min: tuple[str, ...] = ()
    max: tuple[str, ...] = ()
    nulls: str = "drop"
    theta: str | None = None
    over: int | None = None
    every: float | None = None

    frame: int = 4 << 20
    objects: int = 10_000_000
    connections: int = 5000
    new_connections: int = 500
    header: float = 10.0
    readers: int = 100
    stalled: float = 30.0

    @property
    def host(self) -> str:
        """The host to listen on."""
        return address_of(self.listen)[0]

    @property
    def port(self) -> int:
        """The port to listen on."""
        return address_of(self.listen)[1]

    @classmethod
    def read(cls, path: str | Path, flags: Mapping[str, Any] | None = None) -> Config:
        """The configuration of a TOML file, where options that are given (not None, not empty) win."""
        file = Path(path)
        given: dict[str, _Given] = {}
        for table, content in _toml(file).items():
            if table not in _TABLES:
                raise ConfigError("there is no such table", where=f"{path}: [{table}]", remedy=_near(table, _TABLES))
            if not isinstance(content, dict):
                reason, remedy = "is not a table", f"begin it with [{table}]"
                raise ConfigError(reason, where=f"{path}: {table}", value=content, remedy=remedy)
            for name, value in content.items():
                where = f"{path}: [{table}] {name}"
                if name not in _TABLES[table]:
                    home = next((one for one, names in _TABLES.items() if name in names), None)
                    remedy = f"it belongs to [{home}]" if home else _near(name, _TABLES[table])
                    raise ConfigError("there is no such key", where=where, remedy=remedy)
                formed = _formed(name, value, where)
                given[name] = _Given(file.absolute().parent / formed if isinstance(formed, Path) else formed, where)
        return cls._made(given | _from_flags(flags or {}), str(path))

    @classmethod
    def of(cls, flags: Mapping[str, Any]) -> Config:
        """The configuration of options alone, named as the keys of a file."""
        return cls._made(_from_flags(flags), "")

    @classmethod
    def _made(cls, given: dict[str, _Given], file: str) -> Config:
        if "data" not in given:
            place = f"{file}: [coordinator] data" if file else "--data"
            raise ConfigError("it is missing", where=place, remedy="name the folder of the log")
        config = cls(**{name: one.value for name, one in given.items()})

        def where(*names: str) -> str:
            """Where the first of the keys that was given stands, or where it could stand."""
            found = next((given[name].where for name in names if name in given), None)
            return found or (f"{file}: [{_KEYS[names[0]].table}] {names[0]}" if file else f"--{names[0]}")

        config._check_address(where)
        config._check_query(where)
        return config

    def _check_address(self, where: Callable[..., str]) -> None:
        if self.secret_file is None and not is_loopback(self.host):
            reason, remedy = (
                "is open to other machines, and there is no secret",
                "give secret_file, or listen on 127.0.0.1",
            )
            raise ConfigError(reason, where=where("listen"), value=self.listen, remedy=remedy)
        if (self.certificate is None) != (self.key is None):
            reason = "certificate and key go together"
            raise ConfigError(reason, where=where("certificate", "key"), remedy="give both, or none")
        if self.forget_after is not None and self.forget_after <= self.patience:
            reason, remedy = "a site is forgotten before it is missed", "give more than patience"
            raise ConfigError(reason, where=where("forget_after"), value=self.forget_after, remedy=remedy)

    def _check_query(self, where: Callable[..., str]) -> None:
        if self.method not in METHODS[self.protocol]:
            reason, names = f"is no method of the {self.protocol} protocol on a network", METHODS[self.protocol]
            raise ConfigError(reason, where=where("method"), value=self.method, remedy="use " + ", ".join(names))
        if not self.min and not self.max:
            raise ConfigError("no preference is given", where=where("min"), remedy="name columns in min or max")
        try:
            if self.protocol == "filtering":
                Preference(self.min, self.max)
            else:
                for text in (*self.min, *self.max):
                    parse(text)
        except SkytideError as problem:
            raise _placed(problem, where("min", "max")) from None
        asked = [name for name in ("theta", "over", "every") if getattr(self, name) is not None]
        if asked and len(asked) < 3:
            raise ConfigError("theta, over and every go together", where=where(*asked), remedy="give all, or none")


@dataclass(frozen=True)
class _Given:
    """A value, and where it stands."""

    value: Any
    where: str


def about(name: str) -> str:
    """What a key means, in a few words: for the help of an option.

    >>> about("keep")
    'events that readers can still get'
    """
    return _KEYS[name].about


def _from_flags(flags: Mapping[str, Any]) -> dict[str, _Given]:
    given = {}
    for name, value in flags.items():
        where = "--" + name.replace("_", "-")
        if name not in _KEYS:
            raise ConfigError("there is no such option", where=where, remedy=_near(name, _KEYS))
        if value is not None and value != ():
            given[name] = _Given(_formed(name, value, where), where)
    return given


def _formed(name: str, value: Any, where: str) -> Any:
    try:
        return _KEYS[name].form(value)
    except SkytideError as problem:
        raise _placed(problem, where, f"expected: {about(name)}") from None


def _placed(problem: SkytideError, where: str, remedy: str = "") -> ConfigError:
    column = "" if problem.column is None else f"column {problem.column!r} "
    return ConfigError(column + problem.reason, where=where, value=problem.value, remedy=problem.remedy or remedy)


def _toml(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            raw = stream.read(_LARGEST_FILE + 1)
        if len(raw) > _LARGEST_FILE:
            raise InputError("is larger than 1 MiB", file=str(file), remedy="give a configuration, not data")
        return tomllib.loads(raw.decode("utf-8-sig"))
    except OSError as problem:
        raise InputError(problem.strerror or "it cannot be read", file=str(file)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InputError(f"this is not TOML: {' '.join(str(problem).split())}", file=str(file)) from None


def _near(wrong: str, names: Any) -> str:
    near = difflib.get_close_matches(wrong, list(names), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else "use one of: " + ", ".join(names)
