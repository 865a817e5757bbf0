"""Termination of a program from outside: it takes effect at once and has a reason."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest
from toold.sandbox import ProgramStoppedError, WorkerDiedError
from toold.sandbox.program_termination import ProgramTermination

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def wait(ending: ProgramTermination, pid: int | None = None, timeout_s: float = 60) -> None:
    """Wait forever, as a program does that waits for a tool."""
    async with ending.within(timeout_s):
        with ending.watch(pid):
            await asyncio.Event().wait()


async def test_the_time_limit_ends_a_program() -> None:
    """The reason states the limit."""
    ending = ProgramTermination()
    with pytest.raises(TimeoutError):
        await wait(ending, timeout_s=0.01)
    assert isinstance(ending.reason, ProgramStoppedError)
    assert ending.reason.bound == "time"
    assert "0.01 s" in str(ending.reason)


async def test_the_output_limit_ends_a_program() -> None:
    """Another thread reports the limit, and the program ends long before its time limit."""
    ending = ProgramTermination()
    threading.Thread(target=ending.on_output_limit).start()
    with pytest.raises(TimeoutError):
        await wait(ending)
    assert isinstance(ending.reason, ProgramStoppedError)
    assert ending.reason.bound == "output"


async def test_the_output_limit_after_the_end_has_no_effect() -> None:
    """The last write of a program may be the one that exceeds the limit."""
    ending = ProgramTermination()
    async with ending.within(60):
        pass
    ending.on_output_limit()
    await asyncio.sleep(0)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system has no pidfd_open")
@pytest.mark.process
async def test_the_death_of_the_worker_ends_a_program() -> None:
    """The program ends although it is waiting."""
    ending = ProgramTermination()
    worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        worker.kill()
        with pytest.raises(TimeoutError):
            await wait(ending, worker.pid)
    finally:
        worker.communicate()
    assert isinstance(ending.reason, WorkerDiedError)


@pytest.mark.process
async def test_an_unknown_worker_is_not_watched() -> None:
    """Neither an unknown process id nor that of an ended process causes an error."""
    ending = ProgramTermination()
    async with ending.within(60):
        with ending.watch(None):
            pass
        ended_process = subprocess.Popen([sys.executable, "-c", ""])
        ended_process.wait()
        with ending.watch(ended_process.pid):
            pass
