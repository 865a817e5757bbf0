"""The doctor's checks of remote services: the vendors' keys, SDKs and reachability, and the Supabase project."""

import asyncio
import contextlib
import importlib.metadata
import ssl
import urllib.request
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import httpx

from ...audit import SupabaseReader, SupabaseReadError
from ...version import install_extra
from ..config.provider_settings import NO_KEY_NEEDED
from ..config.settings import Settings
from ..config.vendor_settings import VendorSettings
from .check_result import CheckResult

REACH_TIMEOUT_S: Final = 3.0
SUPABASE_TIMEOUT_S: Final = 5.0


def keys(settings: Settings) -> list[CheckResult]:
    """Whether each vendor's key is set, and by which variable or file. The key itself is not shown.

    With providers in toold.toml, Kimi and GLM need no key.
    """
    checks = [(vendor, key_check(vendor, simulated=settings.simulated)) for vendor in settings.vendors]
    return [
        replace(check, status="ok", remedy=None) if settings.providers and vendor.dialect is None else check
        for vendor, check in checks
    ]


def key_check(vendor: VendorSettings, *, simulated: bool) -> CheckResult:
    """Whether the vendor's key is set, and where."""
    name = vendor.info.name
    if vendor.api_key is not None:
        unused = " (not used: simulated)" if simulated else ""
        if vendor.key_origin == NO_KEY_NEEDED:
            return CheckResult(f"{name} key", "ok", NO_KEY_NEEDED)
        return CheckResult(f"{name} key", "ok", f"set by {vendor.key_origin}{unused}")
    if simulated:
        return CheckResult(f"{name} key", "ok", f"not set; the simulator answers for {name}")
    why, remedy = "not set", f"set {vendor.info.key_setting} to the vendor's key"
    if vendor.dialect is not None:
        why, remedy = vendor.key_origin, f"{remedy}, or set its variable or file"
    return CheckResult(f"{name} key", "warn", f"{why}: models of {name} are not available", remedy)


def sdks(settings: Settings) -> list[CheckResult]:
    """The SDK that each vendor's calls use, by the installed packages. Nothing is imported."""
    return [sdk_check(vendor) for vendor in settings.vendors]


def sdk_check(vendor: VendorSettings) -> CheckResult:
    """The SDK that the vendor's calls use."""
    name, setting, sdks = f"{vendor.info.name} SDK", vendor.setting("sdk"), vendor.info.sdks
    if vendor.sdk == "http":
        return CheckResult(name, "ok", f"httpx {httpx.__version__}, set by {setting}")
    packages = list(sdks.values()) if vendor.sdk == "auto" else [sdks[vendor.sdk]]
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(package.distribution)
            return CheckResult(name, "ok", f"{package.distribution} {version}")
    remedy = install_extra(packages[-1].extra)
    if vendor.sdk == "auto":
        return CheckResult(name, "warn", f"{' and '.join(sdks)} not installed; plain HTTP is used", remedy)
    return CheckResult(name, "fail", f"{vendor.sdk} is not installed", f"{remedy}, or set {setting} to auto")


async def reachable(settings: Settings) -> list[CheckResult]:
    """Whether each configured vendor is reachable."""
    if settings.simulated:
        return [CheckResult("reachability", "ok", "skipped: the simulator replaces the vendors")]
    used = [vendor for vendor in settings.vendors if vendor.api_key is not None]
    return list(
        await asyncio.gather(*(reach(vendor.info.name, vendor.base_url, vendor.setting("base_url")) for vendor in used))
    )


async def reach(name: str, url: str, setting: str) -> CheckResult:
    """Whether the host of a base URL accepts a connection, including TLS, within 3 s. No request is sent."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    proxy = urllib.request.getproxies().get(parts.scheme)
    check, remedy = f"{name} reachability", f"check the network, the firewall and {setting}"
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
    """Whether the project exists, accepts the key and has all tables. No check without a project. Reads no rows."""
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
