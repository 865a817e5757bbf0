"""What the doctor looks at of this machine: ports, the state directory and what lies in it, and the daemon that
runs.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import httpx

from ...protocol.daemon_address import TOKEN_FILE, DaemonAddress
from ...serving import listen
from ...store import DAMAGE_REMEDY, SCHEMA, StoreError, find_damage, schema_version
from ..config.setting_types import MIN_TOKEN_CHARS
from ..config.settings import Settings
from .check_result import CheckResult

ANSWER_TIMEOUT_S: Final = 3.0
CHECK_S: Final = 5.0
"""A large database is looked through for damage for no longer."""


def port(host: str, number: int, *, setting: Literal["port", "http_port"], ours: DaemonAddress | None) -> CheckResult:
    """Whether a port can be listened on; held by our own running daemon is as good."""
    if number == 0:
        return CheckResult(setting, "ok", "0: a free port is chosen at the start")
    try:
        listen(host, number, f"--{setting.replace('_', '-')}").close()
    except OSError as error:
        if ours and getattr(ours, setting) == number:
            return CheckResult(setting, "ok", f"{number} is held by the running daemon (pid {ours.pid})")
        message, _, remedy = str(error).partition("; ")
        return CheckResult(setting, "fail", message, remedy)
    return CheckResult(setting, "ok", f"{number} is free")


def state_directory(directory: Path, *, token_given: bool) -> list[CheckResult]:
    """The state directory and its token file: there, ours, and closed to others."""
    try:
        status = directory.stat()
    except FileNotFoundError:
        return [_future_directory(directory)]
    except OSError as error:
        return [
            CheckResult(
                "state directory",
                "fail",
                f"{directory}: {error.strerror}",
                "set TOOLD_STATE_DIR to a directory of your own",
            )
        ]
    if not stat.S_ISDIR(status.st_mode) or not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return [
            CheckResult(
                "state directory",
                "fail",
                f"{directory} is no writable directory",
                "set TOOLD_STATE_DIR to a directory of your own",
            )
        ]
    if stat.S_IMODE(status.st_mode) & 0o022:
        first = CheckResult(
            "state directory", "warn", f"others can write to {directory}", f"run: chmod go-w {directory}"
        )
    else:
        first = CheckResult("state directory", "ok", str(directory))
    return [first, _token_file(directory / TOKEN_FILE, token_given=token_given)]


def _future_directory(directory: Path) -> CheckResult:
    ancestor = next(parent for parent in directory.parents if parent.exists())
    if ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK):
        return CheckResult("state directory", "ok", f"{directory} is made at the first start")
    return CheckResult(
        "state directory",
        "fail",
        f"{directory} cannot be made in {ancestor}",
        "set TOOLD_STATE_DIR to a directory of your own",
    )


def _token_file(path: Path, *, token_given: bool) -> CheckResult:
    if token_given:
        return CheckResult("token", "ok", "given by a setting")
    try:
        status = path.stat()
    except FileNotFoundError:
        return CheckResult("token", "ok", "is made at the first start")
    except OSError as error:
        return CheckResult("token", "fail", f"{path}: {error.strerror}", f"remove {path}; the next start makes one")
    if status.st_uid != os.geteuid() or status.st_size < MIN_TOKEN_CHARS:
        return CheckResult(
            "token", "fail", f"{path} holds no usable token of this user", f"remove {path}; the next start makes one"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        return CheckResult("token", "warn", f"others can read {path}", f"remove {path}; the next start makes a new one")
    return CheckResult("token", "ok", f"{path}, readable by its owner alone")


def database(path: Path) -> CheckResult:
    """Whether the database can be read, has a schema that this toold knows, and has no damaged page."""
    if not path.exists():
        return CheckResult("database", "ok", "is made at the first start")
    try:
        found = schema_version(path)
    except StoreError as error:
        message, _, remedy = str(error).partition("; ")
        return CheckResult("database", "fail", message, remedy)
    if found > SCHEMA:
        return CheckResult(
            "database",
            "fail",
            f"{path} has schema {found}, this toold knows up to {SCHEMA}",
            f"install the newer toold again, or move {path} away, and audit.key with it",
        )
    try:
        broken = find_damage(path, within_s=CHECK_S)
    except StoreError as error:
        broken = error.reason
    if broken:
        return CheckResult("database", "fail", f"{path} is damaged ({broken})", DAMAGE_REMEDY)
    return CheckResult(
        "database", "ok", f"schema {found}" + ("" if found == SCHEMA else f", brought to {SCHEMA} at the next start")
    )


def workspace(directories: Iterable[Path]) -> CheckResult:
    """Whether files can be read where tools may read them."""
    for directory in directories:
        if not os.access(directory, os.R_OK | os.X_OK):
            return CheckResult(
                "workspace",
                "fail",
                f"{directory} cannot be read",
                "set TOOLD_WORKSPACE to directories that this user can read",
            )
    return CheckResult("workspace", "ok", ", ".join(map(str, directories)))


def tls(settings: Settings) -> CheckResult:
    """Settings with broken TLS files do not load, so here they are good."""
    if settings.tls_cert is None:
        return CheckResult("tls", "ok", "off")
    return CheckResult("tls", "ok", f"{settings.tls_cert} and its key load")


async def daemon(address: DaemonAddress | None) -> CheckResult:
    """Whether the daemon that says it runs in this state directory is well."""
    if address is None:
        return CheckResult("daemon", "ok", "none runs in this state directory")
    who = f"pid {address.pid} on port {address.port}"
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=ANSWER_TIMEOUT_S) as client:
            answer = await client.get(f"{address.http_url}readyz")
            state = answer.json()
    except (httpx.HTTPError, ValueError):
        if not _is_alive(address.pid):
            return CheckResult("daemon", "warn", f"{who} ended without cleaning up", "start it again: that cleans up")
        return CheckResult(
            "daemon",
            "fail",
            f"{who} does not answer on its HTTP port {address.http_port}",
            f"look at its log; if it hangs, end it (kill {address.pid}) and start it again",
        )
    problems = state.get("problems") if isinstance(state, dict) else None
    if answer.status_code == 200 and problems:
        return CheckResult("daemon", "warn", f"{who} has problems: {'; '.join(map(str, problems))}", "look at its log")
    if answer.status_code == 200:
        return CheckResult("daemon", "ok", f"{who} is ready (version {address.version})")
    reasons = ", ".join(map(str, state.get("reasons", []))) if isinstance(state, dict) else ""
    return CheckResult(
        "daemon", "warn", f"{who} takes no calls: {reasons or 'no reason given'}", "wait, or start it again"
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
