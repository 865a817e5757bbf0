"""Environment variables of cs-agent-service that configure the daemon as one agent, and their settings. Pure.

They have an effect only together: ``AGENT_ID`` with ``REGISTRY_URL``, or ``AGENT_NAME`` with a prompt. Build systems
and other programs use some of these names for other purposes.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic_core import PydanticCustomError

from ...agent_registry import RegistrySettingsError, read_registry
from ...protocol.name_suggestions import close_names, did_you_mean
from ...tools import AgentDefinitionError, read_agents
from .former_mcp_variables import MCP_VARIABLES, former_mcp_servers, is_mcp_variable
from .former_prompt_variables import PROMPT_VARIABLES
from .provider_settings import read_providers

NOT_UNDERSTOOD: Final = "is not understood and has no effect"
"""The note about an unknown variable whose name resembles an agent's variable."""
DEFAULT_LITELLM_MODEL: Final = "gpt-4o-mini"
"""The predecessor's default."""
PROVIDER: Final = "litellm"
_GRPC_PORT: Final = 4317
"""The collectors' port for gRPC, which toold does not support."""
_REGISTRY_URLS: Final = ("REGISTRY_URL", "REGISTRY_API_URL")
_COLLECTORS: Final = ("OTEL_ENDPOINT", "PHOENIX_OTLP_ENDPOINT")
AGENT_VARIABLES: Final = (
    *("AGENT_ID", "AGENT_NAME", "AGENT_DESCRIPTION", "AGENT_ROLE", "AGENT_PORT", "PORT"),
    *("SYSTEM_PROMPT", "PROMPT_REF", "PHOENIX_PROMPT_NAME"),
    *_COLLECTORS,
)
"""The variables that only this module reads. Other modules read the agent's variables for MCP servers and prompts.
"""
WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "LITELLM_MASTER_KEY": "write the registry's key in REGISTRY_TOKEN",
    "DEBUG_MCP_TOOLS": "log_level sets what is logged",
    "GOOGLE_CLOUD_PROJECT": "keys come from variables and files",
    "PROJECT_ID": "keys come from variables and files",
}
_OWN_PREFIXES: Final = ("AGENT_", "LITELLM_", "PHOENIX_", "MCP_SERVER", "REGISTRY_", "PROMPT_")
_READ_ELSEWHERE: Final = ("DEFAULT_MODEL", "K_SERVICE")


@dataclass(slots=True)
class AgentEnvironment:
    """The settings from the variables."""

    values: dict[str, tuple[object, str]] = field(default_factory=dict)
    """Setting → value and variable."""
    tables: dict[str, dict[str, tuple[object, str]]] = field(default_factory=dict)
    """Setting → name of a table → the table and its variable. They are added to the tables of toold.toml."""
    notes: list[str] = field(default_factory=list)
    """A line for each variable that is set."""
    claimed: set[str] = field(default_factory=set)
    """Variables that have no other meaning if they configure an agent."""


def former_agent(env: Mapping[str, str], elsewhere: Collection[str]) -> AgentEnvironment:
    """The settings from the variables, except settings that are set ``elsewhere``."""
    present = {name: value for name, text in env.items() if (value := text.strip())}
    found = AgentEnvironment()
    url = next((name for name in _REGISTRY_URLS if name in present), None)
    in_registry = "AGENT_ID" in present and url is not None
    has_prompt = not {"SYSTEM_PROMPT", "PROMPT_REF", "PHOENIX_PROMPT_NAME", "PROMPT_FILE"}.isdisjoint(present)
    if in_registry and "registry" in elsewhere:
        found.notes.append("AGENT_ID is ignored: registry is set already")
        return found
    if not in_registry:
        if "AGENT_ID" in present:
            found.notes.append("AGENT_ID is ignored: REGISTRY_URL is not set")
        if "AGENT_NAME" not in present or not has_prompt:
            return found
    provider = _litellm(present, elsewhere, found)
    sources = _mcp_servers(present, found)
    if in_registry and url is not None:
        hosted = _registry(present, url, provider, sources, found)
    else:
        hosted = _own_agent(present, sources, found)
    if not hosted:
        return AgentEnvironment(notes=found.notes)
    _port(present, elsewhere, found)
    _collector(present, elsewhere, found)
    _not_used(present, found)
    return found


def _litellm(present: Mapping[str, str], elsewhere: Collection[str], found: AgentEnvironment) -> str | None:
    """The provider of all models, if LiteLLM is configured."""
    url = present.get("LITELLM_URL")
    if url is None:
        return None
    # The operator named the host; within a container's network, most hosts have no TLS.
    base = url.rstrip("/").removesuffix("/v1")
    table: dict[str, Any] = {"type": PROVIDER, "base_url": f"{base}/v1", "allow_http": True}
    if "LITELLM_API_KEY" in present:
        table["api_key"] = {"env": "LITELLM_API_KEY"}
    try:
        read_providers({PROVIDER: table})
    except PydanticCustomError as error:
        found.notes.append(f"LITELLM_URL is ignored for models: {error.message()}")
        return None
    found.tables["providers"] = {PROVIDER: (table, "LITELLM_URL")}
    found.notes.append(f"LITELLM_URL is read as providers.{PROVIDER}; write [providers.{PROVIDER}]")
    found.claimed.add("DEFAULT_MODEL")
    if "default_model" in elsewhere:
        if "DEFAULT_MODEL" in present:
            found.notes.append("DEFAULT_MODEL is ignored: default_model is set already")
        return PROVIDER
    model = present.get("DEFAULT_MODEL", DEFAULT_LITELLM_MODEL).removeprefix(f"{PROVIDER}/")
    variable = "DEFAULT_MODEL" if "DEFAULT_MODEL" in present else "LITELLM_URL"
    found.values["default_model"] = (f"{PROVIDER}/{model}", variable)
    found.notes.append(f"{variable} is read as default_model = {PROVIDER}/{model}; write default_model")
    return PROVIDER


def _mcp_servers(present: Mapping[str, str], found: AgentEnvironment) -> list[str]:
    servers = former_mcp_servers(present)
    found.notes.extend(servers.notes)
    if servers.sources:
        found.tables["sources"] = dict(servers.sources)
    return list(servers.sources)


def _registry(
    present: Mapping[str, str], url: str, provider: str | None, sources: list[str], found: AgentEnvironment
) -> bool:
    name = present.get("AGENT_NAME")
    table: dict[str, Any] = {
        "url": present[url],
        "agents": {_identifier(name): present["AGENT_ID"]} if name else [present["AGENT_ID"]],
        "allow_private": True,
        "allow_http": True,
        "provider": provider,
        "sources": sources,
        **_prompt(present, found),
    }
    if "REGISTRY_TOKEN" in present:
        table["key"] = {"env": "REGISTRY_TOKEN"}
    try:
        read_registry(table)
    except RegistrySettingsError as error:
        found.notes.extend(f"{variable} is ignored: {error}" for variable in ("AGENT_ID", url))
        return False
    found.values["registry"] = (table, "AGENT_ID")
    settings = {url: "url", "AGENT_ID": "agents", "AGENT_NAME": "agents", "REGISTRY_TOKEN": "key"}
    found.notes.extend(
        f"{variable} is read as registry.{setting}; write [registry]"
        for variable, setting in settings.items()
        if variable in present
    )
    for variable in ("AGENT_DESCRIPTION", "AGENT_ROLE"):
        if variable in present:
            found.notes.append(f"{variable} has no effect: the registry has it")
    return True


def _own_agent(present: Mapping[str, str], sources: list[str], found: AgentEnvironment) -> bool:
    name = _identifier(present["AGENT_NAME"])
    role = {
        "name": _identifier(present.get("AGENT_ROLE", "main")),
        "tools": [{"source": source} for source in sources],
        **_prompt(present, found),
    }
    description = present.get("AGENT_DESCRIPTION", f"The agent {present['AGENT_NAME']}.")
    table = {"description": description, "roles": [role]}
    try:
        read_agents({name: table})
    except AgentDefinitionError as error:
        found.notes.append(f"AGENT_NAME is ignored: {error}")
        return False
    found.tables["agents"] = {name: (table, "AGENT_NAME")}
    found.notes.extend(
        f"{variable} is read as agents.{name}; write [agents.{name}]"
        for variable in ("AGENT_NAME", "AGENT_DESCRIPTION", "AGENT_ROLE")
        if variable in present
    )
    return True


def _prompt(present: Mapping[str, str], found: AgentEnvironment) -> dict[str, str]:
    """The prompt of roles without one; the first variable that is set counts."""
    fields = {"PHOENIX_PROMPT_NAME": "prompt_ref", "PROMPT_REF": "prompt_ref", "SYSTEM_PROMPT": "prompt"}
    named = [name for name in fields if name in present]
    if not named:
        return {}
    chosen, *others = named
    found.notes.append(f"{chosen} is read as {fields[chosen]} of roles without a prompt; write {fields[chosen]}")
    found.notes.extend(f"{name} is ignored: {chosen} is set already" for name in others)
    return {fields[chosen]: present[chosen]}


def _port(present: Mapping[str, str], elsewhere: Collection[str], found: AgentEnvironment) -> None:
    names = ["AGENT_PORT", *(["PORT"] if "K_SERVICE" in present else [])]
    for name in names:
        if name not in present:
            continue
        if "http_port" in elsewhere or "http_port" in found.values:
            found.notes.append(f"{name} is ignored: http_port is set already")
        elif not re.fullmatch(r"\d{1,5}", present[name]) or not 0 < int(present[name]) <= 65535:
            found.notes.append(f"{name} is ignored: http_port must be 1 to 65535")
        else:
            found.values["http_port"] = (int(present[name]), name)
            found.notes.append(f"{name} is read as http_port; write http_port or TOOLD_HTTP_PORT")


def _collector(present: Mapping[str, str], elsewhere: Collection[str], found: AgentEnvironment) -> None:
    for name in _COLLECTORS:
        if name not in present:
            continue
        if "otel" in elsewhere or "otel" in found.values:
            found.notes.append(f"{name} is ignored: otel is set already")
        elif (reason := _unusable_collector(present[name])) is not None:
            found.notes.append(f"{name} is ignored: {reason}")
        else:
            found.values["otel"] = ({"endpoint": present[name]}, name)
            found.notes.append(f"{name} is read as otel.endpoint; write [otel] or OTEL_EXPORTER_OTLP_ENDPOINT")


def _unusable_collector(endpoint: str) -> str | None:
    try:
        parts = urlsplit(endpoint)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and not (parts.query or parts.fragment)
        port = parts.port
    except ValueError:
        fits, port = False, None
    if not fits or parts.username is not None:
        return "must be a URL that starts with http:// or https://"
    if port == _GRPC_PORT:
        return "traces need a collector's port for HTTP, usually 4318 or 6006"
    return None if find_spec("opentelemetry") else "traces need the extra otel"


def _not_used(present: Mapping[str, str], found: AgentEnvironment) -> None:
    """Notes about the other variables that look like the agent's."""
    for name, reason in WITHOUT_EFFECT.items():
        if name in present:
            found.notes.append(f"{name} has no effect: {reason}")
    known = {*AGENT_VARIABLES, *PROMPT_VARIABLES, *MCP_VARIABLES, *WITHOUT_EFFECT, *_READ_ELSEWHERE}
    for name in sorted(present):
        if name.startswith(_OWN_PREFIXES) and name not in known and not is_mcp_variable(name):
            hint = did_you_mean(close_names(name, known, n=1))
            found.notes.append(f"{name} {NOT_UNDERSTOOD}" + (f"; {hint}" if hint else ""))


def _identifier(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:40] or "agent"
