"""MCP clients behind a balancer: each request of theirs reaches another node than the one before."""

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any, cast

import httpx
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel
from tests.waiting import until
from toold.daemon.app import Daemon
from toold.tools import Arguments, ToolContext, tool

from .conftest import TOKEN, StartNode

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # of earlier revisions
VERSION = "2025-11-25"


class Nothing(Arguments):
    """No arguments."""


class Seat(BaseModel):
    """A form."""

    row: int


@tool("book", read_only=True, open_world=False)
async def book(arguments: Nothing, context: ToolContext) -> str:
    """Asks for a form, twice."""
    rows = [await context.elicit("Which row?", Seat), await context.elicit("And back?", Seat)]
    return " ".join(str(row.row) for row in rows if row is not None)


@tool("stay", read_only=True, open_world=False)
async def stay(arguments: Nothing, context: ToolContext) -> str:
    """Runs until it is cancelled."""
    await asyncio.Event().wait()
    return "never"


@pytest.fixture
async def nodes(start_node: StartNode) -> tuple[Daemon, Daemon]:
    """Two nodes that know each other."""
    pair = await start_node("a", book, stay), await start_node("b", book, stay)
    for node in pair:
        assert node.cluster is not None
        await node.cluster.membership.refresh()
    return pair


def balanced(ports: Iterator[int]) -> httpx.AsyncClient:
    """A client whose requests go to the next of these ports, each on a new connection."""

    async def to_next(request: httpx.Request) -> None:
        request.url = request.url.copy_with(port=next(ports))

    return httpx.AsyncClient(
        base_url="http://127.0.0.1:1",
        headers={"Authorization": f"Bearer {TOKEN}"},
        event_hooks={"request": [to_next]},
        limits=httpx.Limits(max_keepalive_connections=0),
        timeout=60,
        trust_env=False,
    )


def alternately(nodes: tuple[Daemon, Daemon]) -> Iterator[int]:
    return itertools.cycle(node.http.port for node in nodes)


async def choose_row(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"row": 7 if params.message == "Which row?" else 8})


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_questions_are_answered_at_any_node(nodes: tuple[Daemon, Daemon], mode: str) -> None:
    """The answer of the official client finds the node whose call has asked."""
    for ports in (alternately(nodes), alternately((nodes[1], nodes[0]))):
        async with balanced(ports) as http:
            transport = streamable_http_client("http://127.0.0.1:1/mcp", http_client=cast("Any", http))
            async with Client(transport, mode=mode, cache=None, elicitation_callback=choose_row) as client:
                result = await client.call_tool("book", {})
                assert [block.text for block in result.content if isinstance(block, types.TextContent)] == ["7 8"]


class RawClient:
    """Sends messages to a chosen node."""

    def __init__(self, label: str = "") -> None:
        self.label = label
        self.http = httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60, trust_env=False)

    @property
    def headers(self) -> dict[str, str]:
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": VERSION}
        return headers | ({"mcp-session-id": self.label} if self.label else {})

    async def send(self, node: Daemon, **message: Any) -> httpx.Response:
        body = {"jsonrpc": "2.0", **message}
        return await self.http.post(f"{node.address().http_url}mcp", json=body, headers=self.headers)

    async def open(self, node: Daemon) -> None:
        params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = await self.send(node, id=0, method="initialize", params=params)
        self.label = answer.headers["mcp-session-id"]


async def test_a_call_is_cancelled_through_another_node(nodes: tuple[Daemon, Daemon]) -> None:
    """``notifications/cancelled`` that reaches another node than the call ends the call."""
    first, second = nodes
    client = RawClient()
    await client.open(second)
    call = asyncio.create_task(client.send(first, id=1, method="tools/call", params={"name": "stay"}))
    await until(lambda: first.router.accepted == 1)
    cancelled = await client.send(second, method="notifications/cancelled", params={"requestId": 1})
    assert cancelled.status_code == 202
    answer = await call
    assert "result" not in answer.text
    assert "error" not in answer.text  # a cancelled request is not answered
    await until(lambda: first.router.accepted == 0)


async def test_a_stranger_cancels_nothing(nodes: tuple[Daemon, Daemon]) -> None:
    """The label of another client does not find the call, at no node."""
    first, second = nodes
    client, stranger = RawClient(), RawClient()
    await client.open(first)
    await stranger.open(first)
    call = asyncio.create_task(client.send(first, id=1, method="tools/call", params={"name": "stay"}))
    await until(lambda: first.router.accepted == 1)
    await stranger.send(second, method="notifications/cancelled", params={"requestId": 1})
    await stranger.send(first, method="notifications/cancelled", params={"requestId": 1})
    assert first.router.accepted == 1
    await client.send(first, method="notifications/cancelled", params={"requestId": 1})
    await call


async def test_a_stream_is_opened_at_the_node_of_its_client(nodes: tuple[Daemon, Daemon]) -> None:
    """A client that gets its label from one node is notified on a stream that it opens at another one."""
    first, second = nodes
    client = RawClient()
    await client.open(first)
    async with client.http.stream("GET", f"{second.address().http_url}mcp", headers=client.headers) as stream:
        assert stream.status_code == 200
        lines = stream.aiter_lines()
        assert (await anext(lines)).startswith(":")
        first.http_host.mcp.tools_changed()  # nothing has changed, so nothing is sent
        first.publisher.request()
        deleted = await client.http.delete(f"{second.address().http_url}mcp", headers=client.headers)
        assert deleted.status_code == 200
        assert [line async for line in lines if line.startswith("data")] == []  # the stream has ended


async def test_messages_of_an_sse_client_find_its_stream(nodes: tuple[Daemon, Daemon]) -> None:
    """Revision 2024-11-05: the official client's POSTs reach another node than its stream."""
    first, second = nodes

    def made(**_: Any) -> httpx.AsyncClient:
        return balanced(itertools.chain([first.http.port], itertools.repeat(second.http.port)))

    transport = sse_client("http://127.0.0.1:1/sse", httpx_client_factory=cast("Any", made))
    async with Client(transport, mode="legacy", cache=None, elicitation_callback=choose_row) as client:
        result = await client.call_tool("book", {})
        assert [block.text for block in result.content if isinstance(block, types.TextContent)] == ["7 8"]


async def test_a_client_of_a_dead_node_is_served_by_another(
    nodes: tuple[Daemon, Daemon], request: pytest.FixtureRequest
) -> None:
    """The label of a node that has gone stays valid: the client opens its stream at a living one."""
    first, second = nodes
    client = RawClient()
    await client.open(first)
    assert second.cluster is not None
    second.cluster.membership.nodes = [node for node in second.cluster.membership.nodes if node.name == "b"]
    async with client.http.stream("GET", f"{second.address().http_url}mcp", headers=client.headers) as stream:
        assert stream.status_code == 200
        assert (await anext(stream.aiter_lines())).startswith(":")
