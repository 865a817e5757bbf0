"""An agent whose later answers are about other tasks, are HTML, or never say that a task has ended."""

import asyncio
from typing import Any

import pytest
from starlette.responses import HTMLResponse
from toold.sources.a2a import remote_call

from .scripted_agent import events, task
from .test_remote_call import DONE, WORKING, Calling, calling

__all__ = ["calling"]
pytestmark = pytest.mark.asyncio(loop_scope="module")
OTHER = task("COMPLETED", answer=[{"text": "Of another caller."}], task_id="t2")


async def test_another_task_is_not_the_answer(calling: Calling) -> None:
    """Whether it is read or streamed: the call fails, and does not cancel the other task."""
    calling.agent.reset(SendMessage={"task": WORKING}, GetTask=OTHER, CancelTask=task("CANCELED"))
    failed = await calling.failure("plain")
    assert (failed.code, "another task" in failed.message) == ("OUTCOME_UNKNOWN", True)
    calling.agent.reset(SendStreamingMessage=events({"task": WORKING}, {"task": OTHER}), CancelTask=task("CANCELED"))
    assert "another task" in (await calling.failure("live")).message
    assert "t2" not in str(calling.agent.received)


async def test_html_instead_of_a_task(calling: Calling) -> None:
    """The error says so, and that the outcome of the task is unknown."""
    calling.agent.reset(SendMessage={"task": WORKING}, GetTask=HTMLResponse("<html>"), CancelTask=task("CANCELED"))
    failed = await calling.failure("plain")
    assert (failed.code, "HTML" in failed.message) == ("OUTCOME_UNKNOWN", True)


async def test_a_task_that_works_forever_holds_up_no_other_source(
    calling: Calling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call of another source is answered meanwhile; the first ends at its deadline."""
    monkeypatch.setattr(remote_call, "FIRST_POLL_S", 0.01)
    reading = asyncio.Event()

    async def working(_: Any) -> Any:
        reading.set()
        return WORKING

    async def send(params: Any) -> Any:
        return {"task": DONE if params["message"]["parts"][0]["text"] == "Do it." and reading.is_set() else WORKING}

    calling.agent.reset(SendMessage=send, GetTask=working, CancelTask=task("CANCELED"))
    stuck = asyncio.create_task(calling.failure("plain", timeout_s=2.0))
    await reading.wait()
    assert (await calling.call("again")).structured["answer"] == "Done."
    assert (await stuck).code == "TIMEOUT"
