"""A temporary daemon with simulated vendors: a process on free ports with a temporary state directory."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from toold.client import read_announcement

from .collecting import CollectionError

START_S: Final = 60.0
STOP_S: Final = 20.0
_POLL_S: Final = 0.02
_OURS: Final = ("TOOLD_", "EXAI_", "KIMI_", "MOONSHOT_", "GLM_", "ZHIPUAI_", "SUPABASE_")
"""Prefixes of variables that configure the user's own daemon; they are removed."""


@dataclass(frozen=True, slots=True)
class OwnDaemon:
    """Its address and token."""

    url: str
    token: str | None = field(repr=False)


@contextmanager
def own_daemon(workspace: Path, python: Path | None = None) -> Iterator[OwnDaemon]:
    """Runs a simulated daemon, with ``workspace`` as its workspace, for the duration of the block.

    ``python`` is the interpreter whose ``toold`` it runs (default: the current one).

    Raises:
        CollectionError: it did not start; the message has the end of its log.
    """
    with tempfile.TemporaryDirectory(prefix="toold-baseline-", ignore_cleanup_errors=True) as temporary:
        directory = Path(temporary)
        state, log = directory / "state", directory / "daemon.log"
        flags = ["--simulate", "--port", "0", "--http-port", "0", "--state-dir", str(state)]
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - our own daemon
                [str(python or sys.executable), "-m", "toold", "serve", *flags],
                cwd=directory,
                env=environment_for(os.environ, workspace),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C goes to the run, which ends its calls before the daemon
            )
        try:
            yield _listening(process, state, log)
        finally:
            _stop(process)


def environment_for(env: Mapping[str, str], workspace: Path) -> dict[str, str]:
    """The environment without variables that configure a daemon, plus the workspace."""
    kept = {name: value for name, value in env.items() if not name.startswith(_OURS)}
    return kept | {"TOOLD_WORKSPACE": str(workspace)}


def _listening(process: "subprocess.Popen[bytes]", state: Path, log: Path) -> OwnDaemon:
    give_up = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < give_up:
        found = read_announcement(state)
        if found.address is not None:
            return OwnDaemon(found.address.url, found.token)
        time.sleep(_POLL_S)
    raise CollectionError(f"the daemon did not start:\n{log.read_text('utf-8', errors='replace')[-2000:]}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
