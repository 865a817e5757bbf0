"""The stops of ``toold demo``: what each does, what it must see, and the sentence that it comes back with."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from ..client import MCPWebSocketClient
from ..protocol.error_codes import CallCancelledError, CallError, InvalidArgumentsError, ToolNotFoundError

T = TypeVar("T")

LONG_CALL_MS: Final = 1500
SHOWN_CHARS: Final = 200


class StopFailedError(Exception):
    """A stop did not see what it should; the message says what it saw."""


@dataclass(frozen=True, slots=True)
class TourStop:
    """One stop of the tour; ``visit`` returns what to show, or raises ``StopFailedError`` or what the client raises."""

    title: str
    visit: Callable[[MCPWebSocketClient], Awaitable[str]]


def stops(file: str) -> list[TourStop]:
    """The tour, in order; ``file`` is what chat talks about, a path within the workspace."""
    return [
        TourStop("Say hello", _hello),
        TourStop("List the tools", _list_tools),
        TourStop("Call echo", _echo),
        TourStop(f"Ask chat about {file}, streamed", lambda client: _chat(client, file)),
        TourStop("Run two long calls side by side, with a ping in between", _overlap),
        TourStop("Send a wrong argument", _wrong_argument),
        TourStop("Call a tool that is not there", _unknown_tool),
        TourStop("Cancel a call of a minute", _cancel),
        TourStop("Look at the status", _status),
    ]


def _require(condition: object, saw: str) -> None:
    if not condition:
        raise StopFailedError(saw)


async def _hello(client: MCPWebSocketClient) -> str:
    ack = client.hello
    _require(ack is not None and ack.ok and ack.server, f"the hello was answered with {ack}")
    assert ack is not None  # noqa: S101 - said above, for the type checker
    assert ack.server is not None  # noqa: S101 - as above
    return f"{ack.server.name} {ack.server.version}, protocol {ack.protocol}, features {', '.join(ack.features or ())}"


async def _list_tools(client: MCPWebSocketClient) -> str:
    names = [tool.name for tool in await client.list_tools()]
    _require({"chat", "echo", "status"} <= set(names), f"the tools are {names}")
    return f"{len(names)} tools: {', '.join(names)}"


async def _echo(client: MCPWebSocketClient) -> str:
    value = {"greeting": "Grüße", "numbers": [1, 2.5, None]}
    result = await client.call("echo", {"value": value})
    _require(result.structured == value, f"{value} came back as {result.structured}")
    return f"{result.text} came back as it went, in {result.metadata.latency_ms:.1f} ms"


async def _chat(client: MCPWebSocketClient, file: str) -> str:
    pieces: list[str] = []
    arguments = {"prompt": "What is this file about?", "files": [file]}
    result = await client.call("chat", arguments, on_chunk=pieces.append)
    _require(pieces and "".join(pieces) == result.text, f"{len(pieces)} pieces came that are not the answer")
    usage = result.metadata.usage
    tokens = f", {usage.input_tokens}+{usage.output_tokens} tokens" if usage else ""
    return f"{result.metadata.model} in {len(pieces)} pieces{tokens}: {_shortened(result.text)}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else line[:SHOWN_CHARS] + "…"


async def _overlap(client: MCPWebSocketClient) -> str:
    finished: list[str] = []

    async def noted(name: str, answer: Awaitable[T]) -> T:
        value = await answer
        finished.append(name)
        return value

    began = time.perf_counter()
    one, two, ping_s = await asyncio.gather(
        noted("one", client.call("echo", {"text": "one", "delay_ms": LONG_CALL_MS})),
        noted("two", client.call("echo", {"text": "two", "delay_ms": LONG_CALL_MS})),
        noted("ping", client.ping()),
    )
    took_s = time.perf_counter() - began
    spent_s = (one.metadata.latency_ms + two.metadata.latency_ms) / 1000
    _require(finished[0] == "ping", "the ping was answered after a call")
    _require((one.text, two.text) == ("one", "two"), f"the answers are mixed up: {one.text!r} and {two.text!r}")
    _require(took_s < spent_s, f"they took {took_s:.2f} s, one after the other")
    return f"{spent_s:.1f} s of calls in {took_s:.1f} s; the ping came back after {ping_s * 1000:.1f} ms"


async def _wrong_argument(client: MCPWebSocketClient) -> str:
    return await _refused(client, "echo", {"text": "hi", "delay_ms": "soon"}, InvalidArgumentsError)


async def _unknown_tool(client: MCPWebSocketClient) -> str:
    return await _refused(client, "ehco", {"text": "hi"}, ToolNotFoundError)


async def _refused(
    client: MCPWebSocketClient, tool: str, arguments: dict[str, object], expected: type[CallError]
) -> str:
    try:
        await client.call(tool, arguments)
    except expected as error:
        return f"{error.code.value}: {error.message}"
    raise StopFailedError("it was answered with a result")


async def _cancel(client: MCPWebSocketClient) -> str:
    request_id, running = uuid.uuid4().hex, asyncio.Event()
    arguments = {"text": "", "delay_ms": 60_000}
    call = asyncio.create_task(
        client.call("echo", arguments, request_id=request_id, on_progress=lambda _: running.set())
    )
    began = time.perf_counter()
    done, _ = await asyncio.wait({call, asyncio.create_task(running.wait())}, timeout=10, return_when="FIRST_COMPLETED")
    _require(done and not call.done(), "it did not report that it runs")
    _require(await client.cancel(request_id), "it ended otherwise")
    try:
        await call
    except CallCancelledError as error:
        return f"{error.code.value} after {time.perf_counter() - began:.2f} s: {error.message}"
    raise StopFailedError("it was answered with a result")


async def _status(client: MCPWebSocketClient) -> str:
    status = (await client.call("status", {"recent": 20})).structured
    _require(isinstance(status, dict) and status.get("version"), f"the status is {status}")
    calls = [f"{call.get('tool')} {call.get('outcome')}" for call in status.get("recent", ())]  # written as they end
    return f"up {status.get('uptime_s', 0):.1f} s; the last calls: {', '.join(calls)}"
