"""Requests to the HTTP port of the daemon on this machine, with its token: to the operator API and the platform API."""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from ..client import local_token, read_announcement
from ..client.daemon_endpoint import TOKEN_VARIABLES
from ..protocol.daemon_address import LOCK_FILE, DaemonAddress, connectable, default_state_dir
from ..protocol.json_text import parse_json
from .daemon_connection import CommandFailedError, NoConnectionError

_TIMEOUT_S: Final = 10.0
"""The timeout of a request; the daemon normally answers within milliseconds."""


@dataclass(frozen=True, slots=True)
class LocalDaemon:
    """The daemon that runs in the state directory."""

    directory: Path
    pid: int
    address: DaemonAddress | None
    """None while the daemon starts or stops."""


class OperatorRefusedError(CommandFailedError):
    """The daemon refused the request: its message, exit code 1."""


def local_daemon() -> LocalDaemon:
    """The daemon of the state directory, found by its lock.

    Raises:
        NoConnectionError: no daemon runs there.
    """
    directory = default_state_dir(os.environ)
    try:
        pid = running_pid(directory)
    except OSError as error:
        raise NoConnectionError(
            f"cannot read {directory} ({error.strerror}); run this command as the daemon's user"
        ) from None
    if pid is None:
        raise NoConnectionError(
            f"no daemon runs in {directory}; start one with `toold serve`, or set TOOLD_STATE_DIR to its directory"
        )
    return LocalDaemon(directory, pid, read_announcement(directory).address)


def operator_request(method: str, path: str, **query: int | str) -> dict[str, Any]:
    """The daemon's answer to a request under ``/operator``.

    Raises:
        NoConnectionError: no daemon runs, it does not answer, or it refuses the token.
        OperatorRefusedError: it refused the request.
    """
    return daemon_request(method, f"/operator{path}" + (f"?{urlencode(query)}" if query else ""))


def platform_request(
    method: str, path: str, body: Mapping[str, Any] | None = None, **query: int | str
) -> dict[str, Any]:
    """The daemon's answer to a request under ``/api/v1``.

    Raises:
        NoConnectionError, OperatorRefusedError: as for ``daemon_request``.
    """
    return daemon_request(method, f"/api/v1{path}" + (f"?{urlencode(query)}" if query else ""), body=body)


def daemon_request(
    method: str, target: str, *, body: Any = None, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The daemon's answer to a request to its HTTP port, with this ``body`` as JSON.

    Raises:
        NoConnectionError: no daemon runs, it does not answer, or it refuses the token.
        OperatorRefusedError: it refused the request.
    """
    daemon = local_daemon()
    if daemon.address is None:
        raise NoConnectionError(f"the daemon (pid {daemon.pid}) is starting or stopping; retry in a moment")
    # The lock shows that the daemon is alive. After a crash another program could listen on its port and get the token.
    token = local_token(os.environ)
    sent = dict(headers or {}) | ({} if token is None else {"Authorization": f"Bearer {token}"})
    try:
        status, answer = side_port_request(
            daemon.address, method, target, headers=sent, timeout_s=_TIMEOUT_S, body=body
        )
    except (OSError, HTTPException, ValueError):
        raise NoConnectionError(
            f"the daemon (pid {daemon.pid}) does not answer at {daemon.address.http_url}; run `toold doctor`"
        ) from None
    if status == 401:
        raise NoConnectionError(_token_refused(daemon))
    if not 200 <= status < 300:
        raise OperatorRefusedError(_message_of(answer, status))
    return dict(answer)


def _message_of(body: Any, status: int) -> str:
    """The daemon's error message, or the status if something else answered."""
    match body:
        case {"error": {"message": str(message)}}:
            return message
        case {"detail": str(message)}:
            return message
        case {"detail": [{"loc": [_, str()], "msg": str()}, *_] as problems}:
            return "; ".join(f"{problem['loc'][-1]} {problem['msg']}" for problem in problems)
    return f"the daemon's HTTP port answered with status {status}"


def side_port_request(
    address: DaemonAddress,
    method: str,
    target: str,
    *,
    headers: Mapping[str, str],
    timeout_s: float,
    body: Any = None,
) -> tuple[int, Any]:
    """Send one request to the HTTP port, with this ``body`` as JSON; returns the status and the parsed JSON body.

    Raises:
        OSError, HTTPException, ValueError: no answer, or not the daemon's.
    """
    # Importing httpx would double the command's start time.
    connection = HTTPConnection(connectable(address.host), address.http_port, timeout=timeout_s)
    try:
        content = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, target, content, {**headers, **kind})
        answer = connection.getresponse()
        return answer.status, parse_json(answer.read())
    finally:
        connection.close()


def running_pid(directory: Path) -> int | None:
    """The pid of the daemon that runs in this state directory, if any.

    Raises:
        OSError: the lock cannot be read, for example because it belongs to another user.
    """
    if not (_is_locked(directory / LOCK_FILE) or _is_locked(directory)):
        return None
    try:
        pid = (directory / LOCK_FILE).read_bytes().strip()
    except FileNotFoundError:  # removed under the running daemon, which holds the directory's lock too
        address = read_announcement(directory).address
        return address.pid if address else None
    return int(pid) if pid.isdigit() else None  # the daemon writes it right after it takes the lock


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _token_refused(daemon: LocalDaemon) -> str:
    refused = f"the daemon (pid {daemon.pid}) refused the token"
    name = next((name for name in TOKEN_VARIABLES if os.environ.get(name)), None)
    if name is not None:
        return f"{refused} in {name}; unset {name} to use the state directory's token"
    return f"{refused} of {daemon.directory}; set TOOLD_TOKEN to the token that it was started with"
