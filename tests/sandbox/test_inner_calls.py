"""Calls are begun when they are waited for, and none is going when the program has ended."""

import asyncio
from typing import Any

import pytest
from toold.sandbox import ProgramStoppedError, ToolFailedError
from toold.sandbox.engine_failures import TOOL_ERROR
from toold.sandbox.inner_calls import InnerCalls

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_what_is_waited_for_is_begun_and_answered() -> None:
    """What was only written is not begun, and is told by its line."""
    begun: list[str] = []

    async def call(name: str) -> str:
        begun.append(name)
        return name.upper()

    calls = InnerCalls(most=10)
    calls.add(1, lambda: call("a"), line=3)
    calls.add(2, lambda: call("b"), line=4)
    calls.add(3, lambda: call("c"), line=None)
    assert await calls.settled([1]) == {1: {"return_value": "A"}}
    assert begun == ["a"]
    assert calls.never_awaited == [4]


async def test_those_that_have_ended_are_answered_and_others_go_on() -> None:
    """Without being begun a second time."""
    release = asyncio.Event()
    begun: list[int] = []

    async def slow() -> int:
        begun.append(1)
        await release.wait()
        return 1

    async def quick() -> int:
        return 2

    calls = InnerCalls(most=10)
    calls.add(1, slow, line=1)
    calls.add(2, quick, line=1)
    assert await calls.settled([1, 2]) == {2: {"return_value": 2}}
    release.set()
    assert await calls.settled([1]) == {1: {"return_value": 1}}
    assert begun == [1]


async def test_an_error_of_a_tool_is_one_to_the_program() -> None:
    """Its code stands before its message."""

    async def fails() -> None:
        raise ToolFailedError("NOT_FOUND", "No.")

    calls = InnerCalls(most=1)
    calls.add(7, fails, line=1)
    assert await calls.settled([7]) == {7: {"exc_type": TOOL_ERROR, "message": "NOT_FOUND: No."}}


async def test_what_is_going_at_the_end_is_cancelled_and_waited_for() -> None:
    """Also where it takes its time to clean up."""
    ended: list[str] = []

    async def call() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    async def quick() -> Any:
        return None

    calls = InnerCalls(most=10)
    calls.add(1, call, line=1)
    calls.add(2, quick, line=1)
    await calls.settled([1, 2])
    await calls.end()
    assert ended == ["cleaned up"]


async def test_there_are_only_so_many() -> None:
    """The next one ends the program."""
    calls = InnerCalls(most=2)
    calls.count_one()
    calls.count_one()
    with pytest.raises(ProgramStoppedError, match="more than 2 calls") as raised:
        calls.count_one()
    assert raised.value.bound == "calls"
