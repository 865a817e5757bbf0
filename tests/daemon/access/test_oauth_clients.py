"""A running daemon that accepts an issuer's tokens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from toold.daemon.app import Daemon
from toold.daemon.lifecycle import running
from websockets.asyncio.client import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from .conftest import Issuer

MCP = "https://tools.example/mcp"
METADATA = "https://tools.example/.well-known/oauth-protected-resource/mcp"
LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture
async def daemon(settings_with: Any, issuer: Issuer, tmp_path: Path) -> AsyncIterator[Daemon]:
    """The scopes ``read`` and ``all`` permit ``lean`` and ``full``."""
    (tmp_path / "toold.toml").write_text('[oauth_scopes]\nread = ["lean"]\nall = ["full"]\n')
    quick = {"TOOLD_SIMULATE": "true", "TOOLD_KIMI_SDK": "http", "TOOLD_GLM_SDK": "http", "TOOLD_GRACE_PERIOD_S": "0.1"}
    oauth = {"TOOLD_OAUTH_ISSUER": issuer.url, "TOOLD_OAUTH_RESOURCE": MCP}
    async with running(settings_with(**quick | oauth)) as daemon:
        yield daemon


async def ask(daemon: Daemon, method: str, path: str, token: str | None = None, **headers: str) -> httpx.Response:
    value = headers if token is None else {"authorization": f"Bearer {token}", **headers}
    address = f"http://127.0.0.1:{daemon.http.port}"
    async with httpx.AsyncClient(base_url=address, trust_env=False, headers=value, timeout=20, verify=False) as client:
        return await client.request(method, path, json=LISTING if method == "POST" else None)


async def test_clients_are_directed_to_the_issuer(daemon: Daemon, issuer: Issuer) -> None:
    """From the 401 to the metadata, and from there to the issuer; for each toolset too."""
    refused = await ask(daemon, "POST", "/mcp")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == f'Bearer realm="toold", resource_metadata="{METADATA}"'
    metadata = (await ask(daemon, "GET", "/.well-known/oauth-protected-resource/mcp")).json()
    assert (metadata["resource"], metadata["authorization_servers"]) == (MCP, [issuer.url])
    assert metadata["scopes_supported"] == ["read", "all"]
    assert (await ask(daemon, "GET", "/.well-known/oauth-protected-resource")).json() == metadata
    of_one = await ask(daemon, "POST", "/mcp/lean", "a.bad.token")
    assert f'error="invalid_token", resource_metadata="{METADATA}/lean"' in of_one.headers["www-authenticate"]
    lean = (await ask(daemon, "GET", "/.well-known/oauth-protected-resource/mcp/lean")).json()
    assert lean["resource"] == f"{MCP}/lean"
    assert (await ask(daemon, "GET", "/.well-known/oauth-protected-resource/other")).status_code == 404


async def test_a_token_is_accepted_by_both_transports(daemon: Daemon, issuer: Issuer) -> None:
    """As its subject, with the toolset that its scope permits."""
    token = issuer.token(scope="read")
    listed = await ask(daemon, "POST", "/mcp", token)
    named = await ask(daemon, "POST", "/mcp/lean", token)
    assert listed.json()["result"]["tools"] == named.json()["result"]["tools"]
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/") as socket:
        await socket.send(json.dumps({"op": "hello", "token": token}))
        ack = json.loads(await socket.recv())
        assert (ack["ok"], ack["toolset"]) == (True, "lean")
        [session] = [one for one in daemon.router.sessions._sessions if one.transport == "websocket"]
        assert session.principal.name == "oauth:alice"


async def test_a_missing_scope_is_named(daemon: Daemon, issuer: Issuer) -> None:
    """403 with the scope that the toolset requires, so that a client can request it."""
    refused = await ask(daemon, "POST", "/mcp/full", issuer.token(scope="read"))
    assert refused.status_code == 403
    challenge = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope", scope="all"' in challenge
    assert f'resource_metadata="{METADATA}/full"' in challenge
    none = await ask(daemon, "POST", "/mcp", issuer.token(scope="openid"))
    assert none.status_code == 403
    assert 'error="insufficient_scope", scope="read all"' in none.headers["www-authenticate"]


async def test_a_token_expires_during_a_connection(
    daemon: Daemon, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its authorization is then no longer valid."""
    access = await daemon._authenticator(issuer.token(scope="read", exp=4_000_000_000))
    monkeypatch.setattr(daemon._authenticator, "_clock", lambda: 4_000_000_001.0)
    assert daemon._authenticator.denial_reason(access) == "its token has expired"  # type: ignore[arg-type] # admitted above


async def test_an_unreachable_issuer_is_not_a_401(daemon: Daemon, issuer: Issuer) -> None:
    """The client retries later and keeps its token; the daemon's token stays valid."""
    issuer.answers["/keys"] = lambda: (500, b"")
    away = await ask(daemon, "POST", "/mcp", issuer.token(scope="read"))
    assert (away.status_code, "retry-after" in away.headers) == (503, True)
    own = (daemon.settings.state_dir / "token").read_text().strip()
    assert (await ask(daemon, "POST", "/mcp", own)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://evil.example", "host": "evil.example"},
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "localhost.evil.example:8080"},
        {"host": ""},
    ],
)
async def test_pages_of_other_sites_are_rejected(daemon: Daemon, issuer: Issuer, headers: dict[str, str]) -> None:
    """Even with a valid token: by origin, without one, or by a name rebound to this machine."""
    assert (await ask(daemon, "POST", "/mcp", issuer.token(scope="read"), **headers)).status_code == 403
