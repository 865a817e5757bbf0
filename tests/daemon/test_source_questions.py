"""Questions of MCP sources, in either form, reach the official SDK's client that made the call."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client as SdkClient
from mcp.shared.exceptions import MCPError
from tests.daemon.upstream_server import serving_upstream
from toold.daemon.app import Daemon
from toold.protocol.tool_call import LOCAL
from toold.sources.mcp.daemon_sampling import preferred_model

MODES = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@asynccontextmanager
async def daemon_with_sources(
    run_with: Any, tmp_path: Path, more: str = "", tables: str = "", **env: str
) -> AsyncIterator[Daemon]:
    """A daemon with the asking server as ``old`` and ``new``: with requests, and with rounds. ``more`` is for each
    source, ``tables`` for the daemon.
    """
    async with AsyncExitStack() as stack:
        config = ""
        for name in ("old", "new"):
            url = await stack.enter_async_context(serving_upstream(modern=name == "new"))
            config += f'[sources.{name}]\ntype = "mcp"\nurl = "{url}"\nallow_private = true\n{more}\n'
        (tmp_path / "toold.toml").write_text(config + tables)
        daemon: Daemon = await run_with(TOOLD_AUTH="false", **env)
        await daemon.sources.loaded()
        await daemon.publisher.published()
        yield daemon


def client_of(daemon: Daemon, mode: str, **callbacks: Any) -> SdkClient:
    return SdkClient(f"http://127.0.0.1:{daemon.http.port}/mcp", mode=mode, cache=None, **callbacks)


async def called(client: SdkClient, tool: str) -> str:
    """Returns the text of a call of ``order``, ``think`` or ``look`` of ``old`` and of ``new``; of an error of the
    request its code, what it requires, and its message.
    """
    listed = {tool.name for tool in (await client.list_tools()).tools}
    texts = []
    for source in ("old", "new"):
        name = f"{source}_{tool}"
        try:
            result = await client.call_tool(name if name in listed else tool, {})
        except MCPError as error:
            texts.append(f"{error.code} {json.dumps(error.data['requiredCapabilities'])}: {error.message}")
            continue
        (block,) = result.content
        assert isinstance(block, types.TextContent)
        texts.append(("error: " if result.is_error else "") + block.text)
    return " | ".join(texts)


@MODES
async def test_each_kind_of_question_reaches_the_caller(run_with: Any, tmp_path: Path, mode: str) -> None:
    """A form, whose text names the source; a completion; and roots."""
    texts: list[str] = []

    async def fill_in(_: Any, params: Any) -> types.ElicitResult:
        texts.append(params.message)
        return types.ElicitResult(action="accept", content={"city": "Rome"})

    async def complete(_: Any, params: Any) -> types.CreateMessageResult:
        assert (params.messages[0].content.text, params.system_prompt) == ("Hi", "Be brief.")
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="Hello"), model="m"
        )

    async def roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///work")])

    callbacks = {"elicitation_callback": fill_in, "sampling_callback": complete, "list_roots_callback": roots}
    async with (
        daemon_with_sources(run_with, tmp_path) as daemon,
        client_of(daemon, mode, **callbacks) as client,
    ):
        assert await called(client, "order") == "to Rome | to Rome"
        assert texts == ["old asks: Which  [2Jcity?", "new asks: Which  [2Jcity?"]
        assert await called(client, "think") == "Hello | Hello"
        assert await called(client, "look") == "file:///work | file:///work"


@MODES
async def test_the_questions_of_steps_reach_the_caller(run_with: Any, tmp_path: Path, mode: str) -> None:
    """A pipeline waits for the answer to the question of its step, a batch for those of its items, and an agent for
    that of its tool.
    """
    clerk = '[agents.clerk]\ndescription = "Orders."\nprompt = "You order."\ntools = ["old_order"]\n'
    cities = iter(["Rome", "Oslo", "Bern", "Wien"])

    async def fill_in(*_: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"city": next(cities)})

    async with (
        daemon_with_sources(run_with, tmp_path, 'prefix = "always"', clerk) as daemon,
        client_of(daemon, mode, elicitation_callback=fill_in) as client,
    ):
        steps = [
            {"id": "order", "tool_name": "old_order"},
            {"id": "say", "tool_name": "echo", "args": {"text": "{{order}}!"}},
        ]
        pipeline = await client.call_tool("execute_pipeline", {"steps": steps, "return": "{{say}}"})
        assert pipeline.structured_content["result"] == '{"result":"to Rome"}!'
        batch = await client.call_tool("execute_batch", {"tool_name": "new_order", "items": [{}, {}]})
        assert batch.structured_content["succeeded"] == 2
        agent = await client.call_tool("clerk", {"prompt": "Use the old_order tool."})
        assert "to Wien" in agent.structured_content["answer"], agent
    assert next(cities, None) is None


async def test_a_caller_that_cannot_answer_learns_why(run_with: Any, tmp_path: Path) -> None:
    """From the error of a server that makes one of the refusal, and else from that of the request, which names the
    capability. Without roots of the client, the source gets the directories that the caller may read.
    """
    (tmp_path / "work").mkdir()
    async with (
        daemon_with_sources(run_with, tmp_path, TOOLD_WORKSPACE=str(tmp_path / "work")) as daemon,
        client_of(daemon, "2026-07-28") as client,
    ):
        old, new = (await called(client, "order")).split(" | ")
        assert old.startswith("error: ")
        assert new.startswith('-32021 {"elicitation": {"form": {}}}: ')
        for text in (old, new):
            assert "ask its caller, but this client has not declared that it can show a form" in text.replace(
                "asked", "ask"
            )
        root = (tmp_path / "work").as_uri()
        assert await called(client, "look") == f"{root} | {root}"


async def test_the_daemon_s_models_can_answer(run_with: Any, tmp_path: Path) -> None:
    """As child calls of the call that asks, with the model that the server prefers. A server that asks for more tokens
    than a model can write gets what it can.
    """
    more = 'sampling = "daemon"\nsampling_budget = { USD = 1.0 }'
    async with (
        daemon_with_sources(run_with, tmp_path, more) as daemon,
        client_of(daemon, "2026-07-28") as client,
    ):
        for text in (await called(client, "think")).split(" | "):
            assert text.startswith("Simulated answer from glm-4.6")
        rows = await daemon.view.ended(LOCAL, 10)
        tools = [row["tool"] for row in rows]
        assert sorted(tool for tool in tools if tool.startswith("sampling")) == ["sampling_new", "sampling_old"]


@pytest.mark.parametrize(
    ("preferences", "model"),
    [
        (None, None),
        ({"hints": [{"name": "claude"}, {"name": "GLM-4"}]}, "glm-4.6"),
        ({"costPriority": 0.9, "intelligencePriority": 0.1}, "auto"),
        ({"speedPriority": 0.1, "intelligencePriority": 0.9}, None),
        ({"hints": [{"name": ""}, 7], "costPriority": "much"}, None),
        ({"costPriority": 10**400, "intelligencePriority": 1}, None),
    ],
)
def test_a_model_follows_the_preferences(preferences: Any, model: str | None) -> None:
    """Hints first, in their order; the shortest name that contains the hint."""
    assert preferred_model(preferences, ["kimi-k2", "glm-4.6v-plus", "glm-4.6"]) == model
