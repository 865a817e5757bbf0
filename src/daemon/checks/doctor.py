"""``toold doctor``: checks everything that the daemon needs to start. Changes nothing."""

import os
import sys
from collections.abc import Mapping
from typing import Final

from ...protocol.name_suggestions import close_names, did_you_mean
from ..config.default_model import allowed_models, configured_vendors, default_model, default_model_text
from ..config.former_agent_variables import NOT_UNDERSTOOD
from ..config.former_variables import unused_variables
from ..config.otel_settings import OTEL_PREFIX
from ..config.provider_settings import PROVIDERS_PREFIX
from ..config.provider_terms import known_models
from ..config.settings import ENV_PREFIX, Settings
from ..persistence.state_directory import DATABASE_FILE, read_address
from . import cluster_checks, machine_checks, registry_checks, remote_checks, tool_checks, trace_checks
from .check_result import CheckResult

MIN_PYTHON: Final = (3, 11)


async def diagnose(settings: Settings, *, env: Mapping[str, str] = os.environ) -> list[CheckResult]:
    """Run all checks with these settings.

    Writes nothing. Sends only three secrets: Supabase's key to Supabase (which is needed to read its tables), the
    headers of ``[otel]`` to the collector, and the key of ``[registry]`` to the agent registry.
    """
    running = read_address(settings.state_dir)
    return [
        python_version(sys.version_info[:3]),
        *unknown_variables(env),
        *former_variables(settings, env),
        *remote_checks.keys(settings),
        *remote_checks.sdks(settings),
        default_model_check(settings),
        *await remote_checks.reachable(settings),
        machine_checks.port(settings.host, settings.port, setting="port", ours=running),
        machine_checks.port(settings.host, settings.http_port, setting="http_port", ours=running),
        *machine_checks.state_directory(settings.state_dir, token_given=settings.token is not None),
        *([machine_checks.database(settings.state_dir / DATABASE_FILE)] if settings.store is None else []),
        *await cluster_checks.shared_database(settings, running),
        machine_checks.workspace(settings.workspace),
        machine_checks.sandbox(),
        *tool_checks.files(settings),
        *tool_checks.source_secrets(settings, env),
        *tool_checks.prompt_servers(settings, env),
        *tool_checks.subagent_programs(settings, env),
        machine_checks.open_files(settings),
        machine_checks.tls(settings),
        *await remote_checks.supabase(settings),
        *await trace_checks.collector(settings, env),
        *await registry_checks.agent_registry(settings, env),
        await machine_checks.daemon(running),
    ]


def python_version(version: tuple[int, int, int]) -> CheckResult:
    shown = ".".join(map(str, version))
    if version >= MIN_PYTHON:
        return CheckResult("python", "ok", f"Python {shown}")
    return CheckResult("python", "fail", f"Python {shown} is too old", "run toold on Python 3.11 or newer")


def default_model_check(settings: Settings) -> CheckResult:
    """The default model and its price."""
    catalog = allowed_models(settings, known_models(settings.providers, settings.models, settings.prefer))
    chosen = default_model(settings, catalog, configured_vendors(settings))
    if chosen is None:
        return CheckResult("default model", "warn", "none: no vendor is configured", "set a vendor's key")
    return CheckResult("default model", "ok", default_model_text(settings, chosen, catalog))


def former_variables(settings: Settings, env: Mapping[str, str]) -> list[CheckResult]:
    """Variables of earlier servers: those that are read, and those that are set and have no effect."""
    checks = [
        CheckResult("environment", "warn", note, "rename or unset it")
        if NOT_UNDERSTOOD in note
        else CheckResult("environment", "ok", note)
        for note in settings.notes
    ]
    by_reason: dict[str, list[str]] = {}
    keys = {vendor.key_origin for vendor in settings.vendors}
    for name, reason in unused_variables(env).items():
        if name in keys:
            continue
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        checks.append(CheckResult("environment", "ok", f"no effect: {', '.join(names)}: {reason}"))
    return checks


def unknown_variables(env: Mapping[str, str]) -> list[CheckResult]:
    """Variables with toold's prefix that are not settings: usually misspellings."""
    known = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields} | {f"{ENV_PREFIX}CONFIG"}
    checks = []
    for name in sorted(env):
        if name.startswith(ENV_PREFIX) and name not in known and not name.startswith((PROVIDERS_PREFIX, OTEL_PREFIX)):
            hint = did_you_mean(close_names(name, known, n=1))
            message = f"{name} is not a setting and has no effect" + (f"; {hint}" if hint else "")
            checks.append(CheckResult("environment", "warn", message, "rename or unset it"))
    return checks
