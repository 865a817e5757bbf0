"""Hooks in a running daemon: settings, reload, each transport, requests for resources, and what operators see."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.call_hooks.scripted_hook import ScriptedHook, scripted_hook
from tests.daemon.app_requests import call
from tests.daemon.transports.mcp.conftest import STATELESS, message_of, request
from toold.daemon.app import Daemon
from toold.protocol.tool_call import LOCAL


@pytest.fixture
async def hook() -> AsyncIterator[ScriptedHook]:
    async with scripted_hook() as hook:
        yield hook


def table(hook: ScriptedHook, **more: Any) -> str:
    settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    return f'[hooks.guard]\nurl = "{hook.url}"\nallow_private = true\n{settings}'


def redacting(question: dict[str, Any]) -> dict[str, Any]:
    """Replaces a name in arguments and results."""
    part = "arguments" if question["event"] == "before" else "result"
    text = json.dumps(question[part])
    return {part: json.loads(text.replace("ann", "[name]"))} if "ann" in text else {}


async def mcp(daemon: Daemon, method: str, params: dict[str, Any]) -> Any:
    message, headers = request(method, params, revision=STATELESS)
    token = (daemon.settings.state_dir / "token").read_text().strip()
    if method == "resources/read":
        headers["mcp-name"] = params["uri"]
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        url = f"http://127.0.0.1:{daemon.http.port}/mcp/full"
        answer = await http.post(url, json=message, headers=headers | {"authorization": f"Bearer {token}"})
    return message_of(answer)


async def test_hooks_of_a_daemon(run_with: Any, configure: Any, hook: ScriptedHook) -> None:
    """Over WebSocket and MCP; a resource that is read is a result too. The audit says what was changed, metrics and
    health report; a reload applies at once.
    """
    hook.reply = redacting
    configure(table(hook))
    daemon = await run_with()
    answer = await call(daemon, "echo", value={"name": "ann"})
    assert answer["structured"] == {"name": "[name]"}
    answer = await mcp(daemon, "tools/call", {"name": "echo", "arguments": {"value": {"name": "ann"}}})
    assert answer["result"]["structuredContent"] == {"name": "[name]"}
    assert {question["call"]["transport"] for question in hook.questions} == {"websocket", "mcp"}
    await daemon.store.flush()
    rows = await daemon.store.audit.recent(1)
    assert rows[0].message == "arguments changed by the hook guard"
    hook.reply = lambda question: redacting(question) if question["event"] == "after" else {}
    read = await mcp(daemon, "resources/read", {"uri": "toold://tool/echo"})
    assert read["result"]["contents"][0]["uri"] == "toold://tool/echo"
    assert [question["call"]["tool"] for question in hook.questions[-2:]] == ["resources/read"] * 2
    assert b'toold_hook_answers_total{event="before",hook="guard",outcome="changed"} 2.0' in daemon.metrics.render()
    hook.reply = lambda _: 500
    assert (await call(daemon, "echo", value=1))["error"]["code"] == "SERVICE_UNAVAILABLE"
    assert daemon.view.health(LOCAL)["problems"] == ["hook guard: it answered with HTTP 500"]
    assert daemon.view.health(None)["problems"] == ["a hook fails"]
    configure(table(hook, tools=["version"]))
    await daemon.reload()
    assert (await call(daemon, "echo", value={"name": "ann"}))["structured"] == {"name": "ann"}
    assert daemon.view.health(LOCAL)["problems"] == []


async def test_streams_of_openais_api(run_with: Any, configure: Any, hook: ScriptedHook) -> None:
    """A streamed completion comes as a whole, after the hook has seen it."""

    def reply(question: dict[str, Any]) -> dict[str, Any]:
        if question["event"] == "before":
            return {}
        return {"result": json.loads(json.dumps(question["result"]).replace("Simulated", "Checked"))}

    hook.reply = reply
    configure(table(hook))
    daemon = await run_with()
    token = (daemon.settings.state_dir / "token").read_text().strip()
    body = {"model": "glm-4.7-flash", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        url = f"http://127.0.0.1:{daemon.http.port}/v1/chat/completions"
        answer = await http.post(url, json=body, headers={"authorization": f"Bearer {token}"})
    chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    assert text.startswith("Checked answer")
    assert "Simulated" not in answer.text
