"""What ends a program from outside ends it at once, and says why."""

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
    """As a program does that waits for a tool."""
    async with ending.within(timeout_s):
        with ending.watch(pid):
            await asyncio.Event().wait()


async def test_its_time_ends_it() -> None:
    """The reason names the time."""
    ending = ProgramTermination()
    with pytest.raises(TimeoutError):
        await wait(ending, timeout_s=0.01)
    assert isinstance(ending.reason, ProgramStoppedError)
    assert ending.reason.bound == "time"
    assert "0.01 s" in str(ending.reason)


async def test_a_flood_ends_it_from_another_thread() -> None:
    """Long before its time; the first reason stays."""
    ending = ProgramTermination()
    threading.Thread(target=ending.on_output_limit).start()
    with pytest.raises(TimeoutError):
        await wait(ending)
    assert isinstance(ending.reason, ProgramStoppedError)
    assert ending.reason.bound == "output"


async def test_a_flood_after_the_end_does_nothing() -> None:
    """The piece that was too much may come last."""
    ending = ProgramTermination()
    async with ending.within(60):
        pass
    ending.on_output_limit()
    await asyncio.sleep(0)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system cannot tell")
@pytest.mark.process
async def test_the_death_of_the_worker_ends_it() -> None:
    """While the program waits for something else."""
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
async def test_a_worker_that_is_not_known_is_not_watched() -> None:
    """Nor one that is gone before."""
    ending = ProgramTermination()
    async with ending.within(60):
        with ending.watch(None):
            pass
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        with ending.watch(gone.pid):
            pass
