"""Tokens for sites and readers, all derived from one secret: nothing is stored for each, and one can be taken back.

    token = role.name.base64url(HMAC-SHA256(secret, role, a zero byte, name)), without padding

Who has the secret can issue tokens; who has a token can be one name in one role, and cannot make another. A token is
taken back by its name: `check` is given those that do not count any more. A new secret takes all of them back.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from skytide.errors import InputError, OptionError, OutputError

ROLES = ("site", "reader")
LEAST = 32
"""Bytes of a secret at least."""
_MOST = 4096
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TOKEN = re.compile(r"([a-z]{1,20})\.([A-Za-z0-9_-]{1,100})\.([A-Za-z0-9_-]{43})")


class Identity(NamedTuple):
    """Who somebody is: a name in a role."""

    role: str
    name: str

    def __str__(self) -> str:
        return f"{self.role}.{self.name}"


def issue(secret: bytes, role: str, name: str) -> str:
    """The token of a name in a role, always the same one.

    >>> token = issue(bytes(32), "site", "berlin-1")
    >>> token
    'site.berlin-1.iugZ1YPl7yINnb6jQTMVXcx4F6DLIH90dlPGrXXy4rE'
    >>> check(bytes(32), token)
    Identity(role='site', name='berlin-1')
    """
    if role not in ROLES:
        raise OptionError("is not a role", value=role, remedy="use " + " or ".join(ROLES))
    if not _NAME.fullmatch(name):
        raise OptionError("is not a name", value=name, remedy="use 1 to 100 letters, digits, _ and -")
    return f"{role}.{name}.{_proof(secret, role, name)}"


def check(secret: bytes, token: str, revoked: Collection[str] = ()) -> Identity | None:
    """Whose token it is, or None; `revoked` are names, or names with their role, like `reader.anna`.

    It takes as long for every wrong token of a role and a name.
    """
    match = _TOKEN.fullmatch(token)
    if match is None or match[1] not in ROLES:
        return None
    role, name, proof = match.groups()
    right = hmac.compare_digest(proof, _proof(secret, role, name))
    identity = Identity(role, name)
    return identity if right and name not in revoked and str(identity) not in revoked else None


@dataclass(frozen=True)
class Tokens:
    """Who may come: with a secret those with a token, without one everyone."""

    secret: bytes | None = None
    revoked: frozenset[str] = frozenset()

    @classmethod
    def of(cls, secret_file: Path | None, revoked: Collection[str] = ()) -> Tokens:
        """From a file with a secret, or None."""
        return cls(None if secret_file is None else read_secret(secret_file), frozenset(revoked))

    def identity(self, authorization: str | None, role: str) -> Identity | None:
        """Who sends this header (`Bearer` and a token); without a secret anyone is `anyone`, in the role asked for.

        >>> tokens = Tokens(bytes(32))
        >>> tokens.identity("Bearer " + issue(bytes(32), "reader", "anna"), "reader")
        Identity(role='reader', name='anna')
        >>> tokens.identity(None, "reader"), Tokens().identity(None, "reader")
        (None, Identity(role='reader', name='anyone'))
        """
        if self.secret is None:
            return Identity(role, "anyone")
        scheme, _, token = (authorization or "").partition(" ")
        return check(self.secret, token.strip(), self.revoked) if scheme.lower() == "bearer" else None


def _proof(secret: bytes, role: str, name: str) -> str:
    if len(secret) < LEAST:
        raise OptionError(f"bytes are too few for a secret of {LEAST} or more", value=len(secret))
    digest = hmac.digest(secret, role.encode() + b"\0" + name.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


# -- files -------------------------------------------------------------------------------------------------------------


def new_secret(path: str | Path) -> bytes:
    """Write a new secret to a file that is not there yet and that its owner alone may read."""
    secret = secrets.token_bytes(LEAST)
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise OutputError("is there already", file=str(path), remedy="remove it, and all tokens with it") from None
    except OSError as problem:
        raise OutputError(f"cannot be written: {problem.strerror}", file=str(path)) from None
    with os.fdopen(file, "wb") as stream:
        stream.write(secret)
        stream.flush()
        os.fsync(file)
    return secret


def read_secret(path: str | Path) -> bytes:
    """The secret of a file, refused where others may read it."""
    try:
        with Path(path).open("rb") as stream:
            # Asked of the open file: the name may be another file a moment later.
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InputError("is not a plain file", file=str(path), remedy="give a file with a secret")
            if status.st_mode & 0o077:
                raise InputError(
                    f"others may read or write the secret (mode {stat.S_IMODE(status.st_mode):o})",
                    file=str(path),
                    remedy="chmod 600, and a new secret if others are on this machine",
                )
            secret = stream.read(_MOST + 1)
    except OSError as problem:
        reason = f"the secret cannot be read: {problem.strerror}"
        raise InputError(reason, file=str(path), remedy="name a file that new_secret wrote") from None
    if not LEAST <= len(secret) <= _MOST:
        reason = (
            f"a secret has {LEAST} to {_MOST} bytes, this file has {'more' if len(secret) > _MOST else len(secret)}"
        )
        raise InputError(reason, file=str(path), remedy="make a new one")
    return secret
