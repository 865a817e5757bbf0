"""A client of ``/mcp`` that sends exactly what each revision requires."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import httpx
import pytest
from toold.daemon.app import Daemon

STATELESS = "2026-07-28"
ASKED = "2025-11-25"
TASKS = "io.modelcontextprotocol/tasks"
ACCEPT = "application/json, text/event-stream"

Json = dict[str, Any]


def request(
    method: str, params: Mapping[str, Any] | None = None, *, revision: str, request_id: object = 1, tasks: bool = False
) -> tuple[Json, dict[str, str]]:
    """Returns a request's message and headers in the revision's format."""
    params = dict(params or {})
    headers = {"accept": ACCEPT, "content-type": "application/json", "mcp-protocol-version": revision}
    if revision == STATELESS:
        named = params.get("name", params.get("taskId"))
        headers |= {"mcp-method": method, **({"mcp-name": named} if isinstance(named, str) else {})}
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}} if tasks else {},
            "io.modelcontextprotocol/clientInfo": {"name": "a test", "version": "1"},
            **params.get("_meta", {}),
        }
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}, headers


def message_of(answer: httpx.Response) -> Json:
    """Returns the answer's message: the whole body, or the last event of a stream."""
    if answer.headers["content-type"] == "text/event-stream":
        return events(answer.text)[-1]
    message: Json = answer.json()
    return message


def events(text: str) -> list[Json]:
    """Returns the messages of an SSE stream."""
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


class Client:
    """A client of one daemon, in one revision."""

    def __init__(self, http: httpx.AsyncClient, revision: str, path: str = "/mcp") -> None:
        self.http = http
        self.revision = revision
        self.path = path

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        request_id: object = 1,
        tasks: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Sends a request; returns the HTTP response."""
        message, reply = request(method, params, revision=self.revision, request_id=request_id, tasks=tasks)
        return await self.http.post(self.path, json=message, headers=reply | dict(headers or {}))

    async def result(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Json:
        """Returns the result of a request."""
        message = message_of(await self.ask(method, params, **options))
        assert "result" in message, message
        result: Json = message["result"]
        return result

    async def error(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> tuple[int, Json]:
        """Returns the HTTP status and the JSON-RPC error of a failed request."""
        answer = await self.ask(method, params, **options)
        return answer.status_code, message_of(answer)["error"]

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Json:
        """Returns the result of a tool call."""
        meta = {"_meta": options.pop("meta")} if "meta" in options else {}
        return await self.result("tools/call", {"name": name, "arguments": arguments or {}, **meta}, **options)


Connect = Callable[..., Client]


@pytest.fixture
async def connect(serve: object) -> AsyncIterator[Connect]:
    """``connect(daemon, revision)``: a client; its connections are closed before the daemon stops."""
    clients: list[httpx.AsyncClient] = []

    def connect(daemon: Daemon, revision: str = STATELESS, path: str = "/mcp") -> Client:
        http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{daemon.http.port}", trust_env=False, timeout=60, verify=False
        )
        clients.append(http)
        return Client(http, revision, path)

    yield connect
    for http in clients:
        await http.aclose()


Serve = Callable[..., Awaitable[Daemon]]
