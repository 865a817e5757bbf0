"""The settings of the registry of agents, ``[registry]`` in toold.toml; documented in docs/registry.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ..protocol.daemon_address import is_loopback
from ..sources import Hosts, HttpUrl, SecretTable, read_keyed_table
from ..tools import TOOL_NAME, anchored_secret

MAX_REGISTRY_AGENTS: Final = 200
"""The maximum number of agents, the same as in the benchmark of hosted agents. Each takes one request per poll."""
MAX_ID_CHARS: Final = 200


class AgentReference(NamedTuple):
    """An agent of the registry."""

    id: str
    name: str | None
    """The name of the agent's tool; None: the name in the registry."""


def _reference(agent_id: object, name: object) -> AgentReference:
    if not isinstance(agent_id, str) or not 0 < len(agent_id) <= MAX_ID_CHARS or agent_id in {".", ".."}:
        raise PydanticCustomError("registry", "must have ids of agents, of 1 to 200 characters")
    if name is not None and not (isinstance(name, str) and TOOL_NAME.fullmatch(name)):
        raise PydanticCustomError("registry", "must have names of 1 to 64 of A-Za-z0-9_-")
    return AgentReference(agent_id, name)


ALL_AGENTS: Final = "*"
"""The value of ``agents`` for all agents with roles, of a registry that the daemon serves."""


def _references(value: object) -> tuple[AgentReference, ...]:
    match value:
        case str() if value == ALL_AGENTS:
            return (AgentReference(ALL_AGENTS, None),)
        case Mapping():
            references = [_reference(agent_id, name) for name, agent_id in value.items()]
        case list() | tuple():
            references = [agent if isinstance(agent, AgentReference) else _reference(agent, None) for agent in value]
        case _:
            raise PydanticCustomError("registry", 'must be ids, such as ["ID"], or a table of names and ids')
    if not 0 < len(references) <= MAX_REGISTRY_AGENTS:
        raise PydanticCustomError("registry", "must be 1 to {most} agents", {"most": MAX_REGISTRY_AGENTS})
    if len({reference.id for reference in references}) < len(references):
        raise PydanticCustomError("registry", "must name each agent once")
    return tuple(references)


_Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class LiteLlmRegistrySettings(BaseModel):
    """A LiteLLM proxy that gets the public agents of the served registry."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: HttpUrl
    key: SecretTable | None = None
    """An administrator's key, sent as ``Authorization: Bearer``."""
    timeout_s: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 10.0
    """The timeout of one request."""
    allow_private: Hosts = False
    """Whether the address may be loopback or private, or the hosts for which it may."""


class RegistrySettings(BaseModel):
    """A registry of agents (another server, or the registry that the daemon serves), and its agents to host."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: HttpUrl | None = None
    """The URL of another registry; None: the agents come from the registry that the daemon serves."""
    serve: bool = False
    """Whether the daemon serves a registry itself."""
    litellm: LiteLlmRegistrySettings | None = None
    """The proxy that gets the public agents of the served registry; None: no proxy gets them."""
    key: SecretTable | None = None
    """The key, sent as ``Authorization: Bearer``; None if the registry needs no key."""
    agents: Annotated[tuple[AgentReference, ...], BeforeValidator(_references)] = ()
    poll_s: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] = 30.0
    """The time between two polls."""
    timeout_s: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 5.0
    """The timeout for one agent, including connecting, all requests and reading the answers."""
    allow_private: Hosts = False
    """Whether the address may be loopback or private, or the hosts for which it may."""
    allow_http: bool = False
    """Whether the URL may be http to a host that is not loopback."""
    provider: _Text | None = None
    """The configured provider of the models that the registry names; None: model names are those of toold.toml."""
    own_url: HttpUrl | None = None
    """The address of this daemon that is sent to the registry for its agents; None: ``a2a_url``."""
    sources: Annotated[tuple[_Text, ...], Field(max_length=200)] = ()
    """The sources whose tools are given to roles that name no tools."""
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)] | None = None
    """The prompt of roles without a prompt."""
    prompt_ref: _Text | None = None
    """The name, at a prompt server, of the prompt of roles without a prompt."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.url is None and not self.serve:
            raise PydanticCustomError("registry", "needs url, the registry to ask, or serve = true, to be one")
        if self.url is not None and (not self.agents or self.all_agents):
            raise PydanticCustomError(
                "registry", "needs agents: the ids of the agents to host, from the registry at url"
            )
        if self.litellm is not None and not self.serve:
            raise PydanticCustomError("registry", "litellm needs serve = true: it gets the agents of the own registry")
        parts = urlsplit(self.base)
        if parts.scheme.lower() == "http" and not is_loopback(parts.hostname or "") and not self.allow_http:
            message = (
                "url uses http to another host, so requests can be changed in transit; use https, or set allow_http"
            )
            raise PydanticCustomError("registry", message)
        if self.prompt is not None and self.prompt_ref is not None:
            raise PydanticCustomError("registry", "has prompt and prompt_ref; write one of them")
        return self

    @property
    def base(self) -> str:
        """The base URL of the paths."""
        return (self.url or "").partition("?")[0].partition("#")[0].rstrip("/")

    @property
    def all_agents(self) -> bool:
        """Whether all agents of the served registry are hosted."""
        return any(reference.id == ALL_AGENTS for reference in self.agents)

    @property
    def key_files(self) -> tuple[Path, ...]:
        """The files with keys. Calls must not read them."""
        keys = (self.key, None if self.litellm is None else self.litellm.key)
        return tuple(key.file for key in keys if key is not None and key.file is not None)

    def __str__(self) -> str:
        return f"{self.base}, {len(self.agents)} agent{'' if len(self.agents) == 1 else 's'}"


class RegistrySettingsError(ValueError):
    """Invalid settings of the registry; the message names the key and the allowed values, never the value."""


def read_registry(table: object) -> RegistrySettings | None:
    """Return the settings of the registry; None if there are none.

    Raises:
        RegistrySettingsError: the settings are invalid.
    """
    if table is None:
        return None
    expected = "[registry] with url and agents, or serve = true"
    return read_keyed_table(table, RegistrySettings, RegistrySettingsError, expected=expected, fields=_fields)


def _fields(path: Sequence[str]) -> list[str]:
    """The settings of the table at a path."""
    return list((LiteLlmRegistrySettings if path[:1] == ["litellm"] else RegistrySettings).model_fields)


def anchored_registry(table: object, base: Path) -> object:
    """Return the table with the files of its keys resolved in ``base``. Other values are left to validation."""
    if not isinstance(table, Mapping):
        return table
    anchored: dict[str, Any] = dict(table)
    if "key" in table:
        anchored["key"] = anchored_secret(table["key"], base)
    if isinstance(litellm := table.get("litellm"), Mapping):
        anchored["litellm"] = anchored_registry(litellm, base)
    return anchored
