"""A single thread for long work."""

import threading

from toold.tools import WorkThread


async def test_all_work_runs_in_one_thread_that_can_end() -> None:
    """Work runs in order in one thread; an ended thread leaves nothing that the exit of the process waits for."""
    work_thread = WorkThread("test-work")
    first, second = [await work_thread.run(threading.current_thread) for _ in range(2)]
    assert first is second
    assert first is not threading.current_thread()
    work_thread.end()
    first.join()
    assert await work_thread.run(threading.current_thread) is not first
    work_thread.end()
