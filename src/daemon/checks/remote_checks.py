"""The doctor's checks of remote services: the vendors' keys, SDKs and reachability, and the Supabase project."""

import asyncio
import contextlib
import importlib.metadata
import ssl
import urllib.request
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import httpx
from pydantic import AliasChoices

from ...audit import SupabaseReader, SupabaseReadError
from ...version import install_extra
from ..config.settings import Settings
from .check_result import CheckResult

REACH_TIMEOUT_S: Final = 3.0
SUPABASE_TIMEOUT_S: Final = 5.0


def keys(settings: Settings, env: Mapping[str, str]) -> list[CheckResult]:
    """Whether each vendor's key is set, and by which variable. The key itself is not shown."""
    return [
        _key("kimi", "kimi_api_key", "KIMI_API_KEY", settings, env),
        _key("glm", "glm_api_key", "GLM_API_KEY", settings, env),
    ]


def _key(vendor: str, setting: str, variable: str, settings: Settings, env: Mapping[str, str]) -> CheckResult:
    if getattr(settings, setting) is not None:
        alias = Settings.model_fields[setting].validation_alias
        names = alias.choices if isinstance(alias, AliasChoices) else []
        source = next((str(name) for name in names if env.get(str(name))), "toold.toml")
        return CheckResult(
            f"{vendor} key", "ok", f"set by {source}" + (" (not used: simulated)" if settings.simulated else "")
        )
    if settings.simulated:
        return CheckResult(f"{vendor} key", "ok", f"not set; the simulator answers for {vendor}")
    return CheckResult(
        f"{vendor} key", "warn", f"not set: models of {vendor} are not available", f"set {variable} to the vendor's key"
    )


def sdks(settings: Settings) -> list[CheckResult]:
    """The SDK that each vendor's calls use, by the installed packages. Nothing is imported."""
    return [
        _sdk("kimi", settings.kimi_sdk, ("openai",), "kimi"),
        _sdk("glm", settings.glm_sdk, ("zhipuai", "zai"), "zai"),
    ]


def _sdk(vendor: str, wanted: str, packages: tuple[str, ...], extra: str) -> CheckResult:
    name = f"{vendor} SDK"
    if wanted == "http":
        return CheckResult(name, "ok", f"httpx {httpx.__version__}, set by {vendor}_sdk")
    for package in packages if wanted == "auto" else (wanted,):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            distribution = "zai-sdk" if package == "zai" else package
            return CheckResult(name, "ok", f"{distribution} {importlib.metadata.version(distribution)}")
    if wanted == "auto":
        return CheckResult(
            name, "warn", f"{' and '.join(packages)} not installed; plain HTTP is used", install_extra(extra)
        )
    extra = "glm" if wanted == "zhipuai" else extra
    remedy = f"{install_extra(extra)}, or set {vendor}_sdk to auto"
    return CheckResult(name, "fail", f"{wanted} is not installed", remedy)


async def reachable(settings: Settings) -> list[CheckResult]:
    """Whether each configured vendor is reachable."""
    if settings.simulated:
        return [CheckResult("reachability", "ok", "skipped: the simulator replaces the vendors")]
    configured = [
        ("kimi", settings.kimi_base_url, settings.kimi_api_key is not None),
        ("glm", settings.glm_base_url, settings.glm_api_key is not None),
    ]
    return list(await asyncio.gather(*(reach(name, url) for name, url, used in configured if used)))


async def reach(name: str, url: str) -> CheckResult:
    """Whether the host of a base URL accepts a connection, including TLS, within 3 s. No request is sent."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    proxy = urllib.request.getproxies().get(parts.scheme)
    check, remedy = f"{name} reachability", f"check the network, the firewall and {name}_base_url"
    if proxy and not urllib.request.proxy_bypass(host):
        return CheckResult(check, "ok", f"skipped: {host} is reached through a proxy")
    number = parts.port or (443 if secure else 80)
    try:
        async with asyncio.timeout(REACH_TIMEOUT_S):
            _, writer = await asyncio.open_connection(
                host, number, ssl=ssl.create_default_context() if secure else None
            )
    except ssl.SSLCertVerificationError as error:
        return CheckResult(
            check, "fail", f"{host}: {error.verify_message}", "check the clock and the certificates (SSL_CERT_FILE)"
        )
    except TimeoutError:
        return CheckResult(check, "fail", f"{host}:{number} did not answer within {REACH_TIMEOUT_S:g} s", remedy)
    except OSError as error:
        return CheckResult(check, "fail", f"{host}:{number}: {error.strerror or error}", remedy)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return CheckResult(
        check, "ok", f"{host}:{number} accepts connections" + ("; its certificate is valid" if secure else "")
    )


async def supabase(settings: Settings) -> list[CheckResult]:
    """Whether the project exists, accepts the key and has all tables. No check if none is configured. Reads no rows."""
    url, key = settings.supabase_url, settings.supabase_service_role_key
    if url is None and key is None:
        return []
    if url is None or key is None:
        missing = "TOOLD_SUPABASE_URL" if url is None else "TOOLD_SUPABASE_SERVICE_ROLE_KEY"
        return [
            CheckResult(
                "supabase", "warn", "the audit trail is not sent: the URL or the key is missing", f"set {missing}"
            )
        ]
    try:
        async with SupabaseReader(url, key, timeout_s=SUPABASE_TIMEOUT_S) as reader:
            await reader.check_tables()
    except SupabaseReadError as error:
        if error.failure.kind == "setup":
            return [CheckResult("supabase", "fail", error.failure.reason, error.failure.advice)]
        remedy = "check the network and TOOLD_SUPABASE_URL; until it answers, audit rows stay in the local database"
        return [CheckResult("supabase", "warn", error.failure.reason, remedy)]
    return [CheckResult("supabase", "ok", f"{url} accepts the key and has all tables")]
