"""``toold cancel``, ``toold reload`` and ``toold stop``: commands of the operator of a running daemon."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

import click

from ..protocol.daemon_address import SHUTDOWN_MARGIN_S
from .daemon_connection import EXIT_INTERRUPTED, CommandFailedError
from .operator_client import (
    LocalDaemon,
    OperatorRefusedError,
    local_daemon,
    operator_request,
    running_pid,
)
from .shell_completions import complete_call
from .terminal_output import say

_POLL_S: Final = 0.1
_PROCESS_END_S: Final = 5.0
"""The longest wait for the end of a process that has released its lock; the process gives its threads one second."""
_DEFAULT_GRACE_S: Final = 10.0
"""The grace period of a daemon that has not published its address yet."""


class BadConfigurationError(CommandFailedError):
    """A setting is invalid: exit code 2, as at start."""

    exit_code = 2


@click.command()
@click.argument("call_id", metavar="ID", shell_complete=complete_call)
def cancel(call_id: str) -> None:
    """Cancel the running call ID, of any client. `toold calls` shows the ids; the part after the dash is enough.

    The caller gets the error CANCELLED, which names the operator as the reason, unless the result was ready first.
    Side effects that the tool has already had are not undone.
    """
    call = operator_request("POST", f"/calls/{quote(call_id, safe='')}/cancel")
    label = f"{call['id']} ({call['tool']} of session {call['session']})"
    if call["state"] == "ending":
        say(f"Call {label} is already ending.")
    else:
        say(f"Cancelled call {label}, which was {call['state']}.")


@click.command()
def reload() -> None:
    """Reload toold.toml in the running daemon. Its flags and environment stay as they were at start.

    Settings that can change take effect at once; the others are listed and need a restart. If any setting is invalid,
    nothing changes and the exit code is 2. SIGHUP does the same and logs the outcome.
    """
    try:
        changes = operator_request("POST", "/reload")
    except OperatorRefusedError as error:
        message = f"toold: cannot reload: {error.message}; the old configuration stays in effect"
        raise BadConfigurationError(message) from error
    for title, names in (("reloaded", changes["reloaded"]), ("needs a restart", changes["needs_restart"])):
        if names:
            say(f"{title}: {', '.join(names)}")
    if not (changes["reloaded"] or changes["needs_restart"]):
        say("unchanged")


@click.command()
def stop() -> None:
    """Stop the daemon of the state directory and wait until it has exited.

    The daemon accepts no new calls, lets running calls finish within the grace period, answers the rest with an error,
    and exits.
    """
    daemon = local_daemon()
    grace_s = daemon.address.grace_period_s if daemon.address else _DEFAULT_GRACE_S
    if daemon.address is not None and daemon.address.stopping:  # a second signal would cut the grace period short
        say(f"The daemon (pid {daemon.pid}) is already stopping.")
    else:
        _send_sigterm(daemon)
        say(f"Stopping the daemon (pid {daemon.pid}), within {grace_s:g} s.")
    began = time.monotonic()
    try:
        exited = _wait_for_exit(daemon, grace_s + SHUTDOWN_MARGIN_S)
    except KeyboardInterrupt:
        say("no longer waiting; the daemon is still stopping", err=True)
        sys.exit(EXIT_INTERRUPTED)
    waited_s = time.monotonic() - began
    if not exited:
        raise CommandFailedError(
            f"the daemon (pid {daemon.pid}) has not exited after {waited_s:.0f} s; `kill -9 {daemon.pid}` ends it at "
            "once and leaves its calls unanswered"
        )
    say(f"Stopped after {waited_s:.1f} s.")


def _send_sigterm(daemon: LocalDaemon) -> None:
    if not _has_open(daemon.pid, daemon.directory) and running_pid(daemon.directory) == daemon.pid:
        raise CommandFailedError(
            f"the daemon of {daemon.directory} runs in another container, as pid {daemon.pid} there; stop it there"
        )
    try:
        os.kill(daemon.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it exited just now
    except PermissionError:
        raise CommandFailedError(
            f"the daemon (pid {daemon.pid}) belongs to another user; stop it as that user"
        ) from None


def _has_open(pid: int, file: Path) -> bool:
    """Whether the process has the file open. True if that is unknown: only Linux shows it, and only to the same
    user."""
    try:
        open_files = list(Path(f"/proc/{pid}/fd").iterdir())
    except FileNotFoundError:
        return not Path("/proc/self/fd").exists()
    except PermissionError:
        return True  # another user's process, which kill() refuses
    return any(_is_same(open_file, file) for open_file in open_files)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # closed meanwhile
        return False


def _wait_for_exit(daemon: LocalDaemon, within_s: float) -> bool:
    """Wait until this daemon has released the directory's lock, and then until its process has ended.

    Returns whether it released the lock in time. Only Linux shows whether an ended process is a zombie.
    """
    deadline = time.monotonic() + within_s
    while running_pid(daemon.directory) == daemon.pid:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    deadline = time.monotonic() + _PROCESS_END_S
    while _is_alive(daemon.pid) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return True


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
