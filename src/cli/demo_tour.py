"""The steps of ``toold demo``: each calls the daemon, checks the result and returns a line to print."""

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


class TourStepError(Exception):
    """A step got an unexpected result; the message describes it."""


@dataclass(frozen=True, slots=True)
class TourStep:
    """One step of the tour; ``run`` returns the line to print, or raises ``TourStepError`` or a client error."""

    title: str
    run: Callable[[MCPWebSocketClient], Awaitable[str]]


def tour_steps(file: str) -> list[TourStep]:
    """The steps, in order; ``file`` is the file that chat describes, a path within the workspace."""
    return [
        TourStep("Connect", _hello),
        TourStep("List the tools", _list_tools),
        TourStep("Call echo", _echo),
        TourStep(f"Ask chat about {file}, with streaming", lambda client: _chat(client, file)),
        TourStep("Run two long calls concurrently, and a ping", _overlap),
        TourStep("Send an invalid argument", _wrong_argument),
        TourStep("Call an unknown tool", _unknown_tool),
        TourStep("Cancel a one-minute call", _cancel),
        TourStep("Read the status", _status),
    ]


def _require(condition: object, failure: str) -> None:
    if not condition:
        raise TourStepError(failure)


async def _hello(client: MCPWebSocketClient) -> str:
    ack = client.hello
    _require(ack is not None and ack.ok and ack.server, f"the hello was answered with {ack}")
    assert ack is not None  # noqa: S101 - checked above; for mypy
    assert ack.server is not None  # noqa: S101 - as above
    return f"{ack.server.name} {ack.server.version}, protocol {ack.protocol}, features {', '.join(ack.features or ())}"


async def _list_tools(client: MCPWebSocketClient) -> str:
    names = [tool.name for tool in await client.list_tools()]
    _require({"chat", "echo", "status"} <= set(names), f"the tools are {names}")
    return f"{len(names)} tools: {', '.join(names)}"


async def _echo(client: MCPWebSocketClient) -> str:
    value = {"greeting": "Grüße", "numbers": [1, 2.5, None]}
    result = await client.call("echo", {"value": value})
    _require(result.structured == value, f"{value} was returned as {result.structured}")
    return f"{result.text} returned unchanged in {result.metadata.latency_ms:.1f} ms"


async def _chat(client: MCPWebSocketClient, file: str) -> str:
    chunks: list[str] = []
    arguments = {"prompt": "What is this file about?", "files": [file]}
    result = await client.call("chat", arguments, on_chunk=chunks.append)
    text = str(result.outputs[0]["text"]) if result.outputs else ""  # the second text has the conversation's id
    _require(chunks and "".join(chunks) == text, f"the {len(chunks)} chunks do not add up to the answer")
    usage = result.metadata.usage
    tokens = f", {usage.input_tokens}+{usage.output_tokens} tokens" if usage else ""
    return f"{result.metadata.model} in {len(chunks)} chunks{tokens}: {_shortened(text)}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else line[:SHOWN_CHARS] + "…"


async def _overlap(client: MCPWebSocketClient) -> str:
    finished: list[str] = []

    async def recorded(name: str, answer: Awaitable[T]) -> T:
        value = await answer
        finished.append(name)
        return value

    began = time.perf_counter()
    one, two, ping_s = await asyncio.gather(
        recorded("one", client.call("echo", {"text": "one", "delay_ms": LONG_CALL_MS})),
        recorded("two", client.call("echo", {"text": "two", "delay_ms": LONG_CALL_MS})),
        recorded("ping", client.ping()),
    )
    elapsed_s = time.perf_counter() - began
    total_s = (one.metadata.latency_ms + two.metadata.latency_ms) / 1000
    _require(finished[0] == "ping", "the ping was answered after a call")
    _require((one.text, two.text) == ("one", "two"), f"the answers are swapped: {one.text!r} and {two.text!r}")
    _require(elapsed_s < total_s, f"the calls ran one after the other, in {elapsed_s:.2f} s")
    return f"{total_s:.1f} s of calls in {elapsed_s:.1f} s; the ping was answered after {ping_s * 1000:.1f} ms"


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
    raise TourStepError("the call returned a result")


async def _cancel(client: MCPWebSocketClient) -> str:
    request_id, running = uuid.uuid4().hex, asyncio.Event()
    arguments = {"text": "", "delay_ms": 60_000}
    call = asyncio.create_task(
        client.call("echo", arguments, request_id=request_id, on_progress=lambda _: running.set())
    )
    began = time.perf_counter()
    done, _ = await asyncio.wait({call, asyncio.create_task(running.wait())}, timeout=10, return_when="FIRST_COMPLETED")
    _require(done and not call.done(), "the call reported no progress")
    _require(await client.cancel(request_id), "the call had already ended")
    try:
        await call
    except CallCancelledError as error:
        return f"{error.code.value} after {time.perf_counter() - began:.2f} s: {error.message}"
    raise TourStepError("the call returned a result")


async def _status(client: MCPWebSocketClient) -> str:
    status = (await client.call("status", {"recent": 20})).structured
    _require(isinstance(status, dict) and status.get("version"), f"the status is {status}")
    calls = [f"{call.get('tool')} {call.get('outcome')}" for call in status.get("recent", ())]
    return f"up {status.get('uptime_s', 0):.1f} s; recent calls: {', '.join(calls)}"
