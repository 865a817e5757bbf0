"""The pages of sources in a browser."""

import pytest
from tests.browser.accessibility import violations
from tests.browser.chromium import Chromium
from tests.browser.conftest import Site, describe
from tests.browser.test_now_page import HOSTILE
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_changed_source_is_approved(shop: Site, chromium: Chromium) -> None:
    """After a change the page shows the old and the new text, and axe finds no violation; the button
    approves it, and the tool can be called.
    """
    async with chromium.page(shop.url) as page:
        await page.sign_in(shop.token)

        async def shows_source(text: str) -> None:
            async def shown() -> bool:
                await page.open("/ui/sources/shop")
                return text in await page.text("main")

            await until(shown)

        await shows_source("ready")
        assert shop.process.stop() == 0
        describe(shop.directory, f"Say it back.\n{HOSTILE}")
        shop.restart()
        await shows_source("Waiting for approval")
        assert "Say it back." in await page.text(".diff")
        assert "<img src=" in await page.text(".diff .added")
        assert await page.value("window.hacked") is None
        assert "source ready" in await page.text(".log")
        assert not await violations(page)
        async with page.loads():
            await page.click(".approval button")
        assert "Waiting for approval" not in await page.text("main")
        await page.open("/ui/tools?source=shop")
        assert "withheld" not in await page.text("main")
        page.problems[:] = [text for text in page.problems if "404" not in text]
        assert not page.problems
