"""The book of named tokens."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.access.token_book import PREFIX, TokenBook, TokenError, hash_of

NOW = 1_800_000_000.0


def test_a_new_token_is_found_but_not_stored() -> None:
    """The book finds it by its hash, and does not contain the token."""
    book, token = TokenBook().with_new("ci", NOW)
    named_token = book.by_token(token)
    assert named_token is not None
    assert (named_token.name, named_token.principal, named_token.invalid_reason(NOW)) == ("ci", "token:ci", None)
    assert token.startswith(PREFIX)
    assert len(token) == len(PREFIX) + 43
    assert token.encode() not in msgspec.json.encode(book.tokens)


@given(st.text())
def test_no_other_text_is_a_token(text: str) -> None:
    """Not even a token's hash."""
    book, token = TokenBook().with_new("ci", NOW)
    assert (book.by_token(text) is not None) == (text == token)
    assert book.by_token(hash_of(token)) is None


def test_tokens_are_unique() -> None:
    """Two are never equal."""
    assert len({TokenBook().with_new("ci", NOW)[1] for _ in range(100)}) == 100


def test_a_token_expires() -> None:
    """Exactly at its time; the reason names the token."""
    book, token = TokenBook().with_new("ci", NOW, expires_at=NOW + 60)
    named_token = book.by_token(token)
    assert named_token is not None
    assert named_token.invalid_reason(NOW + 59.9) is None
    assert named_token.invalid_reason(NOW + 60) == "the token 'ci' has expired"


def test_a_revoked_token_is_still_found() -> None:
    """So its clients learn why it is invalid."""
    book, token = TokenBook().with_new("ci", NOW)
    named_token = book.revoked("ci", NOW + 1).by_token(token)
    assert named_token is not None
    assert named_token.invalid_reason(NOW + 2) == "the token 'ci' was revoked"


def test_the_name_of_an_invalid_token_can_be_reused() -> None:
    """The new token replaces the old one."""
    book, old = TokenBook().with_new("ci", NOW)
    with pytest.raises(TokenError, match="a token 'ci' already exists; revoke it first"):
        book.with_new("ci", NOW)
    book, new = book.revoked("ci", NOW).with_new("ci", NOW)
    assert (book.by_token(old), len(book.tokens)) == (None, 1)
    assert book.by_token(new) is not None


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "../x", "ü", "a\n"])
def test_token_names(name: str) -> None:
    """They appear in logs, in the audit and on command lines."""
    with pytest.raises(TokenError, match="is not a valid token name; use 1 to 64 characters"):
        TokenBook().with_new(name, NOW)


def test_only_valid_tokens_can_be_revoked() -> None:
    """The error lists the existing tokens; revoking twice is an error too."""
    book, _ = TokenBook().with_new("ci", NOW)
    with pytest.raises(TokenError, match="no token is named 'cj'; existing tokens: ci"):
        book.revoked("cj", NOW)
    with pytest.raises(TokenError, match="already revoked"):
        book.revoked("ci", NOW).revoked("ci", NOW)
