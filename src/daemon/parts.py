"""What each part of the daemon is told of the settings."""

import ssl
from pathlib import Path

import structlog

from ..audit import Sender, SupabaseRemote
from ..providers import Catalogue
from ..store import Retention, Store
from .certificate import Certificate
from .dispatch import Bounds
from .settings import CONFIG_FILE, Settings
from .transports.websocket import WebSocketOptions
from .vendors import VENDORS, Vendors

_log = structlog.get_logger("toold.daemon")


def default_model(settings: Settings, catalogue: Catalogue, vendors: Vendors) -> str | None:
    """The operator's choice, or the default of the first vendor that can be asked; None where none can."""
    if settings.default_model is not None:
        return settings.default_model
    for vendor in VENDORS:
        if vendor.name in vendors.providers:
            return catalogue.default(vendor.name).id
    return None


def sender(settings: Settings, store: Store) -> Sender | None:
    """What sends the audit to Supabase; None where the address or the key is not set."""
    url, key = settings.supabase_url, settings.supabase_service_role_key
    if url is None or key is None:
        if url or key:
            _log.warning("the audit is not sent: it needs supabase_url and supabase_service_role_key, and has one")
        return None
    return Sender(store, lambda: SupabaseRemote(url, key, store.chain))


def denied(settings: Settings) -> tuple[Path, ...]:
    """What no call may read: the state folder has the token and the database, a configuration file may have keys."""
    files = (settings.config, settings.tls_key, *(root / CONFIG_FILE for root in settings.workspace))
    return (settings.state_dir, *(file for file in files if file is not None))


def bounds(settings: Settings) -> Bounds:
    return Bounds(
        max_running_per_session=settings.max_running_per_session,
        max_accepted_per_session=settings.max_accepted_per_session,
        max_waiting=settings.max_waiting,
        default_timeout_s=settings.default_timeout_s,
        max_timeout_s=settings.max_timeout_s,
        max_frame_bytes=settings.max_frame_bytes,
        progress_interval_s=settings.progress_interval_s,
        progress_window_s=settings.progress_window_s,
        result_ttl_s=settings.result_ttl_s,
        max_kept_bytes=settings.max_kept_bytes,
    )


def retention(settings: Settings) -> Retention:
    return Retention(
        settings.audit_keep_days,
        settings.audit_keep_bytes,
        settings.result_ttl_s,
        settings.max_kept_bytes,
        settings.conversations_keep_days,
        settings.conversations_keep_bytes,
    )


def certificate(settings: Settings) -> Certificate | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return Certificate(settings.tls_cert, settings.tls_key)


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
