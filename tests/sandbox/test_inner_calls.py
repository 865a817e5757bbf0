"""A program's calls start when they are awaited, and none is running after the program has ended."""

import asyncio
from typing import Any

import pytest
from toold.sandbox import ProgramStoppedError, ToolFailedError
from toold.sandbox.engine_failures import TOOL_ERROR
from toold.sandbox.inner_calls import InnerCalls

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_awaited_call_is_started() -> None:
    """A call that is not awaited is not started, and is reported with its line."""
    begun: list[str] = []

    async def call(name: str) -> str:
        begun.append(name)
        return name.upper()

    calls = InnerCalls(max_calls=10)
    calls.add(1, lambda: call("a"), line=3)
    calls.add(2, lambda: call("b"), line=4)
    calls.add(3, lambda: call("c"), line=None)
    assert await calls.settled([1]) == {1: {"return_value": "A"}}
    assert begun == ["a"]
    assert calls.never_awaited == [4]


async def test_finished_calls_are_answered_while_others_run() -> None:
    """A running call is not started a second time."""
    release = asyncio.Event()
    begun: list[int] = []

    async def slow() -> int:
        begun.append(1)
        await release.wait()
        return 1

    async def quick() -> int:
        return 2

    calls = InnerCalls(max_calls=10)
    calls.add(1, slow, line=1)
    calls.add(2, quick, line=1)
    assert await calls.settled([1, 2]) == {2: {"return_value": 2}}
    release.set()
    assert await calls.settled([1]) == {1: {"return_value": 1}}
    assert begun == [1]


async def test_a_tool_error_is_passed_to_the_program() -> None:
    """The message begins with the error code."""

    async def fails() -> None:
        raise ToolFailedError("NOT_FOUND", "No.")

    calls = InnerCalls(max_calls=1)
    calls.add(7, fails, line=1)
    assert await calls.settled([7]) == {7: {"exc_type": TOOL_ERROR, "message": "NOT_FOUND: No."}}


async def test_running_calls_are_cancelled_at_the_end() -> None:
    """``end`` waits until the cancelled calls have cleaned up."""
    ended: list[str] = []

    async def call() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    async def quick() -> Any:
        return None

    calls = InnerCalls(max_calls=10)
    calls.add(1, call, line=1)
    calls.add(2, quick, line=1)
    await calls.settled([1, 2])
    await calls.end()
    assert ended == ["cleaned up"]


async def test_the_number_of_calls_is_limited() -> None:
    """The call that exceeds the limit ends the program."""
    calls = InnerCalls(max_calls=2)
    calls.count_one()
    calls.count_one()
    with pytest.raises(ProgramStoppedError, match="more than 2 calls") as raised:
        calls.count_one()
    assert raised.value.bound == "calls"
