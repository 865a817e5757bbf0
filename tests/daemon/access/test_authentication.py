"""Authentication by token."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from toold.daemon.access import Authenticator, TokenBook
from toold.daemon.access.authentication import token_check
from toold.protocol.authorization import Authorization, AuthorizationDenied
from toold.protocol.tool_call import LOCAL

OWN = SecretStr("the-daemon's-own-token")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_the_daemons_token_permits_everything() -> None:
    """Its principal is local, it permits all toolsets, and it does not expire."""
    access = await Authenticator(OWN, TokenBook)(OWN.get_secret_value())
    assert access == Authorization(LOCAL)
    assert Authenticator(OWN, TokenBook).denial_reason(Authorization(LOCAL)) is None


async def test_without_auth_every_caller_is_local() -> None:
    """Also with a token that is not valid anywhere."""
    assert await Authenticator(None, TokenBook)("whatever") == Authorization(LOCAL)
    assert await Authenticator(None, TokenBook)(None) == Authorization(LOCAL)


async def test_a_named_token_has_its_own_authorization() -> None:
    """The authorization has the token's principal, toolsets and expiry."""
    book, token = TokenBook().with_new("ci", 1000.0, toolsets=("lean", "mine"), expires_at=1060.0)
    access = await Authenticator(OWN, lambda: book, clock=Clock())(token)
    assert isinstance(access, Authorization)
    assert (access.principal.name, access.toolsets, access.expires_at) == ("token:ci", ("lean", "mine"), 1060.0)


@pytest.mark.parametrize("token", [None, "", "wrong", "toold_" + "x" * 43, "a.b.c", "\ud800", "\0"])
async def test_other_tokens_are_denied(token: str | None) -> None:
    """A missing token and a wrong one have different reasons; the token is never quoted."""
    book, _ = TokenBook().with_new("ci", 1000.0)
    denied = await Authenticator(OWN, lambda: book)(token)
    assert isinstance(denied, AuthorizationDenied)
    assert denied.reason == ("missing" if token is None else "invalid")
    assert not token or token not in denied.message


async def test_revoked_and_expired_tokens() -> None:
    """The reason distinguishes them; authorizations by such tokens are no longer valid."""
    clock = Clock()
    books = [TokenBook()]
    authenticator = Authenticator(OWN, lambda: books[-1], clock=clock)
    book, ending = books[-1].with_new("ending", clock.now, expires_at=clock.now + 60)
    book, taken = book.with_new("taken", clock.now)
    books.append(book)
    let_in = [await authenticator(ending), await authenticator(taken)]
    assert [authenticator.denial_reason(access) for access in let_in if isinstance(access, Authorization)] == [
        None,
        None,
    ]
    books.append(book.revoked("taken", clock.now))
    clock.now += 60
    words = ["the token 'ending' has expired", "the token 'taken' was revoked"]
    assert [authenticator.denial_reason(access) for access in let_in if isinstance(access, Authorization)] == words
    for token, item in zip((ending, taken), words, strict=True):
        denied = await authenticator(token)
        assert isinstance(denied, AuthorizationDenied)
        assert (denied.reason, item in denied.message) == ("invalid", True)


async def test_a_new_token_of_the_same_name_is_another() -> None:
    """Authorizations by the old token are no longer valid."""
    book, old = TokenBook().with_new("ci", 1000.0)
    books = [book]
    authenticator = Authenticator(OWN, lambda: books[-1], clock=Clock())
    access = await authenticator(old)
    assert isinstance(access, Authorization)
    books.append(book.revoked("ci", 1000.0).with_new("ci", 1000.0)[0])
    assert authenticator.denial_reason(access) == "its token was revoked"


async def test_a_changed_operator_right_ends_authorizations() -> None:
    """If a token's record in the file changes, its authorizations end, and the next one has the new right."""
    book, token = TokenBook().with_new("ci", 1000.0, operator=True)
    books = [book]
    authenticator = Authenticator(OWN, lambda: books[-1], clock=Clock())
    access = await authenticator(token)
    assert isinstance(access, Authorization)
    assert (access.principal.operator, authenticator.denial_reason(access)) == (True, None)
    books.append(TokenBook(msgspec.structs.replace(token, operator=False) for token in book.tokens))
    assert authenticator.denial_reason(access) == "its token's operator right was changed"
    access = await authenticator(token)
    assert isinstance(access, Authorization)
    assert not access.principal.operator


TOKEN = "a-token-of-sixteen-or-more"


def test_the_daemons_token_is_local() -> None:
    """Its caller is the local principal."""
    assert token_check(SecretStr(TOKEN))(TOKEN) == LOCAL


@pytest.mark.parametrize("value", [None, "", TOKEN[:-1], TOKEN + " ", TOKEN.upper(), "ü" * 26, "\ud83d", "\0"])
def test_other_values_are_not_the_daemons_token(value: str | None) -> None:
    """A missing token, a wrong one and invalid text are rejected without an exception."""
    assert token_check(SecretStr(TOKEN))(value) is None


@given(st.text(alphabet=st.characters()))
def test_no_other_text_is_accepted(text: str) -> None:
    """Only the exact token is accepted."""
    assert (token_check(SecretStr(TOKEN))(text) is not None) == (text == TOKEN)


@pytest.mark.parametrize("value", [None, "", "anything"])
def test_without_auth_any_token_is_local(value: str | None) -> None:
    """With auth off, the token is not checked."""
    assert token_check(None)(value) == LOCAL
