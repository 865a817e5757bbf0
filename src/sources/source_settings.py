"""The settings of a source, ``[sources.NAME]`` in toold.toml; documented in docs/sources.md."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from ..protocol.home_directory import expand_home
from ..protocol.name_suggestions import close_names, did_you_mean
from ..tools import Binding, BindingError, SecretLocation, anchored_table, read_source_bindings, setting_message
from .operation_filter import MAX_GLOBS, OperationFilter, OperationFilters
from .source_auth import ApiKeyAuth, Auth
from .source_setting_types import DocumentLocation, Environment, Hosts, HttpUrl, is_url

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
"""Encoded as base64 it still fits into a frame."""
MAX_DOCUMENTS: Final = 10_000
"""The highest ``max_documents``; their files are checked every second."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
"""The name is the prefix of the tools' names."""


class _Table(BaseModel):
    """A table of toold.toml: unknown settings are refused, and errors do not contain values."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


_Settings = TypeVar("_Settings", bound=BaseModel)


def read_keyed_table(
    table: object,
    model: type[_Settings],
    failure: type[ValueError],
    *,
    expected: str,
    fields: Callable[[Sequence[str]], Sequence[str]],
) -> _Settings:
    """Return the settings of a table of toold.toml; settings are returned as they are.

    Args:
        table: the table.
        model: its settings.
        failure: raised if they are invalid; the message names the key and what is allowed, never the value.
        expected: how the table is written, for the message if it is not a table.
        fields: as for ``keyed_table_message``.
    """
    if isinstance(table, model):
        return table
    if not isinstance(table, Mapping):
        raise failure(f"must be a table of toold.toml: {expected}")
    try:
        return model.model_validate(dict(table))
    except ValidationError as error:
        problems = error.errors(include_url=False)
    raise failure(keyed_table_message(problems, fields))


def keyed_table_message(problems: Iterable[ErrorDetails], fields: Callable[[Sequence[str]], Sequence[str]]) -> str:
    """One message with each distinct problem of a settings table whose ``key`` is a ``SecretTable``.

    ``fields`` returns the settings of the table at a path.
    """
    return "; ".join(dict.fromkeys(_keyed_sentence(problem, fields) for problem in problems))


def _keyed_sentence(details: ErrorDetails, fields: Callable[[Sequence[str]], Sequence[str]]) -> str:
    steps = [step for step in details["loc"] if isinstance(step, str)]
    key = ".".join(steps)
    match details["type"]:
        case "missing":
            return f"{key} is required"
        case "extra_forbidden" if "key" in steps[:-1]:
            return f"{key} is not a setting; key has env or file, never the key itself"
        case "extra_forbidden":
            known = fields(steps[:-1])
            hint = did_you_mean(close_names(steps[-1], known, n=1)) or f"settings: {', '.join(known)}"
            return f"{key} is not a setting; {hint}"
        case "model_type" | "model_attributes_type" if steps[-1] == "key":
            return f"{key} must be {{ env = … }} or {{ file = … }}, never the key itself"
        case _:
            return f"{key} {setting_message(details)}".strip()


def operator_secrets(auth: Auth | None) -> tuple[SecretLocation, ...]:
    """The locations of the operator's secrets."""
    return () if auth is None or auth.secret is None else (auth.secret,)


class RateSetting(_Table):
    """The rate limit of a source: calls per minute, and calls at once after a pause."""

    per_minute: Annotated[int, Field(ge=1)] = 100
    burst: Annotated[int, Field(ge=1)] = 100


class _WithBindings(_Table):
    """Settings of every source."""

    bind: tuple[SkipValidation[Binding], ...] = ()
    """Bound arguments: the operator sets them, callers neither see nor send them."""


class OpenApiSettings(_WithBindings):
    """A REST API that an OpenAPI document describes: one tool per operation."""

    type: Literal["openapi"]
    spec: DocumentLocation
    max_documents: Annotated[int, Field(ge=0, le=MAX_DOCUMENTS)] = 64
    """How many other documents the document may refer to, directly and indirectly."""
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
    """Retries, of idempotent methods only."""
    max_running: Annotated[int, Field(ge=1)] = 8
    """Concurrent requests."""
    rate: RateSetting = RateSetting()
    allow_private: Hosts = False
    """Whether requests may go to loopback and private addresses: yes, no, or the hosts for which they may."""
    max_answer_bytes: Annotated[int, Field(ge=1024, le=MAX_ANSWER_BYTES)] = MAX_ANSWER_BYTES

    @property
    def secrets(self) -> tuple[SecretLocation, ...]:
        """The locations of its secrets."""
        return operator_secrets(self.auth)


class McpSettings(_WithBindings):
    """An upstream MCP server: a program that the daemon starts, or a URL."""

    type: Literal["mcp"]
    command: Annotated[tuple[Annotated[str, StringConstraints(min_length=1)], ...], Field(min_length=1)] | None = None
    """The program and its arguments; run without a shell."""
    cwd: Path | None = None
    """The program's working directory; by default that of the settings file."""
    env: Environment = {}
    """The program's environment, in addition to the few variables that every program needs."""
    url: HttpUrl | None = None
    auth: Auth | None = None
    list_auth: Auth | None = None
    """If ``auth`` is a credential of each caller: how the daemon authenticates to list the tools."""
    allow_private: Hosts = False
    """As for an OpenAPI source."""
    start_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0
    """The time limit for starting or connecting, and listing the tools."""
    timeout_s: Annotated[float, Field(gt=0, le=1800, allow_inf_nan=False)] = 30.0
    """The default timeout of a call."""
    rate: RateSetting | None = None
    max_answer_bytes: Annotated[int, Field(ge=1024, le=MAX_ANSWER_BYTES)] = MAX_ANSWER_BYTES

    @property
    def secrets(self) -> tuple[SecretLocation, ...]:
        """The locations of its secrets."""
        variables = (value for value in self.env.values() if isinstance(value, SecretLocation))
        return (*variables, *operator_secrets(self.shared_auth))

    @property
    def shared_auth(self) -> Auth | None:
        """How the daemon itself authenticates: to list the tools, and for calls without the caller's credential."""
        return self.list_auth if self.auth is not None and self.auth.credential is not None else self.auth

    @model_validator(mode="after")
    def _one_transport(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise PydanticCustomError("mcp_transport", "must have either command or url")
        if self.url is None and self.auth is not None and self.auth.credential is not None:
            what = "auth with user requires url: a program cannot have credentials of users, since all callers share it"
            raise PydanticCustomError("mcp_transport", what)
        if self.list_auth is not None and (
            self.auth is None or self.auth.credential is None or self.list_auth.credential is not None
        ):
            what = "list_auth has a secret of the operator (env or file), and requires auth with user and field"
            raise PydanticCustomError("mcp_transport", what)
        if self.url is None and (self.auth is not None or self.allow_private is not False):
            raise PydanticCustomError(
                "mcp_transport", "auth and allow_private require url; a program gets its secrets in env"
            )
        if self.command is None and (self.env or self.cwd is not None):
            raise PydanticCustomError("mcp_transport", "env and cwd require command")
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


_Globs = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=500)], ...], Field(max_length=MAX_GLOBS)
]


class A2ASettings(_WithBindings):
    """A remote agent that speaks A2A: one tool, or one per skill."""

    type: Literal["a2a"]
    url: HttpUrl
    """The agent's URL, below which its card is, or that of the card itself."""
    tools: Literal["agent", "skills"] = "agent"
    """What becomes a tool: the agent, or each of its skills."""
    include: _Globs = ()
    """Globs of skill ids; all skills if empty. If the agent is a single tool, its description lists these skills."""
    exclude: _Globs = ()
    auth: Auth | None = None
    verify: CardKeys | None = None
    """With it, a card without a valid signature of one of these keys is refused."""
    interface_hosts: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    """The hosts, besides the card's own origin, to which calls may go."""
    on_change: Literal["quarantine", "accept"] = "quarantine"
    """What happens to a tool that differs from its pin."""
    deduplicates: bool = False
    """Whether the agent takes a repeated message as the same one, so that it may be sent again."""
    answer_within_s: Annotated[float, Field(gt=0, le=2_592_000, allow_inf_nan=False)] = 604_800.0
    """How long a call waits for a person's answer to a question of the agent."""
    allow_private: Hosts = False
    """As for an OpenAPI source."""
    start_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0
    """The time limit for reading the card, and for a call that waits for it."""
    timeout_s: Annotated[float, Field(gt=0, le=1800, allow_inf_nan=False)] = 600.0
    """The default timeout of a call."""
    max_running: Annotated[int, Field(ge=1)] = 8
    """Concurrent calls."""
    rate: RateSetting | None = None
    max_answer_bytes: Annotated[int, Field(ge=1024, le=MAX_ANSWER_BYTES)] = MAX_ANSWER_BYTES

    @property
    def secrets(self) -> tuple[SecretLocation, ...]:
        """The locations of its secrets."""
        return operator_secrets(self.auth)

    @model_validator(mode="after")
    def _in_a_header(self) -> Self:
        if self.auth is not None and self.auth.credential is not None:
            what = "auth of an agent must have a secret of the operator (env or file), not a credential of its callers"
            raise PydanticCustomError("a2a_auth", what)
        if isinstance(self.auth, ApiKeyAuth) and self.auth.location == "query":
            raise PydanticCustomError("a2a_auth", "auth must use a header")
        return self


SourceSettings = OpenApiSettings | McpSettings | A2ASettings
"""The settings of one source."""
_TYPES: Final[Mapping[str, type[SourceSettings]]] = {
    "openapi": OpenApiSettings,
    "mcp": McpSettings,
    "a2a": A2ASettings,
}


class SourceSettingsError(ValueError):
    """Invalid settings of a source; the message names the source, the key and the allowed values, never the value."""


def read_sources(tables: object) -> dict[str, SourceSettings]:
    """Returns the settings of the sources by name, in configured order.

    Raises:
        SourceSettingsError: the settings of a source are invalid.
    """
    if not isinstance(tables, Mapping):
        raise SourceSettingsError("must be set in toold.toml, as tables [sources.NAME] with type and its settings")
    return {name: _source(name, table) for name, table in tables.items()}


def _source(name: object, table: object) -> SourceSettings:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SourceSettingsError(
            f"a source's name is a letter and up to 31 more of A-Z, a-z, 0-9, _ and -, not {str(name)[:64]!r}"
        )
    if isinstance(table, SourceSettings):
        return table
    place = f"[sources.{name}]"
    if not isinstance(table, Mapping):
        raise SourceSettingsError(f"{place} must be a table with type and its settings")
    settings = _TYPES.get(str(table.get("type")))
    if settings is None:
        raise SourceSettingsError(f"{place} type must be {', '.join(_TYPES)}")
    try:
        return settings.model_validate({**table, "bind": read_source_bindings(name, table.get("bind", {}))})
    except BindingError as error:
        raise SourceSettingsError(str(error)) from None
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    raise SourceSettingsError(
        "; ".join(dict.fromkeys(f"{place} {_sentence(problem, settings).strip()}" for problem in problems))
    )


def _sentence(details: ErrorDetails, settings: type[BaseModel]) -> str:
    """Returns the error message for one key."""
    steps = [step for step in details["loc"] if isinstance(step, str)]
    if len(steps) > 1 and steps[0] in {"auth", "list_auth"}:
        del steps[1]  # pydantic's label for the type of auth
    key, context = ".".join(steps), details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden" if steps[0] in {"auth", "list_auth"}:
            where = "env or file for the secret, or user and field for a credential of each caller"
            return f"{key} is not a setting; {steps[0]} has type, and {where}, never the secret itself"
        case "extra_forbidden":
            known = _NESTED.get(steps[0], RateSetting).model_fields if len(steps) > 1 else settings.model_fields
            hint = did_you_mean(close_names(steps[-1], known, n=1)) or f"settings: {', '.join(known)}"
            return f"{key} is not a setting; {hint}"
        case kind if kind in _MESSAGES:
            return f"{key} {_MESSAGES[kind].format_map(context)}"
        case _:
            return f"{key} {setting_message(details)}"


_NESTED: Final[Mapping[str, type[BaseModel]]] = {
    "include": OperationFilter,
    "exclude": OperationFilter,
    "verify": CardKeys,
}

_MESSAGES: Final[Mapping[str, str]] = {
    "missing": "is required",
    "string_pattern_mismatch": "has characters that are not allowed",
    "union_tag_invalid": "type must be one of {expected_tags}",
    "union_tag_not_found": "must have a type: bearer, api_key or basic",
}
"""Messages that ``setting_message`` does not have, by pydantic's error types."""


def anchored(tables: object, base: Path) -> object:
    """Returns the tables with relative paths resolved against ``base``; other values are left for validation."""
    if not isinstance(tables, Mapping):
        return tables
    return {
        name: _anchored_table(table, base) if isinstance(table, Mapping) else table for name, table in tables.items()
    }


def _anchored_table(table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    changed = dict(table)
    if "bind" in changed:
        changed["bind"] = anchored_table(changed["bind"], base)
    spec = table.get("spec")
    if isinstance(spec, str) and spec.strip() and not is_url(spec):
        changed["spec"] = str(base / expand_home(spec))
    for name in ("auth", "list_auth", "verify"):
        if isinstance(secret := table.get(name), Mapping):
            changed[name] = _anchored_file(secret, base)
    if isinstance(env := table.get("env"), Mapping):
        changed["env"] = {name: _anchored_file(value, base) for name, value in env.items()}
    if "command" in table:
        cwd = table.get("cwd", "")
        changed["cwd"] = base / expand_home(cwd) if isinstance(cwd, str) else cwd
    return changed


def _anchored_file(value: object, base: Path) -> object:
    if isinstance(value, Mapping) and isinstance(file := value.get("file"), str):
        return {**value, "file": base / expand_home(file)}
    return value
