"""Notifications to editors: subscriptions and progress."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.cli.bridge.conftest import channel
from toold.cli.bridge.editor_notifications import BridgeSubscriptions, progress_reports
from toold.protocol.json_rpc import MessageProblem, RpcRequest
from toold.protocol.mcp.mcp_revision import REVISIONS
from toold.protocol.mcp.request_envelope import SUBSCRIPTION_KEY, RequestEnvelope
from toold.protocol.tool_call import Progress

NEW = RequestEnvelope(REVISIONS["2026-07-28"])


async def followed(_method: str, params: dict[str, Any]) -> bool:
    """The daemon follows all but one resource."""
    return bool(params["uri"] != "test://unknown")


def listen(request_id: str, wanted: Any) -> RpcRequest:
    return RpcRequest(request_id, "subscriptions/listen", {"notifications": wanted})


async def test_until_the_channel_closes() -> None:
    """Each subscriber gets the notifications with its subscription's id, and an answer at the end."""
    async with channel() as (lines, editor, _):
        subscriptions = BridgeSubscriptions(lines, followed)
        listening = []
        for request_id, wanted in (("tools", {"toolsListChanged": True}), ("nothing", {})):
            listening.append(asyncio.create_task(subscriptions.listen(listen(request_id, wanted), NEW)))
            reported = await editor.receive()
            assert (reported["params"]["notifications"], reported["params"]["_meta"]) == (
                wanted,
                {SUBSCRIPTION_KEY: request_id},
            )
        await subscriptions.changed("notifications/tools/list_changed", {})
        subscriptions.close()
        assert (await editor.receive())["params"] == {"_meta": {SUBSCRIPTION_KEY: "tools"}}
        answers = await asyncio.gather(*listening)
        assert [answer["_meta"][SUBSCRIPTION_KEY] for answer in answers if isinstance(answer, dict)] == [
            "tools",
            "nothing",
        ]


async def test_resources() -> None:
    """A subscriber gets updates of the resources that the daemon follows, and of those below them, and of no others."""
    async with channel() as (lines, editor, _):
        subscriptions = BridgeSubscriptions(lines, followed)
        wanted = {"resourceSubscriptions": ["test://a", "test://unknown"]}
        listening = asyncio.create_task(subscriptions.listen(listen("r", wanted), NEW))
        assert (await editor.receive())["params"]["notifications"] == {"resourceSubscriptions": ["test://a"]}
        for uri in ("test://unknown", "test://a/b"):
            await subscriptions.changed("notifications/resources/updated", {"uri": uri})
        assert (await editor.receive())["params"] == {"uri": "test://a/b", "_meta": {SUBSCRIPTION_KEY: "r"}}
        subscriptions.close()
        await listening


@pytest.mark.parametrize("wanted", [None, [], "tools"])
async def test_an_invalid_subscription(wanted: Any) -> None:
    """The request is refused."""
    async with channel() as (lines, _, _):
        assert isinstance(await BridgeSubscriptions(lines, followed).listen(listen("l", wanted), NEW), MessageProblem)


async def test_only_the_latest_of_many_reports_is_sent() -> None:
    """A slow editor gets only the latest report, and the last one before the answer."""
    async with channel() as (lines, editor, _):
        async with progress_reports(lines, "t") as note:
            assert note is not None
            for number in range(1000):
                note(Progress(f"{number}", number))
        await lines.write(b'{"after":true}')
        reported = []
        while "after" not in (message := await editor.receive()):
            reported.append(message["params"]["message"])
    assert reported[-1] == "999"
    assert len(reported) < 10


async def test_without_a_progress_token_nothing_is_sent() -> None:
    """The daemon is not asked for reports."""
    async with channel() as (lines, _, _), progress_reports(lines, None) as note:
        assert note is None
