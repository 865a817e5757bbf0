"""The settings of a source, ``[sources.NAME]`` in toold.toml, documented in docs/sources.md. ``source_settings_reader``
reads them.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ..tools import (
    Amounts,
    Binding,
    SecretLocation,
)
from .cached_tools import CacheTimes
from .oauth.oauth_settings import McpAuth, OAuthAuth, auth_secrets, secret_auth
from .operation_filter import OperationFilters
from .source_auth import ApiKeyAuth, Auth
from .source_setting_types import (
    DocumentLocation,
    Environment,
    Globs,
    Hosts,
    HttpUrl,
    Renames,
    belongs_to_container_program,
)
from .tool_naming import Prefix, ToolNaming

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
"""The maximum size of an answer, which still fits into a frame when encoded as base64."""
MAX_DOCUMENTS: Final = 10_000
"""The maximum of ``max_documents``. The documents' files are checked every second."""


class _Table(BaseModel):
    """A table of toold.toml: unknown settings are refused, and errors do not contain values."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class RateSetting(_Table):
    """The rate limit of a source: calls per minute, and the burst after a pause."""

    per_minute: Annotated[int, Field(ge=1)] = 100
    burst: Annotated[int, Field(ge=1)] = 100


class _WithBindings(_Table):
    """Settings of every source."""

    bind: tuple[SkipValidation[Binding], ...] = ()
    """Bound arguments. The operator sets them; callers neither see nor send them."""


class CachedSettings(_WithBindings):
    """Settings of sources whose results can be cached."""

    cache_s: CacheTimes = ()
    """How long results of read-only tools answer equal calls. By default, nothing is cached."""


class OpenApiSettings(CachedSettings):
    """A REST API that an OpenAPI document describes: one tool per operation."""

    type: Literal["openapi"]
    spec: DocumentLocation
    max_documents: Annotated[int, Field(ge=0, le=MAX_DOCUMENTS)] = 64
    """The maximum number of documents to which the document may refer, directly and indirectly."""
    include: OperationFilters = ()
    """The operations that become tools; all if empty."""
    exclude: OperationFilters = ()
    """The operations that do not become tools."""
    base_url: HttpUrl | None = None
    """Replaces the servers of the document."""
    auth: Auth | None = None
    timeout_s: Annotated[float, Field(gt=0, le=1800, allow_inf_nan=False)] = 30.0
    """The timeout of one attempt, and the default timeout of a call."""
    retries: Annotated[int, Field(ge=0, le=5)] = 2
    """The number of retries, for idempotent methods only."""
    max_running: Annotated[int, Field(ge=1)] = 8
    """The maximum number of concurrent requests."""
    rate: RateSetting = RateSetting()
    allow_private: Hosts = False
    """Whether requests may go to loopback and private addresses: true, false, or the hosts for which they may."""
    max_answer_bytes: Annotated[int, Field(ge=1024, le=MAX_ANSWER_BYTES)] = MAX_ANSWER_BYTES

    @property
    def secrets(self) -> tuple[SecretLocation, ...]:
        """The locations of the source's secrets."""
        return auth_secrets(self.auth)


_MOUNT: Final = re.compile(r"(?P<host>/[^:\0]*):(?P<inside>/[^:\0]*)(?::(?P<mode>ro|rw))?")


def _mount(text: str) -> str:
    if _MOUNT.fullmatch(text) is None:
        raise PydanticCustomError("mount", "must have mounts such as /srv/data:/data, or /srv/data:/data:rw to write")
    return text


class ContainerLimits(_Table):
    """The resources that a server in a container may use."""

    network: bool = False
    """Whether the container can reach the network."""
    memory_mib: Annotated[int, Field(ge=16, le=1_048_576)] = 512
    cpus: Annotated[float, Field(gt=0, le=1024, allow_inf_nan=False)] = 1.0
    processes: Annotated[int, Field(ge=1, le=100_000)] = 256
    mounts: Annotated[tuple[Annotated[str, AfterValidator(_mount)], ...], Field(max_length=100)] = ()
    """Directories of the machine: ``HOST:INSIDE``, read-only unless it ends in ``:rw``."""

    @property
    def volumes(self) -> tuple[str, ...]:
        """The mounts, each with its mode."""
        return tuple(mount if mount.endswith((":ro", ":rw")) else f"{mount}:ro" for mount in self.mounts)


class McpSettings(CachedSettings):
    """An upstream MCP server: a program that the daemon starts, or a URL."""

    type: Literal["mcp"]
    command: Annotated[tuple[Annotated[str, StringConstraints(min_length=1)], ...], Field(min_length=1)] | None = None
    """The program and its arguments; run without a shell."""
    image: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")] | None = None
    """The image of a container in which the server runs. ``command`` then replaces the image's own command."""
    container: ContainerLimits = ContainerLimits()
    cwd: Path | None = None
    """The program's working directory; by default, the directory of the settings file."""
    env: Environment = {}
    """The program's environment, in addition to the few variables that every program needs."""
    url: HttpUrl | None = None
    transport: Literal["http", "sse"] = "http"
    """The transport to ``url``: Streamable HTTP, or HTTP with SSE as in revision 2024-11-05."""
    auth: McpAuth | None = None
    list_auth: McpAuth | None = None
    """If ``auth`` uses each caller's credential: how the daemon authenticates to list the tools."""
    prefix: Prefix = "on_collision"
    rename: Renames = {}
    """The tools' names in this daemon, by their names at the server."""
    include: Globs = ()
    """Globs of tool names at the server; all tools if empty."""
    exclude: Globs = ()
    allow_private: Hosts = False
    start_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0
    """The timeout for starting or connecting, and listing the tools."""
    timeout_s: Annotated[float, Field(gt=0, le=1800, allow_inf_nan=False)] = 300.0
    """The default timeout of a call. It is long because servers run builds and browsers; impatient clients cancel."""
    sampling: Literal["client", "daemon", "off"] = "client"
    sampling_budget: Amounts = {}
    """The party that answers requests for completions: the call's client, the daemon's models within a daily budget, or
    none.
    """
    rate: RateSetting | None = None
    max_answer_bytes: Annotated[int, Field(ge=1024, le=MAX_ANSWER_BYTES)] = MAX_ANSWER_BYTES

    @property
    def secrets(self) -> tuple[SecretLocation, ...]:
        """The locations of the source's secrets."""
        variables = (value for value in self.env.values() if isinstance(value, SecretLocation))
        return (*variables, *auth_secrets(self.auth), *auth_secrets(self.list_auth))

    @property
    def runs_program(self) -> bool:
        """Whether the daemon starts the server."""
        return self.command is not None or self.image is not None

    @property
    def naming(self) -> ToolNaming:
        return ToolNaming(self.prefix, self.rename, self.include, self.exclude)

    @property
    def shared_auth(self) -> Auth | None:
        """The daemon's own authentication, for listing the tools and for calls without the caller's credential."""
        return secret_auth(self.list_auth if self.auth is not None and self.auth.of_caller else self.auth)

    @property
    def shared_oauth(self) -> OAuthAuth | None:
        """The daemon's own sign-in, if it uses one. Without ``list_auth``, it signs in as its users do to list the
        tools.
        """
        auth = self.auth if self.list_auth is None else self.list_auth
        return auth if isinstance(auth, OAuthAuth) else None

    @model_validator(mode="after")
    def _one_transport(self) -> Self:
        if self.runs_program == (self.url is not None):
            raise PydanticCustomError("mcp_transport", "must have exactly one of command, url and image")
        if self.image is None and "container" in self.model_fields_set:
            raise PydanticCustomError("mcp_transport", "container requires image")
        taken = next(filter(belongs_to_container_program, self.env), None) if self.image is not None else None
        if taken is not None:
            what = "env.{name} affects docker or podman itself, so it cannot be set with image; set it in the image"
            raise PydanticCustomError("mcp_transport", what, {"name": taken})
        if self.url is None and self.transport == "sse":
            raise PydanticCustomError("mcp_transport", 'transport = "sse" requires url')
        if self.url is None and self.auth is not None and self.auth.of_caller:
            what = "auth of each caller requires url, because all callers share a program"
            raise PydanticCustomError("mcp_transport", what)
        if self.url is None and (self.auth is not None or self.allow_private is not False):
            raise PydanticCustomError(
                "mcp_transport", "auth and allow_private require url; a program gets its secrets in env"
            )
        if not self.runs_program and (self.env or self.cwd is not None):
            raise PydanticCustomError("mcp_transport", "env and cwd require command")
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.sampling == "daemon") != bool(self.sampling_budget):
            raise PydanticCustomError("mcp_transport", 'sampling = "daemon" and sampling_budget require each other')
        if self.cache_s and isinstance(self.auth, OAuthAuth) and self.auth.of_caller:
            what = 'cache_s is not for auth with per = "user": results would outlive the sign-in of their user'
            raise PydanticCustomError("mcp_transport", what)
        if self.list_auth is not None and (self.auth is None or not self.auth.of_caller or self.list_auth.of_caller):
            what = "list_auth has a secret of the operator (env or file), and requires auth with user or per"
            raise PydanticCustomError("mcp_transport", what)
        if any(isinstance(auth, ApiKeyAuth) and auth.location == "query" for auth in (self.auth, self.list_auth)):
            raise PydanticCustomError("mcp_transport", "auth must use a header")
        return self


class CardKeys(_Table):
    """The keys that may sign an agent's card: a JWK set at a URL or in a file, or the keys themselves."""

    url: HttpUrl | None = None
    file: Path | None = None
    keys: Annotated[tuple[Mapping[str, Any], ...], Field(min_length=1, max_length=20)] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise PydanticCustomError("card_keys", "must have one of url, file and keys")
        return self


class A2ASettings(_WithBindings):
    """A remote agent that speaks A2A: one tool, or one per skill."""

    type: Literal["a2a"]
    url: HttpUrl
    """The URL of the agent, with the card below it, or of the card itself."""
    tools: Literal["agent", "skills"] = "agent"
    """Whether the agent becomes one tool, or each of its skills."""
    include: Globs = ()
    """Globs of skill ids; all skills if empty. If the agent is a single tool, its description lists these skills."""
    exclude: Globs = ()
    auth: Auth | None = None
    verify: CardKeys | None = None
    """The keys for verification. A card without a valid signature of one of them is refused."""
    interface_hosts: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    """The hosts, besides the card's own origin, to which calls may go."""
    on_change: Literal["quarantine", "accept"] = "quarantine"
    """The handling of a tool that differs from its pin."""
    deduplicates: bool = False
    """Whether the agent deduplicates messages, so that a message may be sent again."""
    answer_within_s: Annotated[float, Field(gt=0, le=2_592_000, allow_inf_nan=False)] = 604_800.0
    """The time for which a call waits for a person's answer to a question of the agent."""
    allow_private: Hosts = False
    """As for an OpenAPI source."""
    start_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0
    """The timeout of reading the card, and of a call that waits for it."""
    timeout_s: Annotated[float, Field(gt=0, le=1800, allow_inf_nan=False)] = 600.0
    """The default timeout of a call."""
    max_running: Annotated[int, Field(ge=1)] = 8
    """The maximum number of concurrent calls."""
    rate: RateSetting | None = None
    max_answer_bytes: Annotated[int, Field(ge=1024, le=MAX_ANSWER_BYTES)] = MAX_ANSWER_BYTES

    @property
    def secrets(self) -> tuple[SecretLocation, ...]:
        """The locations of the source's secrets."""
        return auth_secrets(self.auth)

    @model_validator(mode="after")
    def _in_a_header(self) -> Self:
        if isinstance(self.auth, ApiKeyAuth) and self.auth.location == "query":
            raise PydanticCustomError("a2a_auth", "auth must use a header")
        return self


SourceSettings = OpenApiSettings | McpSettings | A2ASettings
"""The settings of one source."""
