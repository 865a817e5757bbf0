"""The settings, their defaults and the checks between them. docs/configuration.md lists all settings."""

import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AliasChoices, Field, PrivateAttr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ...prompts import PromptSettings
from ...protocol.daemon_address import DEFAULT_HOST, DEFAULT_HTTP_PORT, DEFAULT_PORT, default_state_dir, is_loopback
from ...protocol.name_suggestions import close_names, did_you_mean
from ...protocol.tool_call import DEFAULT_TIMEOUT_S, MAX_FRAME_BYTES, MAX_TIMEOUT_S
from ...providers import GLM, KIMI, GlmSdk, KimiSdk
from ...tools import AUTO, DEFAULT_TOOLSET, ResultText, shipped_toolsets
from ...user_credentials import VaultSettings
from . import access_checks, cluster_settings, model_checks
from .access_checks import OAuthValues
from .amounts import Amounts
from .fallback_settings import FallbackNames
from .model_checks import setting_error
from .model_settings import unknown_providers
from .provider_settings import ConfiguredKey
from .provider_terms import known_models
from .setting_types import (
    AgentName,
    Agents,
    ApiKey,
    Bindings,
    BucketUrl,
    CaseInsensitive,
    Count,
    DefaultModel,
    Deploy,
    Directories,
    Directory,
    FilePatterns,
    FrameBytes,
    Hooks,
    Host,
    HostPatterns,
    HttpUrl,
    Knowledge,
    LeaseSeconds,
    Locale,
    ModelNames,
    Models,
    NodeName,
    Origins,
    Otel,
    Port,
    Preferred,
    ProgressInterval,
    Prompts,
    Providers,
    Quotas,
    Registry,
    Scope,
    Scopes,
    Seconds,
    Sources,
    SpillBytes,
    StoreUrl,
    Subagents,
    Token,
    Tools,
    Toolsets,
    Vault,
    Workers,
    Zenml,
)
from .vendor_settings import VendorSettings, configured_vendor

ENV_PREFIX: Final = "TOOLD_"
_LOOPBACK: Final = "loopback (127.0.0.1, ::1, localhost)"


class Settings(BaseSettings):
    """The daemon's settings, created by ``load_settings``."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    # Listening.
    host: Host = DEFAULT_HOST
    port: Port = DEFAULT_PORT
    http_port: Port = DEFAULT_HTTP_PORT
    tls_cert: Path | None = None
    tls_key: Path | None = None
    allowed_origins: Origins = ()
    ui: bool = True

    # Access and files.
    state_dir: Path = Field(default_factory=lambda: default_state_dir({}))
    token: Token | None = None
    auth: bool = True
    oauth_issuer: HttpUrl | None = None
    oauth_resource: HttpUrl | None = None
    oauth_audience: str | None = None
    oauth_scopes: Scopes = {}
    oauth_operator_scope: Scope | None = None
    workspace: Directories = Field(default_factory=lambda: (Path.cwd(),))
    client_workspaces: bool = False
    readable_secrets: FilePatterns = ()
    workflow_dir: Directory | None = None
    pipeline_dir: Directory | None = None
    toolsets: Toolsets = {}
    sources: Sources = {}
    tools: Tools = {}
    clink: Subagents = {}
    agents: Agents = {}
    agent_dir: Directory | None = None
    a2a_url: HttpUrl | None = None
    a2a_agent: AgentName | None = None
    a2a_card_key: Path | None = None
    a2a_push_hosts: HostPatterns = ()
    prompts: Prompts = Field(default_factory=PromptSettings)
    registry: Registry = None
    registry_at_root: bool = False
    deploy: Deploy = None
    knowledge: Knowledge = {}
    zenml: Zenml = None
    quotas: Quotas = {}
    hooks: Hooks = {}
    user_credentials: Vault = Field(default_factory=VaultSettings)
    bind: Bindings = ()
    default_toolset: str = DEFAULT_TOOLSET
    list_init: bool = True
    strict_arguments: bool = False
    result_text: Annotated[ResultText | None, CaseInsensitive] = None

    # Several nodes on one database.
    store: StoreUrl | None = None
    node_name: NodeName | None = None
    peer_host: Host | None = None
    cluster_secret: Token | None = None
    cluster_secret_file: Path | None = None
    lease_s: LeaseSeconds = 10.0
    workers: Workers = 1
    results_bucket: BucketUrl | None = None

    # Vendors.
    simulate: bool | None = None
    default_model: DefaultModel | None = None
    kimi_allowed_models: ModelNames = ()
    glm_allowed_models: ModelNames = ()
    kimi_fallback: FallbackNames = ()
    glm_fallback: FallbackNames = ()
    locale: Locale | None = None
    kimi_api_key: ApiKey | None = Field(
        None, validation_alias=AliasChoices("TOOLD_KIMI_API_KEY", "KIMI_API_KEY", "MOONSHOT_API_KEY")
    )
    kimi_base_url: HttpUrl = Field(KIMI.base_url, validation_alias=AliasChoices("TOOLD_KIMI_BASE_URL", "KIMI_BASE_URL"))
    kimi_sdk: Annotated[KimiSdk, CaseInsensitive] = "auto"
    glm_api_key: ApiKey | None = Field(
        None, validation_alias=AliasChoices("TOOLD_GLM_API_KEY", "GLM_API_KEY", "ZHIPUAI_API_KEY")
    )
    glm_base_url: HttpUrl = Field(GLM.base_url, validation_alias=AliasChoices("TOOLD_GLM_BASE_URL", "GLM_BASE_URL"))
    glm_sdk: Annotated[GlmSdk, CaseInsensitive] = "auto"
    providers: Providers = {}
    models: Models = {}
    prefer: Preferred = ()
    daily_budget: Amounts = Field({}, validate_default=False)
    supabase_url: HttpUrl | None = Field(None, validation_alias=AliasChoices("TOOLD_SUPABASE_URL", "SUPABASE_URL"))
    supabase_service_role_key: ApiKey | None = Field(
        None, validation_alias=AliasChoices("TOOLD_SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_SERVICE_ROLE_KEY")
    )

    # Limits.
    max_running: Count = 24
    max_running_per_session: Count = 8
    max_accepted_per_session: Count = 32
    max_waiting: Count = 1000
    max_orchestrations_per_session: Count = 8
    max_depth: Count = 4
    max_agent_depth: Count = 6
    max_children: Count = 1000
    max_detached: Count = 16
    max_paused: Count = 100
    code_programs: Count = 8
    code_calls: Count = 500
    code_memory_bytes: Count = 64 * 1024**2
    kimi_concurrency: Count = KIMI.concurrency
    glm_concurrency: Count = GLM.concurrency
    max_connections: Count = 5000
    max_unauthenticated: Count = 512
    max_unauthenticated_per_address: Count = 256
    max_frame_bytes: FrameBytes = MAX_FRAME_BYTES
    max_cached_result_bytes: Count = 128 * 1024**2
    max_cached_result_bytes_total: Count = 512 * 1024**2
    max_unread_bytes: Count = 256 * 1024**2
    max_unread_bytes_per_principal: Count = 128 * 1024**2
    max_unread_bytes_per_session: Count = 64 * 1024**2
    max_request_bytes: Count = 256 * 1024**2
    max_request_bytes_per_principal: Count = 128 * 1024**2
    max_request_bytes_per_session: Count = 64 * 1024**2
    spill_bytes: SpillBytes | None = None
    retained_results_keep_bytes: Count = 1024**3
    agents_keep_bytes: Count = 256 * 1024**2

    # Time, in seconds.
    default_timeout_s: Seconds = DEFAULT_TIMEOUT_S
    max_timeout_s: Seconds = MAX_TIMEOUT_S
    question_timeout_s: Seconds = 300.0
    code_cpu_s: Seconds = 10.0
    progress_interval_s: ProgressInterval = 5.0
    progress_window_s: Seconds = 120.0
    ping_interval_s: Seconds = 20.0
    ping_timeout_s: Seconds = 20.0
    hello_timeout_s: Seconds = 10.0
    grace_period_s: Seconds = 10.0
    result_ttl_s: Seconds = 86_400.0
    retained_results_keep_s: Seconds = 86_400.0
    agents_keep_days: Count = 30

    # Start.
    warm_up: bool = True

    # Logging and storage.
    log_format: Annotated[Literal["auto", "console", "json"], CaseInsensitive] = "auto"
    log_level: Annotated[Literal["debug", "info", "warning", "error"], CaseInsensitive] = "info"
    audit_content: Annotated[Literal["shape", "full", "none"], CaseInsensitive] = "shape"
    audit_keep_days: Count = 30
    audit_keep_bytes: Count = 1024**3
    conversation_tokens: Count = 100_000
    conversations_keep_days: Count = 30
    conversations_keep_bytes: Count = 256 * 1024**2
    otel: Otel = None

    _config: Path | None = PrivateAttr(None)
    _places: tuple[Path, ...] = PrivateAttr(())
    _load: Callable[[], "Settings"] | None = PrivateAttr(None)
    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _notes: tuple[str, ...] = PrivateAttr(())
    _keys: Mapping[str, ConfiguredKey] = PrivateAttr(default_factory=dict)

    @property
    def config(self) -> Path | None:
        """The TOML file that was read, if any."""
        return self._config

    @property
    def config_place(self) -> Path | None:
        """The path of that file, or where to create it; None for settings that were not loaded from sources."""
        return self._config or (self._places[-1] if self._places else None)

    @property
    def config_places(self) -> tuple[Path, ...]:
        """The places of the settings file: the first file that exists is read."""
        return self._places

    @property
    def origins(self) -> Mapping[str, str]:
        """The origin of each value that is not a default: a file's name, a variable, a flag."""
        return self._origins

    @property
    def notes(self) -> tuple[str, ...]:
        """A line for each variable of an earlier server that is set."""
        return self._notes

    def with_origin(
        self,
        places: tuple[Path, ...],
        config: Path | None,
        load: "Callable[[], Settings]",
        origins: Mapping[str, str],
        notes: tuple[str, ...] = (),
        keys: Mapping[str, ConfiguredKey] | None = None,
    ) -> Self:
        """Sets the places of the settings file, the file that was read, the function that loads the settings again, the
        origin of each value, the ``notes``, and the keys of configured providers."""
        self._origins, self._notes, self._keys = origins, notes, keys or {}
        self._places = places
        self._config = config
        self._load = load
        return self

    def load_again(self) -> "Settings":
        """Load the settings again from the same file, environment and flags; returns ``self`` if they are unknown.

        Raises:
            SettingsError: see ``load_settings``.
        """
        return self if self._load is None else self._load()

    @property
    def machine_name(self) -> str:
        """The name of this node in the cluster; several workers share it."""
        return self.node_name or socket.gethostname()

    @property
    def simulated(self) -> bool:
        """Whether the simulator replaces the vendors: if ``simulate`` is set, or unset and no vendor's key is set."""
        if self.simulate is None:
            return all(vendor.api_key is None for vendor in self.vendors)
        return self.simulate

    @property
    def vendors(self) -> tuple[VendorSettings, ...]:
        """All vendors that the daemon knows, in order of preference."""
        return (
            VendorSettings(
                info=KIMI,
                api_key=self.kimi_api_key,
                key_origin=self._origins.get("kimi_api_key", ""),
                base_url=self.kimi_base_url,
                sdk=self.kimi_sdk,
                max_in_flight=self.kimi_concurrency,
                allowed_models=self.kimi_allowed_models,
                fallback=self.kimi_fallback,
                prefix="kimi_",
            ),
            VendorSettings(
                info=GLM,
                api_key=self.glm_api_key,
                key_origin=self._origins.get("glm_api_key", ""),
                base_url=self.glm_base_url,
                sdk=self.glm_sdk,
                max_in_flight=self.glm_concurrency,
                allowed_models=self.glm_allowed_models,
                fallback=self.glm_fallback,
                prefix="glm_",
            ),
            *(configured_vendor(name, table, self._keys.get(name)) for name, table in self.providers.items()),
        )

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if not self.auth and not is_loopback(self.host):
            raise setting_error("auth", f"may be off only if host is {_LOOPBACK}, not {self.host}")
        if self.client_workspaces and not (self.auth and is_loopback(self.host)):
            raise setting_error("client_workspaces", f"may be on only if auth is on and host is {_LOOPBACK}")
        access_checks.check_oauth(
            OAuthValues(
                issuer=self.oauth_issuer,
                resource=self.oauth_resource,
                audience=self.oauth_audience,
                scopes=self.oauth_scopes,
                operator_scope=self.oauth_operator_scope,
            ),
            auth=self.auth,
        )
        cluster_settings.check_cluster(
            self.cluster_secret,
            self.cluster_secret_file,
            host=self.host,
            peer_host=self.peer_host,
            needs_store={"workers": self.workers > 1, "results_bucket": self.results_bucket is not None},
            has_store=self.store is not None,
        )
        self._check_models()
        if self.default_toolset not in (names := [*shipped_toolsets(), *self.toolsets]):
            hint = did_you_mean(close_names(self.default_toolset, names, n=1))
            raise setting_error(
                "default_toolset", f"must be one of {', '.join(dict.fromkeys(names))}" + (f"; {hint}" if hint else "")
            )
        if self.port == self.http_port != 0:
            raise setting_error("http_port", "must differ from port")
        if self.default_timeout_s > self.max_timeout_s:
            raise setting_error("default_timeout_s", f"must be at most max_timeout_s, {self.max_timeout_s:g}")
        if (self.tls_cert is None) != (self.tls_key is None):
            present, missing = ("tls_cert", "tls_key") if self.tls_cert else ("tls_key", "tls_cert")
            raise setting_error(present, f"also needs {missing}: set both or neither")
        if self.tls_cert and self.tls_key:
            access_checks.check_tls(self.tls_cert, self.tls_key)
        return self

    def _check_models(self) -> None:
        if problem := unknown_providers(self.models, self.providers):
            raise setting_error("models", problem)
        model_checks.check_preferred(self.prefer, [KIMI.name, GLM.name, *self.providers])
        catalog = known_models(self.providers, self.models, self.prefer)
        if self.default_model is not None and self.default_model != AUTO:
            self.__dict__["default_model"] = model_checks.checked_default_model(
                self.default_model, catalog, self.vendors
            )
        model_checks.check_fallbacks(catalog, self.vendors, self.tools)
        model_checks.check_embedding_models(catalog, self.knowledge)
        model_checks.check_registry_provider(self.registry, self.providers)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic-settings passes all by name
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # load_settings merges the sources itself, because its errors name the origin of a value.
        return (init_settings,)
