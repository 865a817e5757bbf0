"""Runs a subagent: a process group with few variables and bounded output, which ends with its call."""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from ...protocol.error_codes import ServiceUnavailableError, ToolExecutionError

BASE_VARIABLES: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"),
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""The daemon's variables that every subagent gets: the places of programs and logins, and the language."""

MAX_OUTPUT_BYTES: Final = 8 * 1024 * 1024
"""The maximum size of stdout: enough for the events of an hour. A program that writes more is ended."""
MAX_ERROR_BYTES: Final = 4096
"""The size of the end of stderr that an error quotes."""
TERMINATION_S: Final = 2.0
"""The time between SIGTERM and SIGKILL, if a call ends before its subagent."""
PIPES_S: Final = 1.0
"""How long to wait, after the end of a program, for the output of processes that it left behind; they are then ended
too."""


@dataclass(frozen=True, slots=True)
class SubagentRun:
    """A program that ended by itself."""

    status: int
    """The exit status; negative: the signal that ended it."""
    stdout: str
    stderr: str
    """The last ``MAX_ERROR_BYTES``."""


def subagent_environment(env: Mapping[str, str], more: Sequence[str]) -> dict[str, str]:
    """The variables of a subagent: those of ``BASE_VARIABLES`` and ``more`` that are set."""
    return {name: env[name] for name in (*BASE_VARIABLES, *more) if name in env}


async def run_subagent(command: Sequence[str], prompt: str, *, cwd: Path, env: Mapping[str, str]) -> SubagentRun:
    """Run the program with the prompt on its stdin, until it ends. Its process group ends with this coroutine.

    Raises:
        ServiceUnavailableError: there is no such program, or it cannot be started.
        ToolExecutionError: it wrote more than ``MAX_OUTPUT_BYTES``.
    """
    program = await asyncio.to_thread(shutil.which, command[0], path=env.get("PATH"))
    if program is None:
        raise ServiceUnavailableError.content_free(
            "The program of this subagent is not installed; the operator corrects `command` in [clink] of toold.toml.",
            transient=False,
        )
    start = asyncio.get_running_loop().subprocess_exec(
        _Pipes, program, *command[1:], cwd=cwd, env=env, start_new_session=True
    )
    starting = asyncio.ensure_future(start)
    try:
        transport, pipes = await asyncio.shield(starting)
    except asyncio.CancelledError:  # the program and its processes may run already
        with suppress(OSError):
            await _end_group(*await starting)
        raise
    except OSError as error:
        raise ServiceUnavailableError.content_free(
            f"The program of this subagent cannot be started: {error.strerror}.", transient=False
        ) from error
    try:
        stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        stdin.write(prompt.encode(errors="replace"))
        stdin.close()  # after the data; a program may also end without reading it
        await pipes.done.wait()
        if pipes.overflowed:
            raise ToolExecutionError.content_free(
                f"The subagent wrote more than {MAX_OUTPUT_BYTES:,} bytes to stdout and was ended; ask for less."
            )
        with suppress(TimeoutError):
            async with asyncio.timeout(PIPES_S):
                await pipes.closed.wait()
        status = cast("int", transport.get_returncode())
        return SubagentRun(status, _text(pipes.stdout), _text(pipes.stderr).strip())
    finally:
        await _end_group(transport, pipes)


class _Pipes(asyncio.SubprocessProtocol):
    """The output of a program. ``Process.wait`` of asyncio would also wait for processes that inherited its pipes."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.overflowed = False
        self.done: Final = asyncio.Event()
        """The program ended, or wrote too much."""
        self.ended: Final = asyncio.Event()
        self.closed: Final = asyncio.Event()
        """Stdout and stderr are complete."""
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.stderr += data
            del self.stderr[:-MAX_ERROR_BYTES]
        elif not self.overflowed:
            self.stdout += data
            self.overflowed = len(self.stdout) > MAX_OUTPUT_BYTES
            if self.overflowed:
                self.done.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - a program may close any
        self._open.discard(fd)
        if not self._open:
            self.closed.set()

    def process_exited(self) -> None:
        self.ended.set()
        self.done.set()


async def _end_group(transport: asyncio.SubprocessTransport, pipes: _Pipes) -> None:
    """End the rest of the process group: the program, if its call ended first, and the processes that it started."""
    group = transport.get_pid()
    _signal_group(group, signal.SIGTERM)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(TERMINATION_S):
                await pipes.ended.wait()
    finally:
        _signal_group(group, signal.SIGKILL)
        transport.close()


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _text(output: bytearray) -> str:
    return output.decode(errors="replace")
