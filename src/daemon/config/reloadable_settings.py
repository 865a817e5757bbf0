"""The settings that can change while the daemon runs, and those that need a restart. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .provider_settings import ProviderSettings
from .settings import Settings

RELOADABLE: Final = frozenset(
    {
        # Limits of calls. The two limits per session apply to new sessions.
        "max_running",
        "max_running_per_session",
        "max_accepted_per_session",
        "max_waiting",
        "max_orchestrations_per_session",
        "max_depth",
        "max_agent_depth",
        "max_children",
        "max_detached",
        "max_paused",
        "agents_keep_days",
        "agents_keep_bytes",
        "max_cached_result_bytes_total",
        "max_unread_bytes",
        "max_unread_bytes_per_principal",
        "max_unread_bytes_per_session",
        "max_request_bytes",
        "max_request_bytes_per_principal",
        "max_request_bytes_per_session",
        "code_calls",
        "code_memory_bytes",
        "code_cpu_s",
        "kimi_concurrency",
        "glm_concurrency",
        "daily_budget",
        "default_timeout_s",
        "max_timeout_s",
        "question_timeout_s",
        "progress_interval_s",
        "progress_window_s",
        # The environment of calls.
        "workspace",
        "client_workspaces",
        "readable_secrets",
        "default_model",
        "models",
        "prefer",
        "kimi_allowed_models",
        "glm_allowed_models",
        "kimi_fallback",
        "glm_fallback",
        "tools",
        "locale",
        # Tools: a session keeps its toolset, whose content may change.
        "toolsets",
        "list_init",
        "strict_arguments",
        "result_text",
        # Bound arguments; values from variables and files are read again too.
        "bind",
        # Agents: a run in progress keeps the definition that it began with.
        "agents",
        "agent_dir",
        "a2a_url",
        "a2a_agent",
        # The registry is polled at once.
        "registry",
        "registry_at_root",
        # Applies to new sessions.
        "default_toolset",
        # Folders are read at once; documents are cut again if their chunks would differ.
        "knowledge",
        # Calls in progress keep their server.
        "zenml",
        # Calls that were counted still count.
        "quotas",
        # Programs of hooks with other settings start again.
        "hooks",
        # New sources start, removed ones end.
        "sources",
        # Applies to the next prompt that is resolved.
        "prompts",
        # Logging and storage.
        "log_format",
        "log_level",
        "audit_content",
        "audit_keep_days",
        "audit_keep_bytes",
        "conversation_tokens",
        "conversations_keep_days",
        "conversations_keep_bytes",
        "spill_bytes",
        "retained_results_keep_s",
        "retained_results_keep_bytes",
    }
)
"""Settings that a reload applies at once."""

NEEDS_RESTART: Final = frozenset(
    {
        # Open ports and connections.
        "host",
        "port",
        "http_port",
        "tls_cert",
        "tls_key",
        "allowed_origins",
        "ui",
        "max_connections",
        "max_unauthenticated",
        "max_unauthenticated_per_address",
        "max_frame_bytes",
        "ping_interval_s",
        "ping_timeout_s",
        "hello_timeout_s",
        # The workers start with the first program.
        "code_programs",
        # Existing connections were authenticated with these.
        "token",
        "auth",
        "oauth_issuer",
        "oauth_resource",
        "oauth_audience",
        "oauth_scopes",
        "oauth_operator_scope",
        # The signer of cards is created with it.
        "a2a_card_key",
        # Pending notifications were accepted under this setting.
        "a2a_push_hosts",
        # A reload does not move stored credentials.
        "user_credentials",
        # The node has joined the cluster with these.
        "store",
        "node_name",
        "peer_host",
        "cluster_secret",
        "cluster_secret_file",
        "lease_s",
        "workers",
        "results_bucket",
        # The directory is locked and its files are open.
        "state_dir",
        # The registered tools stay the same.
        "workflow_dir",
        "pipeline_dir",
        "clink",
        "deploy",
        # Published in the address file and the service unit.
        "grace_period_s",
        # Applies to the start only.
        "warm_up",
        # The SDK clients are created with these.
        "simulate",
        "kimi_api_key",
        "kimi_base_url",
        "kimi_sdk",
        "glm_api_key",
        "glm_base_url",
        "glm_sdk",
        "supabase_url",
        "supabase_service_role_key",
        # The thread that sends traces is started with these.
        "otel",
        # Clients were promised stored answers under these.
        "max_cached_result_bytes",
        "result_ttl_s",
    }
)
"""Settings that need a restart. Settings that are validated together belong to the same set."""

PARTLY_RELOADABLE: Final = frozenset({"providers"})
"""Tables with settings of which a reload applies only some."""

RELOADABLE_OF_PROVIDERS: Final = frozenset(
    {"max_in_flight", "models", "default_model", "daily_budget", "fallback", "timeout_s"}
)
"""The settings of a configured provider that a reload applies at once. The SDK client is created with the others."""

_NAME_MODELS: Final = frozenset({"default_model", "kimi_fallback", "glm_fallback", "tools", "agents", "knowledge"})
"""Settings that wait for a restart if they name a model of a provider that waits for a restart."""

CERTIFICATE: Final = "the TLS certificate"
"""The name in the list of reloaded settings if the content of ``tls_cert`` or ``tls_key`` changed."""

AGENT_FILES: Final = "the agents in agent_dir"
"""The name in that list if a file in ``agent_dir`` changed."""

BOUND_VALUES: Final = "the values of bound arguments"
"""The name in that list if the content of a file or variable of ``bind`` changed, but ``bind`` itself did not."""


@dataclass(frozen=True, slots=True)
class SettingsChanges:
    """The difference between the current settings and those loaded again."""

    settings: Settings
    """The settings to apply."""
    reloaded: tuple[str, ...]
    """The names of changed settings that take effect at once, in the order of ``Settings``."""
    needs_restart: tuple[str, ...]
    """The names of changed settings that keep their value until a restart."""

    def __str__(self) -> str:
        parts = [
            f"{title}: {', '.join(names)}"
            for title, names in (("reloaded", self.reloaded), ("needs a restart", self.needs_restart))
            if names
        ]
        return "; ".join(parts) or "nothing has changed"


def compare(current: Settings, loaded: Settings) -> SettingsChanges:
    """The changes from ``current`` to ``loaded``."""
    differing = [name for name in Settings.model_fields if getattr(loaded, name) != getattr(current, name)]
    waiting = [name for name in differing if name in NEEDS_RESTART]
    added = loaded.providers.keys() - current.providers
    waiting += [name for name in differing if name in _NAME_MODELS and _providers_of(loaded, name) & added]
    providers = _compare_providers(current.providers, loaded.providers)
    kept = {name: getattr(current, name) for name in waiting}
    return SettingsChanges(
        settings=loaded.model_copy(update={**kept, "providers": providers.settings}),
        reloaded=(*(name for name in differing if name in RELOADABLE - set(waiting)), *providers.reloaded),
        needs_restart=(*waiting, *providers.needs_restart),
    )


@dataclass(frozen=True, slots=True)
class _ProviderChanges:
    settings: Mapping[str, ProviderSettings]
    reloaded: tuple[str, ...]
    needs_restart: tuple[str, ...]


def _compare_providers(
    current: Mapping[str, ProviderSettings], loaded: Mapping[str, ProviderSettings]
) -> _ProviderChanges:
    """The changes of the tables: their names are ``providers.NAME``, or ``providers.NAME.SETTING``."""
    settings: dict[str, ProviderSettings] = {}
    reloaded: list[str] = []
    waiting = [f"providers.{name}" for name in loaded if name not in current]
    for name, table in current.items():
        new = loaded.get(name)
        if new is None:
            settings[name] = table
            waiting.append(f"providers.{name}")
            continue
        differing = [field for field in ProviderSettings.model_fields if getattr(new, field) != getattr(table, field)]
        update = {field: getattr(new, field) for field in differing if field in RELOADABLE_OF_PROVIDERS}
        if {_provider_of(model) for model in new.fallback} & (loaded.keys() - current.keys()):
            update.pop("fallback", None)
        settings[name] = table.model_copy(update=update)
        for field in differing:
            (reloaded if field in update else waiting).append(f"providers.{name}.{field}")
    return _ProviderChanges(settings, tuple(reloaded), tuple(waiting))


def _provider_of(model: str) -> str:
    return model.partition("/")[0]


def _providers_of(settings: Settings, name: str) -> set[str]:
    """The providers of the models that one of ``_NAME_MODELS`` names."""
    models: Sequence[str]
    match name:
        case "default_model":
            models = (settings.default_model or "",)
        case "tools":
            models = [model for tool in settings.tools.values() for model in tool.fallback or ()]
        case "knowledge":
            models = [collection.embedding_model or "" for collection in settings.knowledge.values()]
        case "agents":
            models = [model for agent in settings.agents.values() for model in agent.fallback or ()]
        case _:
            models = getattr(settings, name)
    return {_provider_of(model) for model in models}
