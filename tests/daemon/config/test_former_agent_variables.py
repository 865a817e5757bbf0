"""The environment of cs-agent-service's container, which makes the daemon one agent."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from toold.daemon.checks.doctor import former_variables
from toold.daemon.config.former_agent_variables import AGENT_VARIABLES, WITHOUT_EFFECT
from toold.daemon.config.former_mcp_variables import MCP_VARIABLES
from toold.daemon.config.setting_sources import variables_in
from toold.tools import SecretUnavailableError

from .loaded_settings import load

PAGE: Final = (Path(__file__).parents[3] / "docs/migrating.md").read_text(encoding="utf-8")
TOKEN: Final = "a-token-of-an-mcp-server"
SERVERS: Final = [
    {"server_name": "My Docs", "transport": "sse", "endpoint": "http://docs:9000/mcp", "auth_token": TOKEN},
    {"name": "files", "transport": "stdio"},
    {"name": "mail", "uri": "http://mail:9000/mcp", "requires_user_auth": True},
    {"name": "bad", "url": f"http://user:{TOKEN}@bad/mcp", "extra": TOKEN},
]
CONTAINER: Final = {
    "AGENT_ID": "id-1",
    "REGISTRY_URL": "http://registry-api:9500",
    "REGISTRY_TOKEN": "registry-token",
    "LITELLM_URL": "http://litellm:4000",
    "LITELLM_API_KEY": "litellm-key",
    "MCP_SERVERS": json.dumps(SERVERS),
    "MCP_SERVER_2_NAME": "second",
    "MCP_SERVER_2_ENDPOINT": "http://second:1/mcp",
    "MCP_SERVER_2_TOKEN": TOKEN,
    "PROMPT_REF": "eo-agent",
    "SYSTEM_PROMPT": "You are an AI assistant.",
    "AGENT_PORT": "9100",
}


def test_the_container_hosts_the_agent_of_the_registry(tmp_path: Path) -> None:
    """With its models at LiteLLM, its prompts, its MCP servers and its port."""
    settings = load(cwd=tmp_path, **CONTAINER)
    registry = settings.registry
    assert registry is not None
    assert registry.key is not None
    assert settings.prompts.registry is not None
    assert (registry.url, registry.agents, registry.key.env) == (
        "http://registry-api:9500",
        (("id-1", None),),
        "REGISTRY_TOKEN",
    )
    assert (registry.provider, registry.sources, registry.prompt_ref) == ("litellm", ("My_Docs", "second"), "eo-agent")
    assert registry.prompt is None
    assert (settings.default_model, settings.providers["litellm"].base_url) == (
        "litellm/gpt-4o-mini",
        "http://litellm:4000/v1",
    )
    assert (settings.http_port, settings.simulated) == (9100, False)
    tokens = [secret.read(CONTAINER) for source in settings.sources.values() for secret in source.secrets]
    assert tokens == [TOKEN, TOKEN]
    assert {"AGENT_ID", "LITELLM_URL", "MCP_SERVERS"} <= set(variables_in(CONTAINER))


def test_no_note_has_a_secret(tmp_path: Path) -> None:
    """Each variable that is set has a note, which names it and no value."""
    settings = load(cwd=tmp_path, **CONTAINER)
    notes = "\n".join(settings.notes)
    for secret in (TOKEN, "registry-token", "litellm-key", "registry-api"):
        assert secret not in notes
    for words in (
        "SYSTEM_PROMPT is ignored: PROMPT_REF is set already",
        "the server My_Docs is read as sources.My_Docs; write [sources.My_Docs]. Its transport is SSE",
        "the server files is ignored: its transport must be",
        "the server mail is ignored: it needs a credential of each user",
        "the field 'extra' of server 4 is not understood",
        "the server bad is ignored: [sources.bad] url must not contain a password",
    ):
        assert words in notes
    assert TOKEN not in repr(settings.sources)
    with pytest.raises(SecretUnavailableError, match=r"MCP_SERVERS has no text at 0\.auth_token"):
        settings.sources["My_Docs"].secrets[0].read({"MCP_SERVERS": "[]"})


def test_a_prompt_and_a_name_make_an_agent_without_a_registry(tmp_path: Path) -> None:
    """It has all MCP servers."""
    env = {name: value for name, value in CONTAINER.items() if name not in {"AGENT_ID", "PROMPT_REF"}}
    settings = load(cwd=tmp_path, **env, AGENT_NAME="My Agent", AGENT_DESCRIPTION="Helps.", AGENT_ROLE="helper one")
    (agent,) = settings.agents.values()
    (role,) = agent.roles
    assert (agent.name, agent.description, role.name) == ("My_Agent", "Helps.", "helper_one")
    assert (role.prompt, [tool.source for tool in role.tools]) == (SERVER_PROMPT, ["My_Docs", "second"])
    assert settings.registry is None


SERVER_PROMPT: Final = CONTAINER["SYSTEM_PROMPT"]


@pytest.mark.parametrize(
    ("env", "note"),
    [
        ({"AGENT_ID": "1", "AGENT_NAME": "build-7"}, "AGENT_ID is ignored: REGISTRY_URL is not set"),
        ({"AGENT_NAME": "build-7", "AGENT_PORT": "1", "MCP_SERVERS": "["}, None),
        ({"AGENT_NAME": "x", "SYSTEM_PROMPT": "p", "AGENT_PORT": "x"}, "AGENT_PORT is ignored: http_port must be"),
        ({"AGENT_NAME": "x", "SYSTEM_PROMPT": "p", "MCP_SERVERS": "["}, "MCP_SERVERS is ignored: it must be a JSON"),
        ({"AGENT_NAME": "x", "SYSTEM_PROMPT": "p", "PORT": "80"}, None),
        ({"AGENT_ID": "1", "REGISTRY_URL": "registry"}, "AGENT_ID is ignored: url must be a URL"),
        ({"AGENT_ID": "..", "REGISTRY_URL": "http://r"}, "AGENT_ID is ignored: agents must have ids"),
        (
            {"AGENT_NAME": "x", "SYSTEM_PROMPT": "p", "OTEL_ENDPOINT": "http://phoenix:4317"},
            "OTEL_ENDPOINT is ignored: traces need a collector's port for HTTP",
        ),
    ],
)
def test_a_variable_that_does_not_fit_is_a_note(tmp_path: Path, env: dict[str, str], note: str | None) -> None:
    """Other programs use some of these names, so the daemon starts."""
    settings = load(cwd=tmp_path, **env)
    assert settings.http_port == 8080
    if note is not None:
        assert any(line.startswith(note) for line in settings.notes), settings.notes
    if "SYSTEM_PROMPT" not in env:
        assert (settings.agents, settings.registry) == ({}, None)


def test_a_variable_that_is_not_understood_is_a_warning(tmp_path: Path) -> None:
    """It is named, with the one that was meant, if it looks like the agent's."""
    env = {**CONTAINER, "LITELLM_API_KEYS": TOKEN, "LITELLM_MASTER_KEY": TOKEN, "OTHER": "x"}
    settings = load(cwd=tmp_path, **env)
    warnings = [check.message for check in former_variables(settings, env) if check.status == "warn"]
    hint = "did you mean 'LITELLM_API_KEY'?"
    assert warnings == [f"LITELLM_API_KEYS is not understood and has no effect; {hint}"]
    assert "LITELLM_MASTER_KEY has no effect: write the registry's key in REGISTRY_TOKEN" in settings.notes
    assert TOKEN not in "".join(settings.notes)


def test_the_file_overrides_each_part(tmp_path: Path) -> None:
    """A table of toold.toml replaces the one of the variable with the same name, and keeps the others."""
    (tmp_path / "toold.toml").write_text(
        'http_port = 5000\ndefault_model = "litellm/other"\n'
        '[providers.litellm]\ntype = "litellm"\nbase_url = "https://own.example/v1"\n'
        '[sources.second]\ntype = "mcp"\nurl = "https://own.example/mcp"\n'
    )
    settings = load(cwd=tmp_path, **CONTAINER, DEFAULT_MODEL="eo-model")
    assert (settings.http_port, settings.default_model) == (5000, "litellm/other")
    assert settings.providers["litellm"].base_url == "https://own.example/v1"
    second: Any = settings.sources["second"]
    assert (second.url, set(settings.sources)) == ("https://own.example/mcp", {"second", "My_Docs"})
    assert {
        "DEFAULT_MODEL is ignored: default_model is set already",
        "AGENT_PORT is ignored: http_port is set already",
        "LITELLM_URL is ignored for providers.litellm: [providers.litellm] is set already",
    } <= set(settings.notes)
    (tmp_path / "toold.toml").write_text('[registry]\nurl = "https://own.example"\nagents = ["own"]\n')
    settings = load(cwd=tmp_path, **CONTAINER)
    assert settings.registry is not None
    assert (settings.registry.url, settings.providers) == ("https://own.example", {})


def test_the_first_hundred_mcp_servers_are_read(tmp_path: Path) -> None:
    """A note says that there are more."""
    servers = [{"name": f"s{number}", "url": "http://s/mcp"} for number in range(101)]
    settings = load(cwd=tmp_path, AGENT_NAME="x", SYSTEM_PROMPT="p", MCP_SERVERS=json.dumps(servers))
    assert len(settings.sources) == 100
    assert "MCP_SERVERS: only the first 100 servers are read" in settings.notes


def test_the_page_has_each_variable_of_an_agent() -> None:
    """docs/migrating.md has a row for each, in the section of the predecessor."""
    part = PAGE.partition("\n### Environment of cs-agent-service\n")[2].partition("\n### ")[0].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in part.splitlines() if line.startswith("| `")]
    named = {name for before in rows for name in re.findall(r"`([A-Z_]+)`", before)}
    assert {*AGENT_VARIABLES, *MCP_VARIABLES, *WITHOUT_EFFECT} <= named
