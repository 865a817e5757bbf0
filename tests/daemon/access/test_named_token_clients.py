"""Named tokens on a running daemon: their limits, revocation and expiry."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.daemon.lifecycle import running
from toold.protocol.tool_call import LOCAL
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
"""In the oldest revision, which needs no headers."""


def make_token(directory: Path, name: str, **limits: Any) -> str:
    created: list[str] = []

    def add(book: TokenBook) -> TokenBook:
        changed, token = book.with_new(name, 1.0, **limits)
        created.append(token)
        return changed

    change_tokens(directory, add)
    return created[0]


def revoke(directory: Path, name: str) -> None:
    change_tokens(directory, lambda book: book.revoked(name, 2.0))


@pytest.fixture
async def daemon(settings_with: Any) -> AsyncIterator[Daemon]:
    """A daemon with auth on."""
    quick = {"TOOLD_SIMULATE": "true", "TOOLD_KIMI_SDK": "http", "TOOLD_GLM_SDK": "http", "TOOLD_GRACE_PERIOD_S": "0.1"}
    async with running(settings_with(**quick)) as daemon:
        yield daemon


async def hello(socket: ClientConnection, **fields: Any) -> dict[str, Any]:
    await socket.send(json.dumps({"op": "hello", **fields}))
    answer: dict[str, Any] = json.loads(await socket.recv())
    return answer


async def call(socket: ClientConnection, name: str, **arguments: Any) -> dict[str, Any]:
    await socket.send(json.dumps({"op": "call_tool", "request_id": name, "name": name, "arguments": arguments}))
    while True:
        frame: dict[str, Any] = json.loads(await socket.recv())
        if frame["op"] == "call_tool_res":
            return frame


def url(daemon: Daemon) -> str:
    return f"ws://127.0.0.1:{daemon.websocket.port}/"


async def mcp(daemon: Daemon, token: str, path: str = "/mcp", asks: Any = LISTING) -> httpx.Response:
    address = f"http://127.0.0.1:{daemon.http.port}"
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, trust_env=False, headers=headers, verify=False) as client:
        return await client.post(path, json=asks)


async def test_permits_are_reserved_once_there_are_several_principals(daemon: Daemon, state_dir: Path) -> None:
    """The daemon and each provider keep one for principals that hold none, from the first named token on."""
    pools = [daemon.router.permits, *(limiter.permits for limiter in daemon.limiters.values())]
    assert [permits.reserved for permits in pools] == [0, 0, 0]
    make_token(state_dir, "second")
    assert daemon.tokens.book.tokens
    assert [permits.reserved for permits in pools] == [1, 1, 1]
    limits = (await daemon.view.status(LOCAL, recent=0, days=0))["limits"]
    assert [limits["running"]["reserved"], limits["providers"]["kimi"]["reserved"]] == [1, 1]


async def test_a_token_limits_the_toolsets(daemon: Daemon, state_dir: Path) -> None:
    """Its first toolset is the default; both transports reject others and list the permitted ones."""
    token = make_token(state_dir, "ci", toolsets=("lean", "standard"))
    async with connect(url(daemon)) as socket:
        assert (await hello(socket, token=token))["toolset"] == "lean"
    async with connect(url(daemon)) as socket:
        refused = await hello(socket, token=token, toolset="full")
        assert (refused["ok"], refused["error"]["code"]) == (False, "PERMISSION_DENIED")
        assert refused["error"]["details"]["toolsets"] == ["lean", "standard"]
    lean, named = await mcp(daemon, token), await mcp(daemon, token, "/mcp/lean")
    assert lean.json()["result"]["tools"] == named.json()["result"]["tools"]
    other = await mcp(daemon, token, "/mcp/full")
    assert other.status_code == 404
    assert "you may use lean, standard" in other.json()["error"]["message"]


async def test_a_token_sees_only_its_toolsets(daemon: Daemon, state_dir: Path) -> None:
    """In the error for a tool outside its toolset: on both transports, and after a resume."""
    token, alone = (
        make_token(state_dir, "ci", toolsets=("lean", "standard")),
        make_token(state_dir, "l", toolsets=("lean",)),
    )
    async with connect(url(daemon)) as socket:
        key = (await hello(socket, token=token, features=["resume"]))["resume_key"]
        assert (await call(socket, "sim_effect"))["error"]["details"]["toolsets"] == ["standard"]
    async with connect(url(daemon)) as socket:
        assert (await hello(socket, token=token, features=["resume"], resume={"key": key}))["resumed"]
        assert (await call(socket, "sim_effect", text="again"))["error"]["details"]["toolsets"] == ["standard"]
    async with connect(url(daemon)) as socket:
        await hello(socket, token=alone)
        assert (await call(socket, "sim_effect"))["error"]["details"]["toolsets"] == []
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sim_effect", "arguments": {}}}
    refused = (await mcp(daemon, token, asks=request)).json()["error"]
    assert "connect with a toolset that has it: standard." in refused["message"]


async def test_revoking_a_token_closes_its_connections(daemon: Daemon, state_dir: Path) -> None:
    """4003 with the reason, for this token only; over HTTP a 401 with the reason, and no session can be resumed."""
    token, other = make_token(state_dir, "ci"), make_token(state_dir, "other")
    async with connect(url(daemon)) as socket, connect(url(daemon)) as bystander:
        assert (await hello(socket, token=token, features=["resume"]))["ok"]
        assert (await hello(bystander, token=other))["ok"]
        assert (await mcp(daemon, token)).status_code == 200
        revoke(state_dir, "ci")
        refused = await mcp(daemon, token)
        assert refused.status_code == 401
        assert 'error="invalid_token"' in refused.headers["www-authenticate"]
        assert "the token 'ci' was revoked" in refused.json()["error"]["message"]
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(20):
                await socket.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4003, "the token 'ci' was revoked")
        assert (await call(bystander, "echo", text="still here"))["error"] is None
    async with connect(url(daemon)) as socket:
        repeat = await hello(socket, token=token)
        assert (repeat["error"]["code"], "was revoked" in repeat["error"]["message"]) == ("UNAUTHORIZED", True)


async def test_a_token_expires_during_a_connection(
    daemon: Daemon, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is closed as soon as the token has expired."""
    token = make_token(state_dir, "ci", expires_at=4_000_000_000.0)
    async with connect(url(daemon)) as socket:
        assert (await hello(socket, token=token))["ok"]
        monkeypatch.setattr(daemon._authenticator, "_clock", lambda: 4_000_000_000.0)
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(20):
                await socket.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4003, "the token 'ci' has expired")


async def test_revoking_a_token_ends_its_streams(daemon: Daemon, state_dir: Path) -> None:
    """The stream of a listening MCP client gets its answer and ends."""
    token = make_token(state_dir, "ci")
    listen = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscriptions/listen",
        "params": {
            "notifications": {"toolsListChanged": True},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "a test", "version": "1"},
            },
        },
    }
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "subscriptions/listen",
    }
    address = f"http://127.0.0.1:{daemon.http.port}/mcp"
    async with (
        httpx.AsyncClient(trust_env=False, timeout=20, verify=False) as client,
        client.stream("POST", address, json=listen, headers=headers) as answer,
    ):
        lines = answer.aiter_lines()
        assert "acknowledged" in await anext(line async for line in lines if line.startswith("data:"))
        revoke(state_dir, "ci")
        assert '"result"' in await anext(line async for line in lines if line.startswith("data:"))


async def test_a_tokens_data_is_its_own(daemon: Daemon, state_dir: Path) -> None:
    """Another token can neither continue its conversation nor resume its session."""
    first, second = make_token(state_dir, "one"), make_token(state_dir, "two")
    async with connect(url(daemon)) as socket:
        ack = await hello(socket, token=first, features=["resume"])
        answer = await call(socket, "chat", prompt="Hello")
        continuation = answer["structured"]["continuation_id"]
    async with connect(url(daemon)) as socket:
        other = await hello(socket, token=second, features=["resume"], resume={"key": ack["resume_key"]})
        assert (other["ok"], other["resumed"]) == (True, False)
        refused = await call(socket, "chat", prompt="Go on", continuation_id=continuation)
        assert refused["error"]["code"] == "NOT_FOUND"


async def test_max_running_counts_all_connections(daemon: Daemon, state_dir: Path) -> None:
    """Two sessions of a token with one permit share it."""
    token = make_token(state_dir, "ci", max_running=1)
    async with connect(url(daemon)) as first, connect(url(daemon)) as second:
        await hello(first, token=token)
        await hello(second, token=token)
        one, two = list(daemon.router.sessions._sessions)
        assert one.permits is two.permits
        assert one.permits.limit == 1
        assert (await call(first, "echo", text="a"))["error"] is None
        assert (await call(second, "echo", text="b"))["error"] is None


async def test_a_session_is_not_resumed_with_fewer_toolsets(daemon: Daemon, state_dir: Path) -> None:
    """A new token with fewer toolsets does not get the old token's session."""
    wide = make_token(state_dir, "ci", toolsets=("full",))
    async with connect(url(daemon)) as socket:
        key = (await hello(socket, token=wide, features=["resume"]))["resume_key"]
    revoke(state_dir, "ci")
    narrow = make_token(state_dir, "ci", toolsets=("lean",))
    async with connect(url(daemon)) as socket:
        ack = await hello(socket, token=narrow, features=["resume"], resume={"key": key})
    assert (ack["resumed"], ack["toolset"]) == (False, "lean")
