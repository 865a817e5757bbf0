"""What each part of the daemon is told of the settings."""

import ssl
from collections.abc import Callable, Collection
from pathlib import Path

import structlog

from ...audit import AuditSender, SupabaseWriter
from ...providers import ModelCatalog
from ...sandbox import SandboxLimits
from ...store import Retention, Store
from ...tools import (
    Binding,
    BindingError,
    BoundValue,
    ToolCatalog,
    ToolRegistry,
    read_values,
    shipped_toolsets,
    with_bound,
)
from ..access import ProtectedResource, TokenIssuer
from ..dispatch import DispatchLimits
from ..provider_setup import VENDORS, ConfiguredProviders
from ..transports.mcp import McpOptions
from ..transports.tls_certificate import TlsCertificate
from ..transports.websocket_server import WebSocketOptions
from .setting_sources import SettingsError
from .settings import CONFIG_FILE, Settings

_log = structlog.get_logger("toold.daemon")


def default_model(settings: Settings, catalog: ModelCatalog, vendors: ConfiguredProviders) -> str | None:
    """The operator's choice, or the default of the first vendor that can be asked; None where none can."""
    if settings.default_model is not None:
        return settings.default_model
    for vendor in VENDORS:
        if vendor.name in vendors.providers:
            return catalog.default(vendor.name).id
    return None


def sender(settings: Settings, store: Store) -> AuditSender | None:
    """What sends the audit to Supabase; None where the address or the key is not set."""
    url, key = settings.supabase_url, settings.supabase_service_role_key
    if url is None or key is None:
        if url or key:
            _log.warning("the audit is not sent: it needs supabase_url and supabase_service_role_key, and has one")
        return None
    return AuditSender(store, lambda: SupabaseWriter(url, key, store.audit.chain))


def copies_conversations(settings: Settings) -> bool:
    """Whether what is said in conversations is to be copied: its content is to be kept, and there is where to."""
    sent = settings.supabase_url is not None and settings.supabase_service_role_key is not None
    return sent and settings.audit_content == "full"


def denied(settings: Settings) -> tuple[Path, ...]:
    """What no call may read: the state directory has the token and the database, a configuration file may have keys."""
    bound = (binding.file for binding in _bindings(settings))
    files = (settings.config, settings.tls_key, *bound, *(root / CONFIG_FILE for root in settings.workspace))
    return (settings.state_dir, *(file for file in files if file is not None))


def bound(settings: Settings, registry: ToolRegistry) -> tuple[BoundValue, ...]:
    """The bound arguments with their values as they are now.

    Raises:
        SettingsError: a value cannot be had, or does not fit one of these tools.
    """
    try:
        values = read_values(_bindings(settings))
    except BindingError as error:
        raise SettingsError(f"bind: {error}") from None
    _, misfits = with_bound(registry, values)
    if misfits:
        raise SettingsError(f"bind: {'; '.join(misfits)}")
    return values


def _bindings(settings: Settings) -> list[Binding]:
    """Of sources first, so that what is bound by name counts."""
    return [*(one for source in settings.sources.values() for one in source.bind), *settings.bind]


def offer(settings: Settings, registry: ToolRegistry) -> ToolCatalog:
    """These tools in the toolsets that are shipped and those that the operator defined."""
    toolsets = {**shipped_toolsets(), **settings.toolsets}
    return ToolCatalog(registry, toolsets, settings.default_toolset, list_init=settings.list_init)


def offering(settings: Settings) -> tuple[object, ...]:
    """What of the settings an offer is made of."""
    return settings.toolsets, settings.default_toolset, settings.list_init


def resource(settings: Settings) -> ProtectedResource | None:
    """What the daemon is to an OAuth issuer; None where none gives tokens for it."""
    if settings.oauth_issuer is None or settings.oauth_resource is None:
        return None
    identifier = settings.oauth_resource.rstrip("/")
    return ProtectedResource(
        settings.oauth_issuer, identifier, settings.oauth_audience or identifier, settings.oauth_scopes
    )


def issuer(resource: ProtectedResource | None, toolsets: Callable[[], Collection[str]]) -> TokenIssuer | None:
    """What verifies the tokens of the resource's issuer."""
    if resource is None:
        return None
    from ..access.oauth_issuer import OAuthIssuer  # noqa: PLC0415 - pyjwt and cryptography, for those who need them

    return OAuthIssuer(resource, toolsets)


def bounds(settings: Settings) -> DispatchLimits:
    return DispatchLimits(
        max_running_per_session=settings.max_running_per_session,
        max_accepted_per_session=settings.max_accepted_per_session,
        max_waiting=settings.max_waiting,
        max_orchestrations_per_session=settings.max_orchestrations_per_session,
        max_depth=settings.max_depth,
        max_children=settings.max_children,
        max_detached=settings.max_detached,
        default_timeout_s=settings.default_timeout_s,
        max_timeout_s=settings.max_timeout_s,
        max_frame_bytes=settings.max_frame_bytes,
        spill_bytes=settings.spill_bytes,
        progress_interval_s=settings.progress_interval_s,
        progress_window_s=settings.progress_window_s,
        result_ttl_s=settings.result_ttl_s,
        max_kept_bytes=settings.max_kept_bytes,
    )


def sandbox_limits(settings: Settings) -> SandboxLimits:
    return SandboxLimits(settings.code_cpu_s, settings.code_memory_bytes, settings.code_calls)


def retention(settings: Settings) -> Retention:
    return Retention(
        settings.audit_keep_days,
        settings.audit_keep_bytes,
        settings.result_ttl_s,
        settings.max_kept_bytes,
        settings.conversations_keep_days,
        settings.conversations_keep_bytes,
    )


def certificate(settings: Settings) -> TlsCertificate | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return TlsCertificate(settings.tls_cert, settings.tls_key)


def websocket_options(settings: Settings, tls: ssl.SSLContext | None) -> WebSocketOptions:
    return WebSocketOptions(
        host=settings.host,
        port=settings.port,
        tls=tls,
        allowed_origins=settings.allowed_origins,
        max_connections=settings.max_connections,
        max_frame_bytes=settings.max_frame_bytes,
        ping_interval_s=settings.ping_interval_s,
        ping_timeout_s=settings.ping_timeout_s,
        hello_timeout_s=settings.hello_timeout_s,
    )


def mcp_options(settings: Settings) -> McpOptions:
    return McpOptions(
        allowed_origins=settings.allowed_origins,
        max_connections=settings.max_connections,
        max_frame_bytes=settings.max_frame_bytes,
    )
