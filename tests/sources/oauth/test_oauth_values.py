"""What servers say in headers and answers, and what settings may be."""

from typing import Any

import msgspec
import pytest
from toold.sources import SourceSettingsError, read_sources
from toold.sources.oauth.oauth_discovery import discover
from toold.sources.oauth.oauth_http import OAuthHttp
from toold.sources.oauth.oauth_settings import MAX_SCOPES, OAuthAuth
from toold.sources.oauth.sign_in_values import (
    MAX_TOKEN_CHARS,
    OAuthClient,
    OAuthFailedError,
    SignIn,
    oauth_error,
    read_token_answer,
)
from toold.sources.oauth.sign_ins import MemorySignIns, SourceSignIns, read_challenge

SECRET = {"env": "S"}


def test_a_challenge_is_read_with_bounds() -> None:
    """Quoted or not; too many scopes are cut."""
    challenge = read_challenge(
        'Bearer error="insufficient_scope", scope="a b a", resource_metadata=https://x.example/m'
    )
    assert challenge == ("insufficient_scope", ("a", "b"), "https://x.example/m")
    many = " ".join(map(str, range(MAX_SCOPES + 1)))
    assert len(read_challenge(f'Bearer scope="{many}"').scopes) == MAX_SCOPES
    assert read_challenge("x" * 100_000) == (None, (), None)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"access_token": "a" * (MAX_TOKEN_CHARS + 1), "token_type": "Bearer"},
        {"access_token": "line\nbreak", "token_type": "Bearer"},
        {"access_token": "a", "token_type": "DPoP"},
    ],
)
def test_unusable_tokens_are_refused(answer: dict[str, Any]) -> None:
    """Without a token in the error."""
    with pytest.raises(OAuthFailedError):
        read_token_answer(msgspec.json.encode(answer))
    assert oauth_error(b'{"error": "secret-text"}', 400) == "HTTP 400"


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ({"client_id": "c", "client_secret": SECRET}, "client_secret requires client_id, and issuer"),
        ({"grant": "client_credentials", "client_id": "c"}, "requires client_id, client_secret and issuer"),
        ({"issuer": "http://auth.example"}, "must begin with https://"),
        ({"token": "secret-text"}, "token is not a setting"),
    ],
)
def test_invalid_settings_are_refused(auth: dict[str, Any], message: str) -> None:
    """A client's secret has a configured receiver; errors have no values."""
    table = {"type": "mcp", "url": "https://x.example/mcp", "auth": {"type": "oauth", **auth}}
    with pytest.raises(SourceSettingsError) as refused:
        read_sources({"x": table})
    assert message in str(refused.value)
    assert "secret-text" not in str(refused.value)


@pytest.mark.parametrize(
    ("document_url", "message"),
    [
        ("http://[bad]/", "resource_metadata is not a URL"),
        ("file:///etc/passwd", "at another server"),
        ("https://x.example:1/m", "at another server"),
    ],
)
async def test_hostile_addresses_of_metadata_are_refused(document_url: str, message: str) -> None:
    """Nothing is asked there."""
    auth = OAuthAuth(type="oauth")
    with pytest.raises(OAuthFailedError, match=message):
        await discover(OAuthHttp(allow_private=False), "https://x.example/mcp", document_url, auth)


async def test_the_host_of_an_error_is_short() -> None:
    """A server may name any host."""
    with pytest.raises(OAuthFailedError) as refused:
        await OAuthHttp(allow_private=False).get(f"https://{'a' * 100_000}.example/")
    assert len(str(refused.value)) < 500


async def test_a_token_that_expired_is_the_reason() -> None:
    """If there is no refresh token, the person learns that the token has expired."""
    auth, url = OAuthAuth(type="oauth"), "https://x.example/mcp"
    sign_ins = SourceSignIns("x", url, auth, OAuthHttp(allow_private=False), MemorySignIns())
    client = OAuthClient("c", "none")
    await sign_ins.keep("ann", SignIn(url, "i", "https://a.example/token", None, client, "t", None, 1.0, 1.0, ()))
    assert await sign_ins.current("ann") is None
    assert sign_ins.reason("ann") == "its token has expired, and cannot be renewed"
