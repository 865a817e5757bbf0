"""The pages of sources in a browser."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.chromium import Chromium
from tests.browser.conftest import Site, new_site
from tests.browser.test_now_page import HOSTILE
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PROGRAM = Path(__file__).parents[1] / "sources/mcp/plain_program.py"


@pytest.fixture
def shop(starts_processes: None, tmp_path: Path) -> Iterator[Site]:
    """A daemon with an MCP server whose tool ``echo`` is described by the file ``shop.json`` at its start."""
    directory = tmp_path / "site"
    directory.mkdir()
    describe(directory, "Say it back.")
    command = [sys.executable, "-S", str(PROGRAM), "--state", str(directory / "shop.json")]
    (directory / "toold.toml").write_text(f'[sources.shop]\ntype = "mcp"\ncommand = {json.dumps(command)}\n')
    site = new_site(directory)
    yield site
    site.process.stop()


def describe(directory: Path, text: str) -> None:
    (directory / "shop.json").write_text(json.dumps({"description": text}))


async def test_a_changed_source_is_approved(shop: Site, chromium: Chromium) -> None:
    """After a change the page shows the old and the new text; the button approves it, and the tool can be called."""
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
        async with page.loads():
            await page.click(".approval button")
        assert "Waiting for approval" not in await page.text("main")
        await page.open("/ui/tools?source=shop")
        assert "withheld" not in await page.text("main")
        page.problems[:] = [text for text in page.problems if "404" not in text]
        assert not page.problems
