"""The code of the custom agents that tests call."""

import asyncio
import sys
from typing import Any

from toold.protocol.tool_call import ImageContent, ResourceLink
from toold.providers import FunctionTool, Message
from toold.tools import AgentContext, ToolOutput

runs: list[str] = []
"""What the code did outside of its steps, in each run again."""
behaviour: dict[str, Any] = {}
"""Makes code behave differently in a later run, as no code should."""


begun = asyncio.Event()
"""Set by the step that waits."""


async def _waiting() -> None:
    begun.set()
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        runs.append("step cancelled")


async def waiting(context: AgentContext) -> str:
    """Waits in a step until it is cancelled."""
    try:
        await context.step("wait", _waiting)
    finally:
        runs.append("code cancelled")
    return "not cancelled"


async def drawing(context: AgentContext) -> ToolOutput:
    """Answers with files alone: an image, and a link that counts the images of the message."""
    link = ResourceLink("https://example.com/a.pdf", f"of {len(context.images)}.pdf")
    return ToolOutput("", blocks=(ImageContent("aW1n", "image/png"), link))


async def all_steps(context: AgentContext) -> str:
    """Makes a step of each kind."""
    runs.append(context.prompt)
    first = await context.run_role("reader", context.prompt)
    status = await context.call_tool("echo", {"value": first.text})
    turn = await context.turn(
        "writer",
        [Message("user", f"Use a function. {first.text}")],
        functions=[FunctionTool("lookup", "Look up.", {"type": "object"})],
    )
    number = await context.step("count", lambda: counted("count"))
    left = (await context.budget()).turns
    return f"{first.text} {status.ok} {turn.calls[0].name} {number} {left} {context.random.random()}"


async def counted(what: str) -> int:
    runs.append(what)
    return runs.count(what)


async def careful(context: AgentContext) -> dict[str, Any]:
    """Asks and writes at the same time, and catches what a pause must not raise."""
    runs.append("careful")
    now = await context.now()

    async def write() -> bool:
        branch = context.branch("write")
        await branch.call_tool("version")
        try:
            written = await branch.call_tool("echo", {"value": now})
        except Exception:
            runs.append("caught")
            raise
        return written.ok

    answer, written = await asyncio.gather(context.ask("Which?"), write())
    last = await context.call_tool("echo", {"value": [answer, now]})
    return {"answer": answer, "written": written, "last": last.outcome, "id": context.run_id}


async def moody(context: AgentContext) -> str:
    """Makes other steps after its first question was answered."""
    await context.call_tool("echo", {"value": 1})
    if behaviour.get("before"):
        return await behaviour["before"](context)  # type: ignore[no-any-return]
    await context.ask("Go on?")
    return "done"


async def failing(context: AgentContext) -> object:
    """Ends as its prompt says."""
    match context.prompt:
        case "raises":
            raise LookupError("secret detail")
        case "exits":
            sys.exit(3)
        case "nothing":
            return None
        case "no json":
            return {"handle": object()}
        case "cancels":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        case "unknown tool":
            await context.call_tool("vresion")
        case "unknown role":
            await context.run_role("writr", "x")
        case "step in step":
            await context.step("outer", context.now)
        case "hangs":
            await asyncio.get_running_loop().create_future()
    return "no case"


def not_async(context: AgentContext) -> str:
    return context.prompt


async def no_argument() -> str:
    return ""
