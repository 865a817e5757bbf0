"""``python -m tests.browser.screenshot FILE``: the picture of the README (``make screenshot``).

A simulated daemon carries out calls of several clients for a while, under an open page Now.
"""

import asyncio
import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.browser.chromium import chromium_program, running_chromium
from tests.e2e.conftest import Process, start
from toold.client import MCPWebSocketClient

SECONDS: Final = 75
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
            {"text": f"part {number}", "delay_ms": delay} for number, delay in enumerate((500, 3_000, *[600_000] * 3))
        ]
        arguments = {"tool_name": "sim_effect", "items": items, "options": {"concurrency": 2}}
        await client.call("execute_batch", arguments, timeout=SECONDS * 10)


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
                running_chromium(program, directory) as browser,
                browser.page(f"http://127.0.0.1:{process.http_port}", width=WIDTH) as page,
            ):
                await page.send("Emulation.setScrollbarsHidden", hidden=True)
                await page.sign_in(process.token)
                work = [
                    asyncio.create_task(_work(process, label, seed))
                    for seed, label in enumerate(("editor", "nightly-review", "agent-docs"))
                ]
                await asyncio.sleep(SECONDS * 0.8)
                work.append(asyncio.create_task(_long_call(process, "reports")))
                await asyncio.sleep(SECONDS * 0.2)
                await page.shows("sim_effect", "#live tbody")
                file.write_bytes(await page.picture())
                for task in work:
                    task.cancel()
                for task in work:
                    with suppress(asyncio.CancelledError):
                        await task
        finally:
            process.process.kill()
            process.process.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
