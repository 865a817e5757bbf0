"""Maps the settings to the options of each component."""

import ssl
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

import structlog

from ...agent_registry import LiteLlmRegistrySettings, RegistrySettings
from ...audit import AuditSender, SupabaseWriter
from ...protocol.daemon_address import CONFIG_FILE, is_loopback
from ...protocol.name_suggestions import close_names, did_you_mean
from ...providers import GLM, KIMI
from ...sandbox import SandboxLimits
from ...serving import ConnectionLimits, DescriptorShares, descriptors_needed, share_descriptors
from ...sources import A2ASettings
from ...store import Retention, Store
from ...tools import (
    Agent,
    AgentDefinitionError,
    Binding,
    BindingError,
    FileAccess,
    ToolBinder,
    ToolCatalog,
    ToolRegistry,
    agents_in,
    check_cycles,
    read_values,
    shipped_toolsets,
)
from ..access import ProtectedResource, TokenIssuer
from ..dispatch import ByteLimits, CallQuota, DispatchLimits
from ..transports.registry.registry_request import REGISTRY_PREFIX
from ..transports.tls_certificate import TlsCertificate
from ..transports.websocket_server import WebSocketOptions
from .model_checks import allowed_by, fallback_problem
from .provider_terms import known_models
from .setting_sources import SettingsError
from .settings import Settings

_log = structlog.get_logger("toold.daemon")


def sender(settings: Settings, store: Store) -> AuditSender | None:
    """The sender of the audit trail to Supabase; None if the URL or the key is not set."""
    url, key = settings.supabase_url, settings.supabase_service_role_key
    if url is None or key is None:
        if url or key:
            _log.warning("the audit trail is not sent: it needs both supabase_url and supabase_service_role_key")
        return None
    return AuditSender(store, lambda: SupabaseWriter(url, key, store.audit.chain))


def copies_conversations(settings: Settings) -> bool:
    """Whether conversations are copied to Supabase: it is configured, and content is stored."""
    configured = settings.supabase_url is not None and settings.supabase_service_role_key is not None
    return configured and settings.audit_content == "full"


def client_workspaces(settings: Settings) -> bool:
    """Whether the directories of trusted clients are readable. Also checks ``host`` and ``auth``, because a reload
    applies ``client_workspaces`` but not these."""
    return settings.client_workspaces and settings.auth and is_loopback(settings.host)


def denied_paths(settings: Settings) -> tuple[Path, ...]:
    """Paths that no call may read: the state directory, and files that may contain keys."""
    bound_files = (binding.file for binding in _bindings(settings))
    secret_files = (secret.file for source in settings.sources.values() for secret in source.secrets)
    hook_files = (secret.file for hook in settings.hooks.values() for secret in hook.secrets)
    key_files = (provider.key_file for provider in settings.providers.values())
    header_files = settings.otel.header_files if settings.otel else ()
    files = (
        settings.config,
        settings.tls_key,
        settings.a2a_card_key,
        *bound_files,
        *secret_files,
        *hook_files,
        *key_files,
        *settings.prompts.key_files,
        *(settings.registry.key_files if settings.registry else ()),
        *(settings.deploy.key_files if settings.deploy else ()),
        *(settings.zenml.key_files if settings.zenml else ()),
        *settings.user_credentials.key_files,
        *header_files,
        *(root / CONFIG_FILE for root in settings.workspace),
    )
    return (settings.state_dir, *(file for file in files if file is not None))


def workspace_access(settings: Settings) -> FileAccess:
    """The workspace: the files that calls may read."""
    return FileAccess(
        settings.workspace,
        denied=denied_paths(settings),
        secrets=settings.readable_secrets,
        client_workspaces=client_workspaces(settings),
    )


def folder_access(settings: Settings, folder: Path) -> FileAccess:
    """The files that the daemon may read in a folder that a setting names."""
    return FileAccess((folder,), denied=denied_paths(settings), secrets=settings.readable_secrets)


def tool_binder(settings: Settings, registry: ToolRegistry) -> ToolBinder:
    """Checks the settings that name tools. Reads the current values of the bound arguments, and binds them in these
    installed tools.

    Raises:
        SettingsError: a value is not available, or does not fit one of these tools; or ``[tools.NAME]`` names an
        unknown tool, or a tool that asks no model.
    """
    _check_tool_names(settings, registry)
    try:
        binder = ToolBinder(read_values(_bindings(settings)))
    except BindingError as error:
        raise SettingsError(f"bind: {error}") from None
    _, binding_errors = binder.bind(registry)
    if binding_errors:
        raise SettingsError(f"bind: {'; '.join(binding_errors)}")
    return binder


_WITHOUT_FALLBACK: Final = (f"{KIMI.name}_", f"{GLM.name}_", "embed")
"""The name prefixes of tools that ask models but do not use the lists of the settings (docs/tools.md, Failover)."""


def _check_tool_names(settings: Settings, registry: ToolRegistry) -> None:
    asking = [
        tool.name
        for tool in registry.tools
        if tool.annotations.open_world_hint and not tool.name.startswith(_WITHOUT_FALLBACK)
    ]
    for name in settings.tools:
        if name not in asking:
            problem = "asks no model, or only certain ones" if name in registry else "is not a tool that asks a model"
            hint = did_you_mean(close_names(name, asking, n=1)) or "an agent's fallback is in its own table"
            raise SettingsError(f"tools: [tools.{name[:64]}]: {name[:64]} {problem}; {hint}")


def agent_registry(settings: Settings) -> RegistrySettings | None:
    """The registry of agents to poll. It gets ``a2a_url`` for its agents if ``own_url`` is not set."""
    registry = settings.registry
    if registry is None or registry.url is None:
        return None
    if registry.own_url is not None or settings.a2a_url is None:
        return registry
    return registry.model_copy(update={"own_url": settings.a2a_url})


def served_registry(settings: Settings) -> RegistrySettings | None:
    """The settings for hosting agents of the served registry; None if no agent is hosted."""
    registry = settings.registry
    return registry if registry is not None and registry.serve and registry.url is None and registry.agents else None


def remote_agents(settings: Settings) -> dict[str, str]:
    """The URLs of the sources of type ``a2a`` that have one tool, by name."""
    sources = settings.sources.items()
    return {name: each.url for name, each in sources if isinstance(each, A2ASettings) and each.tools == "agent"}


def litellm_of_registry(settings: Settings) -> LiteLlmRegistrySettings | None:
    """The LiteLLM at which the public agents of the served registry are registered; None if there is none."""
    return None if settings.registry is None else settings.registry.litellm


def registry_prefixes(settings: Settings) -> Sequence[str]:
    """The prefixes of the paths at which the registry is served; empty if it is not served."""
    if settings.registry is None or not settings.registry.serve:
        return ()
    return (REGISTRY_PREFIX, "") if settings.registry_at_root else (REGISTRY_PREFIX,)


def runs_as_one_agent(settings: Settings) -> bool:
    """Whether this daemon runs as the single agent of a container, by its registry or by the predecessor's
    variables."""
    if settings.agent_dir is not None:
        return False
    if settings.registry is not None and settings.registry.url is not None:
        return len(settings.registry.agents) == 1 and not settings.agents
    return len(settings.agents) == 1 and settings.origins.get("agents") == "AGENT_NAME"


def hosted_agents(settings: Settings) -> dict[str, Agent]:
    """The agents of ``agents`` and ``agent_dir``.

    Raises:
        SettingsError: a file of ``agent_dir`` is invalid, an agent is defined twice, its ``fallback`` names an unknown
            model, or agents call each other in a cycle.
    """
    if settings.agent_dir is None:
        return _with_known_fallbacks(settings.agents, settings)
    try:
        from_files = agents_in(settings.agent_dir)
        agents = {**settings.agents, **from_files}
        check_cycles(agents)
    except AgentDefinitionError as error:
        raise SettingsError(f"agent_dir ({settings.agent_dir}): {error}") from None
    if both := sorted(settings.agents.keys() & from_files.keys()):
        raise SettingsError(f"agent_dir ({settings.agent_dir}): {both[0]} is also defined in [agents.{both[0]}]")
    return _with_known_fallbacks(agents, settings)


def _with_known_fallbacks(agents: dict[str, Agent], settings: Settings) -> dict[str, Agent]:
    named = {name: agent.fallback for name, agent in agents.items() if agent.fallback}
    if named:
        catalog = known_models(settings.providers, settings.models, settings.prefer)
        allowed = allowed_by(catalog, settings.vendors)
        for name, fallback in named.items():
            if problem := fallback_problem(fallback, allowed):
                raise SettingsError(f"agents: {name}: fallback {problem}")
    return agents


def _bindings(settings: Settings) -> list[Binding]:
    """All bindings. Those of sources come first, so that bindings by tool name override them."""
    return [*(binding for source in settings.sources.values() for binding in source.bind), *settings.bind]


def tool_catalog(settings: Settings, registry: ToolRegistry) -> ToolCatalog:
    """The catalog of these tools in the shipped toolsets and the operator's."""
    toolsets = {**shipped_toolsets(), **settings.toolsets}
    return ToolCatalog(
        registry,
        toolsets,
        settings.default_toolset,
        list_init=settings.list_init,
        strict_arguments=settings.strict_arguments,
        result_text=settings.result_text,
        former_clients=_has_former_clients(settings),
    )


def _has_former_clients(settings: Settings) -> bool:
    """Whether variables of EX-AI's WebSocket daemon are read: then its scripts probably connect, which use the same
    variables."""
    former = any(origin.startswith("EXAI_WS_") for origin in settings.origins.values())
    return former and not settings.strict_arguments


def catalog_settings(settings: Settings) -> tuple[object, ...]:
    """The settings on which the catalog depends."""
    return (
        settings.toolsets,
        settings.default_toolset,
        settings.list_init,
        settings.strict_arguments,
        settings.result_text,
    )


def call_quotas(settings: Settings) -> list[CallQuota]:
    """The quotas of calls."""
    return [
        CallQuota(name, quota.tools, quota.principals, quota.calls_per_minute, quota.calls_per_day)
        for name, quota in settings.quotas.items()
    ]


def resource(settings: Settings) -> ProtectedResource | None:
    """The daemon as a protected resource of an OAuth issuer; None if no issuer is configured."""
    if settings.oauth_issuer is None or settings.oauth_resource is None:
        return None
    identifier = settings.oauth_resource.rstrip("/")
    return ProtectedResource(
        settings.oauth_issuer,
        identifier,
        settings.oauth_audience or identifier,
        settings.oauth_scopes,
        settings.oauth_operator_scope,
    )


def issuer(resource: ProtectedResource | None, toolsets: Callable[[], Collection[str]]) -> TokenIssuer | None:
    """The verifier of the issuer's tokens; None without a resource."""
    if resource is None:
        return None
    from ..access.oauth_issuer import OAuthIssuer  # noqa: PLC0415 - imports pyjwt and cryptography only if needed

    return OAuthIssuer(resource, toolsets)


def dispatch_limits(settings: Settings) -> DispatchLimits:
    return DispatchLimits(
        max_running_per_session=settings.max_running_per_session,
        max_accepted_per_session=settings.max_accepted_per_session,
        max_waiting=settings.max_waiting,
        max_orchestrations_per_session=settings.max_orchestrations_per_session,
        max_depth=settings.max_depth,
        max_agent_depth=settings.max_agent_depth,
        max_children=settings.max_children,
        max_detached=settings.max_detached,
        max_paused=settings.max_paused,
        agents_keep_days=settings.agents_keep_days,
        default_timeout_s=settings.default_timeout_s,
        max_timeout_s=settings.max_timeout_s,
        question_timeout_s=settings.question_timeout_s,
        max_frame_bytes=settings.max_frame_bytes,
        spill_bytes=settings.spill_bytes,
        progress_interval_s=settings.progress_interval_s,
        progress_window_s=settings.progress_window_s,
        result_ttl_s=settings.result_ttl_s,
        max_cached_result_bytes=settings.max_cached_result_bytes,
        max_cached_result_bytes_total=settings.max_cached_result_bytes_total,
        unread_bytes=ByteLimits(
            settings.max_unread_bytes_per_session, settings.max_unread_bytes_per_principal, settings.max_unread_bytes
        ),
        request_bytes=ByteLimits(
            settings.max_request_bytes_per_session, settings.max_request_bytes_per_principal, settings.max_request_bytes
        ),
    )


def sandbox_limits(settings: Settings) -> SandboxLimits:
    return SandboxLimits(settings.code_cpu_s, settings.code_memory_bytes, settings.code_calls)


def retention(settings: Settings) -> Retention:
    return Retention(
        settings.audit_keep_days,
        settings.audit_keep_bytes,
        settings.result_ttl_s,
        settings.max_cached_result_bytes,
        settings.agents_keep_bytes,
        settings.conversations_keep_days,
        settings.conversations_keep_bytes,
    )


def certificate(settings: Settings) -> TlsCertificate | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return TlsCertificate(settings.tls_cert, settings.tls_key)


def open_files_needed(settings: Settings) -> int:
    """The limit of open files that all connections need."""
    return descriptors_needed(settings.max_connections, settings.max_unauthenticated)


def descriptor_shares(settings: Settings, available: int) -> DescriptorShares:
    """The connections that a limit of ``available`` open files allows."""
    return share_descriptors(available, settings.max_connections, settings.max_unauthenticated)


def connection_limits(settings: Settings, shares: DescriptorShares) -> ConnectionLimits:
    """The limits of one port."""
    per_address = min(settings.max_unauthenticated_per_address, shares.unauthenticated)
    return ConnectionLimits(shares.connections, shares.unauthenticated, per_address)


def websocket_options(
    settings: Settings, tls: ssl.SSLContext | None, connections: ConnectionLimits, shared_port: int | None = None
) -> WebSocketOptions:
    """``shared_port``: the port that the workers listen on together; None if this is the only process."""
    return WebSocketOptions(
        host=settings.host,
        port=settings.port if shared_port is None else shared_port,
        shared_port=shared_port is not None,
        tls=tls,
        allowed_origins=settings.allowed_origins,
        connections=connections,
        max_frame_bytes=settings.max_frame_bytes,
        ping_interval_s=settings.ping_interval_s,
        ping_timeout_s=settings.ping_timeout_s,
        hello_timeout_s=settings.hello_timeout_s,
    )
