"""Checks of MCP requests by method and headers."""

import pytest
from pydantic import SecretStr
from toold.daemon.access import Authenticator, TokenBook
from toold.daemon.transports.request_guard import RequestAdmitted, RequestRefused, admit, denied
from toold.protocol.authorization import AuthorizationDenied

TOKEN = "the-token-of-the-daemon"
GOOD = {
    "host": "127.0.0.1:8080",
    "authorization": f"Bearer {TOKEN}",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


async def judged(
    method: str = "POST", *, origins: tuple[str, ...] = (), token: str | None = TOKEN, **changed: str | None
) -> RequestAdmitted | RequestRefused:
    """Checks a valid request with some headers changed, or omitted if None."""
    headers = GOOD | {name.replace("_", "-"): value for name, value in changed.items()}
    known_values = {name: value for name, value in headers.items() if value is not None}
    door = Authenticator(SecretStr(token) if token else None, TokenBook)
    return await admit(method, known_values, scheme="http", authenticate=door, origins=origins)


def status(check: RequestAdmitted | RequestRefused) -> int:
    return 200 if isinstance(check, RequestAdmitted) else check.status


async def test_a_valid_request() -> None:
    """It is the local principal's, and accepts events."""
    check = await judged()
    assert isinstance(check, RequestAdmitted)
    assert (check.access.principal.name, check.streams) == ("local", True)


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8080", "HTTP://127.0.0.1:8080", "https://editor.example"])
async def test_allowed_pages(origin: str) -> None:
    """Those of this server, and of allowed origins."""
    assert status(await judged(origin=origin, origins=("https://editor.example",))) == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "http://127.0.0.1:9999", "https://127.0.0.1:8080", "http://127.0.0.1", "null", "", "://"],
)
async def test_refused_pages(origin: str) -> None:
    """Pages of other sites must not reach a loopback daemon, even with the right token."""
    assert status(await judged(origin=origin)) == 403


@pytest.mark.parametrize(
    ("origin", "host", "expected"),
    [
        ("http://evil.example:8080", "evil.example:8080", 403),
        ("http://tools.internal:8080", "tools.internal:8080", 403),
        ("http://127.0.0.1.evil.example", "127.0.0.1.evil.example", 403),
        ("http://[", "[", 403),
        ("http://127.0.0.1:8080@evil.example", "127.0.0.1:8080", 403),
        ("http://192.0.2.7:8080", "192.0.2.7:8080", 200),
        ("http://[2001:db8::1]:8080", "[2001:db8::1]:8080", 200),
        ("http://localhost:8080", "localhost:8080", 200),
    ],
)
async def test_rebound_names_are_refused(origin: str, host: str, expected: int) -> None:
    """For the browser, page and server have one origin; addresses and loopback names cannot be rebound."""
    assert status(await judged(origin=origin, host=host)) == expected


async def test_the_challenge_has_the_metadata_url() -> None:
    """With an issuer, every refusal has it."""
    for why, expected in (("missing", 401), ("invalid", 401), ("insufficient_scope", 403)):
        refused = denied(AuthorizationDenied(why, "not good.", "read" if expected == 403 else ""), "https://x/meta")  # type: ignore[arg-type] # one of the three
        challenge = dict(refused.headers)["www-authenticate"]
        assert refused.status == expected
        assert challenge.endswith('resource_metadata="https://x/meta"')
        assert ('scope="read"' in challenge) is (expected == 403)
    assert denied(AuthorizationDenied("unavailable", "Later."), "https://x/meta").headers == (("retry-after", "5"),)


@pytest.mark.parametrize(
    ("authorization", "error"), [(None, False), ("Basic abc", False), ("Bearer wrong", True), ("Bearer ", True)]
)
async def test_without_a_valid_token(authorization: str | None, error: bool) -> None:
    """The refusal says how to authenticate, and whether the token is invalid."""
    check = await judged(authorization=authorization)
    assert isinstance(check, RequestRefused)
    assert check.status == 401
    challenge = dict(check.headers)["www-authenticate"]
    assert challenge.startswith("Bearer")
    assert ("invalid_token" in challenge) is error
    assert "toold token" in check.message


async def test_with_auth_off_every_caller_is_local() -> None:
    """No token is required."""
    assert status(await judged(authorization=None, token=None)) == 200


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "HEAD"])
async def test_other_methods(method: str) -> None:
    """405, but only for authenticated callers."""
    check = await judged(method)
    assert isinstance(check, RequestRefused)
    assert (check.status, dict(check.headers)) == (405, {"allow": "POST, GET, DELETE"})
    assert status(await judged(method, authorization=None)) == 401


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/jsonp", 415),
        (None, 415),
    ],
)
async def test_bodies_must_be_json(content_type: str | None, expected: int) -> None:
    """Other types are rejected before reading: pages can send them without a preflight."""
    assert status(await judged(content_type=content_type)) == expected


@pytest.mark.parametrize(("coding", "expected"), [("gzip", 415), ("br, gzip", 415), ("Identity", 200)])
async def test_compressed_bodies_are_rejected(coding: str, expected: int) -> None:
    """With the accepted coding (RFC 9110, 15.5.16)."""
    check = await judged(content_encoding=coding)
    assert status(check) == expected
    if isinstance(check, RequestRefused):
        assert check.headers == (("accept-encoding", "identity"),)


@pytest.mark.parametrize(
    ("accept", "streams"),
    [
        (None, True),
        ("*/*", True),
        ("application/json", False),
        ("application/*;q=0.9, text/*", True),
        ("text/event-stream;q=1, application/json", True),
    ],
)
async def test_accept(accept: str | None, streams: bool) -> None:
    """JSON is required; events are sent only if accepted."""
    check = await judged(accept=accept)
    assert isinstance(check, RequestAdmitted)
    assert check.streams is streams


@pytest.mark.parametrize("accept", ["text/html", "text/event-stream", ""])
async def test_clients_that_do_not_accept_json(accept: str) -> None:
    """Most answers are JSON, so they could read none."""
    assert status(await judged(accept=accept)) == 406
