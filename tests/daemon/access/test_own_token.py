"""Who a hello is from, by its token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from toold.daemon.access.own_token import token_check
from toold.protocol.tool_call import LOCAL

TOKEN = "a-token-of-sixteen-or-more"


def test_the_token_makes_local() -> None:
    """Who has the daemon's token is the local principal."""
    assert token_check(SecretStr(TOKEN))(TOKEN) == LOCAL


@pytest.mark.parametrize("given", [None, "", TOKEN[:-1], TOKEN + " ", TOKEN.upper(), "ü" * 26, "\ud83d", "\0"])
def test_anything_else_is_nobody(given: str | None) -> None:
    """No token, a wrong one, and what is not even text; none of them raises."""
    assert token_check(SecretStr(TOKEN))(given) is None


@given(st.text(alphabet=st.characters()))
def test_no_other_text_is_let_in(text: str) -> None:
    """Whatever is sent, only the token itself will do."""
    assert (token_check(SecretStr(TOKEN))(text) is not None) == (text == TOKEN)


@pytest.mark.parametrize("given", [None, "", "anything"])
def test_without_auth_everybody_is_local(given: str | None) -> None:
    """With auth off no token is looked at."""
    assert token_check(None)(given) == LOCAL
