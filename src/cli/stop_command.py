"""``toold stop``: the daemon's end in good order."""

import os
import signal
import sys
import time
from http.client import HTTPException
from pathlib import Path
from typing import Final

import click

from ..protocol.daemon_address import ENDING_S, LOCK_FILE, DaemonAddress
from .daemon_connection import EXIT_INTERRUPTED, CommandFailedError
from .operator_client import LocalDaemon, find, held_by, request

_LOOK_EVERY_S: Final = 0.1
_ANSWER_S: Final = 1.0
"""How long the daemon has to say whether it stops already; one that hangs says nothing, and is told to."""
_UNTOLD_GRACE_S: Final = 10.0
"""Of a daemon that has not said yet where it listens: the default."""


@click.command(short_help="Stop the daemon in good order.")
def command() -> None:
    """Stop the daemon of the state directory, and wait until it has ended.

    It takes no more calls, lets what runs finish within its grace period, answers what it cuts off, and ends.
    """
    here = find()
    grace_s = here.address.grace_period_s if here.address else _UNTOLD_GRACE_S
    if _stops_already(here.address):  # a second signal would cut the grace period short
        click.echo(f"The daemon of pid {here.pid} is stopping already.")
    else:
        _signal(here)
        click.echo(f"Stopping the daemon of pid {here.pid}; it has {grace_s:g} s to end, its calls a little less.")
    began = time.monotonic()
    try:
        ended = _ends(here, grace_s + ENDING_S)
    except KeyboardInterrupt:
        click.echo("not waiting any longer; the daemon goes on stopping", err=True)
        sys.exit(EXIT_INTERRUPTED)
    waited_s = time.monotonic() - began
    if not ended:
        raise CommandFailedError(
            f"the daemon of pid {here.pid} has not ended after {waited_s:.0f} s; `kill -9 {here.pid}` ends it at once, "
            "and leaves its callers without their answers"
        )
    click.echo(f"Stopped after {waited_s:.1f} s.")


def _stops_already(address: DaemonAddress | None) -> bool:
    """Whether it says so itself."""
    if address is None:
        return False
    try:
        _, state = request(address, "GET", "/readyz", headers={}, timeout_s=_ANSWER_S)
    except (OSError, HTTPException, ValueError):
        return False
    return isinstance(state, dict) and state.get("status") == "stopping"


def _signal(here: LocalDaemon) -> None:
    if not _has_open(here.pid, here.directory / LOCK_FILE) and held_by(here.directory) == here.pid:
        raise CommandFailedError(
            f"the daemon of {here.directory} has pid {here.pid} in another container, where nobody else is to be ended:"
            " stop it there"
        )
    try:
        os.kill(here.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it ended in this moment
    except PermissionError:
        raise CommandFailedError(f"the daemon of pid {here.pid} is another user's; stop it as that user") from None


def _has_open(pid: int, file: Path) -> bool:
    """Whether the process of this pid has the file open, as far as can be seen: only Linux shows it, to its user."""
    try:
        open_files = list(Path(f"/proc/{pid}/fd").iterdir())
    except FileNotFoundError:
        return not Path("/proc/self/fd").exists()
    except PermissionError:
        return True  # another user's, whom the system protects
    return any(_is_same(one, file) for one in open_files)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # closed meanwhile
        return False


def _ends(here: LocalDaemon, within_s: float) -> bool:
    """Whether the directory's lock is free, or another daemon's, within so many seconds."""
    deadline = time.monotonic() + within_s
    while held_by(here.directory) == here.pid:
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True
