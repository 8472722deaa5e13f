"""Tokens: each is good for one name in one role, and no other text is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError, OutputError
from skytide.runtime.network.secrets import ROLES, Identity, Tokens, check, issue, new_secret, read_secret

NAMES = st.text("abcXYZ019_-", min_size=1, max_size=100)
SECRETS = st.binary(min_size=32, max_size=64)


@given(SECRETS, st.sampled_from(ROLES), NAMES)
def test_a_token_is_its_owners(secret: bytes, role: str, name: str) -> None:
    assert check(secret, issue(secret, role, name)) == Identity(role, name)


@given(SECRETS, SECRETS, st.sampled_from(ROLES), NAMES, NAMES)
def test_a_token_is_good_for_no_other_secret_role_or_name(
    secret: bytes, other: bytes, role: str, name: str, another: str
) -> None:
    token = issue(secret, role, name)
    proof = token.rpartition(".")[2]
    # HMAC fills short keys with zeros: secrets that differ in zeros at their ends are one.
    assert (check(other, token) is None) == (other.rstrip(b"\0") != secret.rstrip(b"\0"))
    [wrong] = set(ROLES) - {role}
    assert check(secret, f"{wrong}.{name}.{proof}") is None
    assert another == name or check(secret, f"{role}.{another}.{proof}") is None


@given(st.integers(0, 200), st.characters())
def test_a_token_with_any_other_character_is_none(place: int, character: str) -> None:
    token = issue(bytes(32), "site", "berlin")
    changed = token[:place] + character + token[place + 1 :]
    # The last character of a proof has two bits that say nothing; they are compared all the same.
    assert changed == token or check(bytes(32), changed) is None


@given(st.text())
def test_any_text_is_no_token(text: str) -> None:
    assert check(bytes(32), text) is None


def test_a_name_can_be_taken_back_in_one_role_or_in_all() -> None:
    secret = bytes(range(32))
    site, reader = issue(secret, "site", "anna"), issue(secret, "reader", "anna")
    assert check(secret, site, {"anna"}) is None and check(secret, reader, {"anna"}) is None
    assert check(secret, site, {"reader.anna"}) == ("site", "anna") and check(secret, reader, {"reader.anna"}) is None


@pytest.mark.parametrize("name", ["", "a.b", "a b", "ä", "a\n", "x" * 101, "a\0"])
def test_names_with_other_characters_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match="is not a name"):
        issue(bytes(32), "site", name)


def test_other_roles_and_short_secrets_are_refused() -> None:
    with pytest.raises(OptionError, match="is not a role"):
        issue(bytes(32), "admin", "x")
    with pytest.raises(OptionError, match="too few"):
        issue(bytes(31), "site", "x")


def test_a_new_secret_is_its_owners_alone_and_replaces_none(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    before = os.umask(0)
    try:
        secret = new_secret(file)
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o600 and len(secret) == 32 and read_secret(file) == secret
    with pytest.raises(OutputError, match="is there already"):
        new_secret(file)
    assert read_secret(file) == secret != new_secret(tmp_path / "other")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_secret_that_others_may_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "secret"
    new_secret(file)
    file.chmod(mode)
    with pytest.raises(InputError, match=f"mode {mode:o}"):
        read_secret(file)


@pytest.mark.parametrize("size", [0, 31, 4097])
def test_a_file_that_is_no_secret_is_refused(tmp_path: Path, size: int) -> None:
    file = tmp_path / "secret"
    file.touch(0o600)
    file.write_bytes(bytes(size))
    with pytest.raises(InputError, match="32 to 4096 bytes"):
        read_secret(file)
    for missing in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError):
            read_secret(missing)


@given(SECRETS, NAMES, st.sampled_from(["Bearer {}", "bearer {}", "BEARER   {}  "]))
def test_a_header_with_a_token_says_who_comes(secret: bytes, name: str, form: str) -> None:
    header = form.format(issue(secret, "site", name))
    assert Tokens(secret).identity(header, "site") == ("site", name)
    assert Tokens(secret, frozenset([f"site.{name}"])).identity(header, "site") is None
    assert Tokens().identity(header, "site") == ("site", "anyone")


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic x", "Bearer x y", "Token x"])
def test_other_headers_say_nothing(tmp_path: Path, header: str | None) -> None:
    new_secret(tmp_path / "secret")
    tokens = Tokens.of(tmp_path / "secret", ["anna"])
    assert tokens.identity(header, "reader") is None and tokens.revoked == {"anna"}
    assert Tokens.of(None).secret is None
