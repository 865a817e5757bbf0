"""MCP callers with the interface of the WebSocket peer, so that tests run over each transport."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

Frame = dict[str, Any]
Ask = Callable[[Frame], Awaitable[Frame]]
"""Sends a JSON-RPC message and returns the answer."""

HANDSHAKE: Frame = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "e2e-test", "version": "1"},
    },
}


class McpCaller:
    """Calls over MCP; returns answers in the form of ``call_tool_res``."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._count = 0

    async def call(self, _: object, name: str, **arguments: Any) -> Frame:
        """Call a tool under a new id and wait for its answer."""
        return await self._call(name, arguments, None)

    async def answers(self, *calls: tuple[str, Frame], timeout_ms: int | None = None) -> list[Frame]:
        """Call tools concurrently. Returns the answers in the order of the calls."""
        return list(await asyncio.gather(*(self._call(*call, timeout_ms) for call in calls)))

    async def _call(self, name: str, arguments: Frame, timeout_ms: int | None) -> Frame:
        self._count += 1
        request_id = self._count
        params: Frame = {"name": name, "arguments": arguments}
        if timeout_ms is not None:
            params["_meta"] = {"toold/timeout_ms": timeout_ms}
        answer = await self._ask({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})
        assert answer["id"] == request_id
        return frame_of(answer)


def frame_of(answer: Frame) -> Frame:
    """The answer to a ``tools/call`` as a ``call_tool_res``."""
    if "error" in answer:
        return {"outputs": [], "error": answer["error"]["data"], "metadata": {}}
    result = answer["result"]
    structured = result.get("structuredContent")
    metadata = result.get("_meta", {}).get("toold/metadata", {})
    if result.get("isError"):
        return {"outputs": [], "error": structured, "metadata": metadata}
    frame: Frame = {"outputs": result["content"], "error": None, "metadata": metadata}
    if structured is not None:
        frame["structured"] = structured["result"] if set(structured) == {"result"} else structured
    return frame


@asynccontextmanager
async def over_http(url: str, token: str) -> AsyncIterator[McpCaller]:
    """A caller over ``POST /mcp``."""
    headers = {"authorization": f"Bearer {token}", "accept": "application/json", "mcp-protocol-version": "2025-11-25"}
    many = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(trust_env=False, timeout=60, headers=headers, limits=many, verify=False) as http:

        async def ask(message: Frame) -> Frame:
            answer: Frame = (await http.post(url, json=message)).json()
            return answer

        yield McpCaller(ask)


@asynccontextmanager
async def over_stdio(env: dict[str, str], cwd: Path) -> AsyncIterator[McpCaller]:
    """A caller over a separate ``toold mcp`` process."""
    command = [sys.executable, "-m", "toold", "mcp"]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=env, cwd=cwd, limit=2**25)
    source, sink = process.stdout, process.stdin
    assert source is not None
    assert sink is not None
    requests: dict[object, asyncio.Future[Frame]] = {}

    async def read() -> None:
        async for line in source:
            answer: Frame = json.loads(line)
            if "method" not in answer:  # a notification
                requests.pop(answer["id"]).set_result(answer)

    async def ask(message: Frame) -> Frame:
        requests[message["id"]] = asyncio.get_running_loop().create_future()
        sink.write(json.dumps(message).encode() + b"\n")
        async with asyncio.timeout(60):
            return await requests[message["id"]]

    reading = asyncio.create_task(read())
    try:
        assert "result" in await ask(HANDSHAKE)
        yield McpCaller(ask)
    finally:
        sink.close()
        await process.wait()
        await reading
