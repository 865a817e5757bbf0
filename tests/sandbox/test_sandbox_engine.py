"""The pool of workers: it limits the number of running programs and replaces dead workers."""

import asyncio
import contextlib
from typing import Any

import psutil
import pytest
from tests.waiting import until
from toold.sandbox import Sandbox, SandboxBusyError, WorkerDiedError

pytestmark = pytest.mark.asyncio(loop_scope="module")


def workers() -> list[psutil.Process]:
    """The worker processes."""
    return [child for child in psutil.Process().children() if "monty" in child.name()]


async def test_a_program_waits_for_a_free_worker(make: Any, run_in: Any) -> None:
    """A program occupies its worker while it waits for a tool; the next program starts after it."""
    run = run_in(make(programs=1))
    first, second = await asyncio.gather(run("import time\ntime.sleep(0.05)\nreturn 1"), run("return 2"))
    assert (first, second) == (1, 2)


async def test_waiting_too_long_for_a_worker_is_a_separate_error(make: Any, run_in: Any, recorded_tools: Any) -> None:
    """The waiting program is not started, and the running program continues."""
    run = run_in(make(programs=1))
    first = asyncio.ensure_future(run("await weather.never()"))
    await until(lambda: recorded_tools.going)
    with pytest.raises(SandboxBusyError, match=r"1 programs are running, and none ended within 0.05 s"):
        await run("return 1", timeout_s=0.05, owner="somebody else")
    assert recorded_tools.going == 1
    first.cancel()
    await asyncio.wait([first])
    assert await run("return 1") == 1


async def test_one_owner_cannot_occupy_all_workers(make: Any, run_in: Any, recorded_tools: Any) -> None:
    """A program of another owner runs at once, whatever number of programs the first owner started."""
    run = run_in(make(programs=2))
    first = asyncio.ensure_future(run("await weather.never()", owner="one"))
    await until(lambda: recorded_tools.going)
    with pytest.raises(SandboxBusyError, match=r"1 of your programs are running, and none ended within 0.05 s"):
        await run("return 1", timeout_s=0.05, owner="one")
    assert await run("return 2", owner="another") == 2
    first.cancel()
    await asyncio.wait([first])
    assert await run("return 3", owner="one") == 3


async def test_a_killed_worker_ends_its_program_and_is_replaced(make: Any, run_in: Any, recorded_tools: Any) -> None:
    """A program that waits for a tool ends at once, and its call is cancelled."""
    sandbox: Sandbox = make(programs=1)
    run = run_in(sandbox)
    waiting = asyncio.ensure_future(run("await weather.never()"))
    await until(lambda: recorded_tools.going)
    for worker in workers():
        worker.kill()
    with pytest.raises(WorkerDiedError, match="process that ran the program died"):
        await waiting
    assert recorded_tools.going == 0
    assert await run("return 1") == 1


async def test_a_worker_that_is_killed_during_a_computation_is_reported(make: Any, run_in: Any) -> None:
    """The program is in a loop when its worker is killed."""
    run = run_in(make(programs=1))
    working = asyncio.ensure_future(run("while True:\n    pass"))
    while not working.done():  # a worker that is killed before it gets the program is replaced without an error
        for worker in workers():
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()
        await asyncio.sleep(0.02)
    with pytest.raises(WorkerDiedError):
        await working


async def test_closing_ends_all_workers(make: Any, run_in: Any) -> None:
    """No worker process remains."""
    sandbox: Sandbox = make()
    await run_in(sandbox)("return 1")
    assert workers()
    await sandbox.close()
    assert [worker for worker in workers() if worker.status() != psutil.STATUS_ZOMBIE] == []
