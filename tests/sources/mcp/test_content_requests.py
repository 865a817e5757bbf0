"""Requests about resources and prompts whose connection is closed."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, ResourcesCapability, ServerCapabilities
from toold.protocol.error_codes import CallError
from toold.sources.mcp.announced_changes import AnnouncedChanges
from toold.sources.mcp.content_requests import ContentRequests
from toold.sources.mcp.session_questions import SessionQuestions
from toold.sources.mcp.upstream_http import current_exchange
from toold.sources.mcp.upstream_session import UpstreamSession
from toold.sources.source_content import NoSourceEvents


def failing_session(*, broken: bool) -> UpstreamSession:
    """A session in which the SDK's client fails each request, as it does if the connection is ``broken``."""

    async def send_request(*_: Any, **__: Any) -> None:
        exchange = current_exchange.get()
        assert exchange is not None
        exchange.sent, exchange.broken = True, broken
        raise MCPError(CONNECTION_CLOSED, "it failed")

    client: Any = SimpleNamespace(
        server_capabilities=ServerCapabilities(resources=ResourcesCapability()),
        session=SimpleNamespace(send_request=send_request),
    )
    wake, questions = asyncio.Event(), SessionQuestions(current_exchange)
    return UpstreamSession("s", client, wake, asyncio.Event(), [], questions, AnnouncedChanges(wake))


@pytest.mark.parametrize("broken", [True, False])
async def test_a_listing_over_a_broken_connection_ends_the_session(broken: bool) -> None:
    """So that later calls are not sent over it; an error that the server answers leaves the session open."""
    session = failing_session(broken=broken)
    with pytest.raises(CallError):
        await ContentRequests("s", session, NoSourceEvents()).listing()
    assert session.ended.is_set() is broken


async def test_a_read_over_a_broken_connection_leaves_the_session_open() -> None:
    """One broken request does not end the others; the tools are listed again, to see whether the server is there."""
    session = failing_session(broken=True)
    with pytest.raises(CallError):
        await ContentRequests("s", session, NoSourceEvents()).read("test://a", 60.0)
    assert (session.ended.is_set(), session.wake.is_set()) == (False, True)
