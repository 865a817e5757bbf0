"""A server's messages before they reach the SDK."""

from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse
from toold.sources.mcp import server_requests
from toold.sources.mcp.server_messages import MAX_BLOCKS, ServerMessages
from toold.sources.mcp.server_requests import ServerRequests
from toold.sources.mcp.upstream_exchange import UNREADABLE


async def received(*messages: Any) -> list[Any]:
    """What the SDK gets of these messages."""
    sending, receiving = anyio.create_memory_object_stream[SessionMessage | Exception](len(messages))
    for message in messages:
        sending.send_nowait(SessionMessage(message))
    sending.close()
    async with ServerMessages(receiving, [], ServerRequests("s")) as stream:
        return [item.message if isinstance(item, SessionMessage) else item async for item in stream]


@pytest.mark.parametrize("field", ["content", "contents", "messages"])
async def test_a_result_with_too_many_parts_is_an_error(field: str) -> None:
    """The SDK validates each of them, while every call waits."""
    results = [{field: [{"type": "text", "text": ""}] * number} for number in (MAX_BLOCKS, MAX_BLOCKS + 1)]
    kept, refused = await received(*(JSONRPCResponse(jsonrpc="2.0", id=7, result=result) for result in results))
    assert kept.result == results[0]
    assert isinstance(refused, JSONRPCError)
    assert (refused.id, refused.error.code) == (7, UNREADABLE)
    assert refused.error.message == f"its {field} has more than 5,000 entries"


async def test_requests_too_many_do_not_reach_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other messages do."""
    monkeypatch.setattr(server_requests, "MAX_OPEN_REQUESTS", 2)
    asking = [JSONRPCRequest(jsonrpc="2.0", id=number, method="ping") for number in range(4)]
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={})
    assert await received(*asking, answer) == [*asking[:2], answer]
