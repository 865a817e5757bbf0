"""Common code for programs of sources and hooks: their environment, and the end of their process groups."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

END_GRACE_S: Final = 1.5
"""The time that a program has to exit after its input is closed, and again after SIGTERM."""

_INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
"""Variables of the daemon that programs need. They contain no secrets."""
_POLL_S: Final = 0.01


def environment(configured: Mapping[str, str], own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns a program's environment: the configured variables and the few that every program needs."""
    return {name: own[name] for name in _INHERITED if name in own} | dict(configured)


async def end_program(process: Process) -> None:
    """Ends a program: closes its input, then sends SIGTERM, then SIGKILL, each if the previous step did not suffice."""
    assert process.stdin is not None  # noqa: S101 - started with pipes
    process.stdin.close()
    if not await ended_within(process, END_GRACE_S):
        signal_group(process, signal.SIGTERM)
        if not await ended_within(process, END_GRACE_S):
            signal_group(process, signal.SIGKILL)
            await ended_within(process, END_GRACE_S)


async def ended_within(process: Process, seconds: float) -> bool:
    """Whether the program ends within this time."""
    # Not process.wait(), which also waits for other processes that inherited the pipes.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while process.returncode is None:  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(_POLL_S)
    return process.returncode is not None


def signal_group(process: Process, number: signal.Signals) -> None:
    """Sends a signal to the program's process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
