"""A daemon of the run's own, with simulated providers: a process on free ports, whose state goes with it."""

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
"""Settings of the person who runs this are another daemon's."""


@dataclass(frozen=True, slots=True)
class OwnDaemon:
    """Where it listens, and with which token."""

    url: str
    token: str | None = field(repr=False)


@contextmanager
def own_daemon(workspace: Path, python: Path | None = None) -> Iterator[OwnDaemon]:
    """A simulated daemon that listens and reads files below ``workspace``, and is gone when the block is left.

    ``python`` is the interpreter whose ``toold`` it is; by default the one that runs this.

    Raises:
        CollectionError: it did not start; the message has the end of what it said.
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
                start_new_session=True,  # Ctrl-C is for the run, which lets its calls end before its daemon
            )
        try:
            yield _listening(process, state, log)
        finally:
            _stop(process)


def environment_for(env: Mapping[str, str], workspace: Path) -> dict[str, str]:
    """The environment without anything that configures a daemon, but for its workspace."""
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
