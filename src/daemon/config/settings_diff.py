"""Which settings can change while the daemon runs, and which wait for a restart. Pure."""

from dataclasses import dataclass
from typing import Final

from .settings import Settings

AT_ONCE: Final = frozenset(
    {
        # What a call may take. A session's own two bounds are those of its opening.
        "max_running",
        "max_running_per_session",
        "max_accepted_per_session",
        "max_waiting",
        "max_orchestrations_per_session",
        "max_depth",
        "max_children",
        "max_detached",
        "code_calls",
        "code_memory_bytes",
        "code_cpu_s",
        "kimi_concurrency",
        "glm_concurrency",
        "daily_budget",
        "default_timeout_s",
        "max_timeout_s",
        "progress_interval_s",
        "progress_window_s",
        # What a call is given.
        "workspace",
        "readable_secrets",
        "default_model",
        # What a session may call: its toolset stays, and what that holds may change.
        "toolsets",
        "list_init",
        # What callers neither see nor set; values of variables and files are read again as well.
        "bind",
        # Of sessions that are opened from then on.
        "default_toolset",
        # What others have: a source that is new begins, one that is gone ends.
        "sources",
        # What is written down.
        "log_format",
        "log_level",
        "audit_content",
        "audit_keep_days",
        "audit_keep_bytes",
        "conversation_tokens",
        "conversations_keep_days",
        "conversations_keep_bytes",
        "spill_bytes",
        "results_keep_s",
        "results_keep_bytes",
    }
)
"""Settings that the running daemon goes by as soon as it has read them again."""

AT_RESTART: Final = frozenset(
    {
        # The ports are open, and whoever is connected came by them.
        "host",
        "port",
        "http_port",
        "tls_cert",
        "tls_key",
        "allowed_origins",
        "max_connections",
        "max_frame_bytes",
        "ping_interval_s",
        "ping_timeout_s",
        "hello_timeout_s",
        # Its workers are started with the first program.
        "code_programs",
        # Who is connected was let in by these.
        "token",
        "auth",
        "oauth_issuer",
        "oauth_resource",
        "oauth_audience",
        "oauth_scopes",
        # Locked and open.
        "state_dir",
        # The tools that were listed stay those that there are.
        "workflow_dir",
        "pipeline_dir",
        # Clients, the command line and the service's unit were told of it.
        "grace_period_s",
        # The SDKs are set up with these.
        "simulate",
        "kimi_api_key",
        "kimi_base_url",
        "kimi_sdk",
        "glm_api_key",
        "glm_base_url",
        "glm_sdk",
        "supabase_url",
        "supabase_service_role_key",
        # What is kept already was promised by these.
        "max_kept_bytes",
        "result_ttl_s",
    }
)
"""Settings that stay as they were at the start. Settings that are checked together are all here, or all above."""

CERTIFICATE: Final = "the TLS certificate"
"""How the files of ``tls_cert`` and ``tls_key`` are called where their content was renewed."""

BOUND_VALUES: Final = "the values of bound arguments"
"""How they are called where a file or a variable has another one, and ``bind`` says the same."""


@dataclass(frozen=True, slots=True)
class SettingsChanges:
    """What a second reading of the settings comes to."""

    settings: Settings
    """What is in effect with it."""
    reloaded: tuple[str, ...]
    """What changes at once, in the settings' order."""
    needs_restart: tuple[str, ...]
    """What was changed and stays as it is until a restart."""

    def __str__(self) -> str:
        parts = [
            f"{title}: {', '.join(names)}"
            for title, names in (("reloaded", self.reloaded), ("needs a restart", self.needs_restart))
            if names
        ]
        return "; ".join(parts) or "nothing has changed"


def compare(current: Settings, read: Settings) -> SettingsChanges:
    """Lay what was ``read`` now beside what is ``current``, as far as it can change now."""
    differing = [name for name in Settings.model_fields if getattr(read, name) != getattr(current, name)]
    waiting = [name for name in differing if name in AT_RESTART]
    return SettingsChanges(
        settings=read.model_copy(update={name: getattr(current, name) for name in waiting}),
        reloaded=tuple(name for name in differing if name in AT_ONCE),
        needs_restart=tuple(waiting),
    )
