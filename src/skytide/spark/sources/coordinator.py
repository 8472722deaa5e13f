"""A coordinator as its readers see it, a source of Spark's or a page: what it says, by HTTP, and ranges of its events.

Stands on the standard library alone. Redirects are not followed and proxies not used, so a token goes nowhere else.
A coordinator that is away, or starts again, is waited for: its events have the same numbers when it is back.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from skytide.errors import InputError, OptionError

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two attempts, at first and at most."""
_BLOCK = 1 << 18
_LONGEST = 16 << 20
"""Bytes of an event at most: whoever sends more is no coordinator."""
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----[!-~\s]*?-----END CERTIFICATE-----")
_TOKEN = re.compile(r"[!-~]{1,1000}")
_SCHEMES = {"http": False, "ws": False, "https": True, "wss": True}
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True)
class Access:
    """Where a coordinator is, and what it takes to read there. It travels to the tasks; its text has no secrets."""

    host: str
    port: int | None
    secure: bool
    token: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    """What the coordinator's certificate must be signed by, as PEM; None is what the machine trusts."""
    timeout: float = 60.0

    @property
    def url(self) -> str:
        """The address, for people."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.secure else ''}://{host}" + ("" if self.port is None else f":{self.port}")


def access_of(
    url: str,
    *,
    token: str | None = None,
    token_file: str | None = None,
    certificate: str | None = None,
    timeout: float = 60.0,
) -> Access:
    """Checked, and with the contents of the files: other machines need not have them.

    >>> access_of("https://example.org:8750/").url, access_of("ws://[::1]:8750/site", token="secret")
    ('https://example.org:8750', Access(host='::1', port=8750, secure=False, timeout=60.0))
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.username is not None or parts.password is not None:
        raise OptionError("the url holds a name or a password", remedy="leave it out, and give token or tokenFile")
    plain = parts.path in ("", "/", "/changes", "/site") and not parts.query and not parts.fragment
    if parts.scheme not in _SCHEMES or host is None or not _usable(host) or not plain:
        raise OptionError(
            "is not the address of a coordinator", value=url, remedy="write http://host:port or https://host:port"
        )
    secure = _SCHEMES[parts.scheme]
    if certificate is not None and not secure:
        raise OptionError(
            "a certificate is given, and the url is without TLS", remedy="write https://, or leave it out"
        )
    if token is not None and token_file is not None:
        raise OptionError("token and tokenFile are both given", remedy="give one of them")
    if token_file is not None:
        token = _contents(token_file, "the token").strip()
    if token is not None and not _TOKEN.fullmatch(token):
        # Without the value: it may be a token with a typing error.
        raise OptionError("the token is not one", remedy="give it as it was issued, in one line")
    pem = None if certificate is None else _certificates(certificate)
    access = Access(host, port, secure, token, pem, timeout)
    if secure:
        _trust(access)
    return access


def _usable(host: str) -> bool:
    """Whether a host can be asked for at all; what is wrong with it would look like a coordinator that is away."""
    try:
        return host.isprintable() and " " not in host and bool(host.encode("idna"))
    except UnicodeError:
        return False


def _contents(path: str, what: str) -> str:
    try:
        with Path(path).expanduser().open("rb") as stream:
            raw = stream.read(_LARGEST_FILE + 1)
    except OSError as problem:
        raise InputError(f"{what} cannot be read: {problem.strerror}", file=path, remedy="name its file") from None
    if len(raw) > _LARGEST_FILE:
        raise InputError(f"is too large for {what}", file=path, remedy="name its file")
    return raw.decode("latin-1")


def _certificates(path: str) -> str:
    """The certificates of a file, without what people write between them."""
    found = _PEM.findall(_contents(path, "the certificate"))
    if not found:
        # An empty text would mean that whatever the machine trusts is good enough.
        raise InputError("holds no certificate", file=path, remedy="give a PEM file with the certificate")
    return "\n".join(found)


def _trust(access: Access) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=access.certificate)
    except (OSError, ValueError) as problem:
        reason = f"the certificate cannot be used: {' '.join(str(problem).split())}"
        raise InputError(reason, remedy="give a PEM file with the certificate") from None


class _AwayError(OSError):
    """The coordinator, or what stands before it, says that it is not to be had now."""


class Coordinator:
    """Asks a coordinator; what it says stays true over its restarts. One connection, opened when it is needed."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._context = _trust(access) if access.secure else None
        self._connection: http.client.HTTPConnection | None = None

    def bounds(self) -> tuple[int, int]:
        """The numbers of the first event that is kept and of the last; first = last + 1 where there is none."""
        answer = self._asked("HEAD", "/changes")
        answer.read()
        try:
            return int(answer.headers["Skytide-Oldest"]), int(answer.headers["Skytide-Newest"])
        except (TypeError, ValueError):
            raise self._strange("it does not say which events it keeps") from None

    def json(self, path: str) -> dict[str, Any]:
        """What a path gives, such as /skyline."""
        answer = self._asked("GET", path)
        try:
            found = json.loads(answer.read())
            if isinstance(found, dict):
                return found
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            raise self._away(_said(problem)) from None
        except (ValueError, RecursionError):
            self.close()
        raise self._strange(f"{path} is not a table of JSON")

    def event(self, number: int) -> dict[str, Any]:
        """One event."""
        found = [event for some in self.events(number - 1, number) for event in some]
        return found[0]

    def events(self, after: int, last: int) -> Iterator[list[dict[str, Any]]]:
        """The events after a number up to another one, all of them, in order, some thousand at a time.

        An error where some of them are not kept any more. O(events), and memory for one answer of the network.
        """
        deadline, pause = time.monotonic() + self.access.timeout, FIRST_PAUSE
        while after < last:
            before = after
            answer = self._asked("GET", f"/changes?format=ndjson&wait=0&after={after}&most={last - after}")
            broken = ""
            try:
                for some in self._lines(answer):
                    self._check(some, after, last)
                    after = some[-1]["number"]
                    yield some
            except (OSError, http.client.HTTPException) as problem:
                broken = _said(problem)
            finally:
                if not answer.isclosed() or broken:
                    self.close()
            if after > before:
                deadline, pause = time.monotonic() + self.access.timeout, FIRST_PAUSE
            elif not broken:
                raise self.lost(after)
            elif time.monotonic() > deadline:
                raise self._away(broken)
            else:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def close(self) -> None:
        """End the connection; the next question opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- questions and answers -----------------------------------------------------------------------------------------

    def _asked(self, method: str, path: str) -> http.client.HTTPResponse:
        deadline, pause = time.monotonic() + self.access.timeout, FIRST_PAUSE
        while True:
            try:
                return self._once(method, path)
            except ssl.SSLCertVerificationError as problem:
                self.close()
                reason = f"has a certificate that is not trusted: {problem.verify_message}"
                raise InputError(reason, value=self.access.url, remedy="give the option certificate") from None
            except (OSError, http.client.HTTPException) as problem:
                self.close()
                if time.monotonic() + pause > deadline:
                    raise self._away(_said(problem)) from None
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _once(self, method: str, path: str) -> http.client.HTTPResponse:
        access = self.access
        if self._connection is None:
            if self._context is None:
                self._connection = http.client.HTTPConnection(access.host, access.port, timeout=access.timeout)
            else:
                self._connection = http.client.HTTPSConnection(
                    access.host, access.port, timeout=access.timeout, context=self._context
                )
        headers = {} if access.token is None else {"Authorization": f"Bearer {access.token}"}
        self._connection.request(method, path, headers=headers)
        answer = self._connection.getresponse()
        if answer.status != 200:
            self._refused(answer)
        return answer

    def _refused(self, answer: http.client.HTTPResponse) -> None:
        said = _reason(answer.read(2000)) or answer.reason
        self.close()
        if answer.status in (401, 403):
            asks = "asks for a token" if self.access.token is None else "refuses the token"
            raise InputError(asks, value=self.access.url, remedy="give a reader's token, as token or tokenFile")
        if answer.status >= 500:
            raise _AwayError(f"{answer.status} {said}")
        raise self._strange(f"{answer.status} {said}")

    def _lines(self, answer: http.client.HTTPResponse) -> Iterator[list[dict[str, Any]]]:
        rest = b""
        while block := answer.read(_BLOCK):
            whole, cut, rest = (rest + block).rpartition(b"\n")
            if cut:
                yield self._decoded(whole)
            if len(rest) > _LONGEST:
                break
        if answer.length:
            raise http.client.IncompleteRead(rest, answer.length)
        if rest:
            raise self._strange("a line has no end")

    def _decoded(self, lines: bytes) -> list[dict[str, Any]]:
        try:
            found = json.loads(b"[" + lines.replace(b"\n", b",") + b"]")
            if all(isinstance(event["number"], int) and isinstance(event["time"], float | int) for event in found):
                return list(found)
        except (ValueError, TypeError, LookupError, RecursionError):
            pass
        raise self._strange("these are not events")

    def _check(self, events: list[dict[str, Any]], after: int, last: int) -> None:
        for number, event in enumerate(events, after + 1):
            if event.get("kind") == "gap":
                raise self.lost(number - 1, event.get("restart"))
            if event["number"] != number or number > last:
                raise self._strange(f"event {event['number']} comes instead of {number}")

    # -- what can go wrong ---------------------------------------------------------------------------------------------

    def lost(self, after: int, newest: Any = None) -> InputError:
        """The error where events after a number are gone, or were never there."""
        now = "" if newest is None else f" (the newest is {newest})"
        return InputError(
            f"does not have the events after {after} any more{now}",
            value=self.access.url,
            remedy="begin anew, with another checkpoint: /skyline is the answer, and its number the startingOffset; "
            "a larger keep lets the coordinator keep more",
        )

    def another(self, number: int) -> InputError:
        """The error where the event of a number is not the one that was read before."""
        return InputError(
            f"has another event of number {number} than before: its data is not what it was",
            value=self.access.url,
            remedy="begin anew, with another checkpoint",
        )

    def _away(self, said: str) -> InputError:
        return InputError(
            f"did not answer for {self.access.timeout:g} seconds: {said}",
            value=self.access.url,
            remedy="see that the coordinator runs there, and whether the url must begin with https",
        )

    def _strange(self, said: str) -> InputError:
        return InputError(
            f"does not answer as a coordinator does: {said}", value=self.access.url, remedy="give a coordinator's url"
        )


def _said(problem: BaseException) -> str:
    if isinstance(problem, http.client.IncompleteRead):
        return "the answer broke off"
    text = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    return " ".join(text.split()) or type(problem).__name__


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])[:200]
    except (ValueError, TypeError, LookupError):
        return ""
