"""``python -m tests.browser.screenshot FILE``: the picture of the README (``make screenshot``).

A simulated daemon carries out calls of several clients under an open page Now, until its charts have a curve. No wait
has a time limit: a busy machine takes longer.
"""

import asyncio
import random
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.browser.chromium import chromium_program, running_chromium
from tests.e2e.conftest import Process, start
from toold.client import MCPWebSocketClient

SECONDS: Final = 75
"""Of the charts."""
WIDTH: Final = 1080


async def _work(process: Process, label: str, seed: int) -> None:
    """Make calls like those of an editor, at a rate that varies, until cancelled."""
    chosen = random.Random(seed)  # noqa: S311 - the same calls in each picture, no secret
    async with MCPWebSocketClient(process.url, token=process.token, session_id=label) as client:
        while True:
            kind = chosen.random()
            if kind < 0.1:
                await client.call_tool("chat", {"prompt": "Explain the failing test."})
            elif kind < 0.15:
                items = [{"text": str(number)} for number in range(5)]
                await client.call_tool("execute_batch", {"tool_name": "echo", "items": items})
            elif kind < 0.2:
                await client.call_tool("describe_tools", {"names": ["no_such_tool"]})
            else:
                await asyncio.gather(*(client.call_tool("echo", {"text": "x"}) for _ in range(chosen.randrange(1, 12))))
            await asyncio.sleep(chosen.uniform(0.05, 0.6))


async def _long_call(process: Process, label: str) -> None:
    async with MCPWebSocketClient(process.url, token=process.token, session_id=label) as client:
        items = [
            {"text": f"part {number}", "delay_ms": delay} for number, delay in enumerate((200, 700, *[600_000] * 3))
        ]
        arguments = {"tool_name": "sim_effect", "items": items, "options": {"concurrency": 2}}
        await client.call("execute_batch", arguments, timeout=1_800.0)


async def _last_calls(process: Process) -> None:
    """Calls of several kinds, which the list of ended calls begins with."""
    async with MCPWebSocketClient(process.url, token=process.token, session_id="editor") as client:
        await client.call_tool("codereview", {"prompt": "Review the parser."})
        await client.call_tool("echo", {"text": "x"})
        await client.call_tool("describe_tools", {"names": ["no_such_tool"]})
        await client.call_tool("listmodels", {})
        await client.call_tool("chat", {"prompt": "Explain the failing test."})


async def main(file: Path) -> None:
    """Write the picture."""
    program = chromium_program()
    if program is None:
        sys.exit("screenshot: Chromium is not installed")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        process = start(directory)
        try:
            async with (
                running_chromium(program, directory, limit_s=None) as browser,
                browser.page(f"http://127.0.0.1:{process.http_port}", width=WIDTH) as page,
            ):
                await page.send("Emulation.setScrollbarsHidden", hidden=True)
                await page.sign_in(process.token)
                # If a task fails, the group cancels the waits.
                async with asyncio.TaskGroup() as group:
                    labels = ("editor", "nightly-review", "agent-docs")
                    work = [group.create_task(_work(process, label, seed)) for seed, label in enumerate(labels)]
                    await page.events("seconds", int(SECONDS * 0.8))
                    work.append(group.create_task(_long_call(process, "reports")))
                    await page.shows("sim_effect", "#live tbody")
                    await page.events("seconds", SECONDS)
                    for task in work[:-1]:
                        task.cancel()
                    await _last_calls(process)
                    await page.shows("chat", "[aria-label='Ended calls'] tbody tr")
                    file.write_bytes(await page.picture())
                    work[-1].cancel()
        finally:
            process.process.kill()
            process.process.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
