"""The doctor's checks of this machine: ports, the state directory and its files, and the running daemon."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import httpx

from ...protocol.daemon_address import TOKEN_FILE, DaemonAddress
from ...sandbox.worker_confinement import available
from ...serving import listen, reachable_limit
from ...store import (
    DAMAGE_REMEDY,
    SCHEMA,
    SchemaDifference,
    StoreError,
    find_damage,
    open_archive,
    schema_version,
)
from ..config import settings_mapping
from ..config.setting_types import MIN_TOKEN_CHARS
from ..config.settings import Settings
from .check_result import CheckResult

ANSWER_TIMEOUT_S: Final = 3.0
DAMAGE_SEARCH_S: Final = 5.0
"""The time limit of the search for damage in a large database."""


def port(host: str, number: int, *, setting: Literal["port", "http_port"], ours: DaemonAddress | None) -> CheckResult:
    """Whether the port is free, or in use by this state directory's daemon."""
    if number == 0:
        return CheckResult(setting, "ok", "0: a free port is picked at start")
    try:
        listen(host, number, f"--{setting.replace('_', '-')}").close()
    except OSError as error:
        if ours and getattr(ours, setting) == number:
            return CheckResult(setting, "ok", f"{number} is used by the running daemon (pid {ours.pid})")
        message, _, remedy = str(error).partition("; ")
        return CheckResult(setting, "fail", message, remedy)
    return CheckResult(setting, "ok", f"{number} is free")


def state_directory(directory: Path, *, token_given: bool) -> list[CheckResult]:
    """Whether the state directory and the token file are usable, and closed to other users."""
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
                "set TOOLD_STATE_DIR to a directory that you can write to",
            )
        ]
    if not stat.S_ISDIR(status.st_mode) or not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return [
            CheckResult(
                "state directory",
                "fail",
                f"{directory} is not a writable directory",
                "set TOOLD_STATE_DIR to a directory that you can write to",
            )
        ]
    if stat.S_IMODE(status.st_mode) & 0o022:
        first = CheckResult(
            "state directory", "warn", f"other users can write to {directory}", f"run: chmod go-w {directory}"
        )
    else:
        first = CheckResult("state directory", "ok", str(directory))
    return [first, _token_file(directory / TOKEN_FILE, token_given=token_given)]


def _future_directory(directory: Path) -> CheckResult:
    ancestor = next(parent for parent in directory.parents if parent.exists())
    if ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK):
        return CheckResult("state directory", "ok", f"{directory} will be created at the first start")
    return CheckResult(
        "state directory",
        "fail",
        f"{directory} cannot be created in {ancestor}",
        "set TOOLD_STATE_DIR to a directory that you can write to",
    )


def _token_file(path: Path, *, token_given: bool) -> CheckResult:
    if token_given:
        return CheckResult("token", "ok", "set by a setting")
    try:
        status = path.stat()
    except FileNotFoundError:
        return CheckResult("token", "ok", "will be created at the first start")
    except OSError as error:
        return CheckResult(
            "token", "fail", f"{path}: {error.strerror}", f"remove {path}; the next start creates a new one"
        )
    if status.st_uid != os.geteuid() or status.st_size < MIN_TOKEN_CHARS:
        return CheckResult(
            "token",
            "fail",
            f"{path} has no usable token of this user",
            f"remove {path}; the next start creates a new one",
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        return CheckResult(
            "token", "warn", f"other users can read {path}", f"remove {path}; the next start creates a new one"
        )
    return CheckResult("token", "ok", f"{path}, readable by its owner only")


def database(path: Path) -> CheckResult:
    """Whether the database is readable, has a known schema and no damaged pages."""
    if not path.exists():
        return CheckResult("database", "ok", "will be created at the first start")
    try:
        found = schema_version(path)
    except StoreError as error:
        message, _, remedy = str(error).partition("; ")
        return CheckResult("database", "fail", message, remedy)
    if found > SCHEMA:
        return CheckResult(
            "database",
            "fail",
            f"{path} has schema {found}; this toold supports up to {SCHEMA}",
            f"install the newer toold again, or move {path} and audit.key away",
        )
    try:
        broken = find_damage(path, within_s=DAMAGE_SEARCH_S)
    except StoreError as error:
        broken = error.reason
    if broken:
        return CheckResult("database", "fail", f"{path} is damaged ({broken})", DAMAGE_REMEDY)
    if found == SCHEMA and (differences := _schema_differences(path)):
        names = ", ".join(f"{one.kind} {one.name!r} ({one.fault})" for one in differences)
        return CheckResult(
            "database",
            "fail",
            f"{path} has definitions that differ from its schema: {names}",
            "find out who changed them: a trigger can change or copy what is written; then remove or restore them",
        )
    return CheckResult(
        "database", "ok", f"schema {found}" + ("" if found == SCHEMA else f"; the next start migrates it to {SCHEMA}")
    )


def _schema_differences(path: Path) -> list[SchemaDifference]:
    try:
        with open_archive(path) as archive:
            return archive.schema_differences()
    except StoreError:
        return []


def sandbox() -> CheckResult:
    """Checks how far the system confines the processes that run programs."""
    offered = available()
    parts = {
        "no files (Landlock)": offered.landlock > 0,
        "no sockets and processes (seccomp)": offered.seccomp,
        "own user": offered.own_user,
    }
    present = ", ".join(name for name, there in parts.items() if there) or "nothing"
    if offered.landlock and offered.seccomp:
        return CheckResult("sandbox", "ok", f"the system confines workers: {present}")
    missing = ", ".join(name for name, there in parts.items() if not there and name != "own user")
    return CheckResult(
        "sandbox",
        "warn",
        f"programs are isolated by their interpreter, but the system confines it only in part: {present}; "
        f"missing: {missing}",
        "if untrusted people write programs, use Linux 5.13 or newer with Landlock and seccomp, on x86-64 or ARM64",
    )


def workspace(directories: Iterable[Path]) -> CheckResult:
    """Whether the workspace directories are readable."""
    for directory in directories:
        if not os.access(directory, os.R_OK | os.X_OK):
            return CheckResult(
                "workspace",
                "fail",
                f"{directory} cannot be read",
                "set TOOLD_WORKSPACE to directories that this user can read",
            )
    return CheckResult("workspace", "ok", ", ".join(map(str, directories)))


def open_files(settings: Settings) -> CheckResult:
    """Whether the limit of open files allows all connections."""
    needed = settings_mapping.open_files_needed(settings)
    shares = settings_mapping.descriptor_shares(settings, reachable_limit(needed))
    if not shares.scarce:
        return CheckResult("open files", "ok", f"the limit allows {settings.max_connections} connections per port")
    return CheckResult(
        "open files",
        "warn",
        f"the hard limit of open files is {shares.available}, so {shares.connections} connections per port are "
        f"accepted instead of {settings.max_connections}",
        f"raise the limit to {needed} (ulimit -Hn, LimitNOFILE= of a systemd unit), or set max_connections to "
        f"{shares.connections}",
    )


def tls(settings: Settings) -> CheckResult:
    """The TLS files. They are valid, because settings with broken files do not load."""
    if settings.tls_cert is None:
        return CheckResult("tls", "ok", "off")
    return CheckResult("tls", "ok", f"{settings.tls_cert} and its key are valid")


async def daemon(address: DaemonAddress | None) -> CheckResult:
    """Whether the daemon of this state directory is ready."""
    if address is None:
        return CheckResult("daemon", "ok", "not running")
    label = f"pid {address.pid} on port {address.port}"
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=ANSWER_TIMEOUT_S) as client:
            answer = await client.get(f"{address.http_url}readyz")
            state = answer.json()
    except (httpx.HTTPError, ValueError):
        if not _is_alive(address.pid):
            return CheckResult(
                "daemon", "warn", f"{label} exited without cleaning up", "start it again, which cleans up"
            )
        return CheckResult(
            "daemon",
            "fail",
            f"{label} does not answer on its HTTP port {address.http_port}",
            f"see its log; if it hangs, stop it (kill {address.pid}) and start it again",
        )
    problems = state.get("problems") if isinstance(state, dict) else None
    if answer.status_code == 200 and problems:
        listed = "; ".join(map(str, problems))
        return CheckResult("daemon", "warn", f"{label} has problems: {listed}", "run: toold status")
    if answer.status_code == 200:
        return CheckResult("daemon", "ok", f"{label} is ready (version {address.version})")
    reasons = ", ".join(map(str, state.get("reasons", []))) if isinstance(state, dict) else ""
    return CheckResult(
        "daemon", "warn", f"{label} accepts no calls: {reasons or 'no reason given'}", "wait, or restart it"
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
