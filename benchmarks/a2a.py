"""``python -m benchmarks --a2a``: the CPU time of an A2A message, relative to the equal MCP call, in one run.

One daemon, one agent without tools, and a model in this process that answers at once. A message that waits for its
task (``SendMessage``) and a call of the agent (``tools/call``) are sent in alternating rounds; both begin a
conversation, ask the model once, and are journalled and audited. MCP is measured twice: the difference between the two
is what this machine cannot tell apart.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Any, Final

import httpx
import uvloop
from rich.console import Console

from .servers import Server, daemon

ROUNDS: Final = 7
_MESSAGES: Final = 48
_AT_ONCE: Final = 8
TARGET: Final = 1.5
"""The most CPU time of an A2A message, as a multiple of the MCP call's."""
_REVISION: Final = "2025-06-18"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ANSWER: Final = "The parcel is on its way."
_COMPLETION: Final = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "plain",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": _ANSWER}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48},
    }
).encode()
_MODELS: Final = b'{"object":"list","data":[{"id":"plain","object":"model"}]}'
_CONFIG: Final = """
[providers.shop]
base_url = "http://127.0.0.1:{port}/v1"
api_key = "none"
max_in_flight = 64

[agents.helper]
description = "Answers questions about orders."
prompt = "You answer questions about orders."
model = "shop/plain"
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Medians of the rounds."""

    mcp_ms: float
    """CPU time of the daemon per call."""
    a2a_ms: float
    ratio: float
    """A2A to MCP."""
    noise: float
    """MCP to MCP."""


def measure() -> Measured:
    """Raises RuntimeError if the daemon did not start or an answer was wrong."""
    return uvloop.run(_measure())


def show(measured: Measured, console: Console) -> None:
    """Print one line."""
    verdict = "met" if measured.ratio <= TARGET else "missed"
    console.print(
        f"an A2A message: {measured.a2a_ms:.2f} ms of CPU time, the equal MCP call: {measured.mcp_ms:.2f} ms, "
        f"{measured.ratio:.2f} times (target: at most {TARGET}, {verdict}; MCP to itself: {measured.noise:.2f})",
        highlight=False,
        soft_wrap=True,
    )


async def _measure() -> Measured:
    vendor = await asyncio.start_server(_complete, "127.0.0.1", 0)
    config = _CONFIG.format(port=vendor.sockets[0].getsockname()[1])
    loop = asyncio.get_running_loop()
    starting = daemon("daemon", (), config=config)
    server = await loop.run_in_executor(None, starting.__enter__)  # it asks the model's server for its models
    try:
        await loop.run_in_executor(None, server.settle)
        limits = httpx.Limits(max_connections=_AT_ONCE)
        url = f"http://127.0.0.1:{server.http_port}"
        async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60.0, trust_env=False) as http:
            return await _rounds(server, http)
    finally:
        await loop.run_in_executor(None, starting.__exit__, None, None, None)
        vendor.close()


async def _rounds(server: Server, http: httpx.AsyncClient) -> Measured:
    ways: Mapping[str, Callable[[int], Awaitable[None]]] = {
        "mcp": lambda number: _call(http, number),
        "a2a": lambda number: _send(http, number),
        "mcp, again": lambda number: _call(http, number),
    }
    numbers = count()
    seen: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, way in list(ways.items())[:: 1 if number % 2 == 0 else -1]:  # alternate the order
            used = server.cpu_s()
            await _all(way, numbers)
            if number:  # the first round is not counted: imports, first connections
                seen[name].append((server.cpu_s() - used) / _MESSAGES)
    ratios = {name: median(a / b for a, b in zip(times, seen["mcp"], strict=True)) for name, times in seen.items()}
    return Measured(1000 * median(seen["mcp"]), 1000 * median(seen["a2a"]), ratios["a2a"], ratios["mcp, again"])


async def _all(way: Callable[[int], Awaitable[None]], numbers: "count[int]") -> None:
    left = iter(range(_MESSAGES))

    async def work() -> None:
        for _ in left:
            await way(next(numbers))

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(work())


async def _call(http: httpx.AsyncClient, number: int) -> None:
    params = {"name": "helper", "arguments": {"prompt": f"Where is order {number}?"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": _REVISION}
    _check(await http.post("/mcp", json=body, headers=headers))


async def _send(http: httpx.AsyncClient, number: int) -> None:
    message: dict[str, Any] = {"messageId": f"m-{number}", "role": "ROLE_USER"}
    message["parts"] = [{"text": f"Where is order {number}?"}]
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    _check(await http.post("/agents/helper/", json=body, headers={"a2a-version": "1.0"}))


def _check(answer: httpx.Response) -> None:
    if _ANSWER not in answer.text:
        raise RuntimeError(f"the daemon answered {answer.status_code}: {answer.text[:300]}")


async def _complete(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request of one connection at once."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            await reader.readexactly(int(length[1]) if length else 0)
            body = _COMPLETION if head.startswith(b"POST") else _MODELS
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
            )
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
