"""``toold doctor``: looks at everything a start needs, changes nothing, and says how to mend what is wrong."""

import asyncio
import contextlib
import importlib.metadata
import os
import ssl
import stat
import sys
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import httpx
from pydantic import AliasChoices

from ..protocol.rendezvous import TOKEN_FILE, Address
from ..protocol.suggest import close_names, did_you_mean
from ..serving import listen
from ..store import SCHEMA, StoreError, schema_version
from .setting_types import MIN_TOKEN_CHARS
from .settings import ENV_PREFIX, Settings
from .state import DATABASE_FILE, read_address

REACH_TIMEOUT_S: Final = 3.0
MIN_PYTHON: Final = (3, 11)

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; ``remedy`` says what to do where it is not ok."""

    name: str
    status: Status
    message: str
    remedy: str | None = None


async def diagnose(settings: Settings, *, env: Mapping[str, str] = os.environ) -> list[Check]:
    """Check everything that the daemon needs with these settings. Sends no key anywhere, and writes nothing."""
    running = read_address(settings.state_dir)
    return [
        python_version(sys.version_info[:3]),
        *unknown_variables(env),
        *keys(settings, env),
        *sdks(settings),
        *await _reachable(settings),
        port(settings.host, settings.port, setting="port", ours=running),
        port(settings.host, settings.http_port, setting="http_port", ours=running),
        *state_folder(settings.state_dir, token_given=settings.token is not None),
        database(settings.state_dir / DATABASE_FILE),
        workspace(settings.workspace),
        tls(settings),
        await daemon(running),
    ]


def python_version(version: tuple[int, int, int]) -> Check:
    shown = ".".join(map(str, version))
    if version >= MIN_PYTHON:
        return Check("python", "ok", f"Python {shown}")
    return Check("python", "fail", f"Python {shown} is too old", "run toold on Python 3.11 or newer")


def unknown_variables(env: Mapping[str, str]) -> list[Check]:
    """Variables that look like ours and are not: usually a misspelling that would go unnoticed."""
    known = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields} | {f"{ENV_PREFIX}CONFIG"}
    checks = []
    for name in sorted(env):
        if name.startswith(ENV_PREFIX) and name not in known:
            meant = did_you_mean(close_names(name, known, n=1))
            message = f"{name} is no setting and has no effect" + (f"; {meant}" if meant else "")
            checks.append(Check("environment", "warn", message, "rename it, or unset it"))
    return checks


# --- the vendors -----------------------------------------------------------------------------------------------------


def keys(settings: Settings, env: Mapping[str, str]) -> list[Check]:
    """Whether each vendor's key is set, and by which variable; never the key."""
    return [
        _key("kimi", "kimi_api_key", "KIMI_API_KEY", settings, env),
        _key("glm", "glm_api_key", "GLM_API_KEY", settings, env),
    ]


def _key(vendor: str, setting: str, variable: str, settings: Settings, env: Mapping[str, str]) -> Check:
    if getattr(settings, setting) is not None:
        alias = Settings.model_fields[setting].validation_alias
        names = alias.choices if isinstance(alias, AliasChoices) else []
        source = next((str(name) for name in names if env.get(str(name))), "toold.toml")
        return Check(
            f"{vendor} key", "ok", f"set by {source}" + (" (not used: simulated)" if settings.simulated else "")
        )
    if settings.simulated:
        return Check(f"{vendor} key", "ok", f"not set; the simulator answers for {vendor}")
    return Check(
        f"{vendor} key", "warn", f"not set: models of {vendor} cannot be asked", f"set {variable} to the vendor's key"
    )


def sdks(settings: Settings) -> list[Check]:
    """Which SDK carries each vendor's calls, by the packages that are installed; nothing is imported."""
    return [
        _sdk("kimi", settings.kimi_sdk, ("openai",), "pip install 'toold[kimi]'"),
        _sdk("glm", settings.glm_sdk, ("zhipuai", "zai"), "pip install 'toold[glm]'"),
    ]


def _sdk(vendor: str, wanted: str, packages: tuple[str, ...], install: str) -> Check:
    name = f"{vendor} SDK"
    if wanted == "http":
        return Check(name, "ok", f"httpx {httpx.__version__}, as {vendor}_sdk says")
    for package in packages if wanted == "auto" else (wanted,):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            distribution = "zai-sdk" if package == "zai" else package
            return Check(name, "ok", f"{distribution} {importlib.metadata.version(distribution)}")
    if wanted == "auto":
        return Check(
            name, "warn", f"none of {', '.join(packages)} is installed; plain HTTP is used instead", f"run {install}"
        )
    install = "pip install 'toold[zai]'" if wanted == "zai" else install
    return Check(name, "fail", f"{wanted} is not installed", f"run {install}, or set {vendor}_sdk to auto")


async def _reachable(settings: Settings) -> list[Check]:
    if settings.simulated:
        return [Check("reachability", "ok", "skipped: the simulator answers, no vendor is asked")]
    configured = [
        ("kimi", settings.kimi_base_url, settings.kimi_api_key is not None),
        ("glm", settings.glm_base_url, settings.glm_api_key is not None),
    ]
    return list(await asyncio.gather(*(reach(name, url) for name, url, used in configured if used)))


async def reach(name: str, url: str) -> Check:
    """Whether the host of a base URL takes a connection, TLS included, within 3 s. No request is sent."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    proxy = urllib.request.getproxies().get(parts.scheme)
    check, remedy = f"{name} reachability", f"check the network, the firewall and {name}_base_url"
    if proxy and not urllib.request.proxy_bypass(host):
        return Check(check, "ok", f"skipped: {host} is asked through a proxy")
    number = parts.port or (443 if secure else 80)
    try:
        async with asyncio.timeout(REACH_TIMEOUT_S):
            _, writer = await asyncio.open_connection(
                host, number, ssl=ssl.create_default_context() if secure else None
            )
    except ssl.SSLCertVerificationError as error:
        return Check(
            check, "fail", f"{host}: {error.verify_message}", "check the clock and the certificates (SSL_CERT_FILE)"
        )
    except TimeoutError:
        return Check(check, "fail", f"{host}:{number} did not answer within {REACH_TIMEOUT_S:g} s", remedy)
    except OSError as error:
        return Check(check, "fail", f"{host}:{number}: {error.strerror or error}", remedy)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return Check(check, "ok", f"{host}:{number} takes connections" + (", its certificate is good" if secure else ""))


# --- this machine ----------------------------------------------------------------------------------------------------


def port(host: str, number: int, *, setting: Literal["port", "http_port"], ours: Address | None) -> Check:
    """Whether a port can be listened on; held by our own running daemon is as good."""
    if number == 0:
        return Check(setting, "ok", "0: a free port is chosen at the start")
    try:
        listen(host, number, f"--{setting.replace('_', '-')}").close()
    except OSError as error:
        if ours and getattr(ours, setting) == number:
            return Check(setting, "ok", f"{number} is held by the running daemon (pid {ours.pid})")
        message, _, remedy = str(error).partition("; ")
        return Check(setting, "fail", message, remedy)
    return Check(setting, "ok", f"{number} is free")


def state_folder(folder: Path, *, token_given: bool) -> list[Check]:
    """The state folder and its token file: there, ours, and closed to others."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return [_future_folder(folder)]
    except OSError as error:
        return [
            Check("state folder", "fail", f"{folder}: {error.strerror}", "set TOOLD_STATE_DIR to a folder of your own")
        ]
    if not stat.S_ISDIR(status.st_mode) or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return [
            Check(
                "state folder", "fail", f"{folder} is no writable folder", "set TOOLD_STATE_DIR to a folder of your own"
            )
        ]
    if stat.S_IMODE(status.st_mode) & 0o022:
        first = Check("state folder", "warn", f"others can write to {folder}", f"run: chmod go-w {folder}")
    else:
        first = Check("state folder", "ok", str(folder))
    return [first, _token_file(folder / TOKEN_FILE, token_given=token_given)]


def _future_folder(folder: Path) -> Check:
    ancestor = next(parent for parent in folder.parents if parent.exists())
    if ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK):
        return Check("state folder", "ok", f"{folder} is made at the first start")
    return Check(
        "state folder", "fail", f"{folder} cannot be made in {ancestor}", "set TOOLD_STATE_DIR to a folder of your own"
    )


def _token_file(path: Path, *, token_given: bool) -> Check:
    if token_given:
        return Check("token", "ok", "given by a setting")
    try:
        status = path.stat()
    except FileNotFoundError:
        return Check("token", "ok", "is made at the first start")
    except OSError as error:
        return Check("token", "fail", f"{path}: {error.strerror}", f"remove {path}; the next start makes one")
    if status.st_uid != os.geteuid() or status.st_size < MIN_TOKEN_CHARS:
        return Check(
            "token", "fail", f"{path} holds no usable token of this user", f"remove {path}; the next start makes one"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        return Check("token", "warn", f"others can read {path}", f"remove {path}; the next start makes a new one")
    return Check("token", "ok", f"{path}, readable by its owner alone")


def database(path: Path) -> Check:
    """Whether the database can be read and has a schema that this toold knows."""
    if not path.exists():
        return Check("database", "ok", "is made at the first start")
    try:
        found = schema_version(path)
    except StoreError as error:
        message, _, remedy = str(error).partition("; ")
        return Check("database", "fail", message, remedy)
    if found > SCHEMA:
        return Check(
            "database",
            "fail",
            f"{path} has schema {found}, this toold knows up to {SCHEMA}",
            f"install the newer toold again, or move {path} away",
        )
    return Check(
        "database", "ok", f"schema {found}" + ("" if found == SCHEMA else f", brought to {SCHEMA} at the next start")
    )


def workspace(folders: Iterable[Path]) -> Check:
    """Whether files can be read where tools may read them."""
    for folder in folders:
        if not os.access(folder, os.R_OK | os.X_OK):
            return Check(
                "workspace",
                "fail",
                f"{folder} cannot be read",
                "set TOOLD_WORKSPACE to folders that this user can read",
            )
    return Check("workspace", "ok", ", ".join(map(str, folders)))


def tls(settings: Settings) -> Check:
    """Settings with broken TLS files do not load, so here they are good."""
    if settings.tls_cert is None:
        return Check("tls", "ok", "off")
    return Check("tls", "ok", f"{settings.tls_cert} and its key load")


async def daemon(address: Address | None) -> Check:
    """Whether the daemon that says it runs in this state folder is well."""
    if address is None:
        return Check("daemon", "ok", "none runs in this state folder")
    who = f"pid {address.pid} on port {address.port}"
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=REACH_TIMEOUT_S) as client:
            answer = await client.get(f"{address.http_url}readyz")
            state = answer.json()
    except (httpx.HTTPError, ValueError):
        if not _is_alive(address.pid):
            return Check("daemon", "warn", f"{who} ended without cleaning up", "start it again: that cleans up")
        return Check(
            "daemon",
            "fail",
            f"{who} does not answer on its HTTP port {address.http_port}",
            f"look at its log; if it hangs, end it (kill {address.pid}) and start it again",
        )
    if answer.status_code == 200:
        return Check("daemon", "ok", f"{who} is ready (version {address.version})")
    reasons = ", ".join(map(str, state.get("reasons", []))) if isinstance(state, dict) else ""
    return Check("daemon", "warn", f"{who} takes no calls: {reasons or 'no reason given'}", "wait, or start it again")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
