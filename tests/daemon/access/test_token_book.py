"""Named tokens, as a book."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.access.token_book import PREFIX, TokenBook, TokenError, hash_of

NOW = 1_800_000_000.0


def test_a_new_token_is_found_and_kept_nowhere() -> None:
    """The book finds it by its hash, and what is kept of it does not have it."""
    book, token = TokenBook().with_new("ci", NOW)
    found = book.by_token(token)
    assert found is not None
    assert (found.name, found.principal, found.invalid_reason(NOW)) == ("ci", "token:ci", None)
    assert token.startswith(PREFIX)
    assert len(token) == len(PREFIX) + 43
    assert token.encode() not in msgspec.json.encode(book.tokens)


@given(st.text())
def test_nothing_else_is_found(text: str) -> None:
    """Whatever is sent, a hash of a token included, only the token is one."""
    book, token = TokenBook().with_new("ci", NOW)
    assert (book.by_token(text) is not None) == (text == token)
    assert book.by_token(hash_of(token)) is None


def test_each_token_is_another() -> None:
    """Two are never the same."""
    assert len({TokenBook().with_new("ci", NOW)[1] for _ in range(100)}) == 100


def test_a_token_ends() -> None:
    """At its very moment, not before; and the objection names it."""
    book, token = TokenBook().with_new("ci", NOW, expires_at=NOW + 60)
    found = book.by_token(token)
    assert found is not None
    assert found.invalid_reason(NOW + 59.9) is None
    assert found.invalid_reason(NOW + 60) == "the token 'ci' has expired"


def test_a_token_is_taken_back() -> None:
    """It is found still, so that whoever sends it learns what has become of it."""
    book, token = TokenBook().with_new("ci", NOW)
    found = book.revoked("ci", NOW + 1).by_token(token)
    assert found is not None
    assert found.invalid_reason(NOW + 2) == "the token 'ci' was revoked"


def test_a_name_is_free_again_when_its_token_is_not_good() -> None:
    """The new one takes the place of the old one, whose secret is nobody's then."""
    book, old = TokenBook().with_new("ci", NOW)
    with pytest.raises(TokenError, match="a token 'ci' already exists; revoke it first"):
        book.with_new("ci", NOW)
    book, new = book.revoked("ci", NOW).with_new("ci", NOW)
    assert (book.by_token(old), len(book.tokens)) == (None, 1)
    assert book.by_token(new) is not None


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "../x", "ü", "a\n"])
def test_a_name_has_plain_characters(name: str) -> None:
    """It stands in logs, in the audit and on command lines."""
    with pytest.raises(TokenError, match="a token's name has 1–64 characters"):
        TokenBook().with_new(name, NOW)


def test_what_is_not_there_is_not_taken_back() -> None:
    """The refusal names those that there are; twice is refused too."""
    book, _ = TokenBook().with_new("ci", NOW)
    with pytest.raises(TokenError, match="no token is named 'cj'; existing tokens: ci"):
        book.revoked("cj", NOW)
    with pytest.raises(TokenError, match="already revoked"):
        book.revoked("ci", NOW).revoked("ci", NOW)
