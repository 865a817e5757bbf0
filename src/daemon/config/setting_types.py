"""The types of settings. Each rejects a value with a message that says what is allowed."""

import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, SkipValidation, StringConstraints
from pydantic_core import PydanticCustomError
from pydantic_settings import NoDecode

from ...agent_registry import RegistrySettings, RegistrySettingsError, read_registry
from ...call_hooks import HookSettings, HookSettingsError, read_hooks
from ...deployment import DeploySettings, DeploySettingsError, read_deploy
from ...knowledge import CollectionSettings, KnowledgeSettingsError, read_collections
from ...prompts import PromptSettings, PromptSettingsError, read_prompts
from ...protocol.error_codes import InvalidArgumentsError
from ...providers import ModelCatalog
from ...sources import SourceSettings, SourceSettingsError, read_sources
from ...tools import (
    AUTO,
    Agent,
    AgentDefinitionError,
    Binding,
    BindingError,
    SubagentSettings,
    SubagentSettingsError,
    Toolset,
    ToolsetError,
    read_agents,
    read_bindings,
    read_subagents,
    read_toolsets,
)
from ...user_credentials import VaultSettings, VaultSettingsError, read_vault
from ...zenml import ZenmlSettings, ZenmlSettingsError, read_zenml
from .fallback_settings import ToolSettings, read_tools
from .model_settings import ModelSettings, read_models
from .otel_settings import OtelSettings, read_otel
from .provider_settings import ProviderSettings, read_providers
from .quota_settings import QuotaSettings, QuotaSettingsError, read_quotas

MIN_TOKEN_CHARS: Final = 16
"""The minimum length: a shorter token could be guessed; generated tokens have 43 characters."""
USABLE_TOKEN: Final = re.compile(rf"[\x21-\x7e]{{{MIN_TOKEN_CHARS},}}")
MAX_PROGRESS_INTERVAL_S: Final = 8.0
"""The longest interval: after a longer silence, plain clients abandon a running call (docs/protocol.md)."""
MIN_SPILL_BYTES: Final = 4096
"""The minimum: the answer with the file's handle must fit, and so must a page of ``read_result``."""
MIN_FRAME_BYTES: Final = 4096
"""The minimum: a hello with a long token and a client's name must fit."""
_LOCALE: Final = re.compile(r"[^\W\d_]{2,}[-_ .]?[\w .()-]{0,38}")
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,100}")
"""An OAuth scope (RFC 6749, 3.3); it is sent within quotes in a header."""

_NODE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
MIN_LEASE_S: Final = 1.0
"""The minimum: a commit that takes longer than the lease ends the lease."""
MAX_LEASE_S: Final = 300.0
"""The maximum: if a node does not respond, its calls wait this long until another node continues them."""
MAX_WORKERS: Final = 64


def tls_context(cert: Path, key: Path) -> ssl.SSLContext:
    """A server's TLS context for a certificate chain and its key, both PEM.

    Raises:
        OSError: a file is unreadable or not PEM, or key and certificate do not match (``ssl.SSLError`` included).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # With an empty passphrase, an encrypted key is an error; without a passphrase, OpenSSL would prompt on the
    # terminal.
    context.load_cert_chain(cert, key, password="")
    return context


def _not_bool(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError("number", "must be a number, not true or false")
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _split_at(separator: str) -> BeforeValidator:
    """Accepts a string with separators (from environment variables) or a list (from TOML)."""

    def split(value: object) -> object:
        if not isinstance(value, str):
            return value
        return [part for piece in value.split(separator) if (part := piece.strip())]

    return BeforeValidator(split)


def _host(host: str) -> str:
    if not re.fullmatch(r"[^\s/]+", host):
        raise PydanticCustomError("host", "must be an address or a name, such as 127.0.0.1")
    return host


def _http_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or re.search(r"\s", url):
        raise PydanticCustomError("http_url", "must be a URL that starts with http:// or https://")
    return url


def _origin(origin: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s*]+", origin):
        raise PydanticCustomError(
            "origin", "must be origins such as https://example.org:8443, without a path and without *"
        )
    return origin


def _token(token: SecretStr) -> SecretStr:
    if not USABLE_TOKEN.fullmatch(token.get_secret_value()):
        raise PydanticCustomError(
            "token", f"must have {MIN_TOKEN_CHARS} printable ASCII characters or more, without spaces"
        )
    return token


def _store_url(url: SecretStr) -> SecretStr:
    try:
        parts = urlsplit(url.get_secret_value())
        fits = parts.scheme in {"postgresql", "postgres"} and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if not fits or re.search(r"\s", url.get_secret_value()):
        raise PydanticCustomError(
            "store", "must be the URL of a PostgreSQL database, such as postgresql://user:password@host:5432/toold"
        )
    return url


def _bucket_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"s3", "gs", "az", "file"} or not (parts.netloc or parts.scheme == "file"):
        raise PydanticCustomError("bucket", "must be s3://bucket/prefix, gs://, az:// or file:///directory")
    if parts.username is not None or parts.password is not None or parts.query:
        raise PydanticCustomError("bucket", "must have no keys: they belong into the variables of the service")
    return url


def _node_name(name: str) -> str:
    if not _NODE_NAME.fullmatch(name):
        raise PydanticCustomError("node_name", "must be up to 63 letters, digits, dots, dashes and underscores")
    return name


def _api_key(key: SecretStr) -> SecretStr:
    # The key is sent in a header, where a newline that was copied with it would be invalid.
    stripped = key.get_secret_value().strip()
    if not re.fullmatch(r"[\x21-\x7e]+", stripped):
        raise PydanticCustomError("api_key", "must be a key as the vendor displays it: printable ASCII without spaces")
    return SecretStr(stripped)


def _directory(path: Path) -> Path:
    try:
        exists = path.is_dir()
    except OSError:  # for example, its name is too long
        exists = False
    if not exists:
        raise PydanticCustomError("directory", "must be existing directories; {path} is not one", {"path": str(path)})
    return path.resolve()


def _pattern(pattern: str) -> str:
    if re.search(r"^/|(^|/)\.\.(/|$)|\s|^[*/?]*$", pattern):
        raise PydanticCustomError(
            "pattern",
            "must be paths in the workspace, such as .env.test or certs/*.pem, without spaces, and not match all files",
        )
    return pattern


def _default_model(name: str) -> str:
    return AUTO if name.lower() == AUTO else name  # checked with all settings: it may belong to a configured provider


def _locale(locale: str) -> str:
    if not _LOCALE.fullmatch(locale):
        raise PydanticCustomError("locale", "must be a language, such as fr-FR or Deutsch, of up to 40 characters")
    return locale


def _model(name: str) -> str:
    try:
        return ModelCatalog.load().resolve(name).id
    except InvalidArgumentsError as error:
        raise PydanticCustomError("model", "{message}", {"message": error.message.removesuffix(".")}) from None


def _toolsets(tables: object) -> dict[str, Toolset]:
    try:
        return read_toolsets(tables)
    except ToolsetError as error:
        raise PydanticCustomError("toolsets", "{message}", {"message": str(error)}) from None


def _scope(name: str) -> str:
    if not _SCOPE.fullmatch(name):
        raise PydanticCustomError("scope", "must be one scope: printable ASCII without spaces and quotes")
    return name


def _scopes(tables: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(tables, Mapping):
        raise PydanticCustomError(
            "scopes", "must be a table of toold.toml: [oauth_scopes] with scopes and their toolsets"
        )
    for scope, names in tables.items():
        if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
            raise PydanticCustomError(
                "scopes", "has an invalid scope; scopes are printable ASCII without spaces and quotes"
            )
        if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
            raise PydanticCustomError("scopes", "{scope} must be a list of toolsets", {"scope": scope})
    return {scope: tuple(names) for scope, names in tables.items()}


def _bindings(tables: object) -> tuple[Binding, ...]:
    try:
        return read_bindings(tables)
    except BindingError as error:
        raise PydanticCustomError("bind", "{message}", {"message": str(error)}) from None


def _sources(tables: object) -> dict[str, SourceSettings]:
    try:
        return read_sources(tables)
    except SourceSettingsError as error:
        raise PydanticCustomError("sources", "{message}", {"message": str(error)}) from None


def _agents(tables: object) -> dict[str, Agent]:
    try:
        return read_agents(tables)
    except AgentDefinitionError as error:
        raise PydanticCustomError("agents", "{message}", {"message": str(error)}) from None


def _prompts(table: object) -> PromptSettings:
    try:
        return read_prompts(table)
    except PromptSettingsError as error:
        raise PydanticCustomError("prompts", "{message}", {"message": str(error)}) from None


def _zenml(table: object) -> ZenmlSettings | None:
    try:
        return read_zenml(table)
    except ZenmlSettingsError as error:
        raise PydanticCustomError("zenml", "{message}", {"message": str(error)}) from None


def _quotas(tables: object) -> dict[str, QuotaSettings]:
    try:
        return read_quotas(tables)
    except QuotaSettingsError as error:
        raise PydanticCustomError("quotas", "{message}", {"message": str(error)}) from None


def _hooks(tables: object) -> dict[str, HookSettings]:
    try:
        return read_hooks(tables)
    except HookSettingsError as error:
        raise PydanticCustomError("hooks", "{message}", {"message": str(error)}) from None


def _knowledge(tables: object) -> dict[str, CollectionSettings]:
    try:
        return read_collections(tables)
    except KnowledgeSettingsError as error:
        raise PydanticCustomError("knowledge", "{message}", {"message": str(error)}) from None


def _registry(table: object) -> RegistrySettings | None:
    try:
        return read_registry(table)
    except RegistrySettingsError as error:
        raise PydanticCustomError("registry", "{message}", {"message": str(error)}) from None


def _deploy(table: object) -> DeploySettings | None:
    try:
        return read_deploy(table)
    except DeploySettingsError as error:
        raise PydanticCustomError("deploy", "{message}", {"message": str(error)}) from None


def _vault(table: object) -> VaultSettings:
    try:
        return read_vault(table)
    except VaultSettingsError as error:
        raise PydanticCustomError("user_credentials", "{message}", {"message": str(error)}) from None


def _subagents(tables: object) -> dict[str, SubagentSettings]:
    try:
        return read_subagents(tables)
    except SubagentSettingsError as error:
        raise PydanticCustomError("clink", "{message}", {"message": str(error)}) from None


CaseInsensitive = BeforeValidator(_lower)
"""A validator for choices: ``JSON`` equals ``json``."""

Port = Annotated[int, BeforeValidator(_not_bool), Field(ge=0, le=65535)]
Count = Annotated[int, BeforeValidator(_not_bool), Field(ge=1)]
BucketUrl = Annotated[str, AfterValidator(_bucket_url)]
"""The URL of a bucket and a prefix in it, without keys."""
Workers = Annotated[Count, Field(le=MAX_WORKERS)]
SpillBytes = Annotated[int, BeforeValidator(_not_bool), Field(ge=MIN_SPILL_BYTES)]
FrameBytes = Annotated[int, BeforeValidator(_not_bool), Field(ge=MIN_FRAME_BYTES)]
Seconds = Annotated[float, BeforeValidator(_not_bool), Field(gt=0, allow_inf_nan=False)]
ProgressInterval = Annotated[Seconds, Field(le=MAX_PROGRESS_INTERVAL_S)]
Host = Annotated[str, AfterValidator(_host)]
StoreUrl = Annotated[SecretStr, AfterValidator(_store_url)]
"""The URL of a PostgreSQL database. It may have a password."""
NodeName = Annotated[str, AfterValidator(_node_name)]
LeaseSeconds = Annotated[Seconds, Field(ge=MIN_LEASE_S, le=MAX_LEASE_S)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
DefaultModel = Annotated[_Name, AfterValidator(_default_model)]
"""A model's name, or ``AUTO``."""
ModelNames = Annotated[tuple[Annotated[_Name, AfterValidator(_model)], ...], NoDecode, _split_at(",")]
"""Ids or aliases of models; the values are the ids."""
Locale = Annotated[_Name, AfterValidator(_locale)]
Token = Annotated[SecretStr, AfterValidator(_token)]
ApiKey = Annotated[SecretStr, AfterValidator(_api_key)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], NoDecode, _split_at(",")]
HostPatterns = Annotated[
    tuple[Annotated[str, StringConstraints(to_lower=True, pattern=r"^[A-Za-z0-9.*:_-]{1,253}$")], ...],
    NoDecode,
    _split_at(","),
]
"""Names of hosts, and patterns with ``*``."""
FilePatterns = Annotated[tuple[Annotated[str, AfterValidator(_pattern)], ...], NoDecode, _split_at(",")]
Toolsets = Annotated[dict[str, Toolset], BeforeValidator(_toolsets)]
"""The operator's toolsets by name; they add to the shipped ones or replace them."""
Scope = Annotated[str, AfterValidator(_scope)]
Scopes = Annotated[dict[str, tuple[str, ...]], NoDecode, BeforeValidator(_scopes)]
"""OAuth scope → the toolsets that it grants."""
Bindings = Annotated[tuple[SkipValidation[Binding], ...], NoDecode, BeforeValidator(_bindings)]
"""Bound arguments, in the order of the configuration."""
Sources = Annotated[dict[str, SourceSettings], NoDecode, BeforeValidator(_sources)]
"""Sources by name."""
AgentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
Agents = Annotated[dict[str, Agent], NoDecode, BeforeValidator(_agents)]
"""Hosted agents by name."""
Prompts = Annotated[PromptSettings, NoDecode, BeforeValidator(_prompts)]
"""Where the daemon looks for the prompts of hosted agents."""
Zenml = Annotated[ZenmlSettings | None, NoDecode, BeforeValidator(_zenml)]
"""The ZenML server whose pipelines tools run; None if there is none."""
Quotas = Annotated[dict[str, QuotaSettings], NoDecode, BeforeValidator(_quotas)]
"""Quotas of calls by name."""
Hooks = Annotated[dict[str, HookSettings], NoDecode, BeforeValidator(_hooks)]
"""Hooks by name, in the order in which they are asked."""
Knowledge = Annotated[dict[str, CollectionSettings], NoDecode, BeforeValidator(_knowledge)]
"""Collections of documents by name."""
Tools = Annotated[dict[str, ToolSettings], NoDecode, BeforeValidator(read_tools)]
"""Settings of single tools, by the tool's name."""
Registry = Annotated[RegistrySettings | None, NoDecode, BeforeValidator(_registry)]
"""The registry whose agents are hosted; None if there is none."""
Deploy = Annotated[DeploySettings | None, NoDecode, BeforeValidator(_deploy)]
"""How agents are deployed; None: deployments are off."""
Vault = Annotated[VaultSettings, NoDecode, BeforeValidator(_vault)]
"""Where credentials of users are stored."""
Subagents = Annotated[dict[str, SubagentSettings], NoDecode, BeforeValidator(_subagents)]
"""The programs that ``clink`` may start, by name."""
Providers = Annotated[dict[str, ProviderSettings], NoDecode, BeforeValidator(read_providers)]
"""Configured providers by name."""
Models = Annotated[dict[str, ModelSettings], NoDecode, BeforeValidator(read_models)]
"""The operator's facts about the models of configured providers, by full name."""
Preferred = Annotated[tuple[_Name, ...], NoDecode, _split_at(",")]
"""Names of providers."""
Otel = Annotated[OtelSettings | None, NoDecode, BeforeValidator(read_otel)]
"""Where traces are sent; None if they are not recorded."""
Directory = Annotated[Path, AfterValidator(_directory)]
Directories = Annotated[tuple[Directory, ...], NoDecode, _split_at(os.pathsep), Field(min_length=1)]
