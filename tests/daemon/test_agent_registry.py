"""A daemon that hosts the agents of a registry: a stand-in on loopback, no copy of the predecessor's program."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import HTMLResponse, RedirectResponse, Response
from structlog.testing import capture_logs
from tests.agent_registry.registry_stand_in import PIPE, RegistryStandIn, record, role, running_registry
from tests.daemon.app_requests import NO_SDKS, call
from tests.waiting import until
from toold.daemon.app import Daemon
from toold.daemon.checks.registry_checks import agent_registry as doctor_check
from toold.daemon.config.settings_mapping import denied_paths
from toold.daemon.lifecycle import running
from toold.protocol.tool_call import LOCAL

OTHER = "other-id"


@pytest.fixture
async def registry() -> AsyncIterator[RegistryStandIn]:
    async with running_registry() as stand_in:
        yield stand_in


async def states(daemon: Daemon) -> dict[str, tuple[str, str]]:
    """Id → name and state, from ``status``."""
    status = await daemon.view.status(LOCAL, recent=0, days=0)
    return {agent["id"]: (agent["name"], agent["state"]) for agent in status["registry"]["agents"]}


async def health(daemon: Daemon) -> tuple[int, Any]:
    """Status and object of ``/health``."""
    async with httpx.AsyncClient(verify=False) as client:
        response = await client.get(f"{daemon.address().http_url}health")
    return response.status_code, None if response.status_code == 404 else response.json()


async def polled(daemon: Daemon, registry: RegistryStandIn) -> None:
    """Return after a poll that began now."""
    before = len(registry.asked)
    daemon.agent_registry.refresh()
    await until(lambda: len(registry.asked) > before)
    await asyncio.sleep(0)


async def test_agents_follow_the_registry(run_with: Any, configure: Any, registry: RegistryStandIn) -> None:
    """They run with the registry's roles in its order, and a change or a deletion arrives without a restart."""
    script = json.dumps([{"text": "found"}])
    registry.records = {
        PIPE: record(),
        OTHER: record(OTHER, "Other", role("only", f"Answer. [[sim:script={script}]]")),
    }
    configure(registry.toml(agents=f'{{ pipe = "{PIPE}", other = "{OTHER}" }}'))
    daemon = await run_with()
    await until(lambda: {"pipe", "other"} <= set(daemon.agents.agents))
    await daemon.publisher.published()
    assert await states(daemon) == {PIPE: ("pipe", "current"), OTHER: ("other", "current")}
    assert (await call(daemon, "other", prompt="Go"))["structured"]["answer"] == "found"
    resolved = (await call(daemon, "pipe", prompt="check", dry_run=True))["structured"]
    assert list(resolved["roles"]) == ["researcher", "writer"]
    await polled(daemon, registry)
    await until(lambda: registry.asked[-2:] and all(line.endswith("304") for line in registry.asked[-2:]))
    registry.records[PIPE] = record(PIPE, "Pipe Line", role("alone", "Alone."))
    del registry.records[OTHER]
    await polled(daemon, registry)
    await until(lambda: daemon.agent_registry.known[1].absences == 1)
    assert "other" in daemon.agents.agents
    await polled(daemon, registry)
    await until(lambda: "other" not in daemon.agents.agents)
    await daemon.publisher.published()
    resolved = (await call(daemon, "pipe", prompt="check", dry_run=True))["structured"]
    assert list(resolved["roles"]) == ["alone"]
    assert (await states(daemon))[OTHER] == ("other", "missing")


async def test_a_registry_that_fails_changes_nothing(run_with: Any, configure: Any, registry: RegistryStandIn) -> None:
    """Each failure keeps the last good agent, and is reported in the status, the health, the log and the doctor; only
    operators see the reason."""
    registry.records = {PIPE: record()}
    registry.has_etags = False
    configure(registry.toml(timeout_s=1.5))
    daemon = await run_with()
    await until(lambda: "Pipe_Line" in daemon.agents.agents)
    tool = daemon.agents.tools[0]
    failures: list[tuple[Response | None, str]] = [
        (HTMLResponse("<html>no registry here</html>"), "its answer is not JSON"),
        (RedirectResponse("https://elsewhere.example/"), "it redirects (HTTP 307), which is refused"),
        (HTMLResponse("not here", 404), "its answer is not JSON"),
        (Response('{"detail": "secret-of-the-server"}', 500), "it answered HTTP 500"),
        (Response("[]"), "its answer is not a JSON object"),
        (Response(b" " * (2 * 1024**2)), "it sent more than 1 MiB"),
        (None, "did not answer within 1.5 s"),
    ]

    def told(words: str, lines: list[Any]) -> bool:
        return any(words in line for line in lines)

    with capture_logs() as lines:
        for failure, words in failures:
            registry.failure, registry.hangs = failure, failure is None
            daemon.agent_registry.refresh()
            await until(lambda words=words: told(words, daemon.agent_registry.problems))  # type: ignore[misc]
            assert daemon.agents.tools[0] is tool
            assert await states(daemon) == {PIPE: ("Pipe_Line", "kept")}
            assert told(words, daemon.view.health(LOCAL)["problems"])
            assert not told(words, daemon.view.health(None)["problems"])
    for _, words in failures:
        assert told(words, [line.get("problem", "") for line in lines])
    assert "secret-of-the-server" not in json.dumps(daemon.view.health(LOCAL))
    registry.failure, registry.hangs = Response("", 503), False
    (result,) = await doctor_check(daemon.settings, {})
    assert (result.status, "it answered HTTP 503" in result.message) == ("warn", True)

    kept = [file for file in (daemon.state.path / "registry").iterdir() if file.suffix == ".json"]
    assert len(kept) == 1
    assert kept[0].stat().st_mode & 0o077 == 0


async def test_a_start_without_the_registry(
    settings_with: Any, run_with: Any, configure: Any, registry: RegistryStandIn
) -> None:
    """It hosts the last good agent from the disk; one that was never read is missing until the registry answers."""
    registry.records = {PIPE: record()}
    configure(registry.toml(agents=f'["{PIPE}", "{OTHER}"]'))
    async with running(settings_with(**NO_SDKS, TOOLD_SIMULATE="true")) as first:
        await until(lambda: "Pipe_Line" in first.agents.agents and first.agent_registry.problems)
        await until(lambda: list((first.state.path / "registry").glob("*.json")))
    registry.failure = Response("", 503)
    daemon = await run_with()
    assert "Pipe_Line" in daemon.registry
    assert (await states(daemon))[PIPE] == ("Pipe_Line", "kept")
    assert await health(daemon) == (404, None)  # two agents
    await until(lambda: "of 20" in (daemon.agent_registry.known[0].problem or ""))
    assert (await states(daemon))[OTHER][1] == "missing"
    registry.failure = None
    registry.records[OTHER] = record(OTHER, "Other", role("only", "Answer."))
    daemon.agent_registry.refresh()
    await until(lambda: {"Pipe_Line", "Other"} <= set(daemon.agents.agents))
    assert (await states(daemon)) == {PIPE: ("Pipe_Line", "current"), OTHER: ("Other", "current")}
    (result,) = await doctor_check(daemon.settings, {})
    assert (result.status, "2 agents with valid definitions" in result.message) == ("ok", True)


async def test_the_registry_gets_the_url_and_its_key(
    run_with: Any, configure: Any, registry: RegistryStandIn, tmp_path: Path
) -> None:
    """The URL is sent once the agent is hosted, and again after failures; the key is read from its file."""
    (tmp_path / "registry.key").write_text("key-of-the-registry\n")
    registry.records = {PIPE: record()}
    registry.refuses_urls = True
    registry.failure = Response("", 503)
    configure(registry.toml(own_url="https://agents.example") + '\nkey = { file = "registry.key" }\n')
    daemon = await run_with()
    unhealthy = {"status": "unhealthy", "agent": PIPE}
    reasons = ["the registry has answered no definition that can be hosted"]
    assert await health(daemon) == (503, {**unhealthy, "reasons": reasons})
    registry.failure = None
    daemon.agent_registry.refresh()
    await until(lambda: "its URL was not accepted: it answered HTTP 500" in "".join(daemon.agent_registry.problems))
    registry.refuses_urls = False
    daemon.agent_registry.refresh()
    await until(lambda: registry.urls)
    await until(lambda: not daemon.agent_registry.problems)
    await polled(daemon, registry)
    assert registry.urls == [(PIPE, "https://agents.example/agents/Pipe_Line/")]
    assert set(registry.keys) == {"Bearer key-of-the-registry"}
    assert tmp_path / "registry.key" in denied_paths(daemon.settings)


async def test_other_settings_of_the_registry_apply_at_once(
    run_with: Any, configure: Any, registry: RegistryStandIn
) -> None:
    """Agents that are no longer named leave; an invalid table changes nothing."""
    registry.records = {PIPE: record(), OTHER: record(OTHER, "Other", role("only", "Answer."))}
    configure(registry.toml())
    daemon = await run_with()
    await until(lambda: "Pipe_Line" in daemon.agents.agents)
    configure(registry.toml(agents=f'["{OTHER}"]'))
    assert (await daemon.reload()).reloaded == ("registry",)
    await until(lambda: set(daemon.agents.agents) == {"Other"})
    configure("")
    await daemon.reload()
    assert not daemon.agents.agents
    assert "registry" not in await daemon.view.status(LOCAL, recent=0, days=0)


async def test_the_environment_of_the_predecessor_alone_makes_the_agent(
    run_with: Any, registry: RegistryStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent of the registry has the prompt of PROMPT_REF, the models of LiteLLM, and the tools of the MCP server,
    here another daemon;
    it is the default agent of A2A."""
    token = "a-token-of-the-other-daemon"
    upstream = await run_with(TOOLD_TOKEN=token, TOOLD_STATE_DIR=str(tmp_path / "upstream"))
    monkeypatch.setenv("MCP_SERVER_1_TOKEN", token)
    registry.records = {PIPE: record(PIPE, "Pipe Line", role("only", model="eo-agent"))}
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "shared.md").write_text("You help.")
    daemon = await run_with(
        AGENT_ID=PIPE,
        REGISTRY_URL=registry.url,
        LITELLM_URL="http://127.0.0.1:9",
        PROMPT_REF="shared",
        MCP_SERVER_1_NAME="tools",
        MCP_SERVER_1_URL=f"{upstream.address().http_url}mcp",
        MCP_SERVER_1_TOKEN=token,
    )
    await until(lambda: "Pipe_Line" in daemon.agents.agents)
    assert await health(daemon) == (200, {"status": "healthy", "agent": "Pipe_Line"})
    assert await health(upstream) == (404, None)
    await daemon.sources.loaded()
    await daemon.publisher.published()
    resolved = (await call(daemon, "Pipe_Line", prompt="check", dry_run=True))["structured"]["roles"]["only"]
    assert (resolved["model"], resolved["prompt"]) == ("litellm/eo-agent", "You help.")
    assert "tools_echo" in resolved["functions"]
    async with httpx.AsyncClient(verify=False) as client:
        headers = {"Authorization": f"Bearer {daemon.state.load_or_create_token().get_secret_value()}"}
        card = (await client.get(f"{daemon.address().http_url}.well-known/agent.json", headers=headers)).json()
    assert card["name"] == "Pipe_Line"
    answer = await call(daemon, "Pipe_Line", prompt="Hello")
    assert answer["structured"]["models"] == {"only": "litellm/eo-agent"}
