"""Asking the daemon of this machine what only its operator may: by its HTTP port, with its token."""

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
from .daemon_connection import CommandFailedError, NoConnectionError

_ANSWER_S: Final = 10.0
"""How long an answer is awaited; the daemon has it in some milliseconds."""


@dataclass(frozen=True, slots=True)
class LocalDaemon:
    """The daemon that runs in the state directory."""

    directory: Path
    pid: int
    address: DaemonAddress | None
    """None while it starts or stops."""


class OperatorRefusedError(CommandFailedError):
    """The daemon understood and refused: its message, exit code 1."""


def find() -> LocalDaemon:
    """The daemon of the state directory, by the lock that it holds.

    Raises:
        NoConnectionError: none runs there.
    """
    directory = default_state_dir(os.environ)
    try:
        pid = held_by(directory)
    except OSError as error:
        raise NoConnectionError(
            f"{directory} cannot be looked at ({error.strerror}); run this as its daemon's user"
        ) from None
    if pid is None:
        raise NoConnectionError(
            f"no daemon runs in {directory}; `toold serve` starts one, and TOOLD_STATE_DIR names another's directory"
        )
    return LocalDaemon(directory, pid, read_announcement(directory).address)


def ask(method: str, path: str, **query: int | str) -> dict[str, Any]:
    """The daemon's answer to one of the requests below ``/operator``.

    Raises:
        NoConnectionError: no daemon runs, or it does not answer, or not to us.
        RefusedError: it refused what was asked for.
    """
    here = find()
    if here.address is None:
        raise NoConnectionError(
            f"the daemon of pid {here.pid} does not listen: it starts or stops; try again in a moment"
        )
    # Only now that the lock shows it alive: of a daemon that crashed the port may be anybody's, and so would the token.
    token = local_token(os.environ)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    target = f"/operator{path}" + (f"?{urlencode(query)}" if query else "")
    try:
        status, body = request(here.address, method, target, headers=headers, timeout_s=_ANSWER_S)
    except (OSError, HTTPException, ValueError):
        raise NoConnectionError(
            f"the daemon of pid {here.pid} does not answer at {here.address.http_url}; `toold doctor` looks further"
        ) from None
    if status == 401:
        raise NoConnectionError(_no_entry(here))
    if status != 200:
        raise OperatorRefusedError(_message_of(body, status))
    return dict(body)


def _message_of(body: Any, status: int) -> str:
    """Why it was refused: the daemon's words, where it is the daemon that answers."""
    match body:
        case {"error": {"message": str(message)}}:
            return message
    return f"what answers at the daemon's port refused with HTTP {status}"


def request(
    address: DaemonAddress, method: str, target: str, *, headers: Mapping[str, str], timeout_s: float
) -> tuple[int, Any]:
    """One request to the side port; the answer's status, and its JSON.

    Raises:
        OSError, HTTPException, ValueError: nobody answers, or it is not the daemon that does.
    """
    # httpx alone would take as long to import as all the rest of the command.
    connection = HTTPConnection(connectable(address.host), address.http_port, timeout=timeout_s)
    try:
        connection.request(method, target, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def held_by(directory: Path) -> int | None:
    """The pid of the daemon that runs in this state directory now; None where none does.

    Raises:
        OSError: the lock cannot be looked at, such as another user's.
    """
    try:
        lock = (directory / LOCK_FILE).open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = lock.read()
            return int(pid) if pid.strip().isdigit() else None  # it is written right after the lock is taken
    return None


def _no_entry(here: LocalDaemon) -> str:
    refused = f"the daemon of pid {here.pid} does not take the token of"
    name = next((name for name in TOKEN_VARIABLES if os.environ.get(name)), None)
    if name is not None:
        return f"{refused} {name}; unset it, and the state directory's is sent"
    return f"{refused} {here.directory}; set TOOLD_TOKEN to the one that it was started with"
