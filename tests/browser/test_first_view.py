"""What a browser that was never here transfers until it shows the first page."""

import pytest
from tests.browser.chromium import Page
from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

FIRST_VIEW_BYTES = 150_000
"""docs/dashboard.md states it."""


async def test_the_first_view_is_small(page: Page, site: Site) -> None:
    """From the sign-in page to the live page Now: all responses, compressed as they are sent, with their headers."""
    await page.sign_in(site.token)
    await page.shows("/s", "#rate")  # scripts, styles and the live stream have arrived
    loaded = [url for url in page.requests if "/assets/app" in url]
    assert len(loaded) >= 2
    received = sum(page.received.values())
    assert 20_000 < received < FIRST_VIEW_BYTES
