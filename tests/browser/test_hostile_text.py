"""Text of clients, tools, servers and models on each page: it is shown, and does nothing."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Site, describe, foreign_requests
from tests.browser.test_now_page import HOSTILE
from tests.tools.agents.hosted import calls, script
from tests.waiting import until
from toold.client import MCPWebSocketClient

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SHOWN = "<img src="


async def opened(page: Page, path: str, text: str) -> None:
    """Open a page until it shows a text."""

    async def shown() -> bool:
        await page.open(path)
        return text in await page.text("main")

    await until(shown)


async def first_link(page: Page, path: str) -> str:
    await opened(page, path, SHOWN)
    return str(await page.value("document.querySelector('main td a').pathname"))


async def test_no_page_runs_a_script_of_foreign_text(shop: Site, chromium: Chromium, tmp_path: Path) -> None:
    """Names of clients and tools, descriptions, progress, arguments, errors, what agents are asked, ask and answer."""
    async with chromium.page(shop.url) as page:
        await page.sign_in(shop.token)
        await opened(page, "/ui/sources/shop", "ready")
        assert shop.process.stop() == 0
        describe(shop.directory, f"Say it back.\n{HOSTILE}")
        shop.restart()
        await opened(page, "/ui/sources/shop", "Waiting for approval")
        client = MCPWebSocketClient(shop.process.url, token=shop.token, client_name=HOSTILE[:60])
        async with client as caller:
            await caller.call_tool(HOSTILE, {})
            await caller.call_tool("fail", {"why": HOSTILE})
            asked = script(calls(("echo", {"value": HOSTILE})), "done")
            paused = await caller.call("careful", {"prompt": asked})
            await caller.call("team", {"prompt": HOSTILE})
            progress = {"message": HOSTILE, "gate": str(tmp_path / "never")}
            running = asyncio.create_task(caller.call_tool("steps", progress))
            failed = await first_link(page, "/ui/calls?tool=fail")
            run = f"/ui/runs/{paused.structured['call_id']}"
            pages = {
                "/ui/now": SHOWN,
                "/ui/calls": SHOWN,
                failed: SHOWN,
                "/ui/sources/shop": SHOWN,
                "/ui/tools/shop_echo": SHOWN,
                "/ui/sessions": SHOWN,
                run: SHOWN,
                "/ui/agents": "May careful call echo?",  # its arguments are the value of a field
            }
            for path, text in pages.items():
                await opened(page, path, text)
                await is_inert(page)
            navigation = await page.value("[...document.querySelectorAll('nav a')].map(link => link.pathname)")
            others = ["/ui/tools?source=shop", "/ui/calls?tool=team", "/ui/agents/careful", "/ui/runs/none"]
            for path in {*navigation, *others} - pages.keys():
                await page.open(path)
                await is_inert(page)
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
        assert not foreign_requests(page)
        assert not [text for text in page.problems if "404" not in text]


async def is_inert(page: Page) -> None:
    """No script has run, and no element of the text exists."""
    assert await page.value("window.hacked") is None
    assert await page.value("document.querySelectorAll('main img, main script, a[href^=java], [onerror]').length") == 0
