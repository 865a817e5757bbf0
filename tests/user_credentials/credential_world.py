"""One daemon with sources that need credentials of their callers, and the systems behind them."""

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator
from toold.serving import HttpServer

CREDENTIALS: Final = "/api/v1/user/credentials"
SETTINGS: Final = """
[sources.tracker]
type = "openapi"
spec = "tracker.json"
base_url = "{url}"
allow_private = true
retries = 0
auth = {{ user = "jira", field = "api_key" }}

[sources.mail]
type = "openapi"
spec = "mail.json"
base_url = "{url}"
allow_private = true
retries = 0
auth = {{ type = "basic", user = "mail-box", field = "password", username_field = "address" }}

[sources.hub]
type = "mcp"
url = "{url}/mcp"
allow_private = true
auth = {{ user = "hub", field = "token" }}
list_auth = {{ type = "bearer", env = "HUB_LISTING" }}

[agents.clerk]
description = "Works in the tracker."
prompt = "Work."
tools = ["tracker_find", "echo"]
"""
LISTING: Final = "secret-of-the-listing"
_TOOL: Final = {
    "name": "whoami",
    "inputSchema": {"type": "object", "properties": {"user": {"type": "string"}}},
}


class Systems:
    """The API and the MCP server that tools call: they answer with the credential that they got."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        """Path and ``Authorization`` of each request to the API, and of each call of the MCP server."""
        self.sessions: dict[str, set[str]] = {}
        """The credentials with which each session of the MCP server was used."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        credential = request.headers.get("authorization", "none")
        answer = await (self._mcp if request.url.path == "/mcp" else self._api)(request, credential)
        await answer(scope, receive, send)

    async def _api(self, request: Request, credential: str) -> Response:
        self.seen.append((request.url.path, credential))
        status = 401 if request.url.path == "/mail" else 200
        body = {"got": credential, "query": dict(request.query_params), "message": f"no: {credential}"}
        return JSONResponse(body, status)

    async def _mcp(self, request: Request, credential: str) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        session = request.headers.get("mcp-session-id", f"s{len(self.sessions)}")
        self.sessions.setdefault(session, set()).add(credential)
        if "id" not in message:
            return Response(status_code=202)
        result = self._result(message["method"], message.get("params", {}), credential)
        body = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            return JSONResponse(body | {"error": {"code": -32601, "message": "no such method"}})
        return JSONResponse(body | {"result": result}, headers={"mcp-session-id": session})

    def _result(self, method: str, params: dict[str, Any], credential: str) -> dict[str, Any] | None:
        match method:
            case "initialize":
                info = {"name": "hub", "version": "1"}
                return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                return {"tools": [_TOOL]}
            case "tools/call":
                self.seen.append(("/mcp", credential))
                return {"content": [{"type": "text", "text": f"you are {credential}"}]}
        return None


@dataclass
class Caller:
    """The requests of one principal."""

    http: httpx.AsyncClient
    token: str
    headers: dict[str, str] = field(default_factory=dict)

    def _named(self, headers: dict[str, str]) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}", **self.headers, **headers}

    async def give(self, service: str, **fields: str) -> httpx.Response:
        return await self.request("POST", CREDENTIALS, {"service_type": service, "credentials": fields})

    async def request(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return await self.http.request(method, path, json=body, headers=self._named(headers))

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of a tool, as MCP has it."""
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        # Without `accept`, a call that takes long is answered with events.
        headers = self._named({"accept": "application/json", "mcp-protocol-version": "2025-06-18"})
        answer = await self.http.post("/mcp", json=message, headers=headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["result"])

    async def status(self, call_id: str) -> dict[str, Any]:
        return dict((await self.call("call_status", call_id=call_id))["structuredContent"])

    async def result(self, call_id: str) -> dict[str, Any]:
        """The answer of a detached call, when it has ended."""
        while True:
            answer = (await self.call("call_result", call_id=call_id))["structuredContent"]
            if "result" in answer:
                return dict(answer["result"])
            await asyncio.sleep(0.02)

    async def a2a(self, method: str, params: Any, version: str = "1.0") -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = self._named({"A2A-Version": version})
        return dict((await self.http.post("/agents/clerk/", json=body, headers=headers)).json())


@dataclass
class World:
    """The daemon, and callers of several principals. ``restart`` replaces the daemon."""

    directory: Path
    systems: Systems
    simulator: Simulator
    tokens: dict[str, str]
    daemon: Daemon
    http: httpx.AsyncClient
    _stack: AsyncExitStack

    @property
    def ann(self) -> Caller:
        return Caller(self.http, self.tokens["ann"])

    @property
    def bob(self) -> Caller:
        return Caller(self.http, self.tokens["bob"])

    def gateway(self, user: str) -> Caller:
        return Caller(self.http, self.tokens["gateway"], {"x-user-id": user})

    async def restart(self) -> None:
        await self._stack.aclose()
        await self.start()

    async def start(self) -> None:
        self._stack = AsyncExitStack()
        environment = simulated_environment(self.directory / "state", self.simulator, HUB_LISTING=LISTING)
        settings = load_settings({}, env=environment, cwd=self.directory)
        self.daemon = await self._stack.enter_async_context(running(settings))
        url = f"http://127.0.0.1:{self.daemon.http.port}"
        self.http = await self._stack.enter_async_context(
            httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, verify=False)
        )
        await self.daemon.sources.loaded()
        await self.daemon.publisher.published()

    async def close(self) -> None:
        await self._stack.aclose()


async def open_world(directory: Path, simulator: Simulator, systems: Systems, server: HttpServer) -> World:
    """A started daemon in this directory."""
    (directory / "toold.toml").write_text(SETTINGS.format(url=f"http://127.0.0.1:{server.port}"))
    parameters = [{"name": "user", "in": "query", "schema": {"type": "string"}}]
    for name in ("tracker", "mail"):
        paths = {f"/{name}": {"get": {"operationId": "find", "parameters": parameters}}}
        document = {"openapi": "3.0.0", "info": {"title": name}, "paths": paths}
        (directory / f"{name}.json").write_text(json.dumps(document))
    (directory / "state").mkdir(mode=0o700)
    tokens = {"ann": "", "bob": "", "gateway": ""}
    for name in tokens:

        def add(book: TokenBook, name: str = name) -> TokenBook:
            changed, tokens[name] = book.with_new(name, 1.0, acts_for_users=name == "gateway")
            return changed

        change_tokens(directory / "state", add)
    tokens["local"] = TOKEN
    world = World(directory, systems, simulator, tokens, None, None, AsyncExitStack())  # type: ignore[arg-type] # set next
    await world.start()
    return world
